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
            let rebuilt = self.made && !hooks.dirs.has_task(alloc, task)?;
            if rebuilt {
                tracing::warn!(%alloc, task, "the task's directory is gone, and is made anew");
                hooks.dirs.build_alloc(alloc)?;
            }
            let made = self.made && !rebuilt;
            let secrets = if self.private {
                hooks
                    .dirs
                    .private_task(alloc, task, self.secrets_mb, made)?
            } else {
                let owner = user::owner(&self.user)?;
                if !made {
                    hooks.dirs.build_task(alloc, task, owner)?;
                }
                hooks.dirs.secrets(alloc, task, owner, self.secrets_mb)?
            };
            Ok(HookOutput {
                secrets,
                rebuilt,
                ..HookOutput::default()
            })
        };
        hooks.on_disk(build).await
    }
}
