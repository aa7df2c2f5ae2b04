//! `drover replay`: a recording of an agent, played again. Asks no agent.

use drover_io_sim::replay::{Recording, Verdict, verify};
use serde_json::{Value, json};

use super::args::ReplayArgs;
use super::context::Outcome;
use super::failure::Failure;
use super::screen::Screen;

/// Runs the command. The exit code is 1 if the agent of today does something else.
///
/// # Errors
/// There is no recording, or nobody reads any more.
pub(super) fn run(screen: &mut Screen, args: &ReplayArgs) -> Outcome {
    let recording = Recording::open(&args.path).map_err(|why| Failure::said(why.to_string()))?;
    let verdict = verify(&recording);
    screen.say(&words(&verdict))?;
    let _ = as_json(&verdict);
    Ok(u8::from(verdict.difference.is_some()))
}

fn words(verdict: &Verdict) -> String {
    let mut remarks = Vec::new();
    if verdict.lives > 1 {
        remarks.push(format!("{} lives of the agent", verdict.lives));
    }
    if verdict.gaps > 0 {
        remarks.push(format!("steps are missing in {} places", verdict.gaps));
    }
    if verdict.torn > 0 {
        remarks.push(format!("{} files with a torn end", verdict.torn));
    }
    let remarks = match remarks.is_empty() {
        true => String::new(),
        false => format!(" ({})", remarks.join(", ")),
    };
    match &verdict.difference {
        None => format!("{} steps, same effects{remarks}", verdict.steps),
        Some((step, difference)) => {
            format!(
                "Step {step} of {} differs{remarks}: {difference}",
                verdict.steps
            )
        }
    }
}

fn as_json(verdict: &Verdict) -> Value {
    json!({
        "Steps": verdict.steps,
        "Lives": verdict.lives,
        "Gaps": verdict.gaps,
        "Torn": verdict.torn,
        "Same": verdict.difference.is_none(),
        "Difference": verdict.difference.as_ref().map(|(step, difference)| json!({
            "Step": step,
            "Words": difference.to_string(),
        })),
    })
}
