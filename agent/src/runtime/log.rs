//! What the agent writes about itself: lines on its standard error.

use tracing_subscriber::EnvFilter;

/// Lines of `level` and above. A level that nobody knows is `info`.
pub(super) fn init(level: &str, json: bool) {
    let filter = EnvFilter::try_new(level.to_lowercase());
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info"));
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(colour && !json);
    // Somebody may have set one up already, such as a test: that one stays.
    let _ = match json {
        true => builder.json().flatten_event(true).try_init(),
        false => builder.try_init(),
    };
}
