//! What templates ask of the servers: a question in the protocol's form, and its answer in the templates'.

use std::collections::BTreeMap;
use std::time::Duration;

use drover_core::model::secret::Secret;
use drover_io_real::cluster::{Answered, Unanswered};
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::types::Request;
use drover_rpc::types::service::{
    NamespaceServices, ServiceRegistration, ServiceRegistrationGetService, ServiceRegistrationList,
};
use drover_rpc::types::variable::{Variable, VariableMetadata, VariablesList, VariablesRead};
use drover_template as template;
use drover_template::{Answer, Need};

use super::Cluster;
use super::calls::USUAL;

/// How long servers may wait with an answer that says nothing new, in seconds; each adds a sixteenth to it at most.
const WAIT: u64 = 300;

/// How many questions wait for news at servers at once; further ones wait here.
pub(super) const MAX_WAITING: usize = 256;

/// A question, but for what is asked.
struct Reading {
    token: drover_rpc::msgpack::Secret,
    after: u64,
    namespace: String,
    region: String,
    /// How long the answer may take.
    within: Duration,
}

impl Reading {
    /// In nanoseconds.
    fn wait(&self) -> i64 {
        i64::try_from(WAIT).unwrap_or(0) * 1_000_000_000
    }
}

/// A path or prefix as templates say it: `PATH@NAMESPACE.REGION`, of which both may be missing.
struct Named<'a> {
    path: &'a str,
    namespace: &'a str,
    region: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn of(named: &'a str, own: &'a str) -> Named<'a> {
        let Some((path, place)) = named.split_once('@') else {
            return Named {
                path: named,
                namespace: own,
                region: None,
            };
        };
        let (namespace, region) = place.split_once('.').unwrap_or((place, ""));
        Named {
            path,
            namespace: if namespace.is_empty() { own } else { namespace },
            region: Some(region).filter(|region| !region.is_empty()),
        }
    }
}

impl Cluster {
    /// Answers a question of a template; one that waits for news does so when it is its turn.
    pub(super) async fn ask(
        &self,
        token: &Secret,
        namespace: &str,
        need: &Need,
        after: u64,
    ) -> Result<Answered, Unanswered> {
        let _turn = match after {
            0 => None,
            _ => self.0.waiting.acquire().await.ok(),
        };
        let within = match after {
            0 => USUAL,
            _ => Duration::from_secs(WAIT + WAIT / 16) + USUAL,
        };
        let reading = |named: Named<'_>| Reading {
            token: token.expose().into(),
            after,
            namespace: named.namespace.to_owned(),
            region: named.region.map_or_else(|| self.region(), str::to_owned),
            within,
        };
        let own = || reading(Named::of("", namespace));
        let answered = match need {
            Need::Variable(named) => {
                let named = Named::of(named, namespace);
                let path = named.path.to_owned();
                self.variable(path, reading(named)).await
            }
            Need::Variables(named) => {
                let named = Named::of(named, namespace);
                let prefix = named.path.to_owned();
                self.variables(prefix, reading(named)).await
            }
            Need::Service(name) => self.instances(name, String::new(), own()).await,
            Need::ServiceChoice { name, count, key } => {
                self.instances(name, format!("{count}|{key}"), own()).await
            }
            Need::Services => self.services(own()).await,
            Need::Env(_) | Need::File(_) | Need::Time => {
                return Err(Unanswered::Failed("servers do not know that".to_owned()));
            }
        };
        answered.map_err(|error| unanswered(&error))
    }

    async fn asked<R: Request>(&self, request: &R, within: Duration) -> Result<R::Reply, Error> {
        self.0.client.call_and_follow(request, within).await
    }

    async fn variable(&self, path: String, reading: Reading) -> Result<Answered, Error> {
        let request = VariablesRead {
            allow_stale: true,
            max_query_time: reading.wait(),
            min_query_index: reading.after,
            auth_token: reading.token,
            namespace: reading.namespace,
            region: reading.region,
            path,
            ..VariablesRead::default()
        };
        let reply = self.asked(&request, reading.within).await?;
        let answer = reply.data.map(variable);
        Ok(Answered {
            answer: answer.map_or(Answer::Absent, Answer::Variable),
            index: reply.index,
        })
    }

    async fn variables(&self, prefix: String, reading: Reading) -> Result<Answered, Error> {
        let request = VariablesList {
            allow_stale: true,
            max_query_time: reading.wait(),
            min_query_index: reading.after,
            auth_token: reading.token,
            namespace: reading.namespace,
            region: reading.region,
            prefix,
            ..VariablesList::default()
        };
        let reply = self.asked(&request, reading.within).await?;
        let all = reply.data.into_iter().map(meta);
        Ok(Answered {
            answer: Answer::Variables(all.collect()),
            index: reply.index,
        })
    }

    /// The instances of a service; those that servers choose if that is wanted.
    async fn instances(
        &self,
        name: &str,
        choose: String,
        reading: Reading,
    ) -> Result<Answered, Error> {
        let is_choice = !choose.is_empty();
        let request = ServiceRegistrationGetService {
            allow_stale: true,
            max_query_time: reading.wait(),
            min_query_index: reading.after,
            auth_token: reading.token,
            namespace: reading.namespace,
            region: reading.region,
            service_name: name.to_owned(),
            choose,
            ..ServiceRegistrationGetService::default()
        };
        let reply = self.asked(&request, reading.within).await?;
        let all = reply.services.into_iter().map(instance);
        let mut all: Vec<template::Instance> = all.collect();
        if !is_choice {
            // Another server's order is no reason to render anew.
            all.sort_by(|a, b| a.id.cmp(&b.id));
        }
        Ok(Answered {
            answer: Answer::Instances(all),
            index: reply.index,
        })
    }

    async fn services(&self, reading: Reading) -> Result<Answered, Error> {
        let request = ServiceRegistrationList {
            allow_stale: true,
            max_query_time: reading.wait(),
            min_query_index: reading.after,
            auth_token: reading.token,
            namespace: reading.namespace,
            region: reading.region,
            ..ServiceRegistrationList::default()
        };
        let reply = self.asked(&request, reading.within).await?;
        Ok(Answered {
            answer: Answer::Services(names(reply.services, &request.namespace)),
            index: reply.index,
        })
    }
}

fn unanswered(error: &Error) -> Unanswered {
    match error.server_error_kind() {
        Some(ServerErrorKind::PermissionDenied | ServerErrorKind::TokenNotFound) => {
            Unanswered::Refused("Permission denied".to_owned())
        }
        Some(_) | None => Unanswered::Failed(error.to_string()),
    }
}

fn variable(found: Variable) -> template::Variable {
    let items = found.items.into_iter();
    template::Variable {
        items: items
            .map(|(name, value)| (name, value.expose().to_owned()))
            .collect(),
        meta: template::VariableMeta {
            namespace: found.namespace,
            path: found.path,
            create_index: found.create_index,
            modify_index: found.modify_index,
            create_time: found.create_time,
            modify_time: found.modify_time,
        },
    }
}

fn meta(found: VariableMetadata) -> template::VariableMeta {
    template::VariableMeta {
        namespace: found.namespace,
        path: found.path,
        create_index: found.create_index,
        modify_index: found.modify_index,
        create_time: found.create_time,
        modify_time: found.modify_time,
    }
}

fn instance(found: ServiceRegistration) -> template::Instance {
    template::Instance {
        id: found.id,
        name: found.service_name,
        node: found.node_id,
        address: found.address,
        port: found.port,
        datacenter: found.datacenter,
        tags: found.tags,
        job_id: found.job_id,
        alloc_id: found.alloc_id,
    }
}

/// The services of a namespace, by their names.
fn names(all: Vec<NamespaceServices>, namespace: &str) -> Vec<template::Service> {
    let of_it = all.into_iter().filter(|one| one.namespace == namespace);
    let services = of_it.flat_map(|one| one.services);
    let services = services.map(|one| (one.service_name, one.tags));
    let services: BTreeMap<String, Vec<String>> = services.collect();
    let service = |(name, mut tags): (String, Vec<String>)| {
        tags.sort();
        template::Service { name, tags }
    };
    services.into_iter().map(service).collect()
}

#[cfg(test)]
mod tests {
    use super::Named;

    #[test]
    fn variable_is_in_the_namespace_of_the_job_unless_it_says_another() {
        for (named, path, namespace, region) in [
            ("nomad/jobs/web", "nomad/jobs/web", "own", None),
            ("a@other", "a", "other", None),
            ("a@other.eu", "a", "other", Some("eu")),
            ("a@", "a", "own", None),
            ("a@.eu", "a", "own", Some("eu")),
            ("", "", "own", None),
        ] {
            let found = Named::of(named, "own");
            assert_eq!(
                (found.path, found.namespace, found.region),
                (path, namespace, region)
            );
        }
    }
}
