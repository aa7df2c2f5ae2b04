//! The blocks `log_forward`: where the logs of tasks are sent.
//!
//! ```hcl
//! log_forward "central" {
//!   type   = "loki"                                # or "otlp", "syslog", "journald"
//!   url    = "https://loki.example.com/loki/api/v1/push"
//!   jobs   = ["web-*"]                             # all jobs if left out
//!   labels = { env = "prod" }
//!   headers = { Authorization = "Bearer …" }
//!   timeout = "10s"
//! }
//!
//! log_forward "local" {
//!   type     = "syslog"
//!   address  = "unix:///dev/log"                   # or "udp://HOST:514", "tcp://HOST:601"
//!   facility = "local0"
//! }
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use drover_core::text::quote;
use drover_io_real::forward::{Address, Destination, ForwardSettings, facility};
use hcl_edit::structure::Block;

use super::literal::Fields;
use super::place::Places;
use super::reading::{Reading, named, post_box};
use super::unknown;

/// More destinations than this nobody means.
const MOST: usize = 8;
/// Nor more labels, and they are short.
const LABELS: (usize, usize) = (32, 256);
/// The journal's socket.
const JOURNAL: &str = "/run/systemd/journal/socket";

const TYPES: [&str; 4] = ["journald", "loki", "otlp", "syslog"];
const COMMON: [&str; 3] = ["type", "jobs", "labels"];
const HTTP: [&str; 4] = ["url", "headers", "timeout", "ca_file"];

/// Reads a block.
///
/// # Errors
/// It says what cannot be; where, and what is known instead.
pub(super) fn destination(
    into: &mut Vec<ForwardSettings>,
    block: &Block,
    places: &Places<'_>,
) -> Result<(), String> {
    let others = into.iter().map(|other| other.name.as_str());
    let (name, about) = named(block, places, others, MOST)?;
    if let Some(inner) = block.body.blocks().next() {
        let why = no_block(inner.ident.as_str());
        return Err(format!("{}{about}: {why}", places.of(inner)));
    }
    let kind = kind(block, &about, places)?;
    let own: &[&str] = match kind.as_str() {
        "syslog" => &["address", "facility"],
        "journald" => &["address"],
        _ => &HTTP,
    };
    let known: Vec<&str> = COMMON.iter().chain(own).copied().collect();
    let mut read = Reading::of(block, &about, places, &known)?;
    let jobs = read.take("jobs", Fields::texts)?;
    let labels = read.take("labels", labels)?;
    let to = match kind.as_str() {
        "syslog" => syslog(&mut read)?,
        "journald" => Destination::Journald(journald(&mut read)?),
        "loki" => Destination::Loki(post_box(&mut read)?),
        _ => Destination::Otlp(post_box(&mut read)?),
    };
    into.push(ForwardSettings {
        name: name.to_owned(),
        jobs,
        labels,
        to,
    });
    Ok(())
}

/// There are no blocks in it, only settings.
fn no_block(name: &str) -> String {
    let settings = COMMON.into_iter().chain(HTTP);
    let settings: Vec<&str> = settings.chain(["address", "facility"]).collect();
    let shown = quote(name);
    match settings.contains(&name) {
        true => format!("{shown} is a setting, not a block: write {name} = ..."),
        false => {
            let known = settings.join(", ");
            format!("unknown block {shown}; there are only settings: {known}")
        }
    }
}

/// Which protocol, which decides what else is known.
fn kind(block: &Block, about: &str, places: &Places<'_>) -> Result<String, String> {
    let given = block.body.get_attribute("type");
    let kind = given.and_then(|it| it.value.as_str()).unwrap_or_default();
    match TYPES.contains(&kind) {
        true => Ok(kind.to_owned()),
        false => {
            let at = places.setting(block, "type");
            Err(format!("{at}{about}: {}", unknown("type", kind, &TYPES)))
        }
    }
}

fn syslog(read: &mut Reading<'_>) -> Result<Destination, String> {
    let address = read.take("address", |given, name| {
        let text = given.text(name)?;
        Address::parse(text.as_deref().unwrap_or("unix:///dev/log"))
    })?;
    let facility = read.take("facility", |given, name| {
        let text = given.text(name)?.unwrap_or_else(|| "user".to_owned());
        facility(&text).map_err(|known| unknown("facility", &text, known))
    })?;
    Ok(Destination::Syslog(address, facility))
}

fn journald(read: &mut Reading<'_>) -> Result<PathBuf, String> {
    read.take("address", |given, name| {
        let path = PathBuf::from(given.text(name)?.unwrap_or_else(|| JOURNAL.to_owned()));
        match path.is_absolute() {
            true => Ok(path),
            false => Err("the absolute path of a socket is needed".to_owned()),
        }
    })
}

/// Labels have names that every protocol can say.
fn labels(given: &mut Fields, name: &'static str) -> Result<BTreeMap<String, String>, String> {
    let labels = given.text_map(name)?;
    if labels.len() > LABELS.0 {
        return Err(format!("there are more than {}", LABELS.0));
    }
    for (label, value) in &labels {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let starts = label.starts_with(|first: char| first.is_ascii_alphabetic());
        if !starts || label.len() > 32 || !label.bytes().all(fits) {
            let label = quote(label);
            return Err(format!(
                "{label}: a name has letters, digits and _, 32 at most"
            ));
        }
        if value.len() > LABELS.1 || value.contains(char::is_control) {
            let (label, most) = (quote(label), LABELS.1);
            return Err(format!(
                "{label}: a value has no control characters, and {most} bytes at most"
            ));
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn destinations_are_read() {
        let config = parse(
            r#"
            log_forward "central" {
              type    = "loki"
              url     = "https://loki.example.com/loki/api/v1/push"
              jobs    = ["web-*"]
              labels  = { env = "prod" }
              headers = { Authorization = "Bearer t0ken" }
            }
            log_forward "syslog" {
              type     = "syslog"
              address  = "tcp://logs.example.com:601"
              facility = "local0"
            }
            log_forward "journal" { type = "journald" }
            log_forward "near" { type = "syslog" }
            "#,
        )
        .unwrap();
        let [loki, syslog, journal, near] = config.log_forward.as_slice() else {
            panic!("{:?}", config.log_forward);
        };
        assert_eq!((loki.jobs.len(), &*loki.labels["env"]), (1, "prod"));
        assert!(matches!(&loki.to, Destination::Loki(to) if to.timeout.as_secs() == 10));
        assert!(!format!("{loki:?}").contains("t0ken"));
        let tcp = Address::Tcp("logs.example.com:601".to_owned());
        assert_eq!(syslog.to, Destination::Syslog(tcp, 16));
        assert_eq!(journal.to, Destination::Journald(JOURNAL.into()));
        let here = Address::Unix("/dev/log".into());
        assert_eq!(near.to, Destination::Syslog(here, 1));
    }

    #[test]
    fn mistake_has_line_and_column_and_names_what_is_near() {
        for (inner, expected) in [
            (
                "type = \"sislog\"",
                "line 2, column 1: log_forward \"x\": unknown type \"sislog\"; did you mean syslog?",
            ),
            (
                "url = \"http://a\"",
                "line 1, column 1: log_forward \"x\": unknown type",
            ),
            (
                "type = \"loki\"\nurll = \"http://a\"",
                "line 3, column 1: log_forward \"x\": unknown setting \"urll\"; did you mean url?",
            ),
            (
                "type = \"syslog\"\nurl = \"http://a\"",
                "line 3, column 1: log_forward \"x\": unknown setting \"url\"",
            ),
            (
                "type = \"loki\"\nurl = \"a\"",
                "line 3, column 1: log_forward \"x\": url: that is no URL",
            ),
            (
                "type = \"syslog\"\naddress = \"udp://a\"",
                "line 3, column 1: log_forward \"x\": address: \"a\" is not HOST:PORT",
            ),
            (
                "type = \"syslog\"\nfacility = \"locl0\"",
                "did you mean local0?",
            ),
            (
                "type = \"journald\"\nlabels = { \"a b\" = \"c\" }",
                "line 3, column 1: log_forward \"x\": labels: \"a b\"",
            ),
            ("type = \"journald\"\naddress = \"x\"", "an absolute path"),
            (
                "type = \"loki\"\nheaders { a = \"b\" }",
                "line 3, column 1: log_forward \"x\": \"headers\" is a setting, not a block: write headers = ...",
            ),
            (
                "type = \"loki\"\nretry {}",
                "line 3, column 1: log_forward \"x\": unknown block \"retry\"; there are only settings: type, jobs",
            ),
        ] {
            let why = parse(&format!("log_forward \"x\" {{\n{inner}\n}}")).unwrap_err();
            let expected = expected.replace("an absolute path", "the absolute path");
            assert!(why.contains(&expected), "{inner}: {why}");
        }
    }
}
