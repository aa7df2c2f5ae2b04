//! `exec`: a process that is kept apart from the host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Fields, IO};
use crate::driver::isolation::Sharing;
use crate::driver::schema::{ConfigProblem, Field, Kind, Rule, Schema, validate_resolved};
use crate::model::value::Value;

/// What an `exec` task's configuration may hold.
pub const EXEC: Schema = Schema {
    driver: "exec",
    fields: &[
        Field::optional("command", Kind::String)
            .required()
            .with(Rule::Command),
        Field::optional("args", Kind::ListOfString),
        Field::optional("work_dir", Kind::String).with(Rule::AbsolutePath),
        Field::optional("pid_mode", Kind::String).with(Rule::OneOf(&Sharing::NAMES)),
        Field::optional("ipc_mode", Kind::String).with(Rule::OneOf(&Sharing::NAMES)),
        Field::optional("cap_add", Kind::ListOfString).with(Rule::Capabilities),
        Field::optional("cap_drop", Kind::ListOfString).with(Rule::Capabilities),
        Field::optional("cpu_hard_limit", Kind::Bool),
        Field::optional("io", Kind::Block(IO)),
    ],
    exclusive: &[],
};

/// An `exec` task's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExecConfig {
    /// The program: a path below the task's root, or a name to look for there.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it starts; the task's root if none. Absolute.
    pub work_dir: Option<String>,
    /// Whose processes it sees; as the agent is configured if none.
    pub pid_mode: Option<Sharing>,
    /// Whose shared memory, semaphores and queues it sees; as the agent is configured if none.
    pub ipc_mode: Option<Sharing>,
    /// Capabilities that it has beside the usual ones, with or without `CAP_`; `all` for all that it may have.
    pub cap_add: Vec<String>,
    /// Usual capabilities that it does not have; `all` for none.
    pub cap_drop: Vec<String>,
}

impl ExecConfig {
    /// Reads a configuration whose references are replaced already.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn decode(config: &BTreeMap<String, Value>) -> Result<Self, Vec<ConfigProblem>> {
        let problems = validate_resolved(&EXEC, config);
        if !problems.is_empty() {
            return Err(problems);
        }
        let fields = Fields(config);
        let sharing = |name| Sharing::of(&fields.text(name));
        Ok(ExecConfig {
            command: fields.text("command"),
            args: fields.texts("args"),
            work_dir: fields.some_text("work_dir"),
            pid_mode: sharing("pid_mode"),
            ipc_mode: sharing("ipc_mode"),
            cap_add: fields.texts("cap_add"),
            cap_drop: fields.texts("cap_drop"),
        })
    }
}
