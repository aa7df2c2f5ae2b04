//! What `drover node status` shows of resources: what the machine has, what allocations hold of it; and with
//! `-stats` what is used. What is not known is `-`.

use serde_json::Value;

use super::context::Context;
use super::exit_code::Failure;
use super::node_detail::Section;
use super::table::{block, table};
use super::usage::{bytes, bytes_of, devices, host_memory, is_busy_known, memory_used, mhz, unset};
use crate::http::dto::{Alloc, AllocStats, DiskStats, HostCpu, HostStats, NodeDto, ResourceUsage};

const MIB: u64 = 1 << 20;

/// What the machine has, as far as it is known: MHz, and bytes of memory and disk.
struct Whole {
    cpu: Option<f64>,
    memory: Option<u64>,
    disk: Option<u64>,
}

impl Whole {
    /// As the node's fingerprints found it.
    fn found(node: &NodeDto) -> Whole {
        let number = |path: &str| node.node_resources.pointer(path).and_then(Value::as_u64);
        let megabytes = |path: &str| number(path).map(|count| count.saturating_mul(MIB));
        Whole {
            cpu: number("/Cpu/CpuShares").map(|mhz| mhz as f64),
            memory: megabytes("/Memory/MemoryMB"),
            disk: megabytes("/Disk/DiskMB"),
        }
        .known()
    }

    /// As it is measured.
    fn measured(node: &NodeDto, host: &HostStats) -> Whole {
        let mhz = node.attributes.get("cpu.totalcompute");
        Whole {
            cpu: mhz.and_then(|it| it.parse().ok()),
            memory: Some(host.memory.total),
            disk: Some(host.alloc_dir_stats.size),
        }
        .known()
    }

    /// No machine has nothing of these: a zero is what was not found out.
    fn known(self) -> Whole {
        Whole {
            cpu: self.cpu.filter(|mhz| *mhz > 0.0),
            memory: self.memory.filter(|count| *count > 0),
            disk: self.disk.filter(|count| *count > 0),
        }
    }
}

/// Asks for what the machine uses.
///
/// # Errors
/// The agent does not answer.
pub(super) async fn host(cx: &Context, node: &str) -> Result<HostStats, Failure> {
    cx.client
        .get("/v1/client/stats", &[("node_id", node)])
        .await
}

/// Shows what allocations that are not terminal hold of the machine.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn print_allocated(
    cx: &mut Context,
    node: &NodeDto,
    host: Option<&HostStats>,
    allocs: &[Alloc],
) -> Result<(), Failure> {
    let whole = host.map_or_else(|| Whole::found(node), |host| Whole::measured(node, host));
    cx.screen.title("\nAllocated Resources")?;
    cx.screen.print_line(&allocated(&holders(allocs), &whole))
}

fn holders(allocs: &[Alloc]) -> Vec<&Alloc> {
    let held = |alloc: &&Alloc| matches!(&*alloc.stub.client_status, "pending" | "running");
    allocs.iter().filter(held).collect()
}

/// Shows what the machine uses, and what of it is the allocations'.
///
/// # Errors
/// The agent does not answer, or nobody reads any more.
pub(super) async fn print_used(
    cx: &mut Context,
    node: &NodeDto,
    host: &HostStats,
    allocs: &[Alloc],
) -> Result<(), Failure> {
    let mut running = Vec::new();
    let held = holders(allocs).into_iter();
    for alloc in held.filter(|it| it.stub.client_status == "running") {
        let path = format!("/v1/client/allocation/{}/stats", alloc.stub.id);
        let stats: AllocStats = cx.client.get(&path, &[]).await?;
        running.push(stats.resource_usage);
    }
    let whole = Whole::measured(node, host);
    for (title, text) in utilization(&whole, host, &running) {
        cx.screen.title(&format!("\n{title}"))?;
        cx.screen.print_line(&text)?;
    }
    Ok(())
}

/// What running allocations use together, what the machine uses, and the machine's parts one by one.
fn utilization(whole: &Whole, host: &HostStats, running: &[ResourceUsage]) -> Vec<Section> {
    let ticks =
        |used: &ResourceUsage| is_busy_known(&used.cpu_stats).then_some(used.cpu_stats.total_ticks);
    let memory = |used: &ResourceUsage| memory_used(&used.memory_stats);
    // Where nothing runs, nothing is used; where nothing was measured, nobody knows.
    let any = |count: usize| running.is_empty() || count > 0;
    let busy = any(running.iter().filter_map(ticks).count());
    let charged = any(running.iter().filter_map(memory).count());
    let allocations = [
        mhz(
            busy.then(|| {
                running
                    .iter()
                    .filter_map(ticks)
                    .fold(0.0, |sum, it| sum + it)
            }),
            whole.cpu,
        ),
        bytes_of(
            charged.then(|| running.iter().filter_map(memory).sum()),
            whole.memory,
        ),
    ];
    let [_, _, (_, used), _] = host_memory(&host.memory);
    let disk = &host.alloc_dir_stats;
    let machine = [
        mhz(
            (!host.cpu.is_empty()).then_some(host.cpu_ticks_consumed),
            whole.cpu,
        ),
        format!("{used}/{}", whole.memory.map_or_else(unset, bytes)),
        bytes_of((disk.size > 0).then_some(disk.used), whole.disk),
    ];
    let mut sections = vec![
        (
            "Allocation Resource Utilization",
            table(["CPU", "Memory"], [allocations]),
        ),
        (
            "Host Resource Utilization",
            table(["CPU", "Memory", "Disk"], [machine]),
        ),
    ];
    sections.extend(parts(host));
    sections
}

fn allocated(held: &[&Alloc], whole: &Whole) -> String {
    let tasks = || {
        let resources = held.iter().map(|alloc| &alloc.allocated_resources);
        resources.flat_map(|resources| resources.tasks.values())
    };
    let cpu: i64 = tasks().map(|task| task.cpu.cpu_shares).sum();
    let megabytes = |count: i64| u64::try_from(count).unwrap_or(0).saturating_mul(MIB);
    let memory = tasks().map(|task| task.memory.memory_mb).sum();
    let disk = held
        .iter()
        .map(|alloc| alloc.allocated_resources.shared.disk_mb);
    let row = [
        mhz(Some(cpu as f64), whole.cpu),
        bytes_of(Some(megabytes(memory)), whole.memory),
        bytes_of(Some(megabytes(disk.sum())), whole.disk),
        held.len().to_string(),
    ];
    table(["CPU", "Memory", "Disk", "Alloc Count"], [row])
}

/// The machine's cores, memory, disks and devices, each with what is used of it.
fn parts(host: &HostStats) -> impl Iterator<Item = Section> {
    let percent = |value: f64| format!("{value:.2}%");
    let core = |core: &HostCpu| {
        block([
            ("CPU", core.cpu.clone()),
            ("User", percent(core.user)),
            ("System", percent(core.system)),
            ("Idle", percent(core.idle)),
        ])
    };
    let disk = |disk: &DiskStats| {
        block([
            ("Device", disk.device.clone()),
            ("MountPoint", disk.mountpoint.clone()),
            ("Size", bytes(disk.size)),
            ("Used", bytes(disk.used)),
            ("Available", bytes(disk.available)),
            ("Used Percent", percent(disk.used_percent)),
            ("Inodes Percent", percent(disk.inodes_used_percent)),
        ])
    };
    let memory = block(host_memory(&host.memory));
    let groups = host.device_stats.iter().flatten();
    let parts: [(&str, Vec<String>); 4] = [
        ("CPU Stats", host.cpu.iter().map(core).collect()),
        ("Memory Stats", vec![memory]),
        ("Disk Stats", host.disk_stats.iter().map(disk).collect()),
        ("Device Stats", groups.flat_map(devices).collect()),
    ];
    let parts = parts.into_iter().filter(|(_, blocks)| !blocks.is_empty());
    parts.map(|(title, blocks)| (title, blocks.join("\n\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{measured_alloc, measured_host};

    fn shown(whole: &Whole, host: &HostStats, running: &[ResourceUsage]) -> String {
        let sections = utilization(whole, host, running).into_iter();
        sections
            .map(|(title, text)| format!("{title}\n{text}\n\n"))
            .collect()
    }

    #[test]
    fn measured_machine_shows_node_status() {
        let whole = Whole {
            cpu: Some(5200.0),
            ..Whole::measured(&NodeDto::default(), &measured_host())
        };
        let running = [measured_alloc().resource_usage];
        insta::assert_snapshot!("node_status", shown(&whole, &measured_host(), &running));
    }

    #[test]
    fn unmeasured_machine_shows_dashes() {
        let mut host = HostStats::default();
        host.memory.measured = Some(vec!["Free".to_owned()]);
        let whole = Whole::measured(&NodeDto::default(), &host);
        let running = [ResourceUsage::default()];
        insta::assert_snapshot!("node_status_unmeasured", shown(&whole, &host, &running));
    }

    #[test]
    fn idle_machine_shows_zero_for_allocations() {
        let whole = Whole::measured(&NodeDto::default(), &measured_host());
        let text = shown(&whole, &measured_host(), &[]);
        assert!(text.contains("\n0/- MHz  0 B/24 GiB\n"), "{text}");
    }
}
