//! The hook `identity`: what it asks for, what it refuses, and what a new version of the job changes.

use super::*;
use crate::hooks::world_tests::{Began, World, last_words};
use crate::model::authority::Authority;
use crate::paths::task_path::Base;
use crate::time::Span;
use crate::work::HookWork;

fn wanted_as_file(name: &str) -> identity::Identity {
    identity::Identity {
        name: name.to_owned(),
        file: true,
        ttl: Span::secs(3600),
        ..identity::Identity::default()
    }
}

fn world(identities: Vec<identity::Identity>) -> World {
    World::with(|task| task.identities = identities)
}

#[test]
fn identity_that_nobody_wants_asks_for_nothing() {
    let unwanted = identity::Identity {
        file: false,
        ..wanted_as_file("aws")
    };
    for identities in [Vec::new(), vec![unwanted]] {
        let mut world = world(identities);
        let mut task = world.task();
        assert_eq!(world.begin(&mut task, &Identity), Began::Done);
    }
}

#[test]
fn identity_asks_for_token_where_its_job_wants_it() {
    let mut aws = wanted_as_file("aws");
    aws.audience = vec!["cloud".to_owned()];
    aws.env = true;
    let mut world = world(vec![aws]);
    let mut task = world.task();
    let token = IdentityWork {
        name: "aws".to_owned(),
        audience: vec!["cloud".to_owned()],
        ttl: Span::secs(3600),
        file: Some(TaskPath {
            base: Base::Task,
            path: "secrets/nomad_aws.jwt".to_owned(),
        }),
        variable: Some("NOMAD_TOKEN_aws".to_owned()),
    };
    let work = Issuing {
        authority: Authority::Node,
        region: world.job.region.clone(),
        namespace: world.job.namespace.clone(),
        job: "shop".to_owned(),
        group: "web".to_owned(),
        user: String::new(),
        identities: vec![token],
    };
    let asked = world.begin(&mut task, &Identity);
    assert_eq!(asked, Began::asks(Arc::new(work)));
}

#[test]
fn identity_whose_file_is_not_the_tasks_own_is_refused_for_good() {
    let mut stray = wanted_as_file("aws");
    stray.filepath = "../alloc/token".to_owned();
    let mut world = world(vec![stray]);
    let mut task = world.task();
    world.effects();
    let refused = Began::refuses("\"../alloc/token\" is not the task's own");
    assert_eq!(world.begin(&mut task, &Identity), refused);
    assert!(world.effects().is_empty(), "something is asked for");
}

#[test]
fn identity_is_made_anew_at_each_start() {
    let mut world = world(vec![wanted_as_file("aws")]);
    let mut task = world.task();
    assert_eq!(
        world.start_well(&mut task),
        ["make directory", "make tokens"]
    );
    let issued = task.record().identities.get("aws").copied();
    assert_eq!(
        issued,
        Some(world.now.wall),
        "when it was made is remembered"
    );
    let mut task = world.restarted(&task);
    assert_eq!(
        world.start_well(&mut task),
        ["make directory", "make tokens"]
    );
}

#[test]
fn failed_identity_of_node_fails_the_start() {
    let mut world = world(vec![wanted_as_file("aws")]);
    let mut task = world.task();
    let failed = Err(Failure::recoverable("no space left"));
    world.start_with(&mut task, "make tokens", &failed);
    let events = &task.state().events;
    let mut told = events.iter().map(|event| event.display_message.as_str());
    assert!(
        told.any(|words| words == "identity: no space left"),
        "{}",
        last_words(&task)
    );
    assert_eq!(task.record().launch, None);
}

#[test]
fn identity_that_servers_did_not_sign_is_asked_for_again_later() {
    let mut world = world(vec![wanted_as_file("aws")]);
    world.record.of_servers = true;
    let mut task = world.task();
    let failed = Err(Failure::recoverable("no leader"));
    let asked = world.start_with(&mut task, "make tokens", &failed);
    assert_eq!(asked.len(), 2, "it is asked for again at once: {asked:?}");
    assert!(
        last_words(&task).contains("no leader"),
        "{}",
        last_words(&task)
    );
    assert_eq!(world.begin(&mut task, &Identity), Began::Waits);
    world.pass(Span::secs(60));
    let again = world.begin(&mut task, &Identity);
    assert!(
        matches!(again, Began::Asks(HookWork::IssueIdentities(_))),
        "{again:?}"
    );
}

#[test]
fn new_version_concerns_identity_alone_whose_token_is_good_for_another_time() {
    let before = Task {
        identities: vec![wanted_as_file("aws"), wanted_as_file("vault")],
        ..Task::default()
    };
    let mut now = before.clone();
    now.env.insert("A".to_owned(), "b".to_owned());
    assert!(!Identity.is_outdated(&before, &now), "another variable");
    now.identities[1].ttl = Span::secs(60);
    assert!(Identity.is_outdated(&before, &now));
    let names: Vec<&str> = of_another_time(&before, &now)
        .map(|one| one.name())
        .collect();
    assert_eq!(names, ["vault"]);
}

#[test]
fn updated_identity_forgets_when_its_token_was_made() {
    let mut world = world(vec![wanted_as_file("aws"), wanted_as_file("vault")]);
    let mut task = world.task();
    world.start_well(&mut task);
    world.group().tasks[0].identities[1].ttl = Span::secs(60);
    world.update(&mut task);
    let known: Vec<&String> = task.record().identities.keys().collect();
    assert_eq!(known, ["aws"]);
}
