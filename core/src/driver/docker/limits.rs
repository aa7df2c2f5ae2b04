//! Options that are passed on to the engine as they are: within which bounds.

use crate::driver::config::DockerConfig;
use crate::text::quote;

/// What labels begin with by which containers are known.
const RESERVED_LABELS: [&str; 2] = ["drover.", "com.hashicorp.nomad."];

/// The most labels of a container.
const LABELS: usize = 1000;

/// The most bytes of all its labels, names and values together.
const LABEL_BYTES: usize = 64 << 10;

/// Whether a job may give these labels.
pub(super) fn labels(asked: &DockerConfig) -> Result<(), String> {
    let labels = &asked.labels;
    if labels.len() > LABELS {
        return Err(format!(
            "labels: {} are more than {LABELS}; leave some out",
            labels.len()
        ));
    }
    let bytes = labels
        .iter()
        .map(|(name, value)| name.len().saturating_add(value.len()))
        .fold(0_usize, usize::saturating_add);
    if bytes > LABEL_BYTES {
        return Err(format!(
            "labels: {bytes} bytes are more than {LABEL_BYTES}; leave some out"
        ));
    }
    let is_reserved = |name: &str| RESERVED_LABELS.iter().any(|it| name.starts_with(it));
    match labels.keys().find(|name| is_reserved(name)) {
        Some(name) => Err(format!(
            "labels: {} is the agent's to give: names that begin with {} are reserved",
            quote(name),
            RESERVED_LABELS.join(" or ")
        )),
        None => Ok(()),
    }
}

/// Whether these are options of a container's storage that bound it, and nothing else.
pub(super) fn storage(asked: &DockerConfig) -> Result<(), String> {
    match asked.storage_opt.keys().find(|name| *name != "size") {
        Some(name) => Err(format!("storage_opt: size may be set, not {}", quote(name))),
        None => Ok(()),
    }
}

/// Whether these limits can be read.
pub(super) fn ulimits(asked: &DockerConfig) -> Result<(), String> {
    for (name, value) in &asked.ulimit {
        ulimit(value).ok_or_else(|| {
            let value = quote(value);
            format!(
                "ulimit[{}]: a number or soft:hard is needed, not {value}",
                quote(name)
            )
        })?;
    }
    Ok(())
}

/// The soft and the hard limit of `n` or `soft:hard`; -1 for none.
pub fn ulimit(text: &str) -> Option<(i64, i64)> {
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|it| *it >= -1);
    Some((number(soft)?, number(hard)?))
}
