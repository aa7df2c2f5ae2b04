//! The work of hooks: directories, devices, templates.

use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::effect::{DriverEffect, HookEffect, HookWork};
use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::input::{HookInput, HookOutput, Input, NodeInput};
use drover_core::op::{Failure, Op};
use drover_core::paths::place::Place;

use crate::artifact::{Artifacts, Asked};
use crate::clock;
use crate::device::DevicePlugins;
use crate::dirs::{Access, AllocDirs};
use crate::door::Door;
use crate::driver::Inbox;
use crate::gate::Gate;
use crate::identity::Issuer;
use crate::migrate::Migration;
use crate::templates::Templates;
use crate::turns::Turns;
use crate::user;

/// Whoever does the work of hooks. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    dirs: AllocDirs,
    inbox: Inbox,
    gate: Gate,
    turns: Turns,
    devices: DevicePlugins,
    templates: Templates,
    artifacts: Artifacts,
    migration: Migration,
    issuer: Issuer,
}

impl Hooks {
    /// Works in `dirs`, asks `devices`, fetches with `artifacts` and `migration`, has tokens made by
    /// `issuer`, asks at `door` for what templates want to know of the state, and answers to `inbox`.
    pub fn new(
        dirs: AllocDirs,
        inbox: Inbox,
        devices: DevicePlugins,
        artifacts: Artifacts,
        migration: Migration,
        issuer: Issuer,
        door: Door,
    ) -> Hooks {
        let gate = Gate::default();
        Hooks {
            artifacts,
            migration,
            issuer,
            devices,
            templates: Templates::new(dirs.clone(), inbox.clone(), gate.clone(), door),
            dirs,
            inbox,
            gate,
            turns: Turns::default(),
        }
    }

    /// A start is about to leave: what was made for it and nobody else may know goes with it.
    pub fn complete(&self, key: &TaskKey, effect: &mut DriverEffect) {
        self.issuer.complete(key, effect);
    }

    /// Begins what is asked, without blocking; exactly one answer follows.
    pub fn carry_out(&self, effect: HookEffect) {
        match effect {
            HookEffect::Run {
                op,
                alloc,
                task,
                work,
            } => self.run(op, alloc, task, work),
            // All other work answers by itself: most of it is short, and a removal waits for it.
            HookEffect::Cancel { op } => {
                self.templates.cancel(op);
                self.artifacts.cancel(op);
                self.migration.cancel(op);
            }
        }
    }

    fn run(&self, op: Op, alloc: AllocId, task: Option<TaskName>, work: HookWork) {
        if let (HookWork::RenderTemplates(work), Some(task)) = (&work, &task) {
            let task = task.clone();
            let key = TaskKey { alloc, task };
            return self.templates.begin(op, key, work.clone());
        }
        if matches!(work, HookWork::FetchArtifacts { .. }) {
            self.artifacts.begin(op);
        }
        if matches!(
            work,
            HookWork::AskRemote { .. } | HookWork::FetchDisk { .. }
        ) {
            self.migration.begin(op);
        }
        let hooks = self.clone();
        tokio::spawn(async move {
            let result = hooks.result(op, alloc, task.as_ref(), work).await;
            hooks.inbox.deliver(Input::Hook(HookInput {
                op,
                alloc,
                task,
                result,
            }));
        });
    }

    /// Does what is asked. What can be cancelled ends soon after that.
    async fn result(
        &self,
        op: Op,
        alloc: AllocId,
        task: Option<&TaskName>,
        work: HookWork,
    ) -> Result<HookOutput, Failure> {
        match work {
            HookWork::Reserve { devices } => self.devices.reserve(&devices).await,
            HookWork::AskRemote { previous, index } => {
                self.migration.ask(op, &previous, index).await
            }
            HookWork::FetchDisk { previous, tasks } => {
                let _work = self.turns.work(alloc).await;
                self.migration.fetch(op, alloc, &previous, tasks).await
            }
            HookWork::FetchArtifacts {
                artifacts,
                root,
                user,
            } => {
                let Some(task) = task.cloned() else {
                    return Err(Failure::fatal("no task was named"));
                };
                let asked = Asked {
                    alloc,
                    task,
                    artifacts,
                    root,
                    user,
                };
                self.artifacts.fetch(op, asked).await
            }
            // What it moves goes nowhere else once the directory is gone, and is not lost with it.
            HookWork::InheritDisk { .. } => self.in_directories(alloc, task, work).await,
            HookWork::BuildAllocDir
            | HookWork::BuildTaskDir { .. }
            | HookWork::IssueIdentities(_)
            | HookWork::WritePayload { .. }
            | HookWork::RenderTemplates(_) => {
                let _work = self.turns.work(alloc).await;
                self.in_directories(alloc, task, work).await
            }
            HookWork::RemoveAllocDir => {
                let _removal = self.turns.removal(alloc).await;
                self.in_directories(alloc, task, work).await
            }
        }
    }

    async fn in_directories(
        &self,
        alloc: AllocId,
        task: Option<&TaskName>,
        work: HookWork,
    ) -> Result<HookOutput, Failure> {
        let (hooks, task) = (self.clone(), task.cloned());
        let work = move || hooks.work(alloc, task.as_ref(), &work);
        match self.gate.run(work).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => Err(Failure::recoverable(error.to_string())),
            Err(lost) => Err(Failure::recoverable(format!("its work was lost: {lost}"))),
        }
    }

    /// Finds out how full the disk of the allocations' directories is; one answer follows.
    pub fn measure_room(&self, op: Op) {
        let (gate, inbox, dirs) = (self.gate.clone(), self.inbox.clone(), self.dirs.clone());
        tokio::spawn(async move {
            let result = match gate.run(move || dirs.room()).await {
                Ok(room) => room.map_err(|error| Failure::recoverable(error.to_string())),
                Err(lost) => Err(Failure::recoverable(format!("its work was lost: {lost}"))),
            };
            inbox.deliver(Input::Node(NodeInput::Room { op, result }));
        });
    }

    /// Writes what a dispatch brought, as the field does it: for everybody to read and execute.
    fn write_payload(
        &self,
        alloc: AllocId,
        task: &TaskName,
        file: &Place,
        payload: &str,
    ) -> io::Result<()> {
        let bytes = BASE64_STANDARD.decode(payload);
        let bytes = bytes.map_err(|error| io::Error::other(format!("the payload: {error}")))?;
        let access = Access {
            mode: 0o755,
            uid: None,
            gid: None,
        };
        self.dirs
            .files(alloc, task.as_str())?
            .write(file, &bytes, access)
    }

    fn work(
        &self,
        alloc: AllocId,
        task: Option<&TaskName>,
        work: &HookWork,
    ) -> io::Result<HookOutput> {
        let done = match (work, task) {
            (HookWork::BuildAllocDir, _) => self.dirs.build_alloc(alloc),
            (HookWork::InheritDisk { from, tasks }, _) => self.dirs.inherit(alloc, from, tasks),
            (HookWork::BuildTaskDir { user, made, .. }, Some(task)) if !made => {
                let owner = user::owner(user)?;
                self.dirs.build_task(alloc, task.as_str(), owner)
            }
            (HookWork::BuildTaskDir { .. }, Some(_)) => Ok(()),
            (HookWork::WritePayload { file, payload }, Some(task)) => {
                self.write_payload(alloc, task, file, payload)
            }
            (HookWork::IssueIdentities(asked), Some(task)) => {
                let task = task.clone();
                let key = TaskKey { alloc, task };
                let now = clock::now().wall;
                self.issuer.issue(&self.dirs, &key, asked, now)
            }
            (
                HookWork::BuildTaskDir { .. }
                | HookWork::IssueIdentities(_)
                | HookWork::WritePayload { .. },
                None,
            ) => Err(io::Error::other("no task was named")),
            (
                HookWork::FetchArtifacts { .. }
                | HookWork::AskRemote { .. }
                | HookWork::FetchDisk { .. }
                | HookWork::Reserve { .. },
                _,
            ) => Err(io::Error::other("that is no work of directories")),
            (HookWork::RenderTemplates(_), _) => Err(io::Error::other("no task was named")),
            (HookWork::RemoveAllocDir, _) => {
                self.issuer.forget(alloc);
                self.dirs.remove(alloc)
            }
        };
        done?;
        let secrets = match (work, task) {
            (
                HookWork::BuildTaskDir {
                    user, secrets_mb, ..
                },
                Some(task),
            ) => {
                let owner = user::owner(user)?;
                self.dirs
                    .secrets(alloc, task.as_str(), owner, *secrets_mb)?
            }
            _ => String::new(),
        };
        Ok(HookOutput {
            secrets,
            ..HookOutput::default()
        })
    }
}
