//! The timer of a service: a `periodic` block.

use super::calendar::cron;
use super::read::Unit;
use crate::Source;
use crate::error::Result;
use crate::hcl::Body;
use crate::job::Job;
use crate::text::Text;

/// The most expressions of a job.
const MAX_EXPRESSIONS: usize = 100;

/// Reads a timer, and gives the job its times.
pub(crate) fn read(timer: &Source<'_>, service: &Source<'_>, job: &mut Job) -> Result<()> {
    let mut unit = Unit::read(timer.text)?;
    let mut notes = Body::default();
    for key in ["Description", "Documentation"] {
        unit.all("Unit", key);
    }
    if let Some(entry) = unit.last("Timer", "Unit") {
        let file = service.stem();
        // A quadlet's service has the name of its file.
        if entry.value != format!("{file}.service") {
            let message = format!("this timer starts {}, and not {file}.service", entry.value);
            return Err(entry.mistake(message));
        }
    }
    let mut expressions: Vec<Text> = Vec::new();
    let mut zone: Option<String> = None;
    for entry in unit.all("Timer", "OnCalendar") {
        let found = match cron(&entry.value) {
            Ok(found) => found,
            Err(why) => {
                let what = format!("OnCalendar={}", super::short_value(&entry.value));
                notes.lost(
                    entry.line,
                    &what,
                    &format!("{why}; write an expression for cron that comes near"),
                );
                continue;
            }
        };
        let this = found.zone.unwrap_or_else(|| "Local".to_owned());
        if zone.get_or_insert_with(|| this.clone()) != &this || expressions.len() >= MAX_EXPRESSIONS
        {
            let what = format!("OnCalendar={}", super::short_value(&entry.value));
            notes.lost(entry.line, &what, "all times of a job are in one time zone");
            continue;
        }
        expressions.push(found.expression.into());
    }
    let persistent = unit.flag("Timer", "Persistent")?.unwrap_or(false);
    for entry in unit.rest() {
        let what = format!("{}={}", entry.key, super::short_value(&entry.value));
        notes.lost(
            entry.line,
            &what,
            super::advice::of(&entry.section, &entry.key),
        );
    }
    job.body.append(notes);
    if expressions.is_empty() {
        job.body.comment(format!(
            "No time of {} can be expressed in cron: this job runs once, when it is submitted. Give it a block such as\n  \
             periodic {{\n    cron             = \"0 * * * *\"\n    time_zone        = \"Local\"\n    prohibit_overlap = true\n  }}",
            timer.name
        ));
        return Ok(());
    }
    let mut periodic = Body::default();
    periodic.set("crons", expressions);
    periodic.set("time_zone", zone.unwrap_or_default());
    periodic.comment("A unit is never started beside itself.");
    periodic.set("prohibit_overlap", true);
    // A timer without Persistent= forgets what came while the machine was off.
    periodic.set("missed", if persistent { "run-once" } else { "skip" });
    job.body.block("periodic", periodic);
    Ok(())
}
