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

/// Limits by which a process gets more of the machine than its share, whatever else bounds it.
const PRIORITIES: [&str; 3] = ["nice", "rtprio", "rttime"];

/// The other limits that engines know, and the most that a job may ask for. None: what it bounds counts as the
/// container's memory, or is bounded in another way.
const ULIMITS: [(&str, Option<i64>); 12] = [
    ("core", None),
    ("cpu", None),
    ("data", None),
    ("fsize", None),
    ("locks", None),
    ("memlock", None),
    ("msgqueue", Some(1 << 30)),
    // More than the kernel allows anybody.
    ("nofile", Some(1 << 30)),
    ("nproc", None),
    ("rss", None),
    ("sigpending", Some(1 << 20)),
    ("stack", None),
];

/// Whether a container may have these limits. Those by which it gets before others take a leave.
pub(super) fn ulimits(asked: &DockerConfig, with_priorities: bool) -> Result<(), String> {
    for (name, value) in &asked.ulimit {
        let field = format!("ulimit[{}]", quote(name));
        let Some((soft, hard)) = ulimit(value) else {
            let value = quote(value);
            return Err(format!(
                "{field}: a number or soft:hard is needed, not {value}"
            ));
        };
        if PRIORITIES.contains(&name.as_str()) {
            match with_priorities {
                true => continue,
                false => {
                    let what = "a container to go before others";
                    return Err(super::denied(&field, what, "allow_privileged"));
                }
            }
        }
        let Some((_, most)) = ULIMITS.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = ULIMITS.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "{field}: there is no such limit; there are {}",
                names.join(", ")
            ));
        };
        let is_beyond = |number: i64| most.is_some_and(|most| number < 0 || number > most);
        if is_beyond(soft) || is_beyond(hard) {
            let most = most.unwrap_or_default();
            return Err(format!(
                "{field}: at most {most} may be asked for, not {}",
                quote(value)
            ));
        }
        if hard >= 0 && (soft < 0 || soft > hard) {
            return Err(format!(
                "{field}: the soft limit must not be above the hard one, as in {}",
                quote(value)
            ));
        }
    }
    Ok(())
}

/// Whether a job may name this logging driver of the engine's: others may send what tasks write anywhere.
pub(super) fn logging(asked: &DockerConfig, allowed: &[String]) -> Result<(), String> {
    match &asked.logging {
        Some((driver, _)) if !allowed.contains(driver) => {
            let what = format!("the logging driver {}", quote(driver));
            let allowed = allowed.iter().map(String::as_str);
            Err(super::denied_beside(
                "logging",
                &what,
                "allowed_logging_types",
                allowed,
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// The soft and the hard limit of `n` or `soft:hard`; -1 for none.
pub fn ulimit(text: &str) -> Option<(i64, i64)> {
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|it| *it >= -1);
    Some((number(soft)?, number(hard)?))
}
