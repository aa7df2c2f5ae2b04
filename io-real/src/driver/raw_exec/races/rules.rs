//! What holds in every order.

use std::fmt::Debug;

use drover_core::input::{DriverInput, Found};
use drover_core::op::Op;

use super::life::{Ask, Choice, Run};
use super::model::Model;
use crate::driver::raw_exec::exit_result;
use crate::shim::record::State;

/// A rule that does not hold.
#[derive(Debug)]
pub(super) struct Broken {
    rule: &'static str,
    expected: String,
    found: String,
}

impl Broken {
    /// The rule, what was expected and found, and how it came about.
    pub(super) fn tell(&self, run: &Run) -> String {
        let Broken {
            rule,
            expected,
            found,
        } = self;
        let story = run.story.join("\n  ");
        let machine = run.machine.with(|machine| format!("{machine:?}"));
        format!(
            "{}: {rule}\n  expected: {expected}\n  found:    {found}\nthe order of steps:\n  {story}\n\
             the machine: {machine}\nin hand: {}",
            run.scenario.name,
            run.held()
        )
    }
}

fn holds(rule: &'static str, expected: impl Debug, found: impl Debug) -> Result<(), Broken> {
    let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
    match expected == found {
        true => Ok(()),
        false => Err(Broken {
            rule,
            expected,
            found,
        }),
    }
}

/// What is wrong with a run that goes on and on.
pub(super) fn no_rest() -> Broken {
    Broken {
        rule: "everything comes to rest",
        expected: "an end".to_owned(),
        found: "ever more steps".to_owned(),
    }
}

/// Lets something happen; then everything that always holds must hold.
pub(super) fn step(run: &mut Run, choice: Choice) -> Result<(), Broken> {
    let before = run.received.len();
    run.take(choice).map_err(|found| Broken {
        rule: "nobody panics",
        expected: "no panic".to_owned(),
        found,
    })?;
    let machine = run.machine.with(|machine| machine.clone());
    holds(
        "a launch's program is executed at most once",
        true,
        machine.executed <= 1,
    )?;
    if run.is_destroyed {
        let rule = "nothing of a launch runs after the answer that it is destroyed";
        holds(rule, false, machine.runs())?;
        let rule = "no shim holds a launch's record after the answer that it is destroyed";
        holds(rule, None::<usize>, machine.holder())?;
    }
    if starts_failed(run) {
        let rule = "a start that failed leaves nothing running";
        holds(rule, false, machine.runs())?;
    }
    for at in before.min(run.received.len())..run.received.len() {
        report(run, &machine, at)?;
    }
    Ok(())
}

/// Whether this agent, the first one, was asked for starts alone that all failed.
fn starts_failed(run: &Run) -> bool {
    let starts = run.asks().iter().filter(|ask| **ask == Ask::Start).count();
    let failed = |input: &&DriverInput| matches!(input, DriverInput::StartFailed { .. });
    run.deaths == 0 && starts > 0 && starts == run.received.iter().filter(failed).count()
}

/// What holds whenever the core receives something.
fn report(run: &Run, machine: &Model, at: usize) -> Result<(), Broken> {
    let (earlier, input) = (&run.received[..at], &run.received[at]);
    if let Some(op) = answered(input) {
        let answered = earlier
            .iter()
            .filter(|other| answered(other) == Some(op))
            .count();
        holds("a request is answered once", 0, answered)?;
    }
    let recorded = machine.record.and_then(|record| record.exit);
    let recorded = recorded.map(|exit| exit_result(&exit.into()));
    let reported = match input {
        DriverInput::Exited { result, .. } => {
            let rule = "the end of a launch is reported once, and only if it was reported to run";
            holds(rule, (true, 0), (earlier.iter().any(runs), ends(earlier)))?;
            Some(Some(result.clone()))
        }
        DriverInput::Destroyed {
            result: Ok(exit), ..
        } => Some(exit.clone()),
        DriverInput::Recovered {
            found: Found::Exited(result),
            ..
        } => Some(Some(result.clone())),
        _ => None,
    };
    match (recorded, reported) {
        (Some(recorded), Some(reported)) => {
            let rule = "the exit that is reported is the one that is on record";
            holds(rule, Some(recorded), reported)
        }
        (_, None) | (None, Some(_)) => Ok(()),
    }
}

/// Which request an input answers, if it answers one.
fn answered(input: &DriverInput) -> Option<Op> {
    input.answers().map(|(op, _)| op)
}

fn runs(input: &DriverInput) -> bool {
    let found = |found: &Found| matches!(found, Found::Running);
    matches!(input, DriverInput::Started { .. })
        || matches!(input, DriverInput::Recovered { found: what, .. } if found(what))
}

fn ends(received: &[DriverInput]) -> usize {
    let is_end = |input: &&DriverInput| matches!(input, DriverInput::Exited { .. });
    received.iter().filter(is_end).count()
}

/// What holds when nothing goes on by itself any more.
pub(super) fn rest(run: &Run, choices: &[Choice]) -> Result<(), Broken> {
    if choices.iter().any(|choice| choice.is_certain()) {
        return Ok(());
    }
    let machine = run.machine.with(|machine| machine.clone());
    let asked = run.asks().iter().filter(|ask| **ask != Ask::Forget).count();
    let answers = run.received.iter().filter_map(answered).count();
    holds("every request is answered", asked, answers)?;
    holds("nothing runs that nobody watches", false, machine.runs())?;
    let destroyed =
        |input: &DriverInput| matches!(input, DriverInput::Destroyed { result: Ok(_), .. });
    if run.received.iter().any(runs) && !run.received.iter().any(destroyed) {
        holds(
            "the end of a launch that ran is reported",
            1,
            ends(&run.received),
        )?;
    }
    if run.is_destroyed {
        holds(
            "no control group of a destroyed launch stays",
            false,
            machine.group,
        )?;
        holds(
            "no destroyed launch stays in hand",
            false,
            run.holds_launch(),
        )?;
    }
    if run.is_destroyed && run.asks().contains(&Ask::Forget) {
        let state = machine.record.map(|record| record.state);
        let state = state.filter(|state| *state != State::Abandoned);
        holds(
            "no record of a forgotten launch stays",
            None::<State>,
            state,
        )?;
    }
    Ok(())
}
