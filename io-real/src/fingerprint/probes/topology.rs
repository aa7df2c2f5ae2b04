//! The cores of a machine: where they are, of which sort, and how fast.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::model::processors::Core;

use super::super::{ProbeError, Root};
use super::cpuinfo::{self, CpuInfo};
use crate::ranges;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// What a core is taken for if nothing at all says how fast it is.
const ASSUMED_MHZ: u64 = 1000;

/// Whether nothing says how fast a core is.
pub(super) fn is_assumed(core: &Core) -> bool {
    core.base_mhz == 0 && core.max_mhz == 0 && core.guess_mhz == ASSUMED_MHZ
}

/// All cores that programs run on, in the order of their numbers.
pub(super) fn read(root: &Root, info: &CpuInfo) -> Result<Vec<Core>, ProbeError> {
    let ids = online(root, info)?;
    let nodes = nodes(root)?;
    let sorts = Sorts::read(root, &ids)?;
    let named = cpuinfo::named_mhz(&info.model);
    ids.iter()
        .map(|id| {
            let reported = info.processors.get(id).copied().unwrap_or_default();
            let socket = root.number(&format!("{CPU}/cpu{id}/topology/physical_package_id"))?;
            let mut core = Core {
                id: *id,
                socket: socket.and_then(small).unwrap_or(reported.socket),
                node: nodes.get(id).copied().unwrap_or_default(),
                efficiency: sorts.is_efficient(*id),
                base_mhz: mhz(root, *id, "base_frequency")?,
                max_mhz: mhz(root, *id, "cpuinfo_max_freq")?,
                ..Core::default()
            };
            if core.base_mhz == 0 && core.max_mhz == 0 {
                // The name first, since what a core runs at now is another each time.
                let seen = [reported.steady_mhz, reported.mhz, ASSUMED_MHZ];
                let mut guesses = named.into_iter().chain(seen);
                core.guess_mhz = guesses.find(|mhz| *mhz > 0).unwrap_or(ASSUMED_MHZ);
            }
            Ok(core)
        })
        .collect()
}

/// The numbers of the cores; without `/sys`, those that `/proc` names.
fn online(root: &Root, info: &CpuInfo) -> Result<BTreeSet<u32>, ProbeError> {
    let listed = ranges::parse(&root.value(&format!("{CPU}/online"))?.unwrap_or_default());
    if listed.is_empty() {
        return Ok(info.processors.keys().copied().collect());
    }
    Ok(listed)
}

/// The NUMA node of each core.
fn nodes(root: &Root) -> Result<BTreeMap<u32, u32>, ProbeError> {
    let online = root.value(&format!("{NODE}/online"))?.unwrap_or_default();
    let mut nodes = BTreeMap::new();
    for node in ranges::parse(&online) {
        let list = root.value(&format!("{NODE}/node{node}/cpulist"))?;
        for core in ranges::parse(&list.unwrap_or_default()) {
            nodes.insert(core, node);
        }
    }
    Ok(nodes)
}

/// A frequency of a core: the kernel says kHz. 0 if it does not say.
fn mhz(root: &Root, core: u32, file: &str) -> Result<u64, ProbeError> {
    let khz = root.number(&format!("{CPU}/cpu{core}/cpufreq/{file}"))?;
    Ok(khz.unwrap_or_default() / 1000)
}

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// Which cores are slower and thriftier than others.
enum Sorts {
    /// The kernel lists them.
    Listed(BTreeSet<u32>),
    /// It says how much each can do.
    Rated(BTreeMap<u32, u64>),
}

impl Sorts {
    fn read(root: &Root, ids: &BTreeSet<u32>) -> Result<Sorts, ProbeError> {
        if let Some(list) = root.value("sys/devices/cpu_atom/cpus")? {
            return Ok(Sorts::Listed(ranges::parse(&list)));
        }
        let mut rated = BTreeMap::new();
        for id in ids {
            if let Some(capacity) = root.number(&format!("{CPU}/cpu{id}/cpu_capacity"))? {
                rated.insert(*id, capacity);
            }
        }
        Ok(Sorts::Rated(rated))
    }

    fn is_efficient(&self, id: u32) -> bool {
        match self {
            Sorts::Listed(efficient) => efficient.contains(&id),
            Sorts::Rated(rated) => {
                // Cores of one sort differ a little, too: some reach more than others.
                let best = rated.values().max().copied().unwrap_or_default();
                let own = rated.get(&id).copied().unwrap_or(best);
                own < best / 4 * 3
            }
        }
    }
}
