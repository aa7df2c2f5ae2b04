//! Tokens of tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::input::HookOutput;
use drover_core::model::authority::Authority;
use drover_core::model::secret::Secret;
use drover_core::op::Failure;
use drover_core::work::Issuing;

use super::{Answer, Hooks, Of, Work};
use crate::clock;
use crate::cluster::NO_SERVERS;

impl Work for Arc<Issuing> {
    fn begin(&self, hooks: &Hooks, of: &Of) {
        hooks.signing.begin(of.op);
    }

    async fn run(self, hooks: &Hooks, of: &Of) -> Answer {
        let signed = match self.authority {
            Authority::Node => Ok(None),
            Authority::Servers => signed(hooks, of, &self).await.map(Some),
        };
        hooks.signing.ended(of.op);
        let signed = match signed {
            Ok(signed) => signed,
            Err(failure) => return Some(Err(failure)),
        };
        let _work = hooks.dir_locks.work(of.alloc).await;
        let key = of.key();
        let issue = move |hooks: &Hooks| {
            let key = key?;
            match signed {
                Some(tokens) => hooks.issuer.hand_out(&hooks.dirs, &key, &self, &tokens)?,
                None => {
                    let now = clock::now().wall;
                    hooks.issuer.issue(&hooks.dirs, &key, &self, now)?;
                }
            }
            Ok(HookOutput::default())
        };
        hooks.on_disk(issue).await
    }
}

/// The tokens, from the servers.
async fn signed(
    hooks: &Hooks,
    of: &Of,
    asked: &Issuing,
) -> Result<BTreeMap<String, Secret>, Failure> {
    let key = of.key();
    let key = key.map_err(|error| Failure::fatal(error.to_string()))?;
    let Some(servers) = &hooks.servers else {
        return Err(Failure::fatal(NO_SERVERS));
    };
    let cancel = hooks.signing.begin(of.op);
    let names: Vec<String> = asked.identities.iter().map(|it| it.name.clone()).collect();
    tokio::select! {
        signed = servers.sign(&key, &names) => signed,
        () = cancel.cancelled() => Err(Failure::recoverable("it was cancelled")),
    }
}
