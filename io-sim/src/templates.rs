//! Templates: what they are made of changes, and whoever watches is told.
//!
//! Each template is a number that rises when its source changes. What is rendered of it is that
//! number, and variables of templates have it as their value.

use drover_core::ids::TaskKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::input::{HookOutput, TemplateInput};
use drover_core::op::Op;
use drover_core::time::Span;
use drover_core::work::{Rendering, TemplateWork};

use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::{Due, Later};
use crate::point::Point;
use crate::scene::Scene;

/// What is true of all templates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    sources: BTreeMap<TaskKey, Vec<Template>>,
    /// Who is watched, under which number, in this life of the agent.
    watches: BTreeMap<TaskKey, Op>,
    /// How long the changes of each are collected, at least and at most.
    waits: BTreeMap<TaskKey, Vec<(Span, Span)>>,
    /// Of whom an attempt to watch failed in this life.
    trouble: BTreeSet<TaskKey>,
}

/// One template.
#[derive(Clone, Copy, Debug)]
struct Template {
    version: u32,
    once: bool,
    env: bool,
}

impl Templates {
    /// What is rendered of a task's templates, once anything was.
    fn output(&self, key: &TaskKey) -> HookOutput {
        let templates = self.sources.get(key).into_iter().flatten().enumerate();
        let mut output = HookOutput::default();
        for (at, template) in templates {
            let version = template.version.to_string();
            output.rendered.push(Arc::from(version.as_str()));
            if template.env {
                output.env.insert(variable(at), version);
            }
        }
        output
    }

    /// What is rendered of the templates of a task that is watched; none if its watch failed.
    pub(crate) fn known(&self, key: &TaskKey) -> Option<Vec<Arc<str>>> {
        let sound = !self.trouble.contains(key);
        sound.then(|| self.output(key).rendered)
    }

    /// Nobody watches this task any more for the agent that lives.
    pub(crate) fn failed(&mut self, key: &TaskKey) {
        self.trouble.insert(key.clone());
    }

    /// Who is watched under this number, and how long the changes of each template are collected.
    pub(crate) fn watched_as(&self, op: Op) -> Option<(&TaskKey, &[(Span, Span)])> {
        let key = self.watches.iter().find(|(_, watch)| **watch == op)?.0;
        Some((key, self.waits.get(key)?))
    }

    pub(crate) fn cancelled(&mut self, op: Op) {
        self.watches.retain(|_, watch| *watch != op);
    }

    pub(crate) fn agent_died(&mut self) {
        self.watches.clear();
        self.trouble.clear();
    }
}

/// The variable of a task's template of this number.
pub(crate) fn variable(at: usize) -> String {
    format!("TEMPLATE_{at}")
}

impl Templates {
    /// Renders a task's templates; the agent that asked hears of changes from now.
    pub(crate) fn render(
        &mut self,
        scene: &Scene,
        life: u64,
        op: Op,
        key: &TaskKey,
        work: &Rendering,
    ) -> HookOutput {
        let first = |template: &TemplateWork| Template {
            version: 0,
            once: template.once,
            env: template.env,
        };
        let all = || work.templates.iter().map(first).collect();
        self.sources.entry(key.clone()).or_insert_with(all);
        if life == scene.life {
            self.watches.insert(key.clone(), op);
            let waits = work.templates.iter().map(|template| template.wait);
            self.waits.insert(key.clone(), waits.collect());
            self.trouble.remove(key);
        }
        self.output(key)
    }

    /// Something is not there yet: says so, and once more when it is there. Returns how long it takes until the
    /// templates are rendered.
    pub(crate) fn lacks_something(
        scene: &mut Scene,
        op: Op,
        key: &TaskKey,
        entity: &Arc<str>,
    ) -> Option<Span> {
        if !scene.fires(Fault::MissingTemplate, entity) {
            return None;
        }
        let missing = ["file local/a", "env B", "file local/c", "env D"];
        let count = 1 + scene.choices.below(missing.len(), Point::Missing, entity);
        let missing = missing.iter().take(count).map(|one| (*one).to_owned());
        let missing = missing.collect();
        report(
            scene,
            op,
            key,
            entity,
            TemplateInput::Missing { op, missing },
        );
        let grid = [Span::secs(1), Span::secs(300), Span::secs(3600)];
        let there = scene.choices.one_of(&grid, Point::MissingFor, entity)?;
        let later = Later::TemplateData {
            op,
            key: key.clone(),
            entity: Arc::clone(entity),
        };
        scene.after(there, entity, later);
        let takes = scene.latency(entity, scene.timeouts.hook);
        Some(Span(there.0.saturating_add(takes.0)))
    }

    /// What was missing is there, for those that wait for it still.
    pub(crate) fn lacks_nothing(
        scene: &mut Scene,
        life: u64,
        op: Op,
        key: &TaskKey,
        entity: &Arc<str>,
    ) {
        let is_it = |due: &Due| matches!(&due.what, Later::Hook(it) if it.op == op);
        let waits = !scene.cancelled.contains(&op) && scene.later.values().any(is_it);
        if waits && life == scene.life {
            let missing = Vec::new();
            report(
                scene,
                op,
                key,
                entity,
                TemplateInput::Missing { op, missing },
            );
        }
    }

    /// Who is watched.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (&TaskKey, Op)> {
        self.watches.iter().map(|(key, op)| (key, *op))
    }

    /// Whether anything was ever rendered.
    pub(crate) fn were_rendered(&self) -> bool {
        !self.sources.is_empty()
    }

    /// What a template of some task is made of changes; who watches is told.
    pub(crate) fn some_change(&mut self, scene: &mut Scene) {
        let keys: Vec<TaskKey> = self.sources.keys().cloned().collect();
        let which = scene
            .choices
            .below(keys.len().max(1), Point::Whose, "templates");
        let Some(key) = keys.get(which) else { return };
        self.change(scene, key);
        if let Some(op) = self.watches.get(key).copied() {
            self.notify(scene, key, op);
        }
    }

    /// The same while no agent looks: the next one has to find out.
    pub(crate) fn change_unseen(&mut self, scene: &mut Scene) {
        let keys: Vec<TaskKey> = self.sources.keys().cloned().collect();
        for key in keys {
            let entity = scene.names.task(&key);
            if scene.fires(Fault::ChangeTemplate, &entity) {
                self.change(scene, &key);
            }
        }
    }

    fn change(&mut self, scene: &mut Scene, key: &TaskKey) {
        let Some(templates) = self.sources.get_mut(key) else {
            return;
        };
        let which = scene
            .choices
            .below(templates.len().max(1), Point::Which, "templates");
        if let Some(template) = templates.get_mut(which).filter(|template| !template.once) {
            template.version += 1;
        }
    }

    fn notify(&mut self, scene: &mut Scene, key: &TaskKey, op: Op) {
        let entity = scene.names.task(key);
        if scene.fires(Fault::BreakTemplate, &entity) {
            let why = "it cannot be read".to_owned();
            report(scene, op, key, &entity, TemplateInput::Failed { op, why });
        }
        let output = self.output(key);
        report(
            scene,
            op,
            key,
            &entity,
            TemplateInput::Rendered { op, output },
        );
    }
}

fn report(scene: &mut Scene, op: Op, key: &TaskKey, entity: &Arc<str>, reported: TemplateInput) {
    let input = Input::Template(key.clone(), reported);
    scene.deliver(Source::Stream(op), scene.at, entity, input);
}
