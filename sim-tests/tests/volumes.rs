//! Host volumes: who gets them, who waits for them, and what becomes of tasks whose volume is gone.

use drover_core::agent::requests::{CreateVolume, DeleteVolume};
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{JobKey, RequestId, VolumeId};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::JobType;
use drover_core::model::namespace::DEFAULT;
use drover_core::model::placement::PlacementFailure;
use drover_core::model::volume::{HostVolume, VolumeLack, VolumeSpec};
use drover_core::store::volume::VolumeState;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, group, job, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

/// A volume of the node.
fn volume(name: &str) -> HostVolume {
    HostVolume {
        name: name.to_owned(),
        path: format!("/srv/{name}"),
        ..HostVolume::default()
    }
}

fn read_only(name: &str) -> HostVolume {
    HostVolume {
        read_only: true,
        ..volume(name)
    }
}

/// A group whose task mounts the volume `data`.
fn on_data() -> TaskGroup {
    group("g", [task("main").mounts("data")]).volume("data")
}

/// The next agent has these volumes.
fn restart_with(sim: &mut Sim, volumes: &[HostVolume]) -> Scenario {
    sim.configure_volumes(volumes);
    sim.restart()
}

fn lack(sim: &Sim, job: &str) -> Option<VolumeLack> {
    let (_, why) = sim.view()?.blocked(&JobKey::local(job)).first()?;
    match why {
        PlacementFailure::HostVolume(lack) => Some(lack.clone()),
        _ => None,
    }
}

fn expect_lack(sim: &Sim, job: &str, wanted: &VolumeLack) -> Scenario {
    let lack = lack(sim, job);
    sim.expect_that(lack.as_ref() == Some(wanted), &format!("{job}: {lack:?}"))
}

fn missing(source: &str) -> VolumeLack {
    let source = source.to_owned();
    VolumeLack::Missing { source }
}

#[test]
fn job_waits_until_agent_has_its_volume() {
    for job_type in [JobType::Service, JobType::System, JobType::Batch] {
        for_seeds(20, |sim| {
            sim.register(&job("db", job_type, [on_data()]));
            sim.run(SOON)?;
            expect_lack(sim, "db", &missing("data"))?;
            restart_with(sim, &[volume("other")])?;
            sim.run(SOON)?;
            expect_lack(sim, "db", &missing("data"))?;
            restart_with(sim, &[volume("data")])?;
            sim.until(SOON, |sim| sim.runs("db", "main"))?;
            sim.converge()
        });
    }
}

#[test]
fn read_only_volume_is_for_readers() {
    for_seeds(40, |sim| {
        restart_with(sim, &[read_only("data")])?;
        sim.register(&job("writer", JobType::Service, [on_data()]));
        let reads = group("g", [task("main").mounts("data")]).reads_volume("data");
        sim.register(&job("reader", JobType::Service, [reads]));
        sim.until(SOON, |sim| sim.runs("reader", "main"))?;
        sim.run(SOON)?;
        let source = "data".to_owned();
        expect_lack(sim, "writer", &VolumeLack::ReadOnly { source })?;
        sim.converge()
    });
}

#[test]
fn each_copy_has_its_own_volume() {
    for_seeds(40, |sim| {
        restart_with(sim, &[volume("data[0]"), volume("data[2]")])?;
        let copies = group("g", [task("main").mounts("data")]);
        let copies = copies.per_alloc("data").count(3);
        sim.register(&job("db", JobType::Service, [copies]));
        sim.until(SOON, |sim| sim.living("main") == 2)?;
        expect_lack(sim, "db", &missing("data[1]"))?;
        restart_with(
            sim,
            &[0, 1, 2].map(|index| volume(&format!("data[{index}]"))),
        )?;
        sim.until(SOON, |sim| sim.living("main") == 3)?;
        sim.converge()
    });
}

/// What runs goes on; what would be started again is not, and nothing replaces it before the volume is back.
#[test]
fn task_whose_volume_is_gone_is_not_started_again() {
    for_seeds(60, |sim| {
        restart_with(sim, &[volume("data")])?;
        let short = group("g", [task("main").mounts("data").ends("100s", 1)]);
        sim.register(&job("db", JobType::Service, [short.volume("data")]));
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        restart_with(sim, &[])?;
        sim.run(Span::secs(5))?;
        sim.expect_that(sim.runs("db", "main"), "what runs goes on")?;
        let waits = |sim: &Sim| lack(sim, "db") == Some(missing("data"));
        sim.until(Span::secs(600), waits)?;
        sim.expect_that(sim.living("main") == 0, "nothing runs without it")?;
        restart_with(sim, &[volume("data")])?;
        // It fails for ever, so that there is no rest.
        sim.until(SOON, |sim| sim.runs("db", "main"))
    });
}

/// A volume that may only be read now is as good as gone for who writes.
#[test]
fn volume_that_becomes_read_only_starts_no_writer() {
    for_seeds(40, |sim| {
        restart_with(sim, &[volume("data")])?;
        let short = group("g", [task("main").mounts("data").ends("100s", 1)]);
        sim.register(&job("db", JobType::Service, [short.volume("data")]));
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        restart_with(sim, &[read_only("data")])?;
        sim.until(Span::secs(600), |sim| lack(sim, "db").is_some())?;
        sim.expect_that(sim.living("main") == 0, "nobody writes")?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_starting_on_a_volume() {
    let crashes = each_crash(3, |sim| {
        restart_with(sim, &[volume("data")])?;
        let once = group("g", [task("main").mounts("data").ends("20s", 0)]).volume("data");
        sim.register(&job("db", JobType::Batch, [once]));
        sim.until(Span::secs(600), |sim| {
            sim.all_over("db", ClientStatus::Complete)
        })?;
        sim.converge()
    });
    assert!(crashes > 5, "{crashes}");
}

fn spec(name: &str) -> VolumeSpec {
    VolumeSpec {
        name: name.to_owned(),
        namespace: DEFAULT.to_owned(),
        ..VolumeSpec::default()
    }
}

fn create(sim: &mut Sim, name: &str) -> RequestId {
    let spec = spec(name);
    sim.ask(CreateVolume { spec })
}

fn answer(sim: &mut Sim, request: RequestId) -> Result<Option<Reply>, Violation> {
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    Ok(sim.reply(request).cloned())
}

/// The volume of this name, and its state, as the agent shows it.
fn known(sim: &Sim, name: &str) -> Option<(VolumeId, VolumeState)> {
    let mut records = sim.view()?.machine().volumes().records();
    let record = records.find(|it| it.spec.name == name)?;
    Some((record.id, record.state))
}

fn is_ready(sim: &Sim, name: &str) -> bool {
    matches!(known(sim, name), Some((_, VolumeState::Ready)))
}

fn delete(sim: &mut Sim, name: &str) -> Option<RequestId> {
    let (volume, _) = known(sim, name)?;
    Some(sim.ask(DeleteVolume { volume }))
}

#[test]
fn created_volume_places_waiting_job_and_survives_agent_restart() {
    for_seeds(60, |sim| {
        sim.register(&job("db", JobType::Service, [on_data()]));
        sim.run(SOON)?;
        expect_lack(sim, "db", &missing("data"))?;
        let request = create(sim, "data");
        let reply = answer(sim, request)?;
        sim.expect_that(matches!(reply, Some(Reply::Volume(_))), "it is made")?;
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.restart()?;
        sim.expect_that(is_ready(sim, "data"), "the next agent has it")?;
        sim.converge()?;
        sim.expect_that(sim.runs("db", "main"), "and so has the job")
    });
}

/// A snapshot has no directories: the agent that is started from one makes them anew, and says so.
#[test]
fn created_volume_of_restored_snapshot_is_made_anew() {
    for_seeds(60, |sim| {
        create(sim, "data");
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        let registered = VolumeSpec {
            registered: Some("/mnt/other".to_owned()),
            ..spec("other")
        };
        sim.ask(CreateVolume { spec: registered });
        sim.until(SOON, |sim| is_ready(sim, "other"))?;
        let path = |sim: &Sim, name: &str| {
            let mut records = sim.view()?.machine().volumes().records();
            let record = records.find(|it| it.spec.name == name)?;
            Some(record.host_path.clone())
        };
        let before = path(sim, "data");
        sim.converge()?;
        sim.restore_snapshot()?;
        let there = is_ready(sim, "other") && path(sim, "other").as_deref() == Some("/mnt/other");
        sim.expect_that(there, "what was registered stays where it is")?;
        sim.register(&job("db", JobType::Service, [on_data()]));
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.expect_that(is_ready(sim, "data"), "it is made")?;
        sim.expect_that(path(sim, "data") != before, "where the agent is now")?;
        let reported = sim.view().is_some_and(|view| {
            let mut events = view.machine().events();
            events.any(|event| event.message.contains("an empty directory is made"))
        });
        sim.expect_that(reported, "an event says so")?;
        sim.restart()?;
        sim.converge()?;
        sim.expect_that(sim.runs("db", "main"), "it is so for good")
    });
}

/// Nothing of what may be there is removed because it cannot be made.
#[test]
fn volume_of_restored_snapshot_that_cannot_be_made_waits_for_the_next_agent() {
    for_seeds(60, |sim| {
        create(sim, "data");
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        sim.converge()?;
        sim.world.scene.faults = Faults::only(&[Fault::FailHook], 1000).budget(1);
        sim.restore_snapshot()?;
        sim.run(SOON)?;
        sim.world.scene.faults = Faults::none();
        let is_kept =
            matches!(known(sim, "data"), Some((_, state)) if state != VolumeState::Deleting);
        sim.expect_that(is_kept, "it is not removed")?;
        sim.restart()?;
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        sim.converge()
    });
}

#[test]
fn volume_in_use_is_not_deleted() {
    for_seeds(60, |sim| {
        create(sim, "data");
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        sim.register(&job("db", JobType::Service, [on_data()]));
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        if let Some(request) = delete(sim, "data") {
            let reply = answer(sim, request)?;
            let refused = matches!(reply, Some(Reply::Refused(Refusal::Conflict(_))));
            sim.expect_that(refused, &format!("{reply:?}"))?;
        }
        sim.expect_that(is_ready(sim, "data"), "it is as it was")?;
        // Its job is told to end, and its process lives on for a while.
        sim.deregister("db", false);
        delete(sim, "data");
        sim.until(SOON, |sim| sim.living("main") == 0)?;
        sim.run(SOON)?;
        delete(sim, "data");
        sim.until(SOON, |sim| known(sim, "data").is_none())?;
        sim.expect_that(sim.world.volumes.made().is_empty(), "its directory is gone")?;
        sim.converge()
    });
}

#[test]
fn name_of_volume_is_unique() {
    for_seeds(10, |sim| {
        restart_with(sim, &[volume("fixed")])?;
        create(sim, "data");
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        for name in ["data", "fixed", ""] {
            let request = create(sim, name);
            let reply = answer(sim, request)?;
            let refused = matches!(reply, Some(Reply::Refused(_)));
            sim.expect_that(refused, &format!("{name:?}: {reply:?}"))?;
        }
        sim.converge()
    });
}

/// Whatever fails or hangs: in the end the volume is there and ready, or it is gone with its directory.
#[test]
fn failing_disk_leaves_no_directory_without_volume() {
    for_seeds(200, |sim| {
        let trouble = [Fault::HangHook, Fault::FailHook, Fault::SlowAnswer];
        sim.world.scene.faults = Faults::only(&trouble, 400).budget(20);
        create(sim, "data");
        sim.run(Span::secs(400))?;
        delete(sim, "data");
        sim.run(Span::secs(400))?;
        create(sim, "data");
        create(sim, "other");
        sim.run(Span::secs(400))?;
        sim.converge()
    });
}

#[test]
fn registered_volume_is_forgotten_and_its_directory_stays() {
    for_seeds(40, |sim| {
        let registered = VolumeSpec {
            registered: Some("/mnt/data".to_owned()),
            ..spec("data")
        };
        sim.ask(CreateVolume { spec: registered });
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        sim.register(&job("db", JobType::Service, [on_data()]));
        sim.until(SOON, |sim| sim.runs("db", "main"))?;
        sim.deregister("db", false);
        sim.run(SOON)?;
        delete(sim, "data");
        sim.until(SOON, |sim| known(sim, "data").is_none())?;
        sim.converge()
    });
}

#[test]
fn agent_dies_at_any_step_of_making_and_deleting_a_volume() {
    let crashes = each_crash(6, |sim| {
        create(sim, "data");
        sim.run(SOON)?;
        // Who died before the answer may not have begun.
        if known(sim, "data").is_none() {
            create(sim, "data");
        }
        sim.until(Span::secs(600), |sim| is_ready(sim, "data"))?;
        let once = group("g", [task("main").mounts("data").ends("20s", 0)]).volume("data");
        sim.register(&job("db", JobType::Batch, [once]));
        sim.until(Span::secs(600), |sim| {
            sim.all_over("db", ClientStatus::Complete)
        })?;
        delete(sim, "data");
        sim.run(SOON)?;
        delete(sim, "data");
        sim.run(Span::secs(600))?;
        sim.converge()?;
        sim.expect_that(known(sim, "data").is_none(), "it is gone")?;
        sim.expect_that(sim.world.volumes.made().is_empty(), "with its directory")
    });
    assert!(crashes > 10, "{crashes}");
}

/// A search found this: of two who asked for the same, one was never answered.
#[test]
fn everybody_who_deletes_a_volume_is_answered() {
    for_seeds(20, |sim| {
        create(sim, "data");
        sim.until(SOON, |sim| is_ready(sim, "data"))?;
        let asked = [delete(sim, "data"), delete(sim, "data")];
        for request in asked.into_iter().flatten() {
            let reply = answer(sim, request)?;
            sim.expect_that(reply.is_some(), "everybody is answered")?;
        }
        sim.converge()
    });
}
