//! `mock_driver`: a task that only pretends, for trying things out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Fields;
use crate::driver::coerce::port_pair;
use crate::driver::schema::{ConfigProblem, Field, Kind, Rule, Schema, validate_resolved};
use crate::model::value::Value;
use crate::time::Span;

const EXIT_CODES: Rule = Rule::Range(i32::MIN as i64, i32::MAX as i64);
const SIGNALS: Rule = Rule::Range(0, 64);
const REPEATS: Rule = Rule::Range(0, u32::MAX as i64);

/// What a `mock_driver` task's configuration may hold.
pub const MOCK: Schema = Schema {
    driver: "mock_driver",
    fields: &[
        // What an image is called, for jobs that try image updates.
        Field::optional("image", Kind::String),
        Field::optional("start_error", Kind::String),
        Field::optional("start_error_recoverable", Kind::Bool),
        Field::optional("start_block_for", Kind::Duration),
        Field::optional("plugin_exit_after", Kind::Duration),
        Field::optional("driver_ip", Kind::String),
        Field::optional("driver_advertise", Kind::Bool),
        Field::optional("driver_port_map", Kind::String).with(Rule::PortPair),
        Field::optional("kill_after", Kind::Duration),
        Field::optional("run_for", Kind::Duration),
        Field::optional("exit_code", Kind::Number).with(EXIT_CODES),
        Field::optional("exit_signal", Kind::Number).with(SIGNALS),
        Field::optional("exit_err_msg", Kind::String),
        Field::optional("signal_error", Kind::String),
        Field::optional("stdout_string", Kind::String),
        Field::optional("stdout_repeat", Kind::Number).with(REPEATS),
        Field::optional("stdout_repeat_duration", Kind::Duration),
        Field::optional("stderr_string", Kind::String),
        Field::optional("stderr_repeat", Kind::Number).with(REPEATS),
        Field::optional("stderr_repeat_duration", Kind::Duration),
        Field::optional("exec_command", Kind::Block(COMMAND)),
    ],
    exclusive: &[],
};

const COMMAND: &[Field] = &[
    Field::optional("run_for", Kind::Duration),
    Field::optional("exit_code", Kind::Number).with(EXIT_CODES),
    Field::optional("exit_signal", Kind::Number).with(SIGNALS),
    Field::optional("exit_err_msg", Kind::String),
    Field::optional("signal_error", Kind::String),
    Field::optional("stdout_string", Kind::String),
    Field::optional("stdout_repeat", Kind::Number).with(REPEATS),
    Field::optional("stdout_repeat_duration", Kind::Duration),
    Field::optional("stderr_string", Kind::String),
    Field::optional("stderr_repeat", Kind::Number).with(REPEATS),
    Field::optional("stderr_repeat_duration", Kind::Duration),
];

/// A `mock_driver` task's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MockConfig {
    /// The start fails with this.
    pub start_error: Option<String>,
    /// Whether the failed start may be tried again.
    pub start_error_recoverable: bool,
    /// How long the start takes.
    pub start_block_for: Span,
    /// When the driver's plugin pretends to be gone.
    pub plugin_exit_after: Option<Span>,
    /// The address of the driver's network.
    pub driver_ip: Option<String>,
    /// Whether that address is told to service discovery.
    pub driver_advertise: bool,
    /// The one port of the driver's network, by its label.
    pub driver_port_map: Option<(String, u16)>,
    /// From being asked to end to ending.
    pub kill_after: Span,
    /// What the task does.
    pub command: MockCommand,
    /// What a command that is run in the task does.
    pub exec_command: Option<MockCommand>,
}

/// What a pretended process does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MockCommand {
    /// How long it runs; zero ends it at once.
    pub run_for: Span,
    /// Its exit code.
    pub exit_code: i32,
    /// The signal that it ended by; 0 for none.
    pub exit_signal: i32,
    /// What waiting for it says instead of a result.
    pub exit_err_msg: Option<String>,
    /// Sending it a signal fails with this.
    pub signal_error: Option<String>,
    /// What it writes to its standard output.
    pub stdout: MockOutput,
    /// What it writes to its standard error.
    pub stderr: MockOutput,
}

/// What a pretended process writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MockOutput {
    /// The text, written once at the start.
    pub text: String,
    /// How often it is written again.
    pub repeat: u32,
    /// The pause before each time.
    pub gap: Span,
}

impl MockConfig {
    /// Reads a configuration whose references are replaced already.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn decode(config: &BTreeMap<String, Value>) -> Result<Self, Vec<ConfigProblem>> {
        let problems = validate_resolved(&MOCK, config);
        if !problems.is_empty() {
            return Err(problems);
        }
        let fields = Fields(config);
        let port_map = fields.text("driver_port_map");
        Ok(MockConfig {
            start_error: fields.some_text("start_error"),
            start_error_recoverable: fields.bool("start_error_recoverable"),
            start_block_for: fields.span("start_block_for"),
            plugin_exit_after: Some(fields.span("plugin_exit_after")).filter(|s| !s.is_zero()),
            driver_ip: fields.some_text("driver_ip"),
            driver_advertise: fields.bool("driver_advertise"),
            driver_port_map: port_pair(&port_map).map(|(label, port)| (label.to_owned(), port)),
            kill_after: fields.span("kill_after"),
            command: command(fields),
            exec_command: fields.block("exec_command").map(command),
        })
    }
}

fn command(fields: Fields<'_>) -> MockCommand {
    let output = |stream: &str| MockOutput {
        text: fields.text(&format!("{stream}_string")),
        repeat: fields.number(&format!("{stream}_repeat")),
        gap: fields.span(&format!("{stream}_repeat_duration")),
    };
    MockCommand {
        run_for: fields.span("run_for"),
        exit_code: fields.number("exit_code"),
        exit_signal: fields.number("exit_signal"),
        exit_err_msg: fields.some_text("exit_err_msg"),
        signal_error: fields.some_text("signal_error"),
        stdout: output("stdout"),
        stderr: output("stderr"),
    }
}
