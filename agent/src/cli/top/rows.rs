//! A row for each task that runs or waits to.

use core::cmp::Ordering;

use clap::ValueEnum;

use super::super::context::Context;
use super::super::exit_code::Failure;
use super::super::table::short;
use super::super::usage::{bytes, is_busy_known, memory_used, unset};
use crate::http::dto::{AllocStats, AllocStub, ResourceUsage, TaskStateDto};

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Work; most first
    #[default]
    Cpu,
    /// Memory; most first
    Memory,
    /// Devices; most first
    Devices,
    /// Restarts; most first
    Restarts,
    /// Job and task
    Name,
}

/// A task that runs, or waits to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) job: String,
    pub(super) task: String,
    pub(super) alloc: String,
    /// Percent of a core, if it was measured.
    pub(super) cpu: Option<f64>,
    /// Bytes, if they were measured.
    pub(super) memory: Option<u64>,
    pub(super) devices: usize,
    pub(super) restarts: u64,
    /// What it waits for; empty of one that runs.
    pub(super) waits_for: String,
}

impl Order {
    /// Which of two rows is first. Equal ones are sorted by name, so that nothing dances.
    pub(super) fn compare(self, a: &Row, b: &Row) -> Ordering {
        let by = match self {
            // What was not measured comes last.
            Order::Cpu => b.cpu.unwrap_or(-1.0).total_cmp(&a.cpu.unwrap_or(-1.0)),
            Order::Memory => b.memory.cmp(&a.memory),
            Order::Devices => b.devices.cmp(&a.devices),
            Order::Restarts => b.restarts.cmp(&a.restarts),
            Order::Name => Ordering::Equal,
        };
        let name = |row: &Row| (row.job.clone(), row.task.clone(), row.alloc.clone());
        by.then_with(|| name(a).cmp(&name(b)))
    }
}

impl Row {
    pub(super) fn cells(&self) -> [String; 8] {
        [
            self.job.clone(),
            self.task.clone(),
            self.alloc.clone(),
            self.cpu.map_or_else(unset, |cpu| format!("{cpu:.1}")),
            self.memory.map_or_else(unset, bytes),
            self.devices.to_string(),
            self.restarts.to_string(),
            self.waits_for.clone(),
        ]
    }

    pub(super) fn used(&mut self, usage: &ResourceUsage) {
        self.cpu = is_busy_known(&usage.cpu_stats).then_some(usage.cpu_stats.percent);
        self.memory = memory_used(&usage.memory_stats);
        let groups = usage.device_stats.iter().flatten();
        self.devices = groups.map(|group| group.instance_stats.len()).sum();
    }
}

/// What a task waits for that does not run: its last event says so, or what is said of the allocation.
fn waits_for(alloc: &AllocStub, state: &TaskStateDto) -> String {
    let message = state.events.last().map(|event| {
        let event = event.fields();
        match &*event.kind {
            "Received" | "Task Setup" => String::new(),
            _ => event.display_message.into_owned(),
        }
    });
    let message = message.filter(|message| !message.is_empty());
    let words = message.unwrap_or_else(|| match alloc.client_description.as_str() {
        "" => "its start".to_owned(),
        words => words.to_owned(),
    });
    words.chars().take(MOST).collect()
}

/// The longest reason that is shown.
const MOST: usize = 60;

/// Asks for all tasks that run or wait to, and for what each uses.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn gather(cx: &Context) -> Result<Vec<Row>, Failure> {
    let query = [("namespace", "*")];
    let allocs: Vec<AllocStub> = cx.client.get("/v1/allocations", &query).await?;
    let mut rows = Vec::new();
    let goes_on = |it: &&AllocStub| matches!(it.client_status.as_str(), "running" | "pending");
    for alloc in allocs.iter().filter(goes_on) {
        let path = format!("/v1/client/allocation/{}/stats", alloc.id);
        let stats: AllocStats = match alloc.client_status.as_str() {
            // One that is gone meanwhile is shown without, and not the next time.
            "running" => cx.client.get(&path, &[]).await.unwrap_or_default(),
            _ => AllocStats::default(),
        };
        let live = alloc.task_states.iter();
        for (name, state) in live.filter(|(_, state)| state.state != "dead") {
            let mut row = Row {
                job: alloc.job_id.clone(),
                task: name.clone(),
                alloc: short(&alloc.id, false),
                restarts: state.restarts,
                ..Row::default()
            };
            if state.state != "running" {
                row.waits_for = waits_for(alloc, state);
            } else if let Some(task) = stats.tasks.get(name) {
                row.used(&task.resource_usage);
            }
            rows.push(row);
        }
    }
    Ok(rows)
}
