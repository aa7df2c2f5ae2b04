//! A recording as a story: one line an event, a column for each who acts.

use serde_json::{Value, json};

use super::player::{Played, Player};
use super::recording::Recording;
use crate::timeline;
use crate::trace::{Column, Event, Way};

/// The lines of a whole recording, those of a task in the column of its allocation.
fn lines(recording: &Recording) -> Vec<Event> {
    let mut player = Player::new(recording);
    let played = core::iter::from_fn(|| player.step());
    played.flat_map(|it| of_step(&it)).map(of_alloc).collect()
}

fn of_alloc(line: Event) -> Event {
    let Column::Of(name) = &line.column else {
        return line;
    };
    // A job may have a slash in its name too, before the number of the copy.
    match name
        .rsplit_once('/')
        .filter(|(_, task)| !task.contains('['))
    {
        None => line,
        Some((alloc, task)) => Event {
            text: format!("{task}: {}", line.text),
            column: Column::Of(alloc.into()),
            ..line
        },
    }
}

/// The lines of one step.
pub fn of_step(played: &Played<'_>) -> Vec<Event> {
    let effects = played.effects.iter();
    let effects = effects.filter_map(|(_, line)| line.clone());
    let difference = played.difference.as_ref().map(|difference| Event {
        column: Column::Agent,
        way: Way::Fault,
        text: format!("not what was recorded: {}", difference.what),
        ..played.came.clone()
    });
    let came = core::iter::once(played.came.clone());
    came.chain(effects).chain(difference).collect()
}

/// The story as a picture: a column for each who acts.
pub fn text(recording: &Recording) -> String {
    timeline::draw(&lines(recording))
}

/// The story for programs.
pub fn json(recording: &Recording) -> Value {
    let line = |line: &Event| {
        json!({
            "step": line.step,
            "since": line.at.0,
            "actor": timeline::title(&line.column),
            "way": match line.way {
                Way::In => "in",
                Way::Out => "out",
                Way::World => "world",
                Way::Fault => "difference",
            },
            "words": line.text,
        })
    };
    lines(recording).iter().map(line).collect()
}
