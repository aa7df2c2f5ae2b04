//! What every command has at hand, and the small steps that several of them take.

use drover_core::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use super::args::Shape;
use super::client::Client;
use super::failure::Failure;
use super::screen::Screen;
use super::shape::rendered;
use crate::times;

/// What every command has at hand.
pub struct Context {
    /// The way to the agent.
    pub client: Client,
    /// The way to the user.
    pub screen: Screen,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// How a command ends: with an exit code, or with a failure.
pub type Outcome = Result<u8, Failure>;

impl Context {
    /// A point in time as lists show it: how long ago, or exactly.
    pub fn time(&self, nanos: i64, exact: bool) -> String {
        let time = Timestamp(nanos);
        if exact {
            times::to_seconds(time)
        } else {
            times::ago(time, (self.clock)())
        }
    }

    /// The time of day for lines that tell what happens.
    pub fn stamp(&self) -> String {
        times::to_seconds((self.clock)())
    }

    /// Shows an answer as it was asked for: through a template, or as JSON.
    ///
    /// # Errors
    /// The template is wrong or fails, or nobody reads any more.
    pub fn show(&mut self, shape: &Shape, value: &Value) -> Outcome {
        let Some(template) = &shape.template else {
            return self.print_json(value);
        };
        self.screen.print_line(&rendered(template, value)?)?;
        Ok(0)
    }

    /// Shows JSON as it came.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn print_json(&mut self, value: &Value) -> Outcome {
        self.screen.print_line(&pretty(value)?)?;
        Ok(0)
    }
}

/// JSON for people.
///
/// # Errors
/// It cannot be written.
pub fn pretty(value: &Value) -> Result<String, Failure> {
    let mut text = Vec::new();
    let format = PrettyFormatter::with_indent(b"    ");
    let mut to = serde_json::Serializer::with_formatter(&mut text, format);
    let encoded = value.serialize(&mut to);
    encoded.map_err(|error| Failure::new(format!("cannot show the answer: {error}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
