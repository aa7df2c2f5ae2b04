//! The allocation's network: what it is made of, and its end. It is removed when nothing of the allocation can be alive, behind the back of
//! whoever waits for its tasks to stop. Its claims are held until then; what cannot be removed is tried again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AllocRunner, Phase};
use crate::config::Config;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::interpolate::{Names, interpolate};
use crate::model::network::{Dns, Network, NetworkMode, PluginNetwork, is_arg};
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::task::launch::hostname;
use crate::task::runner::TaskRunner;
use crate::time::{Instant, Span};
use crate::work::{BuildNetwork, RemoveNetwork};

/// The pause before a network that could not be removed is tried again.
const PAUSE: Span = Span::secs(5);

/// What plugins of CNI are told besides what the job says: for whom the network is.
const TOLD: [&str; 5] = [
    "NOMAD_ALLOC_ID",
    "NOMAD_GROUP_NAME",
    "NOMAD_JOB_ID",
    "NOMAD_NAMESPACE",
    "NOMAD_REGION",
];

/// Where the removal of a network stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NetworkRemoval {
    /// It is not its time, or it is removed.
    #[default]
    Idle,
    /// Somebody outside works on it.
    Working(Op),
    /// It could not be removed; it is tried again then.
    Paused(Instant),
}

/// The arguments for plugins of CNI, if they make the network.
fn plugin_args(wanted: &Network, names: &Names<'_>) -> BTreeMap<String, String> {
    if !matches!(wanted.mode(), NetworkMode::Cni(_)) {
        return BTreeMap::new();
    }
    let of_job = wanted.cni_args();
    // For whom it is no job says in its own words: not even where a name cannot be told.
    let of_job = of_job.filter(|(name, _)| !TOLD.contains(name));
    let of_job = of_job.map(|(name, value)| (name.to_owned(), interpolate(value, names)));
    let told = TOLD.into_iter().filter_map(|name| {
        let value = names.env.get(name).filter(|value| is_arg(value))?;
        Some((name.to_owned(), value.clone()))
    });
    of_job.chain(told).collect()
}

impl AllocRunner {
    /// What its network is made of, if one is made.
    pub(crate) fn network_to_build(&self, config: &Config) -> Option<BuildNetwork> {
        let own = self.record.network.as_ref()?;
        let group = self.job.group(self.record.group.as_str())?;
        let wanted = group.networks.first()?;
        let task = self.tasks.first()?;
        let env = task.environment_of_group(config, &self.record);
        let names = Names {
            env: &env,
            node: &config.node,
        };
        let words = |words: &[String]| words.iter().map(|it| interpolate(it, &names)).collect();
        let dns = wanted.dns.as_ref().map(|dns| Dns {
            servers: words(&dns.servers),
            searches: words(&dns.searches),
            options: words(&dns.options),
        });
        Some(BuildNetwork {
            mode: wanted.mode(),
            hostname: hostname(wanted, self.record.id, &names),
            dns,
            address: own.address,
            ports: self.record.ports.clone(),
            args: plugin_args(wanted, &names),
        })
    }

    /// Its network is made. What plugins said of it is kept: by that it is reached.
    pub(crate) fn network_made(&mut self, cx: &mut Cx<'_>, found: Option<PluginNetwork>) {
        let known = self.record.network.as_ref();
        if known.is_none_or(|network| network.found == found) {
            return;
        }
        self.edit(cx, |record| {
            if let Some(network) = &mut record.network {
                network.found = found;
            }
        });
    }

    /// Whether its network is being removed, or is about to be.
    pub fn removes_network(&self) -> bool {
        let paused = matches!(self.network_removal, NetworkRemoval::Paused(_));
        self.may_remove_network() && !paused
    }

    /// Whether it has a network that nothing can use any more.
    pub fn may_remove_network(&self) -> bool {
        let ended = match self.phase {
            Phase::Finished | Phase::Destroying(_) | Phase::DestroyPause(_) => true,
            Phase::Prerun(_) | Phase::Tasks(_) | Phase::Destroyed => false,
        };
        let alive = self.tasks.iter().any(TaskRunner::has_remains);
        ended && self.record.finished && !alive && self.record.has_network()
    }

    /// Has the network removed when it is time.
    pub(super) fn advance_network(&mut self, cx: &mut Cx<'_>) {
        if self.network_removal != NetworkRemoval::Idle || !self.may_remove_network() {
            return;
        }
        let alloc = self.record.id;
        let limit = cx.config.timeouts.hook;
        let op = cx.operation(Owner::Alloc(alloc), Purpose::Hook, limit);
        let work = RemoveNetwork {
            address: self.record.address(),
        };
        // That nothing of it is alive is saved first: what a crash makes unknown might need it.
        cx.send_after_save(Effect::Hook(HookEffect::Run {
            op,
            alloc,
            task: None,
            work: work.into(),
        }));
        self.network_removal = NetworkRemoval::Working(op);
    }

    /// What became of that, for the hook that awaits it when the allocation is garbage-collected.
    pub(crate) fn network_is_gone(&self) -> HookStart {
        match self.network_removal {
            _ if !self.record.has_network() => HookStart::Done,
            NetworkRemoval::Idle | NetworkRemoval::Working(_) => HookStart::Waiting,
            NetworkRemoval::Paused(_) => {
                HookStart::Failed(Failure::recoverable(self.network_error.clone()))
            }
        }
    }

    /// Takes the answer, if it is the one to that.
    pub(super) fn network_removed(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: &Result<HookOutput, Failure>,
    ) -> bool {
        if self.network_removal != NetworkRemoval::Working(op) {
            return false;
        }
        match result {
            Ok(_) => {
                self.network_removal = NetworkRemoval::Idle;
                self.network_error.clear();
                self.edit(cx, |record| {
                    if let Some(network) = &mut record.network {
                        network.removed = true;
                    }
                });
            }
            Err(failure) => {
                self.network_error.clone_from(&failure.message);
                self.network_removal = NetworkRemoval::Paused(cx.now.at + cx.jittered(PAUSE));
            }
        }
        true
    }

    pub(super) fn network_deadline(&self) -> Option<Instant> {
        match self.network_removal {
            NetworkRemoval::Paused(until) => Some(until),
            NetworkRemoval::Idle | NetworkRemoval::Working(_) => None,
        }
    }

    /// Whose answer is awaited for the removal.
    pub fn network_awaited(&self) -> Option<Op> {
        match self.network_removal {
            NetworkRemoval::Working(op) => Some(op),
            NetworkRemoval::Idle | NetworkRemoval::Paused(_) => None,
        }
    }

    /// Tries again, if it is time.
    pub(super) fn retry_network(&mut self, cx: &Cx<'_>) {
        if self.network_deadline().is_some_and(|at| at <= cx.now.at) {
            self.network_removal = NetworkRemoval::Idle;
        }
    }
}
