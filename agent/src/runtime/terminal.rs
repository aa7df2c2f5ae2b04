//! What `drover up` shows: a line for each event, the tasks' output with their names, and below
//! it, on a terminal, what the job is doing.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use drover_core::ids::AllocId;
use drover_core::model::event::{EventType, TaskEvent};
use drover_io_real::transfers::Amount;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::Line;
use crate::http::dto::how_far;

const SPIN: Duration = Duration::from_millis(120);

/// The terminal, or the file or pipe that stands for it.
pub(super) struct Terminal {
    colour: bool,
    width: usize,
    below: ProgressBar,
    /// What the job is doing.
    doing: String,
    /// How much came of what it needs.
    coming: String,
    spinning: bool,
}

impl Terminal {
    /// Standard output. Colours and the line below are for terminals only.
    pub(super) fn new() -> Terminal {
        let on_terminal = io::stdout().is_terminal();
        let plain = ["NO_COLOR", "NOMAD_CLI_NO_COLOR"];
        let colour = on_terminal && plain.iter().all(|name| std::env::var_os(name).is_none());
        let below = ProgressBar::new_spinner();
        if on_terminal {
            below.set_draw_target(ProgressDrawTarget::stdout());
        } else {
            below.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            below.set_style(style);
        }
        Terminal {
            colour,
            width: 8,
            below,
            doing: String::new(),
            coming: String::new(),
            spinning: false,
        }
    }

    /// Something about the agent or the job.
    pub(super) fn print_line(&self, text: &str) {
        self.print(&format!("{} {}", self.paint("1;34", "==>"), clean(text)));
    }

    /// An allocation that was not shown before.
    pub(super) fn alloc(&mut self, id: AllocId, name: &str, running: bool) {
        let what = if running {
            "is still running"
        } else {
            "created"
        };
        self.print_line(&format!("Allocation {} {name} {what}", id.short()));
    }

    /// There is no place for a group.
    pub(super) fn blocked(&self, group: &str, why: &str) {
        self.print_line(&format!("Placement failed for group \"{group}\": {why}"));
    }

    /// Something happened to a task.
    pub(super) fn event(&mut self, alloc: &str, task: &str, event: &TaskEvent) {
        let kind = format!("{:<12}", event.kind.as_str());
        let kind = self.paint(colour_of(event), &kind);
        let words = clean(&event.display_message);
        let time = crate::times::clock(event.time);
        let label = self.label(task, "36");
        self.print(&format!(
            "{} {label} {kind} {words} ({alloc})",
            self.paint("2", &time)
        ));
    }

    /// A task wrote a line.
    pub(super) fn line(&mut self, line: &Line) {
        let label = self.label(&line.task, if line.is_error { "31" } else { "36" });
        let bar = self.paint("2", "|");
        self.print(&format!("{:8} {label} {bar} {}", "", clean(&line.text)));
    }

    /// What the job is doing now.
    pub(super) fn status(&mut self, job: &str, running: usize, waiting: usize) {
        let waits = if waiting > 0 {
            format!(", {waiting} on the way")
        } else {
            String::new()
        };
        self.doing = format!("{job}: {running} running{waits} (Ctrl-C stops)");
        self.show();
        self.spin(waiting > 0);
    }

    /// How much came of what it needs; none if nothing comes.
    pub(super) fn coming(&mut self, amount: Option<Amount>) {
        self.coming = amount.map(bar).unwrap_or_default();
        self.show();
    }

    fn show(&self) {
        let (doing, coming) = (&self.doing, &self.coming);
        self.below.set_message(format!("{doing}{coming}"));
    }

    /// The job is being stopped.
    pub(super) fn stopping(&mut self, job: &str) {
        self.print_line(&format!("Stopping {job}; again to leave at once"));
        self.doing = format!("{job}: stopping");
        self.show();
        self.spin(true);
    }

    /// Nothing more will be shown below.
    pub(super) fn finish(&self) {
        self.below.finish_and_clear();
    }

    /// Turns while something takes time, and only then: an idle job costs nothing.
    fn spin(&mut self, on: bool) {
        if on == self.spinning {
            return;
        }
        self.spinning = on;
        if on {
            self.below.enable_steady_tick(SPIN);
        } else {
            self.below.disable_steady_tick();
            self.below.tick();
        }
    }

    fn label(&mut self, task: &str, colour: &str) -> String {
        let task = clean(task);
        self.width = self.width.max(task.chars().count()).min(24);
        self.paint(colour, &format!("{task:<width$}", width = self.width))
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{colour}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn print(&self, text: &str) {
        self.below.suspend(|| {
            // A pipe that nobody reads any more ends the show, not the tasks.
            let _ = writeln!(io::stdout().lock(), "{text}");
        });
    }
}

/// A picture of how much came.
fn bar(amount: Amount) -> String {
    const CELLS: u64 = 20;
    let words = how_far(amount);
    let Some(total) = amount.total.filter(|total| *total > 0) else {
        return format!("  fetched {words}");
    };
    let full = (amount.bytes.min(total) / total.div_ceil(CELLS)).min(CELLS);
    let cell = |at| if at < full { '#' } else { '-' };
    let cells: String = (0..CELLS).map(cell).collect();
    format!("  [{cells}] {words}")
}

fn colour_of(event: &TaskEvent) -> &'static str {
    if event.fails_task {
        return "31";
    }
    match event.kind {
        EventType::Started => "32",
        EventType::DriverFailure
        | EventType::FailedValidation
        | EventType::HookFailed
        | EventType::SetupFailure
        | EventType::NotRestarting => "31",
        EventType::Restarting | EventType::Killing | EventType::RestartSignaled => "33",
        _ => "0",
    }
}

/// What a task says must not speak to the terminal itself. Colours are let through by nobody.
fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || *c == '\t')
        .collect()
}
