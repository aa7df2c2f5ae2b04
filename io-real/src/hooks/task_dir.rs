//! Directories and secrets of tasks.

use drover_core::input::HookOutput;
use drover_core::work::BuildTaskDir;

use super::{Answer, Hooks, Of, Work};
use crate::user;

impl Work for BuildTaskDir {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let _work = hooks.dir_locks.work(of.alloc).await;
        let key = of.key();
        let build = move |hooks: &Hooks| {
            let key = key?;
            let (alloc, task) = (key.alloc, key.task.as_str());
            if self.private {
                let secrets = hooks
                    .dirs
                    .private_task(alloc, task, self.secrets_mb, self.made)?;
                return Ok(HookOutput {
                    secrets,
                    ..HookOutput::default()
                });
            }
            let owner = user::owner(&self.user)?;
            if !self.made {
                hooks.dirs.build_task(alloc, task, owner)?;
            }
            let secrets = hooks.dirs.secrets(alloc, task, owner, self.secrets_mb)?;
            Ok(HookOutput {
                secrets,
                ..HookOutput::default()
            })
        };
        hooks.on_disk(build).await
    }
}
