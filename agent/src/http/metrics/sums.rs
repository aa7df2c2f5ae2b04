//! What all allocations of the node hold together, and how many there are.

use drover_core::agent::{AllocView, View};
use drover_core::alloc::runner::Phase;
use drover_core::model::alloc::{ClientStatus, TaskLife};
use drover_core::model::node::Node;

use super::Metrics;
use super::labels::Labels;
use super::used::MIB;

/// What all allocations hold and are.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) cpu: f64,
    pub(super) memory: f64,
    pub(super) memory_max: f64,
    pub(super) disk: f64,
    /// Blocked, pending, running, over.
    pub(super) allocs: [u64; 4],
    /// Pending, running, dead.
    pub(super) tasks: [u64; 3],
}

impl Sum {
    pub(super) fn add(&mut self, view: View<'_>, alloc: AllocView<'_>) {
        let record = alloc.record();
        let waits = alloc.awaits_any_claim() && !view.ungranted(alloc).is_empty();
        let at = match (alloc.phase(), record.status) {
            (Phase::Prerun(_), _) if waits => 0,
            (_, ClientStatus::Pending) => 1,
            (_, ClientStatus::Running) => 2,
            (
                _,
                ClientStatus::Complete
                | ClientStatus::Failed
                | ClientStatus::Lost
                | ClientStatus::Unknown,
            ) => 3,
        };
        self.allocs[at] += 1;
        for task in alloc.tasks() {
            self.tasks[match task.state().state {
                TaskLife::Pending => 0,
                TaskLife::Running => 1,
                TaskLife::Dead => 2,
            }] += 1;
        }
        if record.status.is_terminal() {
            return;
        }
        for task in alloc.tasks() {
            let resources = &task.spec().task().resources;
            self.cpu += resources.cpu as f64;
            self.memory += resources.memory_mb as f64;
            self.memory_max += resources.memory_max_mb.max(resources.memory_mb) as f64;
        }
        let group = alloc.job().group(record.group.as_str());
        let disk = group.and_then(|group| group.ephemeral_disk.as_ref());
        self.disk += disk.map_or(0.0, |disk| disk.size_mb as f64);
    }

    pub(super) fn write(&self, metrics: &mut Metrics, labels: &Labels, node: &Node) {
        let held = [
            ("nomad.client.allocated.cpu", self.cpu),
            ("nomad.client.allocated.memory", self.memory),
            ("nomad.client.allocated.max_memory", self.memory_max),
            ("nomad.client.allocated.disk", self.disk),
        ];
        let [blocked, pending, running, terminal] = self.allocs.map(|count| count as f64);
        let [tasks_pending, tasks_running, tasks_dead] = self.tasks.map(|count| count as f64);
        let counts = [
            ("nomad.client.allocations.blocked", blocked),
            // Data is moved from no allocation to another.
            ("nomad.client.allocations.migrating", 0.0),
            ("nomad.client.allocations.pending", pending),
            ("nomad.client.allocations.running", running),
            ("nomad.client.allocations.terminal", terminal),
            ("nomad.client.tasks.pending", tasks_pending),
            ("nomad.client.tasks.running", tasks_running),
            ("nomad.client.tasks.dead", tasks_dead),
        ];
        for (name, value) in held.into_iter().chain(counts) {
            metrics.gauge(name, labels, value);
        }
        let number = |name: &str| node.attributes.get(name)?.parse::<f64>().ok();
        let left = [
            (
                "nomad.client.unallocated.cpu",
                number("cpu.usablecompute"),
                self.cpu,
            ),
            (
                "nomad.client.unallocated.memory",
                number("memory.totalbytes").map(|bytes| (bytes / MIB).floor()),
                self.memory,
            ),
            (
                "nomad.client.unallocated.disk",
                number("unique.storage.bytestotal").map(|bytes| (bytes / MIB).floor()),
                self.disk,
            ),
        ];
        for (name, all, held) in left {
            if let Some(all) = all {
                metrics.gauge(name, labels, all - held);
            }
        }
    }
}
