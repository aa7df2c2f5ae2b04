//! Processors: which there are, how fast, and which of them tasks may use.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::fingerprint::Fingerprint;
use drover_core::model::processors::{Core, Processors};

use super::super::put::put;
use super::super::{Context, ProbeError, Root};
use super::{cpuinfo, topology};
use crate::ranges;

const STATUS: usize = 64 * 1024;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    let info = cpuinfo::read(&context.root)?;
    let mut cores = topology::read(&context.root, &info)?;
    if cores.is_empty() {
        return Ok(found);
    }
    disable(context, &mut cores)?;
    let processors = processors(context, cores);
    put(&mut found, "cpu.modelname", &info.model);
    put_cores(&mut found, &processors.cores);
    put_nodes(&mut found, &processors.cores);
    put(&mut found, "cpu.totalcompute", processors.total_compute);
    put(&mut found, "cpu.usablecompute", processors.usable_compute);
    found.resources.processors = Some(processors);
    Ok(found)
}

/// Marks the cores that tasks may not use.
fn disable(context: &Context, cores: &mut [Core]) -> Result<(), ProbeError> {
    let reserved = &context.settings.reserved_cores;
    let allowed = allowed(&context.root)?;
    for core in cores {
        let given = allowed.as_ref().is_none_or(|all| all.contains(&core.id));
        core.disabled = !given || reserved.contains(&core.id);
    }
    Ok(())
}

/// The cores that the agent may use, and so at most its tasks; `None` if the kernel does not say.
fn allowed(root: &Root) -> Result<Option<BTreeSet<u32>>, ProbeError> {
    let status = root.text("proc/self/status", STATUS)?.unwrap_or_default();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list.map(ranges::parse).filter(|list| !list.is_empty()))
}

fn processors(context: &Context, cores: Vec<Core>) -> Processors {
    let settings = &context.settings;
    let sum = |cores: &mut dyn Iterator<Item = &Core>| -> u64 {
        cores.map(mhz).fold(0, u64::saturating_add)
    };
    let all = sum(&mut cores.iter());
    let free = sum(&mut cores.iter().filter(|core| !core.disabled));
    let total = settings.cpu_total_compute.unwrap_or(all);
    // What people set is shared out among the cores as what the machine says would be.
    let share = u128::from(total) * u128::from(free) / u128::from(all.max(1));
    let usable = u64::try_from(share).unwrap_or(u64::MAX);
    Processors {
        total_compute: total,
        usable_compute: usable.saturating_sub(settings.reserved_compute),
        cores,
    }
}

/// How fast a core is, in MHz, as schedulers count it: what it always reaches, if that is known.
fn mhz(core: &Core) -> u64 {
    let all = [core.base_mhz, core.max_mhz, core.guess_mhz];
    all.into_iter().find(|mhz| *mhz > 0).unwrap_or_default()
}

fn put_cores(found: &mut Fingerprint, cores: &[Core]) {
    let fast: Vec<&Core> = cores.iter().filter(|core| !core.efficiency).collect();
    let slow: Vec<&Core> = cores.iter().filter(|core| core.efficiency).collect();
    let free = cores.iter().filter(|core| !core.disabled).count();
    put(found, "cpu.numcores", cores.len());
    put(found, "cpu.reservablecores", free);
    if fast.is_empty() || slow.is_empty() {
        put_frequency(found, "cpu.frequency", cores);
        return;
    }
    for (sort, cores) in [("performance", fast), ("efficiency", slow)] {
        put(found, &format!("cpu.numcores.{sort}"), cores.len());
        put_frequency(found, &format!("cpu.frequency.{sort}"), cores);
    }
}

/// Puts the frequency of the fastest of some cores, unless it is assumed only.
fn put_frequency<'a>(
    found: &mut Fingerprint,
    name: &str,
    cores: impl IntoIterator<Item = &'a Core>,
) {
    let known = cores.into_iter().filter(|core| !topology::is_assumed(core));
    if let Some(best) = known.map(mhz).max() {
        put(found, name, best);
    }
}

fn put_nodes(found: &mut Fingerprint, cores: &[Core]) {
    let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for core in cores {
        nodes.entry(core.node).or_default().push(core.id);
    }
    put(found, "numa.node.count", nodes.len());
    for (node, cores) in nodes {
        put(
            found,
            &format!("numa.node{node}.cores"),
            ranges::print(cores),
        );
    }
}
