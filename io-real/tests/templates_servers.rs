//! Templates of tasks that servers of a cluster placed: what is asked of these, and what follows when they refuse, or cannot
//! be reached.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    reason = "a test may panic"
)]

mod rendering;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drover_core::agent::Input;
use drover_core::effect::HookEffect;
use drover_core::ids::TaskKey;
use drover_core::input::{HookOutput, TemplateInput};
use drover_core::model::authority::Authority;
use drover_core::model::secret::Secret;
use drover_core::op::{Failure, Op};
use drover_io_real::cluster::{Answered, Answering, ServeTasks, Unanswered};
use drover_template::{Answer, Need, Variable};
use rendering::{World, template};
use tokio::sync::watch;

const TEXT: &str = "{{ with nomadVar \"a/b\" }}{{ .value }}{{ end }}";

/// What the servers have, and whether they tell.
#[derive(Clone, Debug)]
struct State {
    index: u64,
    value: Result<Option<&'static str>, Unanswered>,
}

/// Servers with one variable.
struct Servers {
    state: watch::Sender<State>,
    /// How many questions wait for an answer.
    open: AtomicUsize,
    signed: AtomicUsize,
}

struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServeTasks for Servers {
    fn sign<'a>(
        &'a self,
        _task: &'a TaskKey,
        names: &'a [String],
    ) -> Answering<'a, BTreeMap<String, Secret>> {
        self.signed.fetch_add(1, Ordering::Relaxed);
        let tokens = names.iter().map(|name| (name.clone(), "a token".into()));
        let tokens = tokens.collect();
        Box::pin(async move { Ok(tokens) })
    }

    fn answer<'a>(
        &'a self,
        token: &'a Secret,
        namespace: &'a str,
        need: &'a Need,
        after: u64,
    ) -> Answering<'a, Answered, Unanswered> {
        assert_eq!((token.expose(), namespace), ("a token", "default"));
        assert_eq!(*need, Need::Variable("a/b".to_owned()));
        Box::pin(async move {
            self.open.fetch_add(1, Ordering::Relaxed);
            let _open = Open(&self.open);
            let mut state = self.state.subscribe();
            let news = state.wait_for(|it| it.index > after || it.value.is_err());
            let state = news.await.expect("the servers are there").clone();
            let value = state.value?;
            let variable = |value: &str| Variable {
                items: [("value".to_owned(), value.to_owned())].into(),
                ..Variable::default()
            };
            let answer = value.map_or(Answer::Absent, |value| Answer::Variable(variable(value)));
            let index = state.index;
            Ok(Answered { answer, index })
        })
    }
}

impl Servers {
    fn new(value: Result<Option<&'static str>, Unanswered>) -> Arc<Servers> {
        Arc::new(Servers {
            state: watch::Sender::new(State { index: 7, value }),
            open: AtomicUsize::new(0),
            signed: AtomicUsize::new(0),
        })
    }

    fn set(&self, value: Result<Option<&'static str>, Unanswered>) {
        self.state.send_modify(|state| {
            state.index += 1;
            state.value = value;
        });
    }
}

fn refused() -> Unanswered {
    Unanswered::Refused("Permission denied".to_owned())
}

/// A world in which the template is asked for.
fn asked(servers: Option<&Arc<Servers>>) -> World {
    let mut world = World::new();
    let servers = servers.map(|it| it.clone() as Arc<dyn ServeTasks>);
    world.hooks = world.hooks.clone().with_servers(servers);
    world.ask_for(Authority::Servers, 7, false, vec![template(TEXT)]);
    world
}

/// The answer, whatever is told as missing before.
async fn answer(world: &mut World) -> Result<HookOutput, Failure> {
    loop {
        match world.receive().await {
            Input::Template(_, TemplateInput::Missing { .. }) => {}
            Input::Hook(hook) => return hook.result,
            other => panic!("{other:?}"),
        }
    }
}

/// What is told as missing.
async fn missing(world: &mut World) -> Vec<String> {
    match world.report().await {
        TemplateInput::Missing { missing, .. } => missing,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn variable_of_servers_is_rendered_and_watched() {
    let servers = Servers::new(Ok(Some("one")));
    let mut world = asked(Some(&servers));
    answer(&mut world).await.unwrap();
    assert_eq!(world.read("out"), "one");
    servers.set(Ok(Some("two")));
    let reported = world.report().await;
    assert!(matches!(reported, TemplateInput::Rendered { .. }));
    assert_eq!(world.read("out"), "two");
    assert_eq!(servers.signed.load(Ordering::Relaxed), 1);
    // One that goes is missing, and the file stays.
    servers.set(Ok(None));
    assert_eq!(missing(&mut world).await, ["nomadVar a/b"]);
    assert_eq!(world.read("out"), "two");
}

#[tokio::test]
async fn refused_variable_is_reported_and_awaited() {
    let servers = Servers::new(Err(refused()));
    let mut world = asked(Some(&servers));
    let words = "nomadVar a/b (the servers refuse it: Permission denied)";
    assert_eq!(missing(&mut world).await, [words]);
    servers.set(Ok(Some("one")));
    answer(&mut world).await.unwrap();
    assert_eq!(world.read("out"), "one");
    // The token may have been at fault.
    assert!(servers.signed.load(Ordering::Relaxed) > 1);
    // Later the file stays, and it is told once.
    servers.set(Err(refused()));
    let TemplateInput::Failed { why, .. } = world.report().await else {
        panic!("it is not told");
    };
    assert!(
        why.contains("a/b") && why.contains("Permission denied"),
        "{why}"
    );
    assert_eq!(world.read("out"), "one");
    servers.set(Ok(Some("two")));
    let reported = world.report().await;
    assert!(
        matches!(reported, TemplateInput::Rendered { .. }),
        "{reported:?}"
    );
    assert_eq!(world.read("out"), "two");
}

#[tokio::test]
async fn servers_out_of_reach_are_awaited_and_change_nothing() {
    let lost = || Unanswered::Failed("no server answers".to_owned());
    let servers = Servers::new(Err(lost()));
    let mut world = asked(Some(&servers));
    let words = missing(&mut world).await;
    assert_eq!(words, ["nomadVar a/b (no server answers)"]);
    servers.set(Ok(Some("one")));
    answer(&mut world).await.unwrap();
    servers.set(Err(lost()));
    servers.set(Ok(Some("two")));
    let reported = world.report().await;
    assert!(
        matches!(reported, TemplateInput::Rendered { .. }),
        "{reported:?}"
    );
    assert_eq!(world.read("out"), "two");
}

#[tokio::test]
async fn ended_rendering_asks_no_server() {
    let servers = Servers::new(Ok(Some("one")));
    let mut world = asked(Some(&servers));
    answer(&mut world).await.unwrap();
    while servers.open.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    world.hooks.carry_out(HookEffect::Cancel { op: Op(7) });
    while servers.open.load(Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn task_of_servers_that_are_gone_waits_and_says_so() {
    let mut world = asked(None);
    let words = missing(&mut world).await.concat();
    assert!(words.contains("not this agent's any more"), "{words}");
    world.hooks.carry_out(HookEffect::Cancel { op: Op(7) });
    assert!(answer(&mut world).await.is_err());
}
