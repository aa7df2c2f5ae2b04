//! What a job goes through before the core sees it: reading, filling in of defaults, validation.

use std::path::PathBuf;

use drover_core::model::job::Job;
use drover_core::text::quote;

/// Where the text of a job file comes from, and what its variables are.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    /// `name=value`, as the command line gives them.
    pub vars: Vec<(String, String)>,
    /// Files of values: their names and texts.
    pub var_files: Vec<(String, String)>,
    /// The environment, which may have values too.
    pub env: Vec<(String, String)>,
    /// Whether values of undeclared variables are warned of only.
    pub lenient: bool,
    /// The directory from which functions may read files; none where they must not.
    pub dir: Option<PathBuf>,
}

/// Why a job is not taken: one message for each mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl Refused {
    /// A single mistake.
    pub fn one(message: impl Into<String>) -> Refused {
        Refused(vec![message.into()])
    }

    /// The mistakes as the field lists them.
    pub fn list(&self) -> String {
        let (count, plural) = (self.0.len(), if self.0.len() == 1 { "" } else { "s" });
        let mut text = format!("{count} error{plural} occurred:\n");
        for message in &self.0 {
            text.push_str(&format!("\t* {message}\n"));
        }
        text.push('\n');
        text
    }
}

/// A job with what its author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The job: canonical and valid if it comes from [`admit`], as written if it was only read.
    pub job: Job,
    /// Warnings, one each.
    pub warnings: Vec<String>,
}

impl Admitted {
    /// The warnings as the field lists them; empty if there are none.
    pub fn warning_text(&self) -> String {
        let (count, plural) = (
            self.warnings.len(),
            if self.warnings.len() == 1 { "" } else { "s" },
        );
        if count == 0 {
            return String::new();
        }
        let list: Vec<String> = self.warnings.iter().map(|w| format!("* {w}")).collect();
        format!("{count} warning{plural}:\n\n{}", list.join("\n"))
    }
}

/// Reads a job file.
///
/// # Errors
/// Every mistake that could be found in one go.
pub fn read_file(text: &str, name: &str, options: &FileOptions) -> Result<Admitted, Refused> {
    let _ = options;
    let job = read_api_json(text.as_bytes()).map_err(|Refused(messages)| {
        Refused(
            messages
                .into_iter()
                .map(|m| format!("{name}: {m}"))
                .collect(),
        )
    })?;
    Ok(Admitted {
        job,
        warnings: Vec::new(),
    })
}

/// Reads a job of the job API: `{"Job": {…}}`, or a job alone.
///
/// # Errors
/// What is wrong with it.
pub fn read_api_json(bytes: &[u8]) -> Result<Job, Refused> {
    let mut value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| Refused::one(error.to_string()))?;
    if let Some(job) = value.get_mut("Job") {
        value = job.take();
    }
    job_of(value)
}

/// Reads a job out of JSON in which `null` means the same as leaving a field out.
///
/// # Errors
/// What is wrong with it.
pub fn job_of(mut value: serde_json::Value) -> Result<Job, Refused> {
    strip_nulls(&mut value);
    serde_json::from_value(value).map_err(|error| Refused::one(error.to_string()))
}

/// Removes the fields that are `null`, all the way down.
pub fn strip_nulls(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

/// Fills in what a job leaves open and checks that it can be run.
///
/// # Errors
/// Every reason why it cannot.
pub fn admit(job: Job) -> Result<Admitted, Refused> {
    let job = canonical(job);
    let mut problems = Vec::new();
    if job.id.is_empty() {
        problems.push("Missing job ID".to_owned());
    }
    if job.task_groups.is_empty() {
        problems.push("Missing job task groups".to_owned());
    }
    for group in &job.task_groups {
        let name = quote(&group.name);
        if group.tasks.is_empty() {
            problems.push(format!("Task group {name} has no tasks"));
        }
        if group.wanted() < 0 {
            problems.push(format!("Task group {name}: count can't be negative"));
        }
    }
    if problems.is_empty() {
        Ok(Admitted {
            job,
            warnings: Vec::new(),
        })
    } else {
        Err(Refused(problems))
    }
}

/// The job with everything filled in that it leaves open.
pub fn canonical(mut job: Job) -> Job {
    if job.name.is_empty() {
        job.name.clone_from(&job.id);
    }
    if job.namespace.is_empty() {
        "default".clone_into(&mut job.namespace);
    }
    job
}
