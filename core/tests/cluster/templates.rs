//! Templates of tasks that servers placed: they read at the servers, and the tasks hear of what changes there.

use std::collections::BTreeMap;

use drover_core::agent::Input;
use drover_core::cx::Rng;
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::input::{HookInput, HookOutput, TemplateInput};
use drover_core::model::authority::Authority;
use drover_core::model::event::EventType;
use drover_core::model::job::Job;
use drover_core::model::template::{ChangeMode, Template};
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use drover_core::work::Rendering;

use crate::allocs::{act, differences, job, placed, stop};
use crate::world::{World, dice};

/// How many worlds are tried.
const SEEDS: u64 = 300;

/// The job, with a template that reads a variable at the servers.
pub(crate) fn templated(id: &str, version: u64) -> Job {
    let mut job = job(id, version);
    for task in job.task_groups.iter_mut().flat_map(|it| &mut it.tasks) {
        task.templates = vec![Template {
            embedded_tmpl: "{{ (nomadVar \"nomad/jobs/web\").value }}".to_owned(),
            dest_path: "local/value".to_owned(),
            change_mode: ChangeMode::Signal,
            change_signal: "SIGHUP".to_owned(),
            ..Template::default()
        }];
    }
    job
}

/// A rendering that goes on.
#[derive(Clone, Debug)]
struct Renderer {
    key: TaskKey,
    /// What it answered or reported last.
    told: Option<u64>,
    /// Whether it told that the value is missing.
    missing: bool,
}

/// Whoever renders, and the value at the servers.
#[derive(Debug)]
pub(crate) struct Templates {
    pub(crate) value: u64,
    /// Whether servers refuse to tell it.
    pub(crate) refused: bool,
    renderers: BTreeMap<Op, Renderer>,
    /// What the agent was told last of a task's template.
    rendered: BTreeMap<TaskKey, u64>,
    /// What processes know of it.
    known: BTreeMap<LaunchId, u64>,
    pub(crate) signals: u64,
    rng: Rng,
}

impl Templates {
    pub(crate) fn new(seed: u64) -> Templates {
        Templates {
            value: 1,
            refused: false,
            renderers: BTreeMap::new(),
            rendered: BTreeMap::new(),
            known: BTreeMap::new(),
            signals: 0,
            rng: Rng::new(seed ^ 0x7e),
        }
    }

    /// With the agent, whoever renders ends.
    pub(crate) fn agent_died(&mut self) {
        self.renderers.clear();
    }

    /// A process finds what is rendered, or is told to look again.
    pub(crate) fn looks(&mut self, key: &TaskKey, launch: LaunchId) {
        if let Some(value) = self.rendered.get(key) {
            self.known.insert(launch, *value);
        }
    }
}

/// What is wrong when nothing failed for a while.
pub(crate) fn wrong_templates(world: &World) -> Vec<String> {
    let templates = &world.templates;
    let living = world.processes.iter().filter(|(_, it)| it.exit.is_none());
    let old = living.filter(|(launch, it)| {
        let wanted = templates.rendered.contains_key(&it.task);
        wanted && templates.known.get(*launch) != Some(&templates.value)
    });
    let words = old.map(|(launch, it)| {
        let known = templates.known.get(launch);
        format!("{:?} knows {known:?}, servers {}", it.task, templates.value)
    });
    words.collect()
}

impl World {
    pub(crate) fn begin_rendering(&mut self, op: Op, key: TaskKey, work: &Rendering) {
        let agent = self.agent.as_ref();
        let alloc = agent.and_then(|it| it.view().alloc(key.alloc));
        let task = alloc.and_then(|it| it.task(&key.task));
        let is_over = alloc.is_none_or(|it| it.is_ending() || it.is_gone())
            || task.is_none_or(|it| it.is_dead() || it.is_ending());
        let wrong = &mut self.checks.wrong;
        if work.authority != Authority::Servers {
            wrong.push(format!("{key:?} is rendered with variables of this node"));
        }
        if is_over {
            wrong.push(format!("{key:?} is rendered, and over"));
        }
        let renderer = Renderer {
            key,
            told: None,
            missing: false,
        };
        self.templates.renderers.insert(op, renderer);
        self.render_later(Span::millis(1), op);
    }

    /// Servers have another value.
    pub(crate) fn change_value(&mut self) {
        self.templates.value += 1;
        let ops: Vec<Op> = self.templates.renderers.keys().copied().collect();
        for op in ops {
            let after =
                Span::millis(i64::try_from(dice(&mut self.templates.rng, 500)).unwrap_or(0));
            self.render_later(after, op);
        }
    }

    /// Servers are asked.
    pub(crate) fn render(&mut self, op: Op) {
        let Some(mut renderer) = self.templates.renderers.get(&op).cloned() else {
            return;
        };
        let lost = self.unreachable
            || self.templates.refused
            || !self.calm && dice(&mut self.templates.rng, 100) < self.servers.trouble.lost;
        let (key, value) = (renderer.key.clone(), self.templates.value);
        if lost {
            let missing = vec!["nomadVar nomad/jobs/web".to_owned()];
            if renderer.told.is_none() && !core::mem::replace(&mut renderer.missing, true) {
                let input = TemplateInput::Missing { op, missing };
                self.input(Span::ZERO, Input::Template(key, input));
            }
            self.templates.renderers.insert(op, renderer);
            return self.render_later(Span::secs(3), op);
        }
        if renderer.told == Some(value) {
            return;
        }
        let output = HookOutput {
            rendered: vec![format!("v{value}").into()],
            ..HookOutput::default()
        };
        let input = match renderer.told.replace(value) {
            Some(_) => Input::Template(key.clone(), TemplateInput::Rendered { op, output }),
            None => Input::Hook(answer(op, &key, Ok(output))),
        };
        self.templates.rendered.insert(key, value);
        self.templates.renderers.insert(op, renderer);
        self.input(Span::ZERO, input);
    }

    /// Nobody wants a rendering any more; one that was not answered is, with a failure. `false` if it is none.
    pub(crate) fn end_rendering(&mut self, op: Op) -> bool {
        let Some(renderer) = self.templates.renderers.remove(&op) else {
            return false;
        };
        if renderer.told.is_none() {
            let cancelled = Err(Failure::recoverable("it was cancelled"));
            let input = Input::Hook(answer(op, &renderer.key, cancelled));
            self.input(Span::millis(1), input);
        }
        true
    }
}

fn answer(op: Op, key: &TaskKey, result: Result<HookOutput, Failure>) -> HookInput {
    HookInput {
        op,
        alloc: key.alloc,
        task: Some(key.task.clone()),
        result,
    }
}

fn agrees(world: &World) {
    assert_eq!(differences(world), Vec::<String>::new());
}

/// What the processes know.
fn known(world: &World) -> Vec<u64> {
    let living = world.processes.iter().filter(|(_, it)| it.exit.is_none());
    let known = living.filter_map(|(launch, _)| world.templates.known.get(launch));
    known.copied().collect()
}

#[test]
fn templates_show_what_servers_have_after_any_trouble() {
    let mut signals = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let mut next = 100;
        for _ in 0..40 {
            let pause = 1 + dice(&mut world.rng, 15);
            world.run(Span::secs(i64::try_from(pause).unwrap_or(1)));
            act(&mut world, &mut next);
            next += 1;
            let one = placed(next, templated("web", 0));
            world.servers.place(world.now, one);
            if dice(&mut world.rng, 3) == 0 {
                world.change_value();
            }
            if dice(&mut world.rng, 12) == 0 {
                world.crash(Span::secs(5));
            }
        }
        world.calm = true;
        world.run(Span::secs(600));
        let wrong = differences(&world);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        signals += world.templates.signals;
    }
    assert!(signals > 10 * SEEDS, "{signals}");
}

#[test]
fn change_at_servers_is_told_to_the_task_that_runs() {
    let mut world = World::quiet();
    world
        .servers
        .place(world.now, placed(1, templated("web", 0)));
    world.run(Span::secs(5));
    assert_eq!(known(&world), [1]);
    world.change_value();
    world.run(Span::secs(10));
    assert_eq!((known(&world), world.templates.signals), (vec![2], 1));
    // What changes while there is no agent, the next one finds.
    world.crash(Span::secs(10));
    world.change_value();
    world.run(Span::secs(30));
    assert_eq!((known(&world), world.templates.signals), (vec![3], 2));
    agrees(&world);
}

#[test]
fn task_waits_for_what_servers_refuse() {
    let mut world = World::quiet();
    world.templates.refused = true;
    world
        .servers
        .place(world.now, placed(1, templated("web", 0)));
    world.run(Span::secs(600));
    assert_eq!(world.living().count(), 0);
    let agent = world.agent.as_ref();
    let alloc = agent.and_then(|it| it.view().alloc(AllocId(1)));
    let tasks = alloc.into_iter().flat_map(|it| it.tasks());
    let mut events = tasks.flat_map(|task| &task.state().events);
    assert!(events.any(|it| it.kind == EventType::Template));
    world.templates.refused = false;
    world.run(Span::secs(10));
    assert_eq!(known(&world), [1]);
    agrees(&world);
}

#[test]
fn nothing_is_rendered_for_a_task_that_ended() {
    let mut world = World::quiet();
    world
        .servers
        .place(world.now, placed(1, templated("web", 0)));
    world.templates.refused = true;
    world
        .servers
        .place(world.now, placed(2, templated("web", 0)));
    world.run(Span::secs(20));
    for id in [1, 2] {
        stop(&mut world, AllocId(id));
    }
    world.run(Span::secs(10));
    assert!(world.templates.renderers.is_empty());
    agrees(&world);
}
