//! `raw_exec`: a process of the host without isolation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Fields, IO};
use crate::driver::schema::{ConfigProblem, Field, Kind, Rule, Schema, validate_resolved};
use crate::model::value::Value;

/// What a `raw_exec` task's configuration may hold.
pub const RAW_EXEC: Schema = Schema {
    driver: "raw_exec",
    fields: &[
        Field::optional("command", Kind::String)
            .required()
            .with(Rule::Command),
        Field::optional("args", Kind::ListOfString),
        Field::optional("work_dir", Kind::String).with(Rule::AbsolutePath),
        Field::optional("cgroup_v1_override", Kind::MapOfString),
        Field::optional("cgroup_v2_override", Kind::String),
        // The kernel knows no more than 1000.
        Field::optional("oom_score_adj", Kind::Number).with(Rule::Range(0, 1000)),
        Field::optional("denied_envvars", Kind::ListOfString),
        Field::optional("cpu_hard_limit", Kind::Bool),
        Field::optional("io", Kind::Block(IO)),
    ],
    exclusive: &[("cgroup_v1_override", "cgroup_v2_override")],
};

/// A `raw_exec` task's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawExecConfig {
    /// The program: a path, or a name to look for.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it starts; the task's directory if none. Absolute.
    pub work_dir: Option<String>,
    /// Control groups of one's own, by controller; the agent sets no limits then.
    pub cgroup_v1_override: BTreeMap<String, String>,
    /// A control group of one's own; the agent sets no limits then.
    pub cgroup_v2_override: Option<String>,
    /// How readily the kernel kills it when memory is short, from 0 to 1000.
    pub oom_score_adj: i32,
    /// Patterns of variables that it does not get.
    pub denied_envvars: Vec<String>,
}

impl RawExecConfig {
    /// Reads a configuration whose references are replaced already.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn decode(config: &BTreeMap<String, Value>) -> Result<Self, Vec<ConfigProblem>> {
        let problems = validate_resolved(&RAW_EXEC, config);
        if !problems.is_empty() {
            return Err(problems);
        }
        let fields = Fields(config);
        Ok(RawExecConfig {
            command: fields.text("command"),
            args: fields.texts("args"),
            work_dir: fields.some_text("work_dir"),
            cgroup_v1_override: fields.map("cgroup_v1_override"),
            cgroup_v2_override: fields.some_text("cgroup_v2_override"),
            oom_score_adj: fields.number("oom_score_adj"),
            denied_envvars: fields.texts("denied_envvars"),
        })
    }
}
