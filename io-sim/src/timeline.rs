//! The story as a person would draw it on a whiteboard: one line an event, one column a component.
//! The text of an event begins in its column and may run on over those to the right, which are
//! empty on its line.

use std::fmt::Write as _;

use drover_core::time::SECOND;

use crate::trace::{Column, Event, Way};

/// A column is at least so wide, in characters.
const NARROWEST: usize = 12;

/// Draws events, with the names of the columns on the first line.
pub fn draw(events: &[Event]) -> String {
    let mut columns: Vec<&Column> = events.iter().map(|event| &event.column).collect();
    columns.sort();
    columns.dedup();
    let mut picture = format!("{:>14} {:>5} ", "seconds", "step");
    for column in &columns {
        let _ = write!(picture, "│ {:<NARROWEST$} ", title(column));
    }
    picture.truncate(picture.trim_end().len());
    picture.push('\n');
    for event in events {
        line(&mut picture, &columns, event);
    }
    picture
}

fn line(picture: &mut String, columns: &[&Column], event: &Event) {
    let (seconds, nanos) = (event.at.0 / SECOND, event.at.0 % SECOND);
    let _ = write!(picture, "{seconds:>4}.{nanos:09} {:>5} ", event.step);
    for column in columns {
        if **column == event.column {
            let _ = writeln!(picture, "│ {} {}", sign(event.way), event.text);
            return;
        }
        let width = title(column).chars().count().max(NARROWEST);
        let _ = write!(picture, "│ {:width$} ", "");
    }
}

pub(crate) fn title(column: &Column) -> &str {
    match column {
        Column::Agent => "agent",
        Column::People => "people",
        Column::Store => "store",
        Column::Of(name) => name,
    }
}

/// Into the agent, out of it, the world's own, or trouble.
fn sign(way: Way) -> &'static str {
    match way {
        Way::In => "→",
        Way::Out => "←",
        Way::World => "·",
        Way::Fault => "✗",
    }
}
