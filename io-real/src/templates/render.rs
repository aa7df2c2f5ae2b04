//! One task's templates: read once, rendered as often as something changes.

use std::io;
use std::sync::Arc;

use drover_core::ids::{AllocId, TaskKey};
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::work::{Rendering, TemplateSource, TemplateWork};
use drover_template::{ErrorKind, Limits, Need, Options, Template};
use sha2::{Digest, Sha256};

use super::known::Known;
use super::source::{Answers, Asked, MAX_FILE};
use super::variables;
use crate::dirs::{Access, AllocDirs, FileStamp, TaskFiles};

/// The templates of a task, and what was rendered of them.
pub(super) struct Renderer {
    dirs: AllocDirs,
    alloc: AllocId,
    task: String,
    work: Arc<Rendering>,
    templates: Vec<Template>,
    /// What is in place of each, once it is.
    placed: Vec<Option<Arc<str>>>,
}

/// What came of rendering all templates once.
pub(super) struct Round {
    pub(super) outcome: Outcome,
    /// What to watch.
    pub(super) glimpses: Vec<FileStamp>,
    /// What was asked of the agent's own state.
    pub(super) asked: Asked,
}

/// How a round ended.
pub(super) enum Outcome {
    /// All files are in their places.
    Done(HookOutput),
    /// These things are missing.
    Waiting(Vec<String>),
    /// It failed.
    Failed(Failure),
}

/// What one template came to.
enum One {
    Rendered(Vec<u8>),
    Missing(Vec<String>),
}

impl Renderer {
    pub(super) fn new(dirs: AllocDirs, key: &TaskKey, work: Arc<Rendering>) -> Renderer {
        Renderer {
            dirs,
            alloc: key.alloc,
            task: key.task.to_string(),
            placed: vec![None; work.templates.len()],
            work,
            templates: Vec::new(),
        }
    }

    /// Renders everything with what is known now. Nothing is written while anything is missing.
    pub(super) fn round(&mut self, state: Option<&Known>) -> Round {
        let mut seen = (Vec::new(), Asked::new());
        let outcome = match self.try_round(state, &mut seen) {
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Failed(failure),
        };
        let (glimpses, asked) = seen;
        Round {
            outcome,
            glimpses,
            asked,
        }
    }

    fn try_round(
        &mut self,
        state: Option<&Known>,
        seen: &mut (Vec<FileStamp>, Asked),
    ) -> Result<Outcome, Failure> {
        let files = self.dirs.files(self.alloc, &self.task);
        let files = files.map_err(|error| Failure::recoverable(error.to_string()))?;
        if self.templates.is_empty() {
            self.templates = self.parsed(&files)?;
        }
        let work = self.work.clone();
        let answers = Answers::new(&work, &files, &self.task, state);
        let rendered = self.rendered(&files, &answers);
        *seen = answers.seen();
        let mut texts = Vec::new();
        let mut missing = Vec::new();
        for one in rendered? {
            match one {
                One::Rendered(text) => texts.push(text),
                One::Missing(needs) => missing.extend(needs),
            }
        }
        if missing.is_empty() {
            return self.write_rendered(&files, &texts).map(Outcome::Done);
        }
        missing.sort();
        missing.dedup();
        Ok(Outcome::Waiting(missing))
    }

    fn parsed(&self, files: &TaskFiles) -> Result<Vec<Template>, Failure> {
        let templates = self.work.templates.iter();
        templates.map(|template| parse(files, template)).collect()
    }

    fn rendered(&self, files: &TaskFiles, answers: &Answers<'_>) -> Result<Vec<One>, Failure> {
        let templates = self.work.templates.iter().zip(&self.templates);
        let all = templates.zip(&self.placed);
        all.map(|((work, template), placed)| {
            self.one(files, answers, work, template, placed.is_some())
        })
        .collect()
    }

    fn one(
        &self,
        files: &TaskFiles,
        answers: &Answers<'_>,
        work: &TemplateWork,
        template: &Template,
        placed: bool,
    ) -> Result<One, Failure> {
        let old = self.work.runs && !placed;
        let there = |files: &TaskFiles| files.read(&work.destination, limit()).ok().flatten();
        if work.once
            && (placed || old)
            && let Some(text) = there(files)
        {
            return Ok(One::Rendered(text));
        }
        let rendering = template.render(answers).map_err(|error| {
            let why = of_template(work, &error.to_string());
            match error.kind() {
                // With other data it may go better.
                ErrorKind::Failed => Failure::recoverable(why),
                ErrorKind::Syntax | ErrorKind::Refused | ErrorKind::Limit => Failure::fatal(why),
            }
        })?;
        Ok(match rendering {
            drover_template::Rendering::Done { text, asked } => {
                // The time alone is no reason to disturb a task that runs.
                let timed = old && asked.contains(&Need::Time);
                let text = timed.then(|| there(files)).flatten().unwrap_or(text);
                One::Rendered(text)
            }
            drover_template::Rendering::Waiting { missing, .. } => {
                One::Missing(missing.iter().map(ToString::to_string).collect())
            }
        })
    }

    /// Writes what is new, and says what there is now.
    fn write_rendered(
        &mut self,
        files: &TaskFiles,
        texts: &[Vec<u8>],
    ) -> Result<HookOutput, Failure> {
        let mut output = HookOutput::default();
        let work = self.work.clone();
        for (template, text) in work.templates.iter().zip(texts).filter(|(one, _)| one.env) {
            let text = String::from_utf8_lossy(text);
            let variables = variables::parse(&text)
                .map_err(|why| Failure::recoverable(of_template(template, &why)))?;
            output.env.extend(variables);
        }
        let all = work.templates.iter().zip(texts).zip(&mut self.placed);
        for ((template, text), placed) in all {
            let name = name_of(text);
            if placed.as_ref() != Some(&name) {
                put(files, template, text, work.runs && placed.is_none())?;
                *placed = Some(name.clone());
            }
            output.rendered.push(name);
        }
        Ok(output)
    }
}

/// Writes a file; one of a task that runs already only if it says something else.
fn put(files: &TaskFiles, work: &TemplateWork, text: &[u8], compare: bool) -> Result<(), Failure> {
    let task_path = &work.destination;
    let there = || files.read(task_path, limit()).ok().flatten();
    if compare && there().is_some_and(|there| there == text) {
        return Ok(());
    }
    let access = Access {
        mode: work.mode,
        uid: work.uid,
        gid: work.gid,
    };
    let written = files.write(task_path, text, access);
    written.map_err(|error| Failure::recoverable(of_template(work, &error.to_string())))
}

fn parse(files: &TaskFiles, work: &TemplateWork) -> Result<Template, Failure> {
    let text = match &work.source {
        TemplateSource::Text(text) => text.clone(),
        TemplateSource::File(task_path) => {
            let bytes = files.read(task_path, MAX_FILE).and_then(|found| {
                found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is not there"))
            });
            let bytes = bytes.map_err(|error| {
                let why = format!("its source {:?}: {error}", task_path.path);
                Failure::recoverable(of_template(work, &why))
            })?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    let options = Options {
        left: work.left.clone(),
        right: work.right.clone(),
        error_on_missing_key: work.error_on_missing_key,
        ..Options::default()
    };
    Template::parse(&text, options)
        .map_err(|error| Failure::fatal(of_template(work, &error.to_string())))
}

fn limit() -> u64 {
    u64::try_from(Limits::default().output).unwrap_or(u64::MAX)
}

fn of_template(work: &TemplateWork, why: &str) -> String {
    format!("template of {:?}: {why}", work.destination.path)
}

/// What the core calls this text.
fn name_of(text: &[u8]) -> Arc<str> {
    let digest = Sha256::digest(text);
    let digits = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    digits.collect::<String>().into()
}
