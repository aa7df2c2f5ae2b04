//! The work of hooks: directories, devices, templates.

use std::io;

use drover_core::effect::{HookEffect, HookWork};
use drover_core::ids::{AllocId, TaskName};
use drover_core::input::{HookInput, HookOutput, Input, NodeInput, TaskKey};
use drover_core::op::{Failure, Op};

use crate::artifact::{Artifacts, Asked};
use crate::device::DevicePlugins;
use crate::dirs::AllocDirs;
use crate::driver::Inbox;
use crate::gate::Gate;
use crate::templates::Templates;
use crate::user;

/// Whoever does the work of hooks. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    dirs: AllocDirs,
    inbox: Inbox,
    gate: Gate,
    devices: DevicePlugins,
    templates: Templates,
    artifacts: Artifacts,
}

impl Hooks {
    /// Works in `dirs`, asks `devices`, fetches with `artifacts` and answers to `inbox`.
    pub fn new(
        dirs: AllocDirs,
        inbox: Inbox,
        devices: DevicePlugins,
        artifacts: Artifacts,
    ) -> Hooks {
        let gate = Gate::default();
        Hooks {
            artifacts,
            devices,
            templates: Templates::new(dirs.clone(), inbox.clone(), gate.clone()),
            dirs,
            inbox,
            gate,
        }
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
            // All other work is short, and answers by itself.
            HookEffect::Cancel { op } => {
                self.templates.cancel(op);
                self.artifacts.cancel(op);
            }
        }
    }

    fn run(&self, op: Op, alloc: AllocId, task: Option<TaskName>, work: HookWork) {
        if let (HookWork::RenderTemplates(work), Some(task)) = (&work, &task) {
            let task = task.clone();
            let key = TaskKey { alloc, task };
            return self.templates.begin(op, key, work.clone());
        }
        let hooks = self.clone();
        let own = task.clone();
        let (gate, inbox) = (self.gate.clone(), self.inbox.clone());
        let devices = self.devices.clone();
        if let HookWork::FetchArtifacts { .. } = work {
            return self.fetch(op, alloc, task, work);
        }
        tokio::spawn(async move {
            if let HookWork::Reserve { devices: wanted } = &work {
                let result = devices.reserve(wanted).await;
                return inbox.deliver(Input::Hook(HookInput {
                    op,
                    alloc,
                    task,
                    result,
                }));
            }
            let work = move || hooks.work(alloc, own.as_ref(), &work);
            let result = match gate.run(work).await {
                Ok(result) => result.map_err(|error| Failure::recoverable(error.to_string())),
                Err(lost) => Err(Failure::recoverable(format!("its work was lost: {lost}"))),
            };
            inbox.deliver(Input::Hook(HookInput {
                op,
                alloc,
                task,
                result,
            }));
        });
    }

    /// Fetches what a task needs; one answer follows, soon after a cancellation.
    fn fetch(&self, op: Op, alloc: AllocId, task: Option<TaskName>, work: HookWork) {
        let (artifacts, inbox) = (self.artifacts.clone(), self.inbox.clone());
        artifacts.begin(op);
        tokio::spawn(async move {
            let asked = match (work, task.clone()) {
                (
                    HookWork::FetchArtifacts {
                        artifacts,
                        root,
                        user,
                    },
                    Some(task),
                ) => Some(Asked {
                    alloc,
                    task,
                    artifacts,
                    root,
                    user,
                }),
                _ => None,
            };
            let result = match asked {
                Some(asked) => artifacts.fetch(op, asked).await,
                None => Err(Failure::fatal("no task was named")),
            };
            inbox.deliver(Input::Hook(HookInput {
                op,
                alloc,
                task,
                result,
            }));
        });
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
                let owner = match user.as_str() {
                    "" => None,
                    name => user::find(name).map(|user| Some((user.uid, user.gid)))?,
                };
                self.dirs.build_task(alloc, task.as_str(), owner)
            }
            (HookWork::BuildTaskDir { .. }, Some(_)) => Ok(()),
            (HookWork::BuildTaskDir { .. }, None) => Err(io::Error::other("no task was named")),
            // That is no work of directories.
            (HookWork::FetchArtifacts { .. }, _) => Err(io::Error::other("others fetch")),
            (HookWork::Reserve { .. }, _) => Err(io::Error::other("plugins reserve devices")),
            (HookWork::RenderTemplates(_), _) => Err(io::Error::other("no task was named")),
            (HookWork::RemoveAllocDir, _) => self.dirs.remove(alloc),
        };
        done?;
        let secrets = match (work, task) {
            (HookWork::BuildTaskDir { secrets_mb, .. }, Some(task)) => {
                self.dirs.secrets(alloc, task.as_str(), *secrets_mb)?
            }
            _ => String::new(),
        };
        Ok(HookOutput {
            secrets,
            ..HookOutput::default()
        })
    }
}
