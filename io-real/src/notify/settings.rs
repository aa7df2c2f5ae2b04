//! Who is notified, of what, and how.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use drover_core::model::notice::{Event, Notice};
use drover_core::text::glob_match;
use drover_template::{Options, Template};

use crate::post::PostBox;

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetSettings {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// Of what it is notified.
    pub on: BTreeSet<Event>,
    /// Of whose jobs, by patterns of their ids; of all if none. What happens to the node is notified anyway.
    pub jobs: Vec<String>,
    /// How it is notified.
    pub way: Way,
    /// How many messages it gets in a minute at most.
    pub per_minute: u32,
    /// For how long a message is tried again.
    pub give_up: Duration,
}

/// How a target is notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a request to a web server.
    Webhook(WebhookSettings),
    /// By a program.
    Command(CommandSettings),
}

/// A web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Where.
    pub to: PostBox,
    /// What the body says instead of the message as JSON: a template.
    pub template: Option<String>,
    /// What kind of body it is.
    pub content_type: String,
}

/// A program that is run for each message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSettings {
    /// Where it is.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// How long it may run.
    pub timeout: Duration,
}

impl TargetSettings {
    /// Whether it is to be notified of this.
    pub fn wants(&self, notice: &Notice) -> bool {
        let meant = |id: &str| self.jobs.iter().any(|pattern| glob_match(pattern, id));
        let job = notice.subject.job.as_ref();
        let of_others = !self.jobs.is_empty() && job.is_some_and(|job| !meant(&job.id));
        self.on.contains(&notice.event) && !of_others
    }
}

/// Reads a template, so that mistakes are found at the start.
///
/// # Errors
/// It is none; with the place.
pub fn check_template(text: &str) -> Result<Template, String> {
    Template::parse(text, Options::default()).map_err(|error| error.to_string())
}
