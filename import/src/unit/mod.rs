//! Units of systemd: a service, with or without the timer that starts it.
//!
//! **Which driver?** A service of root, and one that needs files where `exec` shows none, is a task of `raw_exec`,
//! which sees the machine as the service did. A service of another user whose program lies below `/usr`, `/bin`,
//! `/sbin`, `/lib` or `/etc` is one of `exec`, which keeps it apart better than most units ask for. The head of the
//! task says which and why.
//!
//! A unit of `Type=oneshot`, and one that a timer starts, is a job of type `batch`; all others are of type `service`.

mod advice;
mod calendar;
pub(crate) mod common;
mod exec;
pub(crate) mod read;
mod service;
pub(crate) mod timer;

use crate::error::Error;
use crate::job::{Group, Job, name};
use crate::{Source, made_from};
use read::{Specifiers, Unit};

/// The job file of a service.
pub(crate) fn import(file: &Source<'_>, timer: Option<&Source<'_>>) -> Result<String, Error> {
    let read = || -> crate::error::Result<(Unit, Job)> {
        let mut unit = Unit::read(file.text)?;
        let is_batch = timer.is_some() || common::is_oneshot(&mut unit);
        let mut job = Job {
            name: name(&file.stem().replace('@', "-")),
            is_batch,
            ..Job::default()
        };
        common::about(&mut unit, &mut job);
        let group = service::read(&mut unit, &job.name, is_batch, &Specifiers::of(file.file()))?;
        job.groups.push(group);
        Ok((unit, job))
    };
    let (unit, mut job) = read().map_err(|mistake| mistake.of(file.name))?;
    let Some(group) = job.groups.first_mut() else {
        return Ok(String::new());
    };
    report_rest(&unit, group);
    finish(job, file, timer)
}

/// Names what was read and not used.
fn report_rest(unit: &Unit, group: &mut Group) {
    for entry in unit.rest() {
        let advice = advice::of(&entry.section, &entry.key);
        let body = match (
            entry.section.as_str(),
            group.tasks.iter_mut().find(|task| task.hook.is_none()),
        ) {
            ("Service", Some(task)) => &mut task.body,
            _ => &mut group.body,
        };
        body.lost(
            entry.line,
            &format!("{}={}", entry.key, short_value(&entry.value)),
            advice,
        );
    }
}

/// A value for a comment.
pub(crate) fn short_value(value: &str) -> String {
    const LONGEST: usize = 60;
    let text: String = value.chars().take(LONGEST).collect();
    match text.len() < value.len() {
        true => format!("{text}…"),
        false => text,
    }
}

/// The times of the timer, and what stands above everything.
pub(crate) fn finish(
    mut job: Job,
    file: &Source<'_>,
    timer: Option<&Source<'_>>,
) -> Result<String, Error> {
    let mut names = vec![file.name];
    if let Some(timer) = timer {
        names.push(timer.name);
        timer::read(timer, file, &mut job).map_err(|mistake| mistake.of(timer.name))?;
    }
    job.head.insert(0, made_from(&names));
    Ok(job.write())
}

pub(crate) use advice::of as advice_of;
pub(crate) use service::environment_file;
