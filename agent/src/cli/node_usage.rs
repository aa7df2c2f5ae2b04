//! What `drover node status` shows of resources: what the machine has, what allocations hold of it; and with
//! `-stats` what is used.

use serde_json::Value;

use super::context::Context;
use super::failure::Failure;
use super::table::{block, table};
use super::usage::{bytes, devices, host_memory, memory_used, mhz};
use crate::http::dto::{Alloc, AllocStats, DiskStats, HostCpu, HostStats, NodeDto};

const MIB: u64 = 1 << 20;

/// What the machine has: MHz, and bytes of memory and disk.
struct Whole {
    cpu: f64,
    memory: u64,
    disk: u64,
}

impl Whole {
    /// As the node's fingerprints found it.
    fn found(node: &NodeDto) -> Whole {
        let number = |path: &str| node.node_resources.pointer(path).and_then(Value::as_u64);
        let megabytes = |path: &str| number(path).unwrap_or(0).saturating_mul(MIB);
        Whole {
            cpu: number("/Cpu/CpuShares").unwrap_or(0) as f64,
            memory: megabytes("/Memory/MemoryMB"),
            disk: megabytes("/Disk/DiskMB"),
        }
    }

    /// As it is measured.
    fn of(node: &NodeDto, host: &HostStats) -> Whole {
        let attribute = |name: &str| node.attributes.get(name).and_then(|it| it.parse().ok());
        Whole {
            cpu: attribute("cpu.totalcompute").unwrap_or_default(),
            memory: host.memory.total,
            disk: host.alloc_dir_stats.size,
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

/// Shows what allocations that are not over hold of the machine.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn print_allocated(
    cx: &mut Context,
    node: &NodeDto,
    host: Option<&HostStats>,
    allocs: &[Alloc],
) -> Result<(), Failure> {
    let whole = host.map_or_else(|| Whole::found(node), |host| Whole::of(node, host));
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
pub(super) async fn print_line(
    cx: &mut Context,
    node: &NodeDto,
    host: &HostStats,
    allocs: &[Alloc],
) -> Result<(), Failure> {
    let whole = Whole::of(node, host);
    let held = holders(allocs);
    let (mut cpu, mut memory) = (0.0, 0);
    for alloc in held.iter().filter(|it| it.stub.client_status == "running") {
        let path = format!("/v1/client/allocation/{}/stats", alloc.stub.id);
        let stats: AllocStats = cx.client.get(&path, &[]).await?;
        cpu += stats.resource_usage.cpu_stats.total_ticks;
        memory += memory_used(&stats.resource_usage.memory_stats).unwrap_or(0);
    }
    cx.screen.title("\nAllocation Resource Utilization")?;
    let row = [
        mhz(cpu, whole.cpu),
        format!("{}/{}", bytes(memory), bytes(whole.memory)),
    ];
    cx.screen.print_line(&table(["CPU", "Memory"], [row]))?;
    cx.screen.title("\nHost Resource Utilization")?;
    let [total, _, used, _] = host_memory(&host.memory).map(|(_, shown)| shown);
    let row = [
        mhz(host.cpu_ticks_consumed, whole.cpu),
        format!("{used}/{total}"),
        format!("{}/{}", bytes(host.alloc_dir_stats.used), bytes(whole.disk)),
    ];
    cx.screen
        .print_line(&table(["CPU", "Memory", "Disk"], [row]))?;
    for (title, text) in machine(host) {
        cx.screen.title(title)?;
        cx.screen.print_line(&text)?;
    }
    Ok(())
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
        mhz(cpu as f64, whole.cpu),
        format!("{}/{}", bytes(megabytes(memory)), bytes(whole.memory)),
        format!("{}/{}", bytes(megabytes(disk.sum())), bytes(whole.disk)),
        held.len().to_string(),
    ];
    table(["CPU", "Memory", "Disk", "Alloc Count"], [row])
}

/// The machine in single.
fn machine(host: &HostStats) -> Vec<(&'static str, String)> {
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
        ("\nCPU Stats", host.cpu.iter().map(core).collect()),
        ("\nMemory Stats", vec![memory]),
        ("\nDisk Stats", host.disk_stats.iter().map(disk).collect()),
        ("\nDevice Stats", groups.flat_map(devices).collect()),
    ];
    let parts = parts.into_iter().filter(|(_, blocks)| !blocks.is_empty());
    let parts = parts.map(|(title, blocks)| (title, blocks.join("\n\n")));
    parts.collect()
}
