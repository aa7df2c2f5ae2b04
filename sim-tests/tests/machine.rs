//! What is known of the machine: probes, drivers and devices that fail, hang, lie and vanish cost
//! themselves, and nobody else.

use drover_core::agent::requests::{CollectGarbage, RestartScope};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::{Constraint, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Task;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, changed, group, job, service, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON};
use drover_sim_tests::{Scenario, each_crash, for_seeds};

/// How long the core waits for a probe, and some time more.
const PROBED: Span = Span::secs(40);

/// Long enough for an agent to die and the next to begin.
const LATE: Span = Span::secs(200);

fn on_devices(name: &str, count: u64) -> Task {
    task("main").devices(name, count)
}

/// Of everything that a plugin could do, and a driver, and a probe.
const TROUBLE: &[Fault] = &[
    Fault::FailProbe,
    Fault::HangProbe,
    Fault::HangNews,
    Fault::EndNews,
    Fault::LateNews,
    Fault::OddNews,
    Fault::FlapDevice,
];

/// Failures of long ago make nobody wait.
#[test]
fn probe_that_worked_is_asked_again_soon_when_it_fails() {
    for_seeds(10, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::FailProbe, Fault::HangProbe], 300).budget(1000);
        sim.register(&service("web", [task("main")]));
        sim.run(Span::secs(48 * 3600))?;
        sim.converge()
    });
}

#[test]
fn hanging_probe_delays_first_job_by_timeout_only() {
    for_seeds(60, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::HangProbe], 1000).budget(1000);
        sim.restart()?;
        sim.register(&service("web", [task("main")]));
        sim.until(PROBED, |sim| sim.runs("web", "main"))
    });
}

/// What a device does not say of itself is not what a job rules out.
#[test]
fn device_that_lacks_an_attribute_differs_from_each_value_of_it() {
    for_seeds(20, |sim| {
        sim.world.scene.faults = Faults::none();
        let rules = |operand: &str| {
            let mut main = on_devices("fpga", 1);
            main.resources.devices[0].constraints.push(Constraint {
                target: "${device.attr.memory}".to_owned(),
                value: "8 GiB".to_owned(),
                operand: operand.to_owned(),
            });
            main
        };
        sim.register(&service("other", [rules("!=")]));
        sim.until(SOON, |sim| sim.runs("other", "main"))?;
        sim.register(&service("same", [rules("=")]));
        sim.run(SOON)?;
        sim.expect_that(
            sim.allocs("same").is_empty(),
            "it is not equal to it either",
        )?;
        sim.converge()
    });
}

#[test]
fn silent_device_plugin_blocks_only_its_users() {
    for_seeds(60, |sim| {
        // In the world of seed 0 nothing goes wrong.
        if sim.seed() == BENIGN {
            return Ok(());
        }
        sim.world.scene.faults = Faults::only(&[Fault::HangNews], 1000).budget(1000);
        sim.restart()?;
        sim.register(&service("plain", [task("main")]));
        sim.register(&service("fast", [on_devices("fpga", 1)]));
        sim.until(PROBED, |sim| sim.runs("plain", "main"))?;
        sim.run(Span::secs(600))?;
        sim.expect_that(sim.allocs("fast").is_empty(), "there is no device")?;
        sim.run_until_quiescent()?;
        sim.expect_that(sim.runs("fast", "main"), "the device is there")
    });
}

#[test]
fn device_is_reassigned_when_holder_is_gone() {
    for_seeds(100, |sim| {
        sim.register(&service("one", [on_devices("bolt/gpu", 2)]));
        sim.until(SOON, |sim| sim.runs("one", "main"))?;
        sim.register(&service("two", [on_devices("gpu", 1)]));
        sim.run(Span::secs(60))?;
        sim.expect_that(sim.allocs("two").is_empty(), "both are held")?;
        sim.deregister("one", false);
        sim.until(SOON, |sim| sim.runs("two", "main"))?;
        sim.converge()
    });
}

/// A soak found this: a task was given up because its driver answered no stop and no destroy, and
/// the next version of its job started on the device that it still used.
#[test]
fn unkillable_process_keeps_its_device() {
    for_seeds(100, |sim| {
        sim.world.scene.faults =
            Faults::only(&[Fault::HangStop, Fault::HangDestroy], 1000).budget(10);
        let old = service("web", [on_devices("fpga", 1)]);
        sim.register(&old);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.register(&changed(&old, |group| {
            group.tasks[0].env.insert("V".to_owned(), "2".to_owned());
        }));
        sim.run(Span::secs(600))?;
        sim.converge()?;
        sim.expect_that(sim.living("main") == 1, "one after the other")
    });
}

/// The agent of Nomad forgets device nodes and mounts of a task when it is started again.
#[test]
fn device_reservation_survives_crashes() {
    let scenario = |sim: &mut Sim| -> Scenario {
        sim.register(&service("web", [on_devices("fpga", 2)]));
        sim.until(LATE, |sim| sim.runs("web", "main"))?;
        sim.restart()?;
        sim.until(LATE, |sim| sim.runs("web", "main"))?;
        sim.run(Span::secs(5))?;
        sim.restart_tasks("web", RestartScope::Running);
        sim.run(Span::secs(60))?;
        sim.converge()
    };
    for seed in 0..4 {
        let steps = each_crash(seed, scenario);
        assert!(steps > 10, "seed {seed}: {steps} steps");
    }
}

/// A soak found this: garbage was collected while nothing could be placed, and with it went what
/// waited to be replaced, and how often its place had been tried.
#[test]
fn gc_waits_for_first_evaluations() {
    for_seeds(60, |sim| {
        let main = task("main").ends("20s", 1);
        let main = main.restarts(0, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        let group = group("g", [main]).reschedules(1, Span::secs(900));
        sim.register(&job("sum", JobType::Batch, [group]));
        sim.until(LATE, |sim| sim.all_over("sum", ClientStatus::Failed))?;
        sim.world.scene.faults = Faults::only(&[Fault::HangProbe], 1000).budget(3);
        sim.restart()?;
        sim.ask(CollectGarbage);
        sim.run(Span::secs(300))?;
        let starts = sim.world.starts_of("main");
        sim.expect_that(starts == 1, "its replacement waits for its time")?;
        sim.run(Span::secs(7200))?;
        let starts = sim.world.starts_of("main");
        sim.expect_that(starts == 2, &format!("once more and not again: {starts}"))
    });
}

#[test]
fn tasks_survive_machine_faults() {
    for_seeds(150, |sim| {
        sim.register(&service("plain", [task("main")]));
        sim.register(&service("fast", [task("fast").devices("fpga", 1)]));
        sim.until(SOON, |sim| {
            sim.runs("plain", "main") && sim.runs("fast", "fast")
        })?;
        sim.world.scene.faults = Faults::only(TROUBLE, 300).budget(200);
        sim.run(Span::secs(3600))?;
        let starts = (sim.world.starts_of("main"), sim.world.starts_of("fast"));
        sim.expect_that(starts == (1, 1), &format!("nothing restarts: {starts:?}"))?;
        sim.converge()
    });
}
