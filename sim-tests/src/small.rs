//! Small worlds, in which every order is tried.

use std::sync::Arc;

use drover_core::agent::requests::{Deregister, Register};
use drover_core::config::Config;
use drover_core::ids::JobKey;
use drover_core::input::ShutdownMode;
use drover_core::model::job::Job;
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::time::Span;
use drover_io_sim::exhaust::{Bounds, Explored, Step, explore, follow};
use drover_io_sim::{Fault, Faults, Sim, node, timeline};

use crate::build::{TaskExt, batch, changed, service, task};

/// A small world: its name, what it is about, and how it begins.
#[derive(Clone, Copy)]
pub struct Small {
    /// The name.
    pub name: &'static str,
    /// A sentence.
    pub about: &'static str,
    /// Whether it takes long without optimisation.
    pub large: bool,
    /// Whether the world does at once what it is asked for.
    prompt: bool,
    begin: fn(&mut Sim),
}

/// Each of them.
pub const WORLDS: &[Small] = &[
    Small {
        name: "stop",
        about: "a service is handed in and stopped at any moment; the agent dies once, anywhere",
        large: false,
        prompt: false,
        begin: |sim| {
            sim.world.scene.faults = dies(1);
            register(sim, &service("a", [task("main")]));
            deregister(sim, "a", false);
        },
    },
    Small {
        name: "purge",
        about: "the same, forgotten as well; every answer of the driver may go wrong, once",
        large: false,
        prompt: false,
        begin: |sim| {
            sim.world.scene.faults = Faults::only(DRIVER, 1).budget(1);
            register(sim, &service("a", [task("main")]));
            deregister(sim, "a", true);
        },
    },
    Small {
        name: "batch",
        about: "a task fails at once, is tried once more, and the agent dies twice, anywhere",
        large: false,
        prompt: false,
        begin: |sim| {
            sim.world.scene.faults = dies(2);
            let second = Span::secs(1);
            let main = task("main").ends("0s", 1);
            let main = main.restarts(1, Span::secs(3600), second, RestartMode::Fail);
            register(sim, &batch("a", [main]));
        },
    },
    Small {
        name: "done",
        about: "a task succeeds at once, and the driver or the agent has trouble, once",
        large: false,
        prompt: false,
        begin: |sim| {
            let kinds = [DRIVER, &[Fault::Crash, Fault::CrashInStep]].concat();
            sim.world.scene.faults = Faults::only(&kinds, 1).budget(1);
            register(sim, &batch("a", [task("main").ends("0s", 0)]));
        },
    },
    Small {
        name: "leader",
        about: "a leader and a sidecar are stopped at any moment",
        large: false,
        prompt: false,
        begin: |sim| {
            let side = task("side").hook(Hook::Prestart, true);
            register(sim, &service("a", [task("main").leader(), side]));
            deregister(sim, "a", false);
        },
    },
    Small {
        name: "pair",
        about: "two tasks of a prompt driver are killed at any moment; the agent dies between steps",
        large: true,
        prompt: true,
        begin: |sim| {
            sim.world.scene.faults = Faults::only(&[Fault::Crash], 1).budget(1);
            register(sim, &service("a", [task("main"), task("other")]));
            deregister(sim, "a", false);
        },
    },
    Small {
        name: "siblings",
        about: "two tasks of one group; one fails at once",
        large: false,
        prompt: false,
        begin: |sim| {
            let bad = task("bad").ends("0s", 1);
            let bad = bad.restarts(0, Span::secs(3600), Span::secs(1), RestartMode::Fail);
            register(sim, &batch("a", [bad, task("good")]));
        },
    },
    Small {
        name: "jobs",
        about: "two jobs at once: inputs of independent tasks",
        large: false,
        prompt: false,
        begin: |sim| {
            register(sim, &batch("a", [task("main").ends("0s", 0)]));
            register(sim, &batch("b", [task("main").ends("0s", 0)]));
        },
    },
    Small {
        name: "update",
        about: "a new version arrives at any moment of the old one's start",
        large: false,
        prompt: false,
        begin: |sim| {
            let old = service("a", [task("main")]);
            register(sim, &old);
            let new = changed(&old, |group| {
                let task = group.tasks.iter_mut();
                task.for_each(|task| drop(task.env.insert("V".to_owned(), "2".to_owned())));
            });
            register(sim, &new);
        },
    },
    Small {
        name: "end",
        about: "the agent is told to end with its tasks at any moment",
        large: false,
        prompt: false,
        begin: |sim| {
            register(sim, &service("a", [task("main")]));
            sim.shutdown(ShutdownMode::StopTasks);
        },
    },
    Small {
        name: "leave",
        about: "the agent is told to end without its tasks at any moment",
        large: false,
        prompt: false,
        begin: |sim| {
            register(sim, &service("a", [task("main")]));
            sim.shutdown(ShutdownMode::KeepTasks);
        },
    },
];

/// What drivers do wrong.
const DRIVER: &[Fault] = &[
    Fault::DoubledAnswer,
    Fault::HangStart,
    Fault::FailStartedStart,
    Fault::HangStop,
    Fault::FailStop,
    Fault::HangDestroy,
    Fault::FailDestroy,
    Fault::SwallowExit,
    Fault::DoubledExit,
    Fault::ForgetExit,
    Fault::FailHook,
    Fault::HangHook,
    Fault::FailCommit,
];

fn dies(times: u32) -> Faults {
    Faults::only(&[Fault::Crash, Fault::CrashInStep], 1).budget(times)
}

fn register(sim: &mut Sim, job: &Job) {
    let job = Arc::new(job.clone());
    sim.ask(Register {
        job,
        expect_index: None,
        submission: None,
    });
}

fn deregister(sim: &mut Sim, id: &str, purge: bool) {
    let job = JobKey::local(id);
    sim.ask(Deregister {
        job,
        purge,
        no_shutdown_delay: false,
    });
}

impl Small {
    /// The world of this name.
    pub fn named(name: &str) -> Option<&'static Small> {
        WORLDS.iter().find(|world| world.name == name)
    }

    fn sim(&self) -> Sim {
        let mut config = Config::new(0, node(), "/alloc");
        // It would look for garbage in the middle of everything.
        config.retention = None;
        let mut sim = Sim::with_config(0, config);
        (self.begin)(&mut sim);
        sim
    }

    /// Tries every order, up to so many states.
    pub fn explore(&self, states: usize) -> Explored {
        let bounds = Bounds {
            states,
            depth: 1000,
            prompt: self.prompt,
            horizon: Span::secs(2 * 3600),
        };
        explore(&self.sim(), bounds, Sim::converge)
    }

    /// Draws what happens on the way of these steps.
    pub fn draw(&self, steps: &[Step]) -> String {
        let mut sim = self.sim();
        sim.world.scene.trace.keep();
        let _ = follow(&mut sim, steps);
        timeline::draw(sim.world.scene.trace.events())
    }
}
