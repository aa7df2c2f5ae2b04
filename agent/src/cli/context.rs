//! What every command has at hand, and the small steps that several of them take.

use drover_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use super::args::{Page, Shape};
use super::client::Client;
use super::exit_code::Failure;
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

    /// Reads a part of a list, and where the next one begins.
    ///
    /// # Errors
    /// The filter or the token makes no sense, or the agent does not answer.
    pub async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        page: &Page,
    ) -> Result<(T, Option<String>), Failure> {
        let of_page = page.query();
        let of_page = of_page.iter().map(|(name, value)| (*name, value.as_str()));
        let query: Vec<(&str, &str)> = query.iter().copied().chain(of_page).collect();
        let answer = self.client.read(path, &query).await?;
        Ok((answer.value, answer.next_token))
    }

    /// Says how the next page is asked for, if there is one: not where programs read the list.
    pub fn note_next(&mut self, next: Option<&str>) {
        if let Some(token) = next {
            let words = format!("There are more. For the next page, add: -page-token {token}");
            self.screen.complain(&words);
        }
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
