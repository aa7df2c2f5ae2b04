//! Where lines go: one file for each protocol. What it looks like is a function without I/O.

mod journald;
mod loki;
mod otlp;
mod syslog;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drover_core::time::Timestamp;
use tokio::time::timeout;

use super::settings::Destination;
use super::source::Source;
use crate::post::PostBox;

/// How long a socket may take for what it is given.
const SEND: Duration = Duration::from_secs(10);

/// A line on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) source: Arc<Source>,
    pub(super) is_error: bool,
    pub(super) time: Timestamp,
    pub(super) text: String,
}

/// What is the same for all lines of one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Common {
    /// The node's name.
    pub(super) node: String,
    pub(super) labels: BTreeMap<String, String>,
}

/// Why lines were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// How many of them were.
    pub(super) taken: usize,
    pub(super) why: String,
    /// Whether the others never will be.
    pub(super) is_final: bool,
    /// How long to wait, if they say so.
    pub(super) pause: Option<Duration>,
}

impl Refused {
    fn after(taken: usize, why: impl Into<String>) -> Refused {
        Refused {
            taken,
            why: why.into(),
            is_final: false,
            pause: None,
        }
    }
}

/// A destination, with its connection.
#[derive(Debug)]
pub(super) enum Sink {
    Syslog(syslog::Syslog),
    Journald(journald::Journald),
    Otlp(PostBox),
    Loki(PostBox),
}

impl Sink {
    pub(super) fn new(to: &Destination) -> Sink {
        match to {
            Destination::Syslog(address, facility) => {
                Sink::Syslog(syslog::Syslog::new(address.clone(), *facility))
            }
            Destination::Journald(path) => Sink::Journald(journald::Journald::new(path.clone())),
            Destination::Otlp(to) => Sink::Otlp(to.clone()),
            Destination::Loki(to) => Sink::Loki(to.clone()),
        }
    }

    /// Whether waiting a moment for more lines saves requests.
    pub(super) fn likes_many(&self) -> bool {
        match self {
            Sink::Otlp(_) | Sink::Loki(_) => true,
            Sink::Syslog(_) | Sink::Journald(_) => false,
        }
    }

    /// Sends lines, oldest first.
    ///
    /// # Errors
    /// Not all were taken.
    pub(super) async fn send(&mut self, common: &Common, lines: &[Entry]) -> Result<(), Refused> {
        match self {
            Sink::Syslog(syslog) => syslog.send(common, lines).await,
            Sink::Journald(journald) => journald.send(common, lines).await,
            Sink::Otlp(to) => post(to, otlp::body(common, lines)).await,
            Sink::Loki(to) => post(to, loki::body(common, lines)).await,
        }
    }
}

async fn post(to: &PostBox, body: Vec<u8>) -> Result<(), Refused> {
    let answer = to.post("application/json", body.into()).await;
    let answer = answer.map_err(|why| Refused::after(0, why))?;
    match answer.is_taken() {
        true => Ok(()),
        false => Err(Refused {
            // A server that is set up wrongly is set up rightly later: only what is wrong with these lines is final.
            is_final: matches!(answer.status, 400 | 413 | 422),
            pause: answer.retry_after,
            ..Refused::after(0, answer.in_words())
        }),
    }
}

/// What a socket does, within its time.
async fn in_time<T>(work: impl Future<Output = std::io::Result<T>>) -> Result<T, String> {
    match timeout(SEND, work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it took longer than {SEND:?}")),
    }
}

/// Lines of one stream that follow each other: most of what is said of them is the same.
fn runs(lines: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    lines.chunk_by(|one, other| {
        one.is_error == other.is_error && Arc::ptr_eq(&one.source, &other.source)
    })
}

/// What is said of a line besides its text: by name, in one order.
fn labels<'a>(common: &'a Common, source: &'a Source, is_error: bool) -> BTreeMap<&'a str, String> {
    let own = [
        ("node", common.node.clone()),
        ("namespace", source.job.namespace.to_string()),
        ("job", source.job.id.to_string()),
        ("group", source.group.to_string()),
        ("task", source.task.to_string()),
        ("alloc_id", source.alloc.to_string()),
        ("alloc", source.alloc_name.to_string()),
        ("stream", super::stream::name(is_error).to_owned()),
    ];
    let given = common.labels.iter();
    let given = given.map(|(name, value)| (name.as_str(), value.clone()));
    // Nothing that is given changes whose line it is.
    given.chain(own).collect()
}

#[cfg(test)]
pub(super) mod examples {
    use drover_core::ids::{AllocId, JobKey};

    use super::*;

    pub(crate) fn common() -> Common {
        Common {
            node: "node-7".to_owned(),
            labels: [("env".to_owned(), "prod".to_owned())].into(),
        }
    }

    pub(crate) fn entry(text: &str, is_error: bool, nanos: i64) -> Entry {
        let source = Source {
            alloc: AllocId(7),
            alloc_name: "web.g[0]".into(),
            job: JobKey::local("web"),
            group: "g".into(),
            task: "main".into(),
            max_file_size: 1000,
        };
        Entry {
            source: Arc::new(source),
            is_error,
            time: Timestamp(1_795_236_197_000_000_000 + nanos),
            text: text.to_owned(),
        }
    }
}
