//! What tests of templates share: whoever renders, and what it reports.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic, and uses a part"
)]

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::Input;
use drover_core::effect::HookEffect;
use drover_core::ids::AllocId;
use drover_core::input::{HookOutput, TemplateInput};
use drover_core::model::authority::Authority;
use drover_core::model::variable::Reads;
use drover_core::op::{Failure, Op};
use drover_core::paths::task_path::{Base, TaskPath};
use drover_core::time::Span;
use drover_core::work::{HookWork, Rendering, TemplateSource, TemplateWork};
use drover_io_real::agent_handle::{AgentHandle, RequestInbox};
use drover_io_real::artifact::Artifacts;
use drover_io_real::artifact::settings::Settings;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::Inbox;
use drover_io_real::hooks::Hooks;
use drover_io_real::identity::{Issuer, Key};
use drover_io_real::migrate::Migration;
use drover_io_real::migrate::receive::Limits;
use drover_io_real::network::{Bridge, Networks};
use drover_io_real::plugins::{DevicePlugins, Plugins};
use drover_io_real::transfers::Transfers;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(crate) const ALLOC: AllocId = AllocId(1);

pub(crate) struct World {
    pub(crate) hooks: Hooks,
    pub(crate) reported: UnboundedReceiver<Input>,
    pub(crate) dir: TempDir,
    /// Where the templates' questions about the agent's state arrive.
    pub(crate) request_inbox: Option<RequestInbox>,
}

/// A template of this text, rendered to `local/out`.
pub(crate) fn template(text: &str) -> TemplateWork {
    TemplateWork {
        source: TemplateSource::Text(text.to_owned()),
        destination: local("out"),
        left: "{{".to_owned(),
        right: "}}".to_owned(),
        error_on_missing_key: false,
        env: false,
        mode: 0o644,
        uid: None,
        gid: None,
        once: false,
        wait: (Span::ZERO, Span::ZERO),
    }
}

pub(crate) fn local(name: &str) -> TaskPath {
    TaskPath {
        base: Base::Task,
        path: format!("local/{name}"),
    }
}

impl World {
    pub(crate) fn new() -> World {
        let dir = TempDir::new().unwrap();
        let (root, outside) = (dir.path().join("allocs"), dir.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "precious").unwrap();
        let dirs = AllocDirs::new(Arc::new(File::open(&root).unwrap().into()));
        dirs.build_alloc(ALLOC).unwrap();
        dirs.build_task(ALLOC, "web", None).unwrap();
        let (inbox, reported) = unbounded_channel();
        let devices = DevicePlugins::new(Vec::new(), Plugins::default());
        let home = File::open(dir.path()).unwrap().into();
        let artifacts = Artifacts::new(
            Settings::default(),
            dirs.clone(),
            home,
            Transfers::default(),
        )
        .unwrap();
        let migration = Migration::new(dirs.clone(), Limits::default(), Transfers::default());
        let (agent_handle, request_inbox) =
            AgentHandle::new(Arc::new(File::open(&root).unwrap().into()));
        let issuer = Issuer::new(Key::of(File::open(dir.path()).unwrap().as_fd()).unwrap());
        let inbox = Inbox::new(inbox);
        let own = File::open(dir.path()).unwrap().into();
        let networks = Networks::new(own, dir.path().to_owned(), Bridge::default());
        let hooks = Hooks::new(
            (dirs, networks),
            inbox,
            devices,
            artifacts,
            migration,
            issuer,
            agent_handle,
        );
        World {
            hooks,
            reported,
            dir,
            request_inbox: Some(request_inbox),
        }
    }

    pub(crate) fn local(&self, name: &str) -> PathBuf {
        let own = self.dir.path().join("allocs").join(ALLOC.to_string());
        own.join("web/local").join(name)
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.local(name)).unwrap()
    }

    pub(crate) fn ask(&self, op: u64, runs: bool, templates: Vec<TemplateWork>) {
        self.ask_for(Authority::Node, op, runs, templates);
    }

    /// For a task that this one placed.
    pub(crate) fn ask_for(
        &self,
        authority: Authority,
        op: u64,
        runs: bool,
        templates: Vec<TemplateWork>,
    ) {
        let env = [("NAME", "wall"), ("EMPTY", "")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let work = Rendering {
            authority,
            templates,
            env: env.into(),
            reads: Reads::of("default", "job", "group", "web"),
            root: "/alloc/1".to_owned(),
            runs,
        };
        self.hooks.carry_out(HookEffect::Run {
            op: Op(op),
            alloc: ALLOC,
            task: Some("web".into()),
            work: HookWork::RenderTemplates(Arc::new(work)),
        });
    }

    pub(crate) async fn receive(&mut self) -> Input {
        let received = tokio::time::timeout(Duration::from_secs(30), self.reported.recv());
        received.await.expect("nothing was said").unwrap()
    }

    /// The answer to a rendering.
    pub(crate) async fn answer(&mut self) -> Result<HookOutput, Failure> {
        match self.receive().await {
            Input::Hook(hook) => hook.result,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn report(&mut self) -> TemplateInput {
        match self.receive().await {
            Input::Template(_, reported) => reported,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn render(&mut self, template: TemplateWork) -> Result<HookOutput, Failure> {
        self.ask(1, false, vec![template]);
        self.answer().await
    }

    pub(crate) fn assert_outside_untouched(&self) {
        assert_eq!(fs::read_dir(self.outside()).unwrap().count(), 1);
        let file = self.outside().join("file");
        assert_eq!(fs::read_to_string(file).unwrap(), "precious");
    }
}
