//! What a job goes through before the core sees it: reading, filling in of defaults, validation, and whether the agent's
//! configuration allows what it asks for.

pub mod drivers;

use std::path::PathBuf;

use drover_core::model::canonical::canonicalize;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::task::Task;
use drover_core::model::template::Template;
use drover_core::text::quote;
use drover_core::validate::{MAX_PROBLEMS, Problem, Report, validate_for};
use drover_io_real::zones;
use drover_template::Options;

use crate::jobspec::{self, Issue, Positions};
use crate::json;

/// Where the text of a job file comes from, and what its variables are.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    /// `name=value`, as the command line gives them.
    pub vars: Vec<(String, String)>,
    /// Files of values: their names and texts.
    pub var_files: Vec<(String, String)>,
    /// The environment, for `NOMAD_VAR_name` and `DROVER_VAR_name`.
    pub env: Vec<(String, String)>,
    /// Whether values of variables that the file does not declare are warned of only.
    pub lenient: bool,
    /// The directory from which functions of the file may read; none where they must not.
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

    /// The mistakes as Nomad lists them.
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
    /// The warnings as Nomad lists them; empty if there are none.
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

/// A job file that was read: the job as it was written, and where.
#[derive(Clone, Debug)]
pub struct Read {
    /// The job as it was written.
    pub job: Job,
    /// What is likely a mistake.
    pub warnings: Vec<String>,
    file: String,
    lines: Vec<String>,
    positions: Positions,
}

/// Reads a job file.
///
/// # Errors
/// Every mistake that could be found in one go.
pub fn read_file(text: &str, name: &str, options: &FileOptions) -> Result<Read, Refused> {
    let file = |(name, text): &(String, String)| jobspec::VarFile {
        name: name.clone(),
        text: text.clone(),
    };
    let options = jobspec::Options {
        vars: options.vars.clone(),
        var_files: options.var_files.iter().map(file).collect(),
        env: options.env.clone(),
        lenient_variables: options.lenient,
        files: options.dir.clone(),
    };
    match jobspec::parse(text, name, &options) {
        Ok(parsed) => Ok(Read {
            job: parsed.job,
            warnings: parsed.warnings.iter().map(ToString::to_string).collect(),
            file: name.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            positions: parsed.positions,
        }),
        Err(errors) => Err(Refused(vec![errors.to_string()])),
    }
}

impl Read {
    /// A job of the job API's JSON, whose parts have no places.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_api_json(bytes: &[u8], name: &str) -> Result<Read, Refused> {
        Ok(Read {
            job: read_api_json(bytes)?,
            warnings: Vec::new(),
            file: name.to_owned(),
            lines: Vec::new(),
            positions: Positions::default(),
        })
    }

    /// Fills in what the job leaves open and checks that it can be run.
    ///
    /// # Errors
    /// Every reason why it cannot, with its place in the file.
    pub fn admit(&self) -> Result<Admitted, Refused> {
        let job = canonical(self.job.clone());
        let report = check(&job, false);
        if !report.is_ok() {
            return Err(self.refused(&report.problems));
        }
        // The reader warned of what it saw; validation may have seen the same.
        let mut warnings = self.warnings.clone();
        let positions: Vec<_> = self
            .warnings
            .iter()
            .filter_map(|w| w.split(' ').next())
            .collect();
        let seen = |text: &String| positions.contains(&text.split(' ').next().unwrap_or_default());
        let more: Vec<String> = report.warnings.iter().map(|p| self.in_file(p)).collect();
        warnings.extend(more.into_iter().filter(|text| !seen(text)));
        Ok(Admitted { job, warnings })
    }

    /// What is wrong with the job, each with its place in the file.
    pub fn refused(&self, problems: &[Problem]) -> Refused {
        Refused(
            problems
                .iter()
                .map(|problem| self.in_file(problem))
                .collect(),
        )
    }

    /// The line on which this part is written, if it is; paths are those of validation.
    pub fn line_of(&self, path: &str) -> Option<usize> {
        self.positions.get(path).map(|place| place.line)
    }

    /// A problem as the reader would have said it.
    fn in_file(&self, problem: &Problem) -> String {
        let Some(place) = self.positions.nearest(&problem.path) else {
            return format!("{}: {problem}", self.file);
        };
        let line = self.lines.get(place.line.saturating_sub(1));
        let issue = Issue {
            file: self.file.clone(),
            line: place.line,
            column: place.column,
            source_line: line.cloned().unwrap_or_default(),
            message: problem.to_string(),
            help: None,
        };
        issue.to_string()
    }
}

/// Reads a job of the job API: `{"Job": {…}}`, or a job alone.
///
/// # Errors
/// What is wrong with it.
pub fn read_api_json(bytes: &[u8]) -> Result<Job, Refused> {
    jobspec::from_api_json(bytes).map_err(|errors| Refused::one(errors.to_string()))
}

/// Reads a job out of JSON in which `null` means the same as leaving a field out.
///
/// # Errors
/// What is wrong with it.
pub fn job_of(mut value: serde_json::Value) -> Result<Job, Refused> {
    json::strip_nulls(&mut value);
    json::typed(&value).map_err(Refused::one)
}

/// Fills in what a job leaves open and checks that it can be run.
///
/// # Errors
/// Every reason why it cannot.
pub fn admit(job: Job) -> Result<Admitted, Refused> {
    admit_for(job, false)
}

/// The same for a node that runs the services of Consul as its own, or does not.
///
/// # Errors
/// Every reason why it cannot be run.
pub fn admit_for(job: Job, consul_services: bool) -> Result<Admitted, Refused> {
    let job = canonical(job);
    let report = check(&job, consul_services);
    if !report.is_ok() {
        return Err(Refused(
            report.problems.iter().map(ToString::to_string).collect(),
        ));
    }
    let warnings = report.warnings.iter().map(ToString::to_string).collect();
    Ok(Admitted { job, warnings })
}

/// What a job keeps of the version that runs, whatever its file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preserve {
    /// How many copies each group has.
    pub counts: bool,
    /// What each task gets of the machine.
    pub resources: bool,
}

impl Preserve {
    /// Takes over what is to be kept from the version that runs, by the names of groups and tasks.
    pub fn apply(self, job: &mut Job, running: &Job) {
        for group in &mut job.task_groups {
            let Some(before) = running.group(&group.name) else {
                continue;
            };
            if self.counts {
                group.count = before.count;
            }
            if !self.resources {
                continue;
            }
            for task in &mut group.tasks {
                let same = before.tasks.iter().find(|it| it.name == task.name);
                if let Some(same) = same {
                    task.resources = same.resources.clone();
                }
            }
        }
    }
}

/// Checks that this node is in the pool in which a canonical job is to run.
///
/// # Errors
/// There is no such node pool.
pub fn check_pool(job: &Job, pool: &str) -> Result<(), Refused> {
    if !matches!(job.node_pool.as_str(), "default" | "all") && job.node_pool != pool {
        return Err(Refused::one(format!(
            "job {} is in nonexistent node pool {}; there are all, default{}",
            quote(&job.id),
            quote(&job.node_pool),
            if pool == "default" {
                String::new()
            } else {
                format!(", {}", quote(pool))
            }
        )));
    }
    Ok(())
}

/// What there is to tell of a canonical job.
fn check(job: &Job, consul_services: bool) -> Report {
    let mut report = validate_for(job, consul_services);
    if let Some(periodic) = &job.periodic {
        let zone = zones::around(&periodic.time_zone, zones::ANY_TIME);
        report.problems.extend(zone.err().map(|message| Problem {
            path: "job.periodic.time_zone".to_owned(),
            message,
        }));
    }
    for group in &job.task_groups {
        for task in &group.tasks {
            report.problems.extend(unknown_zone(group, task));
            let wrong = |(at, template)| Some((at, syntax_error(template)?));
            let path = |at| {
                let (group, task) = (quote(&group.name), quote(&task.name));
                format!("group[{group}].task[{task}].template[{at}].data")
            };
            let problem = |(at, message)| Problem {
                path: path(at),
                message,
            };
            let templates = task.templates.iter().enumerate();
            report
                .problems
                .extend(templates.filter_map(wrong).map(problem));
        }
    }
    report.problems.truncate(MAX_PROBLEMS);
    report
}

/// That nobody knows the time zone in which the image of a task is looked at.
fn unknown_zone(group: &TaskGroup, task: &Task) -> Option<Problem> {
    let update = task.image_update.as_ref()?;
    let message = zones::around(&update.time_zone, zones::ANY_TIME).err()?;
    let (group, task) = (quote(&group.name), quote(&task.name));
    let path = format!("group[{group}].task[{task}].image_update.time_zone");
    Some(Problem { path, message })
}

/// Why the text of a template in the job cannot be read as one.
fn syntax_error(template: &Template) -> Option<String> {
    let options = Options {
        left: template.left_delim.clone(),
        right: template.right_delim.clone(),
        error_on_missing_key: template.err_missing_key,
        ..Options::default()
    };
    let parsed = drover_template::Template::parse(&template.embedded_tmpl, options);
    parsed.err().map(|error| error.to_string())
}

/// The job with everything filled in that it leaves open.
pub fn canonical(mut job: Job) -> Job {
    canonicalize(&mut job);
    job
}
