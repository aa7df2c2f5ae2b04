//! The task configurations of the drivers that come with the agent.

mod docker;
mod exec;
mod io;
mod mock;
mod raw_exec;

use std::collections::BTreeMap;

pub use docker::{DOCKER, DockerConfig, DockerMount, MountKind, RegistryAuth, registry_auth};
pub use exec::{EXEC, ExecConfig};
pub use io::{BYTES as IO_BYTES, IO, IoLimits, REQUESTS as IO_REQUESTS};
pub use mock::{MOCK, MockCommand, MockConfig, MockOutput};
pub use raw_exec::{RAW_EXEC, RawExecConfig};

use super::coerce::{blocks_of, bool_of, span_of, text_of, whole_of};
use super::schema::Schema;
use crate::model::value::Value;
use crate::time::Span;

/// The schemas of all drivers that come with the agent.
pub const SCHEMAS: [&Schema; 4] = [&RAW_EXEC, &EXEC, &DOCKER, &MOCK];

/// The schema of a driver's task configuration; none for a driver that does not come with the
/// agent. `mock` is another name of `mock_driver`.
pub fn schema_for(driver: &str) -> Option<&'static Schema> {
    match driver {
        "raw_exec" => Some(&RAW_EXEC),
        "exec" => Some(&EXEC),
        "docker" => Some(&DOCKER),
        "mock_driver" | "mock" => Some(&MOCK),
        _ => None,
    }
}

/// What a task's configuration says of the processors, whatever its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuLimit {
    /// Whether its share is all that it ever gets.
    pub(super) is_hard: bool,
    /// The period within which it gets that, in microseconds, if it says one.
    pub(super) period: Option<i64>,
}

/// Reads it.
pub(super) fn cpu_limit(config: &BTreeMap<String, Value>) -> CpuLimit {
    let fields = Fields(config);
    CpuLimit {
        is_hard: fields.bool("cpu_hard_limit"),
        period: fields.some_number("cpu_cfs_period"),
    }
}

/// Reads the fields of a configuration that was found valid; what is not given is empty.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a BTreeMap<String, Value>);

impl<'a> Fields<'a> {
    fn text(self, name: &str) -> String {
        self.0
            .get(name)
            .and_then(text_of)
            .map(|text| text.into_owned())
            .unwrap_or_default()
    }

    /// The text, unless it is empty.
    fn some_text(self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    fn bool(self, name: &str) -> bool {
        self.0.get(name).and_then(bool_of).unwrap_or_default()
    }

    /// The number; 0 where it does not fit, which validation has refused.
    fn number<N: TryFrom<i64> + Default>(self, name: &str) -> N {
        let number = self.0.get(name).and_then(whole_of).unwrap_or_default();
        N::try_from(number).unwrap_or_default()
    }

    /// The number; none where it is not given or does not fit.
    fn some_number<N: TryFrom<i64>>(self, name: &str) -> Option<N> {
        let number = self.0.get(name).and_then(whole_of)?;
        N::try_from(number).ok()
    }

    fn some_bool(self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(bool_of)
    }

    fn span(self, name: &str) -> Span {
        span_of(&self.text(name)).unwrap_or_default()
    }

    fn texts(self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(Value::as_list);
        let texts = items.into_iter().flatten().filter_map(text_of);
        texts.map(|text| text.into_owned()).collect()
    }

    fn map(self, name: &str) -> BTreeMap<String, String> {
        let blocks = self.0.get(name).and_then(blocks_of).unwrap_or_default();
        let entries = blocks.into_iter().flatten();
        entries
            .filter_map(|(key, value)| Some((key.clone(), text_of(value)?.into_owned())))
            .collect()
    }

    fn block(self, name: &str) -> Option<Fields<'a>> {
        let blocks = self.0.get(name).and_then(blocks_of)?;
        blocks.first().copied().map(Fields)
    }

    fn blocks(self, name: &str) -> impl Iterator<Item = Fields<'a>> {
        let blocks = self.0.get(name).and_then(blocks_of).unwrap_or_default();
        blocks.into_iter().map(Fields)
    }
}
