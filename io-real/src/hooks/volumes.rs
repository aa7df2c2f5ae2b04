//! Links to the volumes of a task whose driver does not mount.

use std::io;
use std::path::Path;

use drover_core::input::HookOutput;
use drover_core::work::LinkVolumes;

use super::{Answer, Hooks, Of, Work};

impl Work for LinkVolumes {
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let _work = hooks.dir_locks.work(of.alloc).await;
        let key = of.key();
        let link = move |hooks: &Hooks| {
            let key = key?;
            for link in &self.links {
                // The link would be there, and lead nowhere.
                if !Path::new(&link.target).is_dir() {
                    let why = format!("the host volume's directory {:?} is not there", link.target);
                    return Err(io::Error::new(io::ErrorKind::NotFound, why));
                }
                let task = key.task.as_str();
                let made = hooks
                    .dirs
                    .link(key.alloc, task, &link.path.path, &link.target);
                made.map_err(|error| {
                    let why = format!("link {:?} to the host volume: {error}", link.path.path);
                    io::Error::new(error.kind(), why)
                })?;
            }
            Ok(HookOutput::default())
        };
        hooks.on_disk(link).await
    }
}
