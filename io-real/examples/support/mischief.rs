//! What the example plugins do wrong when a test tells them to, by an environment variable:
//! `hang:Reserve`, `die:StartTask`, `flood:Stats`, `crash`, `garbage`, ...

use tonic::Status;

/// The variable.
const VARIABLE: &str = "EXAMPLE_PLUGIN_MISCHIEF";

/// What a plugin does wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mischief(String);

impl Mischief {
    /// What the environment says.
    pub(crate) fn from_env() -> Mischief {
        Mischief(std::env::var(VARIABLE).unwrap_or_default())
    }

    /// Whether it is this.
    pub(crate) fn is(&self, what: &str) -> bool {
        self.0 == what
    }

    /// Does it in this call, if it is to be done there.
    pub(crate) async fn at(&self, call: &str) -> Result<(), Status> {
        match self.0.split_once(':') {
            Some(("hang", here)) if here == call => std::future::pending().await,
            Some(("die", here)) if here == call => {
                eprintln!("panic: told to die in {call}");
                std::process::exit(3)
            }
            Some(("refuse", here)) if here == call => Err(Status::unknown("told to refuse")),
            _ => Ok(()),
        }
    }

    /// Does it before there is any call. The line that is printed instead of the handshake, if
    /// another is.
    pub(crate) fn at_start(&self) -> Option<String> {
        if self.is("chatty") {
            std::thread::spawn(chat);
        }
        match self.0.as_str() {
            "crash" => {
                eprintln!("panic: told to crash");
                std::process::exit(2)
            }
            // Reads what nobody writes.
            "silent" => loop {
                std::thread::park();
            },
            "garbage" => Some("Hello, I am no plugin\u{7}".to_owned()),
            "endless" => Some("x".repeat(1 << 20)),
            "version" => Some("1|9|unix|/tmp/x|grpc|".to_owned()),
            "netrpc" => Some("1|2|unix|/tmp/x|netrpc|".to_owned()),
            "foreign" => Some("1|2|unix|/dev/null|grpc|".to_owned()),
            _ => None,
        }
    }
}

/// Prints for ever, and takes it badly if nobody can hear.
fn chat() {
    use std::io::Write;
    loop {
        if writeln!(std::io::stderr(), "and another thing").is_err() {
            std::process::exit(5);
        }
        std::thread::park_timeout(std::time::Duration::from_micros(100));
    }
}
