//! Templates: what is rendered, when it is rendered anew, and what a task that exchanges its files
//! for links gains by it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    missing_docs,
    reason = "a test may panic"
)]

mod rendering;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drover_core::agent::requests::{DeleteVariable, PutVariable};
use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{Effect, HookEffect, StoreEffect};
use drover_core::ids::RequestId;
use drover_core::input::{HookOutput, StoreInput, TemplateInput};
use drover_core::model::node::Node;
use drover_core::model::variable::{Items, VariableKey};
use drover_core::op::Op;
use drover_core::store::Saved;
use drover_core::time::{Instant, Now, Span, Timestamp};
use drover_core::work::TemplateSource;
use drover_io_real::agent_handle::{Message, RequestInbox};
use rendering::{World, local, template};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::time::{advance, pause, resume, timeout};

#[tokio::test]
async fn template_is_rendered_to_destination() {
    let mut world = World::new();
    let mut one = template("hello {{ env \"NAME\" }}\n");
    one.mode = 0o640;
    one.destination = local("etc/app/greeting.txt");
    let output = world.render(one).await.unwrap();
    assert_eq!(world.read("etc/app/greeting.txt"), "hello wall\n");
    let meta = fs::metadata(world.local("etc/app/greeting.txt")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o7777, 0o640);
    assert_eq!(output.rendered.len(), 1);
    assert!(output.env.is_empty());
}

#[tokio::test]
async fn env_templates_set_variables() {
    let mut world = World::new();
    let text = "export A={{ env \"NAME\" }}\nB='two words' # comment\nC=\"line\\nbreak\"\n";
    let mut one = template(text);
    one.env = true;
    let output = world.render(one).await.unwrap();
    let found: Vec<_> = output.env.into_iter().collect();
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        of("A", "wall"),
        of("B", "two words"),
        of("C", "line\nbreak"),
    ];
    assert_eq!(found, expected);
    let mut bad = template("A=1\nno variable");
    bad.env = true;
    let why = world.render(bad).await.unwrap_err().message;
    assert!(why.contains("line 2"), "{why}");
}

#[tokio::test]
async fn template_is_read_from_file() {
    let mut world = World::new();
    fs::write(world.local("app.tpl"), "<< env \"NAME\" >>").unwrap();
    let mut one = template("");
    one.source = TemplateSource::File(local("app.tpl"));
    (one.left, one.right) = ("<<".to_owned(), ">>".to_owned());
    world.render(one.clone()).await.unwrap();
    assert_eq!(world.read("out"), "wall");
    one.source = TemplateSource::File(local("not there"));
    let why = world.render(one).await.unwrap_err().message;
    assert!(why.contains("not there"), "{why}");
}

#[tokio::test]
async fn changed_source_is_rendered_again() {
    let mut world = World::new();
    fs::write(world.local("motd"), "one").unwrap();
    let text = "{{ file \"local/motd\" }}, {{ file \"/alloc/1/web/local/motd\" }}";
    world.ask(
        7,
        false,
        vec![template(text), {
            let mut other = template("always the same");
            other.destination = local("other");
            other
        }],
    );
    let first = world.answer().await.unwrap();
    assert_eq!(world.read("out"), "one, one");
    // What is written anew as it was is no news; what comes next is told.
    fs::write(world.local("motd"), "one").unwrap();
    fs::write(world.local("unrelated"), "x").unwrap();
    fs::write(world.local("motd.new"), "two").unwrap();
    fs::rename(world.local("motd.new"), world.local("motd")).unwrap();
    let TemplateInput::Rendered { op, output } = world.report().await else {
        panic!("not rendered")
    };
    assert_eq!(op, Op(7));
    assert_eq!(world.read("out"), "two, two");
    assert_ne!(output.rendered[0], first.rendered[0]);
    assert_eq!(output.rendered[1], first.rendered[1]);
}

/// Where the kernel watches no files for anybody, a part of a test runs in a process of its own.
fn without_watches(test: &str) {
    let tried = Command::new("unshare").args(["-U", "-r", "true"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: no user namespace can be made here");
        return;
    }
    let none = "echo 0 > /proc/sys/user/max_inotify_instances && exec unshare -U \"$@\"";
    let done = Command::new("unshare")
        .args(["-U", "-r", "sh", "-c", none, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(UNWATCHED, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
}

const UNWATCHED: &str = "DROVER_TEST_UNWATCHED";

#[tokio::test]
async fn source_is_polled_where_inotify_is_exhausted() {
    if std::env::var_os(UNWATCHED).is_none() {
        return without_watches("source_is_polled_where_inotify_is_exhausted");
    }
    let none = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC);
    assert!(none.is_err());
    let mut world = World::new();
    fs::write(world.local("motd"), "one").unwrap();
    world.ask(7, false, vec![template("{{ file \"local/motd\" }}")]);
    world.answer().await.unwrap();
    assert_eq!(world.read("out"), "one");
    fs::write(world.local("motd"), "two").unwrap();
    assert!(matches!(
        world.report().await,
        TemplateInput::Rendered { .. }
    ));
    assert_eq!(world.read("out"), "two");
}

#[tokio::test]
async fn missing_data_is_reported_and_awaited() {
    let mut world = World::new();
    let text = "{{ file \"local/deep/motd\" }}{{ file \"local/other\" }}";
    world.ask(7, false, vec![template(text)]);
    let TemplateInput::Missing { missing, .. } = world.report().await else {
        panic!("nothing is missing")
    };
    assert_eq!(missing, ["file local/deep/motd", "file local/other"]);
    assert!(!world.local("out").exists());
    fs::create_dir(world.local("deep")).unwrap();
    fs::write(world.local("other"), "b").unwrap();
    fs::write(world.local("deep/motd"), "a").unwrap();
    loop {
        match world.receive().await {
            Input::Template(_, TemplateInput::Missing { .. }) => {}
            Input::Hook(hook) => break assert!(hook.result.is_ok()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.read("out"), "ab");
}

#[tokio::test]
async fn waiting_render_can_be_cancelled() {
    let mut world = World::new();
    world.ask(7, false, vec![template("{{ file \"local/never\" }}")]);
    assert!(matches!(
        world.report().await,
        TemplateInput::Missing { .. }
    ));
    world.hooks.carry_out(HookEffect::Cancel { op: Op(7) });
    assert!(world.answer().await.is_err());
    // One that is not known, or over, is nothing.
    world.hooks.carry_out(HookEffect::Cancel { op: Op(7) });
    world.hooks.carry_out(HookEffect::Cancel { op: Op(8) });
}

#[tokio::test]
async fn later_render_error_keeps_file() {
    let mut world = World::new();
    fs::write(world.local("data"), "{\"a\": 1}").unwrap();
    let text = "{{ with file \"local/data\" | parseJSON }}{{ .a }}{{ end }}";
    world.ask(7, false, vec![template(text)]);
    world.answer().await.unwrap();
    fs::write(world.local("data"), "{").unwrap();
    let TemplateInput::Failed { why, .. } = world.report().await else {
        panic!("it went well")
    };
    assert!(why.contains("local/out"), "{why}");
    assert_eq!(world.read("out"), "1");
    fs::write(world.local("data"), "{\"a\": 2}").unwrap();
    assert!(matches!(
        world.report().await,
        TemplateInput::Rendered { .. }
    ));
    assert_eq!(world.read("out"), "2");
}

/// A task that runs is disturbed by what changed, and by nothing else.
#[tokio::test]
async fn recovered_task_renders_only_changes() {
    let mut world = World::new();
    let named = |name: &str, text: &str| {
        let mut one = template(text);
        one.destination = local(name);
        one
    };
    let mut once = named("once", "{{ file \"local/data\" }}");
    once.once = true;
    let all = vec![
        named("same", "{{ env \"NAME\" }}"),
        named("changed", "{{ file \"local/data\" }}"),
        named("timed", "{{ timestamp \"unixNano\" }}"),
        once,
    ];
    fs::write(world.local("data"), "1").unwrap();
    world.ask(1, false, all.clone());
    let before = world.answer().await.unwrap().rendered;
    world.hooks.carry_out(HookEffect::Cancel { op: Op(1) });
    let inode = |world: &World| fs::metadata(world.local("same")).unwrap().ino();
    let (same, timed) = (inode(&world), world.read("timed"));
    fs::write(world.local("data"), "2").unwrap();
    world.ask(2, true, all);
    let after = world.answer().await.unwrap().rendered;
    assert_eq!(inode(&world), same);
    assert_eq!(
        (world.read("changed"), world.read("timed")),
        ("2".to_owned(), timed)
    );
    assert_eq!(world.read("once"), "1");
    let differs: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a != b).collect();
    assert_eq!(differs, [false, true, false, false]);
}

#[tokio::test]
async fn template_is_not_written_through_symlink() {
    let mut world = World::new();
    symlink(world.outside(), world.local("dir")).unwrap();
    symlink(world.outside().join("file"), world.local("out")).unwrap();
    fs::hard_link(world.outside().join("file"), world.local("hard")).unwrap();
    let mut one = template("x");
    one.destination = local("dir/file");
    assert!(world.render(one.clone()).await.is_err());
    one.destination = local("dir/new/file");
    assert!(world.render(one.clone()).await.is_err());
    // A link in the file's own place is replaced, and a second name of a file as well.
    for name in ["out", "hard"] {
        one.destination = local(name);
        world.render(one.clone()).await.unwrap();
        assert_eq!(world.read(name), "x");
    }
    fs::create_dir(world.local("taken")).unwrap();
    one.destination = local("taken");
    assert!(world.render(one).await.is_err());
    world.assert_outside_untouched();
    let left = fs::read_dir(world.local("")).unwrap();
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".rendering")
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn template_reads_only_task_files() {
    let mut world = World::new();
    symlink(world.outside().join("file"), world.local("link")).unwrap();
    symlink("/proc/self/root/etc/passwd", world.local("magic")).unwrap();
    rustix::fs::mknodat(
        CWD,
        world.local("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    fs::create_dir(world.local("dir")).unwrap();
    let large = File::create(world.local("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    for path in [
        "local/link",
        "local/magic",
        "local/pipe",
        "local/dir",
        "local/large",
        "../other/local/a",
        "/etc/passwd/../../../../outside/file",
        "local/../../../../outside/file",
        "local/a\0b",
    ] {
        let text = format!("{{{{ file {path:?} }}}}");
        let text = text.replace("\\0", "\\x00");
        let failed = world.render(template(&text)).await;
        let why = failed.expect_err(path).message;
        assert!(!why.contains("precious") && !why.contains("root:"), "{why}");
    }
    let long = format!("{{{{ file \"local/{}\" }}}}", "a/".repeat(3000));
    assert!(world.render(template(&long)).await.is_err());
    // A link to a file of the task's own is none of anybody else's business.
    fs::write(world.local("own"), "mine").unwrap();
    symlink("own", world.local("alias")).unwrap();
    world
        .render(template("{{ file \"local/alias\" }}"))
        .await
        .unwrap();
    assert_eq!(world.read("out"), "mine");
    world.assert_outside_untouched();
}

/// While a directory and a link to the outside change places all the time, nothing outside is
/// written and nothing of it is read.
#[tokio::test]
async fn racing_symlinks_are_not_followed() {
    let mut world = World::new();
    fs::create_dir(world.local("dir")).unwrap();
    fs::write(world.local("dir/file"), "mine").unwrap();
    symlink(world.outside(), world.local("link")).unwrap();
    let (one, other) = (world.local("dir"), world.local("link"));
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        })
    };
    let mut outcomes = [0_u32; 2];
    for op in 0..300 {
        let mut writes = template("x");
        writes.destination = local("dir/out");
        let reads = template("{{ file \"local/dir/file\" }}");
        world.ask(op, false, vec![if op % 2 == 0 { writes } else { reads }]);
        let went_well = world.answer().await.is_ok();
        outcomes[usize::from(went_well)] += 1;
        world.hooks.carry_out(HookEffect::Cancel { op: Op(op) });
        if op % 2 == 1 && went_well {
            assert_eq!(world.read("out"), "mine");
        }
        // What was still told of a rendering that is over.
        while world.reported.try_recv().is_ok() {}
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(outcomes[1] > 0, "{outcomes:?}");
    world.assert_outside_untouched();
}

/// A core behind the agent handle, whose commits are saved at once.
struct Core {
    agent: Agent,
    request_inbox: RequestInbox,
}

impl Core {
    fn new(request_inbox: RequestInbox) -> Core {
        let config = Config::new(1, Node::default(), "/alloc");
        let agent = Agent::restore(config, Saved::default(), now());
        let mut core = Core {
            agent,
            request_inbox,
        };
        core.drain();
        core
    }

    fn feed(&mut self, input: Input) {
        self.agent.handle(now(), input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.agent.poll_effect() {
            match effect {
                Effect::Store(StoreEffect::Commit(id, _)) => {
                    self.agent
                        .handle(now(), Input::Store(StoreInput::Saved(id)));
                }
                Effect::Notify(notification) => self.request_inbox.notify(notification),
                _ => {}
            }
        }
    }

    fn put(&mut self, path: &str, value: &str) {
        let items = BTreeMap::from([("key".to_owned(), value.to_owned())]);
        let key = key(path);
        let put = PutVariable {
            key,
            items: Items::new(items).unwrap(),
            expect: None,
        };
        self.feed(Input::Request(RequestId(1), put.into()));
    }

    /// Answers questions until something was said to `world`.
    async fn serve(&mut self, world: &mut World) -> Input {
        loop {
            tokio::select! {
                reported = world.receive() => return reported,
                Some(Message::Ask(question)) = self.request_inbox.messages.recv() => {
                    question(self.agent.view());
                }
            }
        }
    }
}

fn now() -> Now {
    Now {
        at: Instant(1),
        wall: Timestamp(1),
    }
}

fn key(path: &str) -> VariableKey {
    VariableKey {
        namespace: "default".into(),
        path: path.into(),
    }
}

fn done(reported: Input) -> HookOutput {
    match reported {
        Input::Hook(hook) => hook.result.unwrap(),
        Input::Template(_, TemplateInput::Rendered { output, .. }) => output,
        other => panic!("{other:?}"),
    }
}

const ASKS: &str = r#"{{ with nomadVar "nomad/jobs/job" }}{{ .key }}{{ end }}"#;

#[tokio::test]
async fn variable_is_awaited_and_changes_are_reported() {
    let mut world = World::new();
    let mut core = Core::new(world.request_inbox.take().unwrap());
    world.ask(1, false, vec![template(ASKS)]);
    let Input::Template(_, TemplateInput::Missing { missing, .. }) = core.serve(&mut world).await
    else {
        panic!("it is not there yet");
    };
    assert_eq!(missing, ["nomadVar nomad/jobs/job"]);
    core.put("nomad/jobs/job", "first");
    let first = done(core.serve(&mut world).await);
    assert_eq!(world.read("out"), "first");
    // What nobody asked for renders nothing anew, or the next words would be about it.
    core.put("nomad/jobs/other", "else");
    core.put("nomad/jobs/job", "second");
    let second = done(core.serve(&mut world).await);
    assert_eq!(world.read("out"), "second");
    assert_ne!(first.rendered, second.rendered);
    let delete = DeleteVariable {
        key: key("nomad/jobs/job"),
        expect: None,
    };
    core.feed(Input::Request(RequestId(2), delete.into()));
    let gone = core.serve(&mut world).await;
    assert!(matches!(
        gone,
        Input::Template(_, TemplateInput::Missing { .. })
    ));
    assert_eq!(world.read("out"), "second", "the file stays as it is");
}

#[tokio::test]
async fn changes_after_long_quiet_are_rendered_together() {
    let mut world = World::new();
    let mut core = Core::new(world.request_inbox.take().unwrap());
    core.put("nomad/jobs/job", "first");
    let mut one = template(ASKS);
    one.wait = (Span::secs(2), Span::secs(8));
    world.ask(1, false, vec![one]);
    done(core.serve(&mut world).await);
    // The longest wait is from the first change on, however long it was quiet before. Time that is made up passes only
    // while there is nothing to do.
    pause();
    advance(Duration::from_secs(60)).await;
    for value in ["second", "third"] {
        core.put("nomad/jobs/job", value);
        let early = timeout(Duration::from_secs(1), core.serve(&mut world)).await;
        assert!(early.is_err(), "{value} is not waited for: {early:?}");
    }
    resume();
    done(core.serve(&mut world).await);
    assert_eq!(world.read("out"), "third");
}

#[tokio::test]
async fn variable_list_and_exists_do_not_wait() {
    let mut world = World::new();
    let mut core = Core::new(world.request_inbox.take().unwrap());
    core.put("nomad/jobs", "all");
    core.put("nomad/jobs/job/group/web", "own");
    core.put("nomad/jobs/other", "not ours");
    let text = r#"{{ nomadVarExists "nomad/jobs/job" }} {{ range nomadVarList "nomad/jobs" }}{{ .Path }} {{ end }}"#;
    world.ask(1, false, vec![template(text)]);
    done(core.serve(&mut world).await);
    let rendered = world.read("out");
    assert_eq!(rendered, "false nomad/jobs nomad/jobs/job/group/web ");
    core.put("nomad/jobs/job", "now");
    done(core.serve(&mut world).await);
    let rendered = world.read("out");
    assert_eq!(
        rendered,
        "true nomad/jobs nomad/jobs/job nomad/jobs/job/group/web "
    );
}

#[tokio::test]
async fn variable_of_other_task_is_refused() {
    for path in ["nomad/jobs/other", "secret", "nomad/jobs/job@elsewhere"] {
        let mut world = World::new();
        let mut core = Core::new(world.request_inbox.take().unwrap());
        core.put("nomad/jobs/other", "not ours");
        let text = format!(r#"{{{{ nomadVarExists "{path}" }}}}"#);
        world.ask(1, false, vec![template(&text)]);
        let Input::Hook(hook) = core.serve(&mut world).await else {
            panic!("it is refused at once");
        };
        let why = hook.result.unwrap_err();
        assert!(!why.recoverable, "{}", why.message);
        assert!(
            why.message.contains("nomad/jobs/job/group/web"),
            "{}",
            why.message
        );
    }
}

#[tokio::test]
async fn waiting_for_variable_can_be_stopped() {
    let mut world = World::new();
    let mut core = Core::new(world.request_inbox.take().unwrap());
    world.ask(1, false, vec![template(ASKS)]);
    core.serve(&mut world).await;
    world.hooks.carry_out(HookEffect::Cancel { op: Op(1) });
    let Input::Hook(hook) = core.serve(&mut world).await else {
        panic!("it answers");
    };
    assert!(hook.result.is_err());
}
