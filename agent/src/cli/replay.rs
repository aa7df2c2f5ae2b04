//! `drover replay`: a recording of an agent, played again. Asks no agent.

use std::io::{BufRead, IsTerminal, stdin};

use drover_io_sim::replay::debugger::{Answer, Debugger};
use drover_io_sim::replay::entity::Entity;
use drover_io_sim::replay::{Interval, Player, Recording, Verdict, diff, story, verify, why};
use serde_json::{Value, json};

use super::args::ReplayArgs;
use super::context::{Outcome, pretty};
use super::exit_code::Failure;
use super::screen::Screen;

/// Runs the command. The exit code is 1 if the agent of today does something else.
///
/// # Errors
/// There is no recording, it has no such step or entity, or nobody reads any more.
pub(super) fn run(screen: &mut Screen, args: &ReplayArgs) -> Outcome {
    let recording = Recording::open(&args.path).map_err(|why| Failure::new(why.to_string()))?;
    let evaluated = !(args.debug || args.timeline || args.at.is_some() || args.why.is_some());
    if !evaluated {
        // Who only looks is told, too.
        for damage in recording.damages() {
            screen.complain(&damage.to_string());
        }
    }
    if args.debug {
        return debug(screen, &recording);
    }
    let mut print_line = |json: &dyn Fn() -> Result<String, Failure>, text: &dyn Fn() -> String| {
        let words = if args.json { json()? } else { text() };
        screen.print_line(words.trim_end())
    };
    if let Some(step) = args.at {
        let state = state_at(&recording, step)?;
        print_line(&|| pretty(&state), &|| pretty(&state).unwrap_or_default())?;
        return Ok(0);
    }
    if args.timeline {
        let json = || pretty(&story::json(&recording));
        print_line(&json, &|| story::text(&recording))?;
        return Ok(0);
    }
    if let Some(name) = &args.why {
        let entity = Entity::find(&recording, name).map_err(|why| Failure::new(why.to_string()))?;
        let chain = why::chain(&recording, &entity);
        print_line(&|| pretty(&diff::json(&chain)), &|| why::text(&chain))?;
        return Ok(0);
    }
    let verdict = verify(&recording);
    print_line(&|| pretty(&as_json(&verdict)), &|| words(&verdict))?;
    Ok(u8::from(verdict.difference.is_some()))
}

fn state_at(recording: &Recording, step: usize) -> Result<Value, Failure> {
    let mut player = Player::new(recording);
    player.go_to(step);
    match player.agent() {
        Some(agent) if player.at() == step => Ok(diff::json(agent)),
        _ => Err(Failure::new(format!(
            "there is no step {step}: the recording has steps 1 to {}",
            recording.len()
        ))),
    }
}

/// Takes commands until there are no more.
fn debug(screen: &mut Screen, recording: &Recording) -> Outcome {
    let mut debugger = Debugger::new(recording);
    let prompting = stdin().is_terminal();
    if prompting {
        screen.print_line(&format!(
            "{} steps; help shows what can be done",
            recording.len()
        ))?;
    }
    loop {
        if prompting {
            screen.ask(&debugger.prompt())?;
        }
        let mut line = String::new();
        let read = stdin().lock().read_line(&mut line);
        if read.map_err(|error| Failure::new(error.to_string()))? == 0 {
            return Ok(0);
        }
        match debugger.command(&line) {
            Answer::Text(words) => screen.print_line(&words)?,
            Answer::Quit => return Ok(0),
        }
    }
}

fn words(verdict: &Verdict) -> String {
    let mut remarks = Vec::new();
    if verdict.lives > 1 {
        remarks.push(format!("{} runs of the agent", verdict.lives));
    }
    if verdict.gaps > 0 {
        remarks.push(format!("steps missing in {} places", verdict.gaps));
    }
    match verdict.torn {
        (0, _) => {}
        (1, bytes) => remarks.push(format!("the last {bytes} bytes of a file cannot be read")),
        (files, bytes) => {
            remarks.push(format!(
                "{bytes} bytes at the ends of {files} files cannot be read"
            ));
        }
    }
    let remarks = match remarks.is_empty() {
        true => String::new(),
        false => format!(" ({})", remarks.join(", ")),
    };
    let steps = verdict.steps;
    let mut words = match &verdict.difference {
        None => format!("{steps} steps, same effects{remarks}"),
        Some((Interval { first, last }, difference)) if first == last => {
            format!("Step {last} of {steps} differs{remarks}: {difference}")
        }
        Some((Interval { first, last }, difference)) => format!(
            "Steps {first} to {last} of {steps} differ{remarks}: after the last one, {difference}"
        ),
    };
    for damage in &verdict.damages {
        words.push_str(&format!("\n{damage}"));
    }
    words
}

fn as_json(verdict: &Verdict) -> Value {
    let difference = verdict.difference.as_ref();
    json!({
        "Steps": verdict.steps,
        "Lives": verdict.lives,
        "Gaps": verdict.gaps,
        "Torn": verdict.torn.0,
        "TornBytes": verdict.torn.1,
        "Damages": verdict.damages.iter().map(diff::json).collect::<Vec<_>>(),
        "Same": difference.is_none(),
        "Difference": difference.map(|(interval, difference)| json!({
            "FirstStep": interval.first,
            "Step": interval.last,
            "Words": difference.to_string(),
        })),
    })
}
