//! Plans of small snapshots.

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::claims::resources::Capacity;
use crate::ids::GroupName;
use crate::model::alloc::DesiredStatus;
use crate::model::eval::{GroupChanges, GroupRollout};
use crate::model::group::EphemeralDisk;
use crate::model::policy::UpdateStrategy;
use crate::time::{Span, Timestamp};
use world::{World, failures, placed};

#[test]
fn missing_copies_are_placed_with_their_index() {
    let mut world = World::new();
    let web = world.job("web", 50, 2, &[]);
    let plan = world.plan(&[&web]);
    let indexes: Vec<u32> = placed(&plan).iter().map(|new| new.record.index).collect();
    assert_eq!(indexes, [0, 1]);
    assert_eq!(failures(&plan), Vec::<String>::new());
}

#[test]
fn running_job_needs_no_actions() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    world.runs(1, &web, &[]);
    let plan = world.plan(&[&web]);
    assert!(placed(&plan).is_empty());
    let stops = |action: &Action| matches!(action, Action::Stop(..));
    assert!(!plan.actions.iter().any(stops), "{:?}", plan.actions);
}

#[test]
fn surplus_copy_is_stopped_with_reason() {
    let mut world = World::new();
    let web = world.job("web", 50, 0, &[]);
    let id = world.runs(1, &web, &[]);
    let plan = world.plan(&[&web]);
    let stop = Action::Stop(id, "alloc not needed due to job update");
    assert!(plan.actions.contains(&stop), "{:?}", plan.actions);
}

#[test]
fn port_of_same_priority_is_awaited() {
    let mut world = World::new();
    let (web, other) = (
        world.job("web", 50, 1, &[80]),
        world.job("other", 50, 1, &[80]),
    );
    world.runs(1, &other, &[80]);
    let plan = world.plan(&[&web]);
    assert!(placed(&plan).is_empty());
    assert_eq!(failures(&plan), ["reserved port collision p80=80"]);
}

#[test]
fn port_of_lower_priority_is_preempted() {
    let mut world = World::new();
    let (web, low) = (
        world.job("web", 50, 1, &[80]),
        world.job("low", 10, 1, &[80]),
    );
    let id = world.runs(1, &low, &[80]);
    let plan = world.plan(&[&web]);
    let evicted: Vec<_> = placed(&plan).iter().map(|new| new.evicts.clone()).collect();
    assert_eq!(evicted, [vec![id]]);
}

#[test]
fn disallowed_preemption_waits() {
    let mut world = World::new();
    let (web, low) = (
        world.job("web", 50, 1, &[80]),
        world.job("low", 10, 1, &[80]),
    );
    world.runs(1, &low, &[80]);
    world.preempting = false;
    assert_eq!(failures(&world.plan(&[&web])).len(), 1);
}

#[test]
fn stopping_holder_is_awaited_not_evicted() {
    let mut world = World::new();
    let (web, low) = (
        world.job("web", 50, 1, &[80]),
        world.job("low", 10, 0, &[80]),
    );
    let id = world.runs(1, &low, &[80]);
    world.alloc(id).desired = DesiredStatus::Stop;
    let plan = world.plan(&[&web]);
    let new = placed(&plan);
    assert_eq!(new.len(), 1);
    assert_eq!(
        (&new[0].record.preempts, new[0].evicts.len()),
        (&vec![id], 0)
    );
}

#[test]
fn plan_assigns_port_once() {
    let mut world = World::new();
    let (one, two) = (
        world.job("one", 60, 1, &[80]),
        world.job("two", 60, 1, &[80]),
    );
    let plan = world.plan(&[&one, &two]);
    let jobs: Vec<_> = placed(&plan).iter().map(|new| new.job.id.clone()).collect();
    assert_eq!(jobs, ["one"]);
    assert_eq!(failures(&plan), ["reserved port collision p80=80"]);
}

#[test]
fn plan_with_eviction_defers_later_jobs() {
    let mut world = World::new();
    let (one, two) = (world.job("one", 60, 0, &[]), world.job("two", 50, 1, &[]));
    world.runs(1, &one, &[]);
    let first = world.plan(&[&one, &two]);
    assert!(placed(&first).is_empty());
    assert_eq!(first.rest, std::slice::from_ref(&two));
    assert_eq!(placed(&world.plan(&[&two])).len(), 1);
}

#[test]
fn missing_driver_fails_placement_after_fingerprints() {
    let mut world = World::new();
    let web = world.job("web", 50, 2, &[]);
    world.node.drivers.clear();
    let why = "driver \"mock\" of task \"t\" is not there";
    assert_eq!(failures(&world.plan(&[&web])), [why]);
    world.unknown = true;
    let plan = world.plan(&[&web]);
    let considered = Action::Considered(
        web,
        Unplaced {
            failed: Vec::new(),
            unknown: true,
            copies: BTreeMap::from([(
                GroupName::from("g"),
                Missing {
                    place: 2,
                    destructive: 0,
                    canary: 0,
                },
            )]),
        },
        Changes::from([(
            "g".to_owned(),
            GroupChanges {
                place: 2,
                ..GroupChanges::default()
            },
        )]),
    );
    assert!(plan.actions.contains(&considered), "{:?}", plan.actions);
}

#[test]
fn old_version_is_stopped_by_new_one() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    let id = world.runs(1, &web, &[]);
    world.next_version(&web, |job| {
        let env = &mut job.task_groups[0].tasks[0].env;
        env.insert("A".to_owned(), "b".to_owned());
    });
    let plan = world.plan(&[&web]);
    let new = placed(&plan);
    assert_eq!(new.len(), 1);
    assert_eq!((new[0].record.previous, new[0].outdates), (Some(id), true));
}

#[test]
fn version_that_excludes_node_is_not_taken_in_place() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    world.runs(1, &web, &[]);
    world.next_version(&web, |job| job.datacenters = vec!["dc9".to_owned()]);
    let plan = world.plan(&[&web]);
    let touches = |action: &Action| matches!(action, Action::Update(..) | Action::Stop(..));
    assert!(!plan.actions.iter().any(touches), "{:?}", plan.actions);
    assert_eq!(failures(&plan).len(), 1, "{:?}", plan.actions);
    let changes = DryRun::of(&world.snapshot(&[&web]), &web).groups;
    assert_eq!((changes["g"].in_place, changes["g"].destructive), (0, 1));
}

/// People say what is healthy, so nothing else would let anybody plan again.
#[test]
fn rollout_in_place_has_until_its_progress_deadline() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    world.runs(1, &web, &[]);
    let rollout = world.rolls_out(&web);
    world.next_version(&web, |job| {
        job.task_groups[0].update = Some(UpdateStrategy {
            progress_deadline: Span::secs(20),
            ..UpdateStrategy::default()
        });
    });
    let (g, at) = (GroupName::from("g"), Instant(0) + Span::secs(20));
    let progress = Progress {
        deployment: rollout,
        since: Timestamp(0),
        at,
    };
    let actions = world.plan(&[&web]).actions;
    assert!(
        actions.iter().any(|it| matches!(it, Action::Update(..))),
        "{actions:?}"
    );
    assert!(
        actions.contains(&Action::ProgressBy(web, [(g, progress)].into())),
        "{actions:?}"
    );
}

#[test]
fn rollout_with_unhealthy_alloc_fails() {
    let mut world = World::new();
    let web = world.job("web", 50, 2, &[]);
    let rollout = world.fails_to_roll_out(&web);
    let why = "Failed due to unhealthy allocations".to_owned();
    let end = Action::EndRollout(rollout, DeploymentStatus::Failed, why);
    assert!(world.plan(&[&web]).actions.contains(&end));
}

/// What the version that comes back needs is given to nobody else meanwhile.
#[test]
fn plan_with_revert_defers_later_jobs() {
    let mut world = World::new();
    let (web, batch) = (world.job("web", 70, 2, &[]), world.job("b", 50, 1, &[]));
    world.change(&web, |record| Arc::make_mut(&mut record.job).stable = true);
    world.next_version(&web, |job| {
        job.stable = false;
        job.meta.insert("new".to_owned(), "1".to_owned());
        job.task_groups[0].update = Some(UpdateStrategy {
            auto_revert: true,
            ..UpdateStrategy::default()
        });
    });
    world.fails_to_roll_out(&web);
    let plan = world.plan(&[&web, &batch]);
    assert_eq!(plan.actions.last(), Some(&Action::Revert(web, 0)));
    assert_eq!(plan.rest, [batch]);
}

#[test]
fn purged_job_is_removed_with_last_alloc() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    world.change(&web, |record| {
        Arc::make_mut(&mut record.job).stop = true;
        record.purge = true;
    });
    let id = world.runs(1, &web, &[]);
    world.alloc(id).finished = true;
    world.alloc(id).desired = DesiredStatus::Stop;
    assert!(world.plan(&[&web]).actions.contains(&Action::Remove(id)));
    world.allocs.clear();
    world.allocs_of.clear();
    assert!(world.plan(&[&web]).actions.contains(&Action::Forget(web)));
}

#[test]
fn same_snapshot_gives_the_same_plan() {
    let mut world = World::new();
    let web = world.job("web", 50, 3, &[]);
    assert_eq!(world.plan(&[&web]), world.plan(&[&web]));
}

#[test]
fn job_exceeding_capacity_waits_with_reason() {
    let mut world = World::new();
    let (web, other) = (world.job("web", 50, 1, &[]), world.job("other", 50, 1, &[]));
    world.capacity.cpu = Some(5000);
    world.wants(&other, 3800, 10);
    world.wants(&web, 4000, 10);
    world.runs(1, &other, &[]);
    let why = "cpu: needs 4000 MHz, 1200 of 5000 are free";
    assert_eq!(failures(&world.plan(&[&web])), [why]);
}

#[test]
fn memory_is_assigned_once() {
    let mut world = World::new();
    let (one, two) = (world.job("one", 50, 1, &[]), world.job("two", 50, 1, &[]));
    world.capacity.memory = Some(1000);
    world.wants(&one, 1, 600);
    world.wants(&two, 1, 600);
    let plan = world.plan(&[&one, &two]);
    assert_eq!(placed(&plan).len(), 1);
    let why = "memory: needs 600 MB, 400 of 1000 are free";
    assert_eq!(failures(&plan), [why]);
}

#[test]
fn copies_are_placed_while_they_fit() {
    let mut world = World::new();
    let web = world.job("web", 50, 4, &[]);
    world.capacity.memory = Some(1000);
    world.wants(&web, 1, 300);
    let plan = world.plan(&[&web]);
    assert_eq!(placed(&plan).len(), 3);
    assert_eq!(
        failures(&plan),
        ["memory: needs 300 MB, 100 of 1000 are free"]
    );
}

#[test]
fn memory_preemption_takes_no_more_than_needed() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    let (small, large) = (
        world.job("small", 10, 1, &[]),
        world.job("large", 20, 1, &[]),
    );
    world.capacity.memory = Some(1000);
    world.wants(&web, 1, 700);
    world.wants(&small, 1, 200);
    world.wants(&large, 1, 700);
    world.runs(1, &small, &[]);
    let id = world.runs(2, &large, &[]);
    let plan = world.plan(&[&web]);
    let evicted: Vec<_> = placed(&plan).iter().map(|new| new.evicts.clone()).collect();
    assert_eq!(
        evicted,
        [vec![id]],
        "the end of the small one would be in vain"
    );
}

#[test]
fn replacement_reuses_capacity_of_previous_alloc() {
    let mut world = World::new();
    let web = world.job("web", 50, 1, &[]);
    world.capacity.memory = Some(1000);
    world.wants(&web, 1, 800);
    let id = world.runs(1, &web, &[]);
    world.alloc(id).desired = DesiredStatus::Stop;
    let plan = world.plan(&[&web]);
    let replaces: Vec<_> = placed(&plan)
        .iter()
        .map(|new| new.record.previous)
        .collect();
    assert_eq!(replaces, [Some(id)]);
}

#[test]
fn shrunk_node_evicts_nothing_and_places_nothing() {
    let mut world = World::new();
    let (web, other) = (world.job("web", 50, 1, &[]), world.job("other", 50, 1, &[]));
    world.capacity.memory = Some(100);
    world.wants(&other, 1, 800);
    world.wants(&web, 1, 50);
    world.runs(1, &other, &[]);
    let plan = world.plan(&[&web, &other]);
    assert_eq!(failures(&plan), ["memory: needs 50 MB, 0 of 100 are free"]);
    let stops = |action: &Action| matches!(action, Action::Stop(..));
    assert!(!plan.actions.iter().any(stops), "{:?}", plan.actions);
}

#[test]
fn cores_of_two_jobs_are_disjoint() {
    let mut world = World::new();
    let (one, two) = (world.job("one", 50, 1, &[]), world.job("two", 50, 1, &[]));
    world.capacity = Capacity {
        cpu: Some(6000),
        cores: [0, 1, 2].into(),
        core_mhz: 2000,
        ..Capacity::default()
    };
    for key in [&one, &two] {
        world.change(key, |record| {
            let group = &mut Arc::make_mut(&mut record.job).task_groups[0];
            group.tasks[0].resources.cores = 2;
        });
    }
    let plan = world.plan(&[&one, &two]);
    let cores: Vec<_> = placed(&plan)
        .iter()
        .map(|new| new.record.cores[0].ids.clone())
        .collect();
    assert_eq!(cores, [[0, 1]]);
    assert_eq!(failures(&plan), ["cores: needs 2, 1 of 3 are free"]);
}

#[test]
fn dry_run_counts_each_copy_once() {
    let mut world = World::new();
    let web = world.job("web", 50, 3, &[]);
    world.runs(1, &web, &[]);
    world.runs(2, &web, &[]);
    world.alloc(AllocId(2)).index = 1;
    world.next_version(&web, |job| {
        let group = &mut job.task_groups[0];
        group.tasks[0].env.insert("A".to_owned(), "b".to_owned());
        group.update = Some(UpdateStrategy {
            max_parallel: 1,
            ..UpdateStrategy::default()
        });
    });
    let dry_run = DryRun::of(&world.snapshot(&[]), &web);
    let expected = GroupChanges {
        place: 1,
        destructive: 1,
        ignore: 1,
        ..GroupChanges::default()
    };
    assert_eq!(dry_run.groups["g"], expected);
}

/// Version 0 runs in two copies, and version 1 is rolled out with one canary first.
fn rolls_out_with_canary(world: &mut World) -> JobKey {
    let web = world.job("web", 50, 2, &[]);
    world.runs(1, &web, &[]);
    world.runs(2, &web, &[]);
    world.alloc(AllocId(2)).index = 1;
    world.rolls_out(&web);
    world.next_version(&web, |job| {
        let group = &mut job.task_groups[0];
        group.tasks[0].env.insert("A".to_owned(), "b".to_owned());
        group.update = Some(UpdateStrategy {
            max_parallel: 1,
            canary: 1,
            ..UpdateStrategy::default()
        });
    });
    for deployment in world.deployments.values_mut() {
        let deployment = Arc::make_mut(deployment);
        deployment.job_version = 1;
        let canaries = GroupRollout {
            canaries: 1,
            ..GroupRollout::default()
        };
        deployment.groups.insert(GroupName::from("g"), canaries);
    }
    web
}

/// The copies that a group shall have, and what is made beside them.
#[test]
fn unplaced_canary_is_counted_besides_copies() {
    let mut world = World::new();
    let web = rolls_out_with_canary(&mut world);
    world.node.drivers.clear();
    let expected = GroupChanges {
        canary: 1,
        ignore: 2,
        ..GroupChanges::default()
    };
    let dry_run = DryRun::of(&world.snapshot(&[]), &web);
    assert_eq!(dry_run.groups["g"], expected, "{:?}", dry_run.plan.actions);
}

/// A job is changed again while the canary of the change before waits to be promoted.
#[test]
fn canary_of_earlier_rollout_is_stopped_for_new_one() {
    let mut world = World::new();
    let web = rolls_out_with_canary(&mut world);
    let old = world.runs(3, &web, &[]);
    let alloc = world.alloc(old);
    (alloc.canary, alloc.deployment) = (true, Some(DeploymentId(6)));
    let plan = world.plan(&[&web]);
    let canaries: Vec<bool> = (placed(&plan).iter()).map(|it| it.record.canary).collect();
    assert_eq!(canaries, [true]);
    let stop = Action::Stop(old, "alloc not needed due to job update");
    assert!(plan.actions.contains(&stop), "{:?}", plan.actions);
}

#[test]
fn disk_space_of_lower_priority_is_preempted() {
    let mut world = World::new();
    let (web, low) = (world.job("web", 50, 1, &[]), world.job("low", 10, 1, &[]));
    world.capacity.disk = Some(1000);
    for (key, size_mb) in [(&web, 800), (&low, 300)] {
        world.change(key, |record| {
            Arc::make_mut(&mut record.job).task_groups[0].ephemeral_disk = Some(EphemeralDisk {
                size_mb,
                ..EphemeralDisk::default()
            });
        });
    }
    let id = world.runs(1, &low, &[]);
    let plan = world.plan(&[&web]);
    let evicted: Vec<_> = placed(&plan).iter().map(|new| new.evicts.clone()).collect();
    assert_eq!(evicted, [vec![id]]);
}

#[test]
fn what_a_plan_does_is_counted_for_each_job() {
    let mut world = World::new();
    let (web, db) = (world.job("web", 60, 2, &[]), world.job("db", 50, 1, &[]));
    let plan = world.plan(&[&web, &db]);
    let counted = plan.actions.iter().filter_map(|action| {
        let Action::Considered(job, _, changes) = action else {
            return None;
        };
        Some((job.clone(), changes["g"].place))
    });
    assert_eq!(counted.collect::<Vec<_>>(), [(web, 2), (db, 1)]);
}

#[test]
fn dry_run_counts_copies_that_cannot_be_placed() {
    let mut world = World::new();
    let web = world.job("web", 50, 2, &[]);
    world.node.drivers.clear();
    let dry_run = DryRun::of(&world.snapshot(&[]), &web);
    assert_eq!(
        (dry_run.groups["g"].place, dry_run.groups["g"].ignore),
        (2, 0)
    );
    assert_eq!(dry_run.unplaced.failed.len(), 1);
    let stopped = world.runs(1, &web, &[]);
    world.change(&web, |record| Arc::make_mut(&mut record.job).stop = true);
    let dry_run = DryRun::of(&world.snapshot(&[]), &web);
    assert_eq!(
        (dry_run.groups["g"].stop, dry_run.groups["g"].ignore),
        (1, 0)
    );
    assert!(
        dry_run
            .plan
            .actions
            .iter()
            .any(|one| matches!(one, Action::Stop(id, _) if *id == stopped))
    );
}
