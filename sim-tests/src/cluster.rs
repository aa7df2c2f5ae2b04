//! Random worlds in which the node is in a cluster: what people ask for is asked at the servers, and what runs is
//! what servers place.

use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::time::Span;
use drover_io_sim::script::{
    Act, ClusterCollect, ClusterDeregister, ClusterEligibility, ClusterEndIdentities,
    ClusterForgetNode, ClusterGoBack, ClusterRegister, ClusterSave, ClusterStopAlloc, Script, What,
};
use drover_io_sim::{Dice, Faults};

/// In some worlds the node is in a cluster.
pub(crate) fn in_a_cluster(dice: &mut Dice, mut script: Script) -> Script {
    if dice.below(6, "cluster", "") != 1 {
        return script;
    }
    script.cluster = true;
    script.has = None;
    script.jobs.iter_mut().for_each(suit);
    for job in &mut script.jobs {
        may_not_run_alone(dice, job);
    }
    let acts = core::mem::take(&mut script.acts);
    script.acts = acts.into_iter().filter_map(at_servers).collect();
    for _ in 0..dice.below(6, "acts of servers", "") {
        let act = act_of_servers(dice, script.jobs.len());
        let at = dice.below(script.acts.len() + 1, "when", "");
        script.acts.insert(at, act);
    }
    if dice.below(3, "servers go back", "") == 1 {
        go_back(dice, &mut script.acts);
    }
    script.faults = script.faults.and(&Faults::of_servers(script.seed));
    script
}

/// What only this node's own scheduler does is not in it.
fn suit(job: &mut Job) {
    (job.parameterized_job, job.periodic) = (None, None);
    for group in &mut job.task_groups {
        group.volumes.clear();
        if let Some(disk) = &mut group.ephemeral_disk {
            disk.migrate = false;
        }
        group.tasks.iter_mut().for_each(|task| {
            task.resources.devices.clear();
            task.resources.cores = 0;
            task.volume_mounts.clear();
            task.dispatch_payload = None;
            task.wait_for.clear();
        });
        no_canaries(group);
        // Servers of these worlds know of one network.
        let networks = group.networks.iter_mut();
        let ports = networks.flat_map(|network| &mut network.dynamic_ports);
        ports.for_each(|port| port.host_network.clear());
    }
}

/// Some may not run for long without servers.
fn may_not_run_alone(dice: &mut Dice, job: &mut Job) {
    let spans = [0, 0, 5, 60];
    let span = dice.one_of(&spans, "runs alone for", &job.id).unwrap_or(0);
    for group in &mut job.task_groups {
        group.stop_after_client_disconnect = (span > 0).then(|| Span::secs(span));
    }
}

/// A snapshot of the servers is taken, and some time later they are restored from it.
fn go_back(dice: &mut Dice, acts: &mut Vec<Act>) {
    let saved = dice.below(acts.len() + 1, "when saved", "");
    let restored = dice.below(acts.len() + 1 - saved, "when restored", "");
    let act = |pause: i64, what: What| Act {
        pause: Span::millis(pause),
        steps: 0,
        what,
    };
    let pauses = [0, 1, 1_000, 30_000];
    let mut pause = || dice.one_of(&pauses, "pause of a snapshot", "").unwrap_or(0);
    let both = [pause(), pause()];
    acts.insert(saved, act(both[0], ClusterSave.into()));
    acts.insert(saved + 1 + restored, act(both[1], ClusterGoBack.into()));
}

fn no_canaries(group: &mut TaskGroup) {
    if let Some(update) = &mut group.update {
        (update.canary, update.auto_promote) = (0, false);
    }
}

/// The same, as it is asked for at the servers; none if there is no such thing.
fn at_servers(act: Act) -> Option<Act> {
    let what: What = match act.what {
        What::Register(it) => ClusterRegister {
            job: it.job,
            change: it.change,
        }
        .into(),
        What::TakeOver(it) => ClusterRegister {
            job: it.job,
            change: None,
        }
        .into(),
        What::Deregister(it) => ClusterDeregister { job: it.job }.into(),
        What::DeregisterWithoutDelay(it) => ClusterDeregister { job: it.job }.into(),
        What::StopAlloc(it) => ClusterStopAlloc {
            job: it.job,
            nth: it.nth.unwrap_or(0),
        }
        .into(),
        What::Collect(_) => ClusterCollect.into(),
        kept @ (What::Restart(_)
        | What::RestartTask(_)
        | What::Signal(_)
        | What::SignalTask(_)
        | What::OpenSession(_)
        | What::CollectAlloc(_)
        | What::ApplyNodeMeta(_)
        | What::Driver(_)
        | What::ChangeTemplate(_)
        | What::Shutdown(_)
        | What::Replace(_)) => kept,
        _ => return None,
    };
    Some(Act { what, ..act })
}

fn act_of_servers(dice: &mut Dice, jobs: usize) -> Act {
    let job = format!("j{}", dice.below(jobs, "whose at servers", ""));
    let what: What = match dice.below(9, "at servers", "") {
        0 | 1 => ClusterCollect.into(),
        2 => ClusterForgetNode {
            allocs: dice.below(2, "allocs, too", "") == 1,
        }
        .into(),
        3 => ClusterEligibility { eligible: false }.into(),
        4 => ClusterEligibility { eligible: true }.into(),
        5 => ClusterDeregister { job }.into(),
        8 => ClusterEndIdentities {
            keys_are_new: dice.below(2, "new keys", "") == 1,
        }
        .into(),
        _ => ClusterStopAlloc {
            job,
            nth: dice.below(4, "which at servers", ""),
        }
        .into(),
    };
    let pause = dice.one_of(&[0, 1, 1_000, 30_000, 600_000], "pause of servers", "");
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: 0,
        what,
    }
}
