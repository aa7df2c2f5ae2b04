//! What servers do for the tasks that they placed here: they sign their identities, and answer their templates.
//!
//! The default identity of a task is signed when its allocation is placed, and comes with it; all others are signed
//! when that is asked for.

use std::collections::BTreeMap;

use drover_core::cluster::Credentials;
use drover_core::ids::TaskKey;
use drover_core::model::identity::DEFAULT;
use drover_core::model::secret::Secret;
use drover_core::op::Failure;
use drover_io_real::cluster::{Answered, Answering, ServeTasks, Unanswered};
use drover_rpc::error::Error;
use drover_rpc::types::identity::{AllocSignIdentities, WorkloadIdentityRequest};
use drover_rpc::types::query::AllocGetAllocs;
use drover_template::Need;

use super::Cluster;
use super::calls::USUAL;

/// The tokens of a task, by the names of its identities.
type Tokens = BTreeMap<String, Secret>;

/// What is asked of servers before they know the node.
const UNKNOWN: &str = "the servers do not know this node yet";

impl ServeTasks for Cluster {
    fn sign<'a>(&'a self, task: &'a TaskKey, names: &'a [String]) -> Answering<'a, Tokens> {
        Box::pin(async move {
            let (default, named): (Vec<&String>, Vec<&String>) =
                names.iter().partition(|name| *name == DEFAULT);
            let mut tokens = Tokens::new();
            if !default.is_empty() {
                let token = self.default_token(task).await?;
                tokens.insert(DEFAULT.to_owned(), token);
            }
            if !named.is_empty() {
                tokens.extend(self.named_tokens(task, &named).await?);
            }
            Ok(tokens)
        })
    }

    fn answer<'a>(
        &'a self,
        token: &'a Secret,
        namespace: &'a str,
        need: &'a Need,
        after: u64,
    ) -> Answering<'a, Answered, Unanswered> {
        Box::pin(self.ask(token, namespace, need, after))
    }
}

impl Cluster {
    /// By what servers know the node.
    fn node_token(&self) -> Result<drover_rpc::msgpack::Secret, Failure> {
        let credentials = self.credentials().clone();
        match credentials {
            Credentials::None => Err(Failure::recoverable(UNKNOWN)),
            Credentials::NodeSecret | Credentials::Identity(_) => Ok(self.token(credentials)),
        }
    }

    async fn default_token(&self, task: &TaskKey) -> Result<Secret, Failure> {
        let id = task.alloc.to_string();
        let request = AllocGetAllocs {
            alloc_ids: vec![id.clone()],
            allow_stale: true,
            auth_token: self.node_token()?,
            region: self.region(),
            ..AllocGetAllocs::default()
        };
        let reply = self.0.client.call(&request, USUAL).await.map_err(failure)?;
        let mut allocs = reply.allocs.into_iter();
        let Some(mut alloc) = allocs.find(|alloc| alloc.id == id) else {
            return Err(Failure::recoverable(
                "the servers do not have the allocation",
            ));
        };
        let token = alloc.signed_identities.remove(task.task.as_str());
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| {
            Failure::fatal("the servers did not sign a default identity for the task")
        })?;
        Ok(token.expose().into())
    }

    /// From a server that is not behind: what it does not know, there is not.
    async fn named_tokens(&self, task: &TaskKey, names: &[&String]) -> Result<Tokens, Failure> {
        let wanted = |name: &&String| WorkloadIdentityRequest {
            alloc_id: task.alloc.to_string(),
            identity_name: (*name).clone(),
            workload_identifier: task.task.to_string(),
            ..WorkloadIdentityRequest::default()
        };
        let request = AllocSignIdentities {
            auth_token: self.node_token()?,
            identities: names.iter().map(wanted).collect(),
            region: self.region(),
            ..AllocSignIdentities::default()
        };
        let reply = self.0.client.call(&request, USUAL).await.map_err(failure)?;
        let signed = reply.signed_identities.into_iter();
        let signed = signed.filter(|one| !one.jwt.is_empty());
        let tokens: Tokens = signed
            .map(|one| (one.identity_name, one.jwt.expose().into()))
            .collect();
        match names.iter().find(|name| !tokens.contains_key(**name)) {
            None => Ok(tokens),
            Some(name) => {
                let mut rejections = reply.rejections.into_iter();
                let why = rejections.find(|one| one.identity_name == **name);
                let why = why.map_or_else(|| "no reason was given".to_owned(), |one| one.reason);
                let message = format!("the servers do not sign identity {name}: {why}");
                // It follows from a change of the job or the allocation, of which the node hears soon.
                Err(Failure::recoverable(message))
            }
        }
    }
}

fn failure(error: Error) -> Failure {
    Failure::recoverable(error.to_string())
}
