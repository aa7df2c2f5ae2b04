//! Scripts of templates: programs that are run beside a task when what it was given changes.
//!
//! As with signals, a change counts as told when that is saved, and only then its script is run: at
//! most once. Several run side by side; what changes while any of them runs waits until the last is over.
//!
//! A task that ends takes its scripts along, and nothing is reported of them. A script that is to
//! run after the first rendering is a change that the task does not know: its place in the record
//! stays empty until it was told. A script's launch is in no record, so an agent that begins ends
//! it as it ends any launch that nobody knows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::runner::{Kill, Scope, TaskRunner};
use super::templates::NOT_NOTIFIED;
use crate::cx::Cx;
use crate::effect::{Program, request};
use crate::ids::LaunchId;
use crate::model::event::{EventType, TaskEvent};
use crate::model::template::ChangeScript;
use crate::op::{Failure, Op};
use crate::operations::Purpose;
use crate::time::Span;

/// The most letters of a script that people are told.
const MAX_MESSAGE: usize = 500;

/// A script that the driver was asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Script {
    op: Op,
    /// The template that it tells of.
    template: usize,
    /// Whether that was rendered for the first time.
    first: bool,
}

impl TaskRunner {
    /// Runs the script of a template, once it is saved that the task knows of the change.
    pub(super) fn run_script(
        &mut self,
        cx: &mut Cx<'_>,
        scope: Scope<'_>,
        template: usize,
        first: bool,
    ) {
        let launch = self.record.launch.as_ref().map(|launch| launch.id);
        let (Some(script), Some(launch)) = (self.script(template).cloned(), launch) else {
            return;
        };
        match self.task_config(cx, scope, self.record.runs) {
            Err(why) => self.script_failed(cx, &script, &could_not(&script, &why)),
            Ok(task) => {
                let program = Program {
                    command: script.command,
                    args: script.args,
                    timeout: script.timeout,
                    task,
                };
                let limit = time_limit(cx, program.timeout);
                let script = Script {
                    op: self.operation(cx, Purpose::Exec, limit),
                    template,
                    first,
                };
                self.execute(cx, launch, script, program);
            }
        }
    }

    /// A program to run beside the launch that runs, for a check.
    ///
    /// # Errors
    /// It does not run, or what it is given cannot be made out.
    pub(crate) fn program_beside(
        &self,
        cx: &Cx<'_>,
        scope: Scope<'_>,
        command: &str,
        args: &[String],
        timeout: Span,
    ) -> Result<(LaunchId, Program), String> {
        let launch = self.record.launch.as_ref().map(|launch| launch.id);
        let launch = launch.ok_or_else(|| "the task does not run".to_owned())?;
        let program = Program {
            command: command.to_owned(),
            args: args.to_vec(),
            timeout,
            task: self.task_config(cx, scope, self.record.runs)?,
        };
        Ok((launch, program))
    }

    /// How long the driver's answer to that is awaited.
    pub(crate) fn time_of_program(&self, cx: &Cx<'_>, timeout: Span) -> Span {
        time_limit(cx, timeout)
    }

    fn execute(&mut self, cx: &mut Cx<'_>, launch: LaunchId, script: Script, program: Program) {
        self.scripts.push(script);
        let effect = request::Exec {
            op: script.op,
            launch,
            program: Arc::new(program),
            output: false,
        };
        cx.drive_after_save(&self.spec.driver, &self.spec.key, effect);
    }

    fn script(&self, template: usize) -> Option<&ChangeScript> {
        self.spec.task().templates.get(template)?.script()
    }

    pub(super) fn on_executed(&mut self, cx: &mut Cx<'_>, op: Op, result: Result<i32, Failure>) {
        match self.scripts.iter().position(|one| one.op == op) {
            None => cx.count_stale(),
            Some(at) => {
                let script = self.scripts.remove(at);
                self.on_script_ended(cx, script, result);
            }
        }
    }

    fn on_script_ended(&mut self, cx: &mut Cx<'_>, over: Script, result: Result<i32, Failure>) {
        let Some(script) = self.script(over.template).cloned() else {
            return;
        };
        match result {
            Ok(0) => {
                let script = shorten_script(&script, ": ");
                let message = format!("Template successfully ran script {script}. Exit code: 0");
                self.event(cx, EventType::HookMessage, &message);
            }
            Ok(code) => {
                let what = shorten_script(&script, " ");
                let message =
                    format!("Template ran script {what} on change but it exited with code: {code}");
                self.script_failed(cx, &script, &message);
            }
            Err(failure) => {
                self.script_failed(cx, &script, &could_not(&script, &failure.message));
            }
        }
    }

    fn script_failed(&mut self, cx: &mut Cx<'_>, script: &ChangeScript, message: &str) {
        self.push(
            cx,
            TaskEvent::new(EventType::HookFailed, cx.now.wall, message),
        );
        if script.fail_on_error && self.kill.is_none() {
            // Nothing else says so to the next agent.
            self.edit().failing = true;
            self.kill(cx, Kill::of_a_script());
        }
    }

    /// The task is about to end, and with it what runs beside it, which is no failure. What did not leave the
    /// agent yet never does.
    pub(super) fn forget_scripts(&mut self, cx: &mut Cx<'_>) {
        for script in core::mem::take(&mut self.scripts) {
            let on_sent = !cx.withdraw(script.op);
            cx.shared.operations.end(script.op);
            if on_sent || !script.first {
                continue;
            }
            // Its time comes again: what a start finds is no news, but this the task was never told.
            if let Some(known) = self.edit().templates.get_mut(script.template) {
                *known = NOT_NOTIFIED.into();
            }
            self.save(cx);
        }
    }
}

/// How long the driver's answer is awaited: it may have to ask others first, and has to end what does
/// not end in time.
fn time_limit(cx: &Cx<'_>, timeout: Span) -> Span {
    let timeouts = &cx.config.timeouts;
    let all = [timeouts.signal, timeouts.destroy, timeouts.destroy];
    let sum = |sum: i64, one: Span| sum.saturating_add(one.0);
    Span(all.into_iter().fold(timeout.0, sum))
}

/// A script as people are told of it, who need not read all of a long one.
fn shorten_script(script: &ChangeScript, between: &str) -> String {
    let mut words = format!("{} with arguments{between}[", script.command);
    for (at, arg) in script.args.iter().enumerate() {
        if at > 0 {
            words.push(' ');
        }
        words.push_str(arg);
    }
    words.push(']');
    match words.char_indices().nth(MAX_MESSAGE) {
        None => words,
        Some((cut, _)) => {
            words.truncate(cut);
            words.push('…');
            words
        }
    }
}

fn could_not(script: &ChangeScript, why: &str) -> String {
    let script = shorten_script(script, " ");
    format!("Template failed to run script {script} on change: {why}")
}
