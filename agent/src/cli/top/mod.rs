//! `drover top`: what runs and what it uses, and what waits for what, drawn anew each second.
//!
//! On a terminal it draws until `q` or a signal; into a file or a pipe it writes once. Nothing is
//! measured by the agent but what is asked for here, and nothing after that.

mod keys;
mod rows;

use std::time::Duration;

use drover_core::time::Span;
use tokio::time::{MissedTickBehavior, interval};

use self::keys::{Key, Keys};
pub(super) use self::rows::Order;
use self::rows::{Row, gather};
use super::args::TopArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::screen::clean;
use super::table::table;
use super::usage::{host_memory, unset};
use crate::http::dto::HostStats;
use crate::signals::Signals;
use crate::times;

/// How often it is drawn.
const PERIOD: Duration = Duration::from_secs(1);

/// Another screen, without a cursor; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// What the keys do.
const HELP: &str = "c CPU  m memory  d devices  r restarts  n name  q quit";

/// Runs the command.
///
/// # Errors
/// The agent does not answer, or nobody reads any more.
pub(super) async fn run(cx: &mut Context, args: TopArgs) -> Outcome {
    let order = args.sort.unwrap_or_default();
    if args.once || !cx.screen.is_moving() {
        let shown = Shown::refresh(cx).await?;
        cx.screen.print_line(&shown.text(order))?;
        return Ok(0);
    }
    let keys = Keys::begin();
    cx.screen.bytes(ENTER)?;
    let ended = watch(cx, order, keys).await;
    cx.screen.bytes(LEAVE)?;
    ended
}

async fn watch(cx: &mut Context, mut order: Order, mut keys: Keys) -> Outcome {
    let failed = |error| Failure::new(format!("cannot catch signals: {error}"));
    let mut signals = Signals::catch().map_err(failed)?;
    let mut tick = interval(PERIOD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = Shown::refresh(cx).await?;
    loop {
        cx.screen.bytes(&frame(&shown.text(order), keys.height()))?;
        tokio::select! {
            () = signals.next() => return Ok(0),
            _ = tick.tick() => shown = Shown::refresh(cx).await?,
            key = keys.next() => match key {
                Key::Quit => return Ok(0),
                Key::Sort(by) => order = by,
                Key::Other => {}
            },
        }
    }
}

/// A whole screen: as many lines as there is room for, over what was there.
fn frame(text: &str, height: usize) -> Vec<u8> {
    let rows = height.saturating_sub(2);
    let mut lines: Vec<&str> = text.lines().take(rows).collect();
    lines.extend(["", HELP]);
    // Each line takes away what was behind it before, and the last what was below.
    let lines: Vec<String> = lines
        .iter()
        .map(|line| format!("{}\x1b[K", clean(line)))
        .collect();
    format!("\x1b[H{}\x1b[J", lines.join("\r\n")).into_bytes()
}

/// What is shown.
#[derive(Debug)]
struct Shown {
    host: HostStats,
    rows: Vec<Row>,
}

impl Shown {
    async fn refresh(cx: &Context) -> Result<Shown, Failure> {
        let host = cx.client.get("/v1/client/stats", &[]).await?;
        let rows = gather(cx).await?;
        Ok(Shown { host, rows })
    }

    fn text(&self, order: Order) -> String {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|a, b| order.compare(a, b));
        let header = [
            "JOB",
            "TASK",
            "ALLOC",
            "CPU %",
            "MEMORY",
            "DEVICES",
            "RESTARTS",
            "WAITS FOR",
        ];
        let cells = rows.into_iter().map(Row::cells);
        format!("{}\n\n{}", self.machine(), table(header, cells))
    }

    fn machine(&self) -> String {
        let host = &self.host;
        let busy: f64 = host.cpu.iter().map(|core| core.total_percent).sum();
        let waiting = self.rows.iter().filter(|row| !row.waits_for.is_empty());
        let waiting = match waiting.count() {
            0 => String::new(),
            count => format!(", {count} of them waiting"),
        };
        let [total, _, used, _] = host_memory(&host.memory).map(|(_, shown)| shown);
        let busy = match host.cpu.len() {
            0 => unset(),
            cores => format!("{busy:.0} % of {}", counted(cores, "core")),
        };
        let tasks = counted(self.rows.len(), "task");
        let uptime = match i64::try_from(host.uptime) {
            Ok(0) | Err(_) => unset(),
            Ok(seconds) => times::rough(Span::secs(seconds)),
        };
        format!("up {uptime}, {tasks}{waiting}, CPU {busy}, memory {used} of {total}")
    }
}

/// `1 task`, `2 tasks`.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(task: &str, cpu: Option<f64>, memory: Option<u64>, restarts: u64) -> Row {
        Row {
            job: "web".to_owned(),
            task: task.to_owned(),
            alloc: "414f0ce3".to_owned(),
            cpu,
            memory,
            devices: 0,
            restarts,
            waits_for: String::new(),
        }
    }

    #[test]
    fn tasks_are_sorted_by_requested_column() {
        let rows = vec![
            row("a", Some(1.0), None, 5),
            row("b", None, Some(4096), 9),
            row("c", Some(70.25), Some(0), 0),
        ];
        let shown = Shown {
            host: HostStats::default(),
            rows,
        };
        let order = |order| {
            let text = shown.text(order);
            let names = text
                .lines()
                .skip(3)
                .filter_map(|line| line.split("  ").nth(1));
            names.map(|name| name.trim().to_owned()).collect::<String>()
        };
        assert_eq!(order(Order::Cpu), "cab");
        assert_eq!(order(Order::Memory), "bca");
        assert_eq!(order(Order::Restarts), "bac");
        assert_eq!(order(Order::Name), "abc");
        let text = shown.text(Order::Name);
        assert!(
            text.contains("web  a     414f0ce3  1.0    -        0        5"),
            "{text}"
        );
        assert!(text.contains("70.2   0 B"), "{text}");
    }

    #[test]
    fn measured_tasks_show_top() {
        let usage = crate::testing::measured_alloc();
        let running = usage.tasks.iter().map(|(name, task)| {
            let mut row = row(name, None, None, 1);
            row.used(&task.resource_usage);
            row
        });
        let mut waiting = row("next", None, None, 0);
        waiting.waits_for = "port 8080, which web.api[0] holds".to_owned();
        let shown = Shown {
            host: crate::testing::measured_host(),
            rows: running.chain([waiting]).collect(),
        };
        insta::assert_snapshot!("top", shown.text(Order::Name));
    }

    #[test]
    fn unmeasured_machine_shows_dashes_in_top() {
        let shown = Shown {
            host: HostStats::default(),
            rows: Vec::new(),
        };
        insta::assert_snapshot!("top_unmeasured", shown.text(Order::Name));
    }

    #[test]
    fn frame_fits_screen_without_control_sequences() {
        let drawn = String::from_utf8(frame("one\ntwo\x1b[2J\nthree\nfour", 4)).unwrap();
        assert_eq!(drawn.matches("\r\n").count(), 3);
        assert!(!drawn.contains("three") && !drawn.contains("\x1b[2J"));
        assert!(drawn.ends_with(&format!("{HELP}\x1b[K\x1b[J")));
    }
}
