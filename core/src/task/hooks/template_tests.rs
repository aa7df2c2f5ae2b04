//! The hook `template`: what it asks for, what it refuses, what it believes, and what a new version of the job changes.

use super::*;
use crate::effect::{Effect, HookEffect};
use crate::hooks::world_tests::{Began, World};
use crate::model::template::Wait;
use crate::paths::task_path::Base;
use crate::time::Span;
use crate::work::HookWork;

fn written(destination: &str) -> model::template::Template {
    model::template::Template {
        embedded_tmpl: "hello".to_owned(),
        dest_path: destination.to_owned(),
        ..model::template::Template::default()
    }
}

fn world(template: model::template::Template) -> World {
    World::with(|task| task.templates = vec![template])
}

fn rendered(world: &mut World, task: &mut TaskRunner) -> Rendering {
    let Began::Asks(HookWork::RenderTemplates(work)) = world.begin(task, &Template) else {
        panic!("nothing is rendered");
    };
    Rendering::clone(&work)
}

fn cancels(world: &mut World) -> usize {
    let effects = world.effects();
    let is_cancel = |effect: &&Effect| matches!(effect, Effect::Hook(HookEffect::Cancel { .. }));
    effects.iter().filter(is_cancel).count()
}

#[test]
fn task_without_templates_asks_for_nothing() {
    let mut world = World::new();
    let mut task = world.task();
    assert_eq!(world.begin(&mut task, &Template), Began::Done);
}

#[test]
fn template_is_rendered_with_references_of_its_path_replaced() {
    let mut world = world(model::template::Template {
        perms: "0600".to_owned(),
        ..written("local/${NOMAD_GROUP_NAME}.conf")
    });
    let mut task = world.task();
    let work = rendered(&mut world, &mut task);
    let [template] = work.templates.as_slice() else {
        panic!("{:?}", work.templates);
    };
    assert_eq!(template.source, TemplateSource::Text("hello".to_owned()));
    let destination = TaskPath {
        base: Base::Task,
        path: "local/web.conf".to_owned(),
    };
    assert_eq!(
        (&template.destination, template.mode),
        (&destination, 0o600)
    );
    assert_eq!(&*work.reads.job, "shop");
    assert!(!work.runs, "it is asked for before a start");
}

/// What is written into the file is read in the task.
#[test]
fn template_names_directories_as_its_task_sees_them() {
    for (driver, secrets) in [("exec", "/secrets"), ("raw_exec", "/allocs/")] {
        let mut world = World::with(|task| {
            task.driver = driver.to_owned();
            task.templates = vec![written("local/a")];
        });
        let mut task = world.task();
        let work = rendered(&mut world, &mut task);
        let dir = &work.env["NOMAD_SECRETS_DIR"];
        assert!(dir.starts_with(secrets), "{driver}: {dir}");
    }
}

#[test]
fn template_outside_of_tasks_directories_is_refused_for_good() {
    let mut source = written("local/a");
    source.source_path = "../../etc/passwd".to_owned();
    for template in [written("../../etc/cron.d/a"), source] {
        let mut world = world(template);
        let mut task = world.task();
        let Began::Refuses(false, why) = world.begin(&mut task, &Template) else {
            panic!("it is accepted, or may be tried again");
        };
        assert!(why.contains("leads out of the directories"), "{why}");
    }
}

#[test]
fn template_that_is_watched_is_not_rendered_before_the_next_start_of_the_same_agent() {
    let mut world = world(written("local/a"));
    let mut task = world.task();
    assert_eq!(
        world.start_well(&mut task),
        ["make directory", "render templates"]
    );
    assert_eq!(world.begin(&mut task, &Template), Began::Done);
    let mut task = world.restarted(&task);
    assert_eq!(
        world.start_well(&mut task),
        ["make directory", "render templates"]
    );
}

#[test]
fn failed_rendering_fails_the_start_and_is_tried_at_the_next() {
    let mut world = world(written("local/a"));
    let mut task = world.task();
    let failed = Err(Failure::recoverable("no such function"));
    world.start_with(&mut task, "render templates", &failed);
    assert!(!task.watches_templates());
    assert_eq!(task.record().launch, None);
    let mut task = world.restarted(&task);
    assert_eq!(
        world.start_well(&mut task),
        ["make directory", "render templates"]
    );
}

#[test]
fn template_variable_that_cannot_be_set_is_not_believed() {
    let given = |name: &str, value: &str| HookOutput {
        env: [(name.to_owned(), value.to_owned())].into(),
        ..HookOutput::default()
    };
    assert_eq!(Template.check(&given("A", "b=c")), Ok(()));
    for (name, value) in [("", "b"), ("A=B", "c"), ("A\0", "b"), ("A", "b\0")] {
        let why = Template.check(&given(name, value));
        assert_eq!(
            why,
            Err(format!("the variable {} cannot be set", quote(name)))
        );
    }
}

#[test]
fn template_variables_beyond_bound_are_not_believed() {
    let many = |count: usize, size: usize| HookOutput {
        env: (0..count)
            .map(|at| (format!("V{at}"), "x".repeat(size)))
            .collect(),
        ..HookOutput::default()
    };
    assert_eq!(Template.check(&many(MAX_VARIABLES, 1)), Ok(()));
    assert!(
        Template.check(&many(MAX_VARIABLES + 1, 1)).is_err(),
        "too many"
    );
    assert!(Template.check(&many(1, MAX_BYTES)).is_err(), "too long");
}

#[test]
fn new_version_concerns_template_that_collects_changes_for_another_time() {
    let before = Task {
        templates: vec![written("local/a")],
        ..Task::default()
    };
    let mut now = before.clone();
    now.env.insert("A".to_owned(), "b".to_owned());
    assert!(!Template.is_outdated(&before, &now), "another variable");
    now.templates[0].wait = Some(Wait {
        min: Span::secs(5),
        max: Span::secs(10),
    });
    assert!(Template.is_outdated(&before, &now));
}

#[test]
fn updated_template_is_watched_anew() {
    let mut world = world(written("local/a"));
    let mut task = world.task();
    world.start_well(&mut task);
    assert_eq!(cancels(&mut world), 0);
    world.group().tasks[0].templates[0].wait = Some(Wait {
        min: Span::secs(5),
        max: Span::secs(10),
    });
    world.update(&mut task);
    assert_eq!(cancels(&mut world), 1, "whoever watches is told to end");
    let work = rendered(&mut world, &mut task);
    assert_eq!(work.templates[0].wait, (Span::secs(5), Span::secs(10)));
}
