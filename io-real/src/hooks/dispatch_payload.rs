//! What a dispatch brought, as a file of the task.

use std::io;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use drover_core::input::HookOutput;
use drover_core::work::WritePayload;

use super::{Answer, Hooks, Of, Work};
use crate::dirs::Access;

impl Work for WritePayload {
    /// As Nomad does it: for everybody to read and execute.
    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let _work = hooks.dir_locks.work(of.alloc).await;
        let key = of.key();
        let write = move |hooks: &Hooks| {
            let bytes = BASE64_STANDARD.decode(&*self.payload);
            let bytes = bytes.map_err(|error| io::Error::other(format!("the payload: {error}")))?;
            let access = Access {
                mode: 0o755,
                uid: None,
                gid: None,
            };
            let key = key?;
            let files = hooks.dirs.files(key.alloc, key.task.as_str())?;
            files.write(&self.file, &bytes, access)?;
            Ok(HookOutput::default())
        };
        hooks.on_disk(write).await
    }
}
