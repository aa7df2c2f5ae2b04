//! Finding things: by how their ids begin (`nomad status ID` asks what an id is of), and by a part of their
//! names, also of what is inside of jobs.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use drover_core::agent::View;
use drover_core::model::job::Job;
use drover_core::model::value::Value;
use serde::{Deserialize, Serialize};

use super::access::require;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::{Params, has_prefix};
use super::search_rights::{may_list, may_search};
use super::{Api, body, cluster, scale};
use crate::acl::{Capability, PoolCapability};

/// How many are found of one kind by their ids.
const MOST: usize = 20;
/// How many are found of one kind by their names.
const MOST_FUZZY: usize = 100;
/// The shortest part of a name that is searched.
const SHORTEST: usize = 2;

/// The kinds of things, in Nomad's order.
const CONTEXTS: [&str; 12] = [
    "allocs",
    "jobs",
    "nodes",
    "node_pools",
    "evals",
    "deployment",
    "plugins",
    "volumes",
    "scaling_policy",
    "vars",
    "namespaces",
    "host_volumes",
];
/// Those that have no names, so that they are found by ids in any case.
const NAMELESS: [&str; 5] = [
    "deployment",
    "evals",
    "host_volumes",
    "scaling_policy",
    "volumes",
];

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    prefix: String,
    text: String,
    context: String,
}

impl Asked {
    /// The kinds that are searched, of those that somebody may see.
    fn contexts(&self, params: &Params) -> Result<Vec<&'static str>, ApiError> {
        let everywhere = matches!(self.context.as_str(), "" | "all");
        let wanted = CONTEXTS.into_iter();
        let wanted: Vec<_> = wanted
            .filter(|context| everywhere || *context == self.context)
            .collect();
        if wanted.is_empty() {
            let (known, got) = (CONTEXTS.join(" "), &self.context);
            let words =
                format!("context must be one of [{known}] or 'all' for all contexts; got {got:?}");
            return Err(ApiError::failed(words));
        }
        let wanted: Vec<_> = (wanted.into_iter())
            .filter(|context| may_search(params, context))
            .collect();
        require(!wanted.is_empty())?;
        Ok(wanted)
    }
}

/// What was found, by kind.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Found<T> {
    matches: BTreeMap<&'static str, Option<Vec<T>>>,
    truncations: BTreeMap<&'static str, bool>,
    index: u64,
    known_leader: bool,
    last_contact: u64,
    next_token: &'static str,
}

impl<T> Found<T> {
    fn at(index: u64) -> Found<T> {
        Found {
            matches: BTreeMap::new(),
            truncations: BTreeMap::new(),
            index: index.max(1),
            known_leader: true,
            last_contact: 0,
            next_token: "",
        }
    }
}

/// Something with its name, and what it lies in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    #[serde(rename = "ID")]
    id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scope: Vec<String>,
}

/// What can be found, as shared names and ids: the searching is done elsewhere.
struct Known {
    index: u64,
    jobs: Vec<std::sync::Arc<Job>>,
    /// Namespace, id, name.
    allocs: Vec<(String, String, String)>,
    evals: Vec<String>,
    deployments: Vec<String>,
    policies: Vec<String>,
    pools: Vec<&'static str>,
    node: (String, String),
    variables: Vec<(String, String)>,
    namespaces: Vec<String>,
}

impl Known {
    fn of(view: View<'_>, scope: &Params, contexts: &[&str]) -> Known {
        let wants = |context| contexts.contains(&context);
        let jobs = view.jobs().filter(|_| wants("jobs"));
        let allocs = view.shown_allocs().filter(|_| wants("allocs"));
        let evals = view.evals().filter(|_| wants("evals"));
        let deployments = view.deployments().filter(|_| wants("deployment"));
        let scalable = view.jobs().filter(|record| {
            let namespace = &record.job.namespace;
            wants("scaling_policy") && scope.includes(namespace, Capability::ListScalingPolicies)
        });
        let variables = view.variables().keys().filter(|_| wants("vars"));
        Known {
            index: view.index(),
            jobs: (jobs.map(|record| &record.job))
                .filter(|job| scope.includes(&job.namespace, Capability::ReadJob))
                .cloned()
                .collect(),
            allocs: (allocs.map(|alloc| alloc.record()))
                .filter(|alloc| scope.includes(&alloc.job.namespace, Capability::ReadJob))
                .map(|alloc| {
                    let namespace = alloc.job.namespace.to_string();
                    (namespace, alloc.id.to_string(), alloc.name.to_string())
                })
                .collect(),
            evals: (evals.filter(|it| scope.includes(&it.job.namespace, Capability::ReadJob)))
                .map(|eval| eval.id.to_string())
                .collect(),
            deployments: (deployments
                .filter(|it| scope.includes(&it.job.namespace, Capability::ReadJob)))
            .map(|deployment| deployment.id.to_string())
            .collect(),
            policies: scalable.flat_map(scale::policy_ids).collect(),
            pools: (cluster::POOLS.iter().map(|(name, _)| *name))
                .filter(|name| {
                    let rights = scope.principal.rights();
                    rights.may_pool(name, PoolCapability::Read)
                })
                .collect(),
            node: (view.node().id.to_string(), view.node().name.clone()),
            variables: (variables.filter(|key| may_list(scope, key)))
                .map(|key| (key.namespace.to_string(), key.path.to_string()))
                .collect(),
            namespaces: (view.namespaces().keys().filter(|_| wants("namespaces")))
                .filter(|name| scope.principal.rights().may_see_namespace(name))
                .map(|name| name.to_string())
                .collect(),
        }
    }
}

async fn known(api: &Api, params: &Params, contexts: &[&'static str]) -> Result<Known, ApiError> {
    let (scope, contexts) = (params.clone(), contexts.to_vec());
    let known = api
        .agent_handle
        .ask(move |view| Known::of(view, &scope, &contexts));
    Ok(known.await?)
}

pub(super) async fn search(State(api): State<Api>, params: Params, request: Request) -> Answer {
    require(CONTEXTS.iter().any(|context| may_search(&params, context)))?;
    let asked: Asked = body::decode(request).await?;
    let contexts = asked.contexts(&params)?;
    let known = known(&api, &params, &contexts).await?;
    let mut found = Found::at(known.index);
    for context in contexts {
        let mut ids = ids(&known, context, &asked.prefix);
        // An id that is the prefix comes first.
        ids.sort();
        found.truncations.insert(context, ids.len() > MOST);
        ids.truncate(MOST);
        found
            .matches
            .insert(context, Some(ids).filter(|ids| !ids.is_empty()));
    }
    answer::read(&params, found.index, &found)
}

/// The ids of one kind that begin so.
fn ids(known: &Known, context: &str, prefix: &str) -> Vec<String> {
    let uuids = |all: &[String]| -> Vec<String> {
        let begins = all.iter().filter(|id| has_prefix(id, prefix));
        begins.cloned().collect()
    };
    let names = |all: Vec<String>| -> Vec<String> {
        let begins = all.into_iter().filter(|name| name.starts_with(prefix));
        begins.collect()
    };
    match context {
        "jobs" => names(known.jobs.iter().map(|job| job.id.clone()).collect()),
        "allocs" => {
            let ids = known.allocs.iter().map(|(_, id, _)| id.clone());
            uuids(&ids.collect::<Vec<_>>())
        }
        "evals" => uuids(&known.evals),
        "deployment" => uuids(&known.deployments),
        "scaling_policy" => uuids(&known.policies),
        "nodes" => uuids(std::slice::from_ref(&known.node.0)),
        "vars" => names(
            known
                .variables
                .iter()
                .map(|(_, path)| path.clone())
                .collect(),
        ),
        "namespaces" => names(known.namespaces.clone()),
        "node_pools" => names(known.pools.iter().map(|name| (*name).to_owned()).collect()),
        _ => Vec::new(),
    }
}

pub(super) async fn fuzzy(State(api): State<Api>, params: Params, request: Request) -> Answer {
    require(CONTEXTS.iter().any(|context| may_search(&params, context)))?;
    let asked: Asked = body::decode(request).await?;
    let contexts = asked.contexts(&params)?;
    let length = asked.text.chars().count();
    if length < SHORTEST {
        let words =
            format!("fuzzy search query must be at least {SHORTEST} characters, got {length}");
        return Err(ApiError::failed(words));
    }
    let known = known(&api, &params, &contexts).await?;
    let mut found = Found::at(known.index);
    for context in contexts {
        if NAMELESS.contains(&context) {
            let mut ids = ids(&known, context, &asked.text);
            ids.sort();
            found.truncations.insert(context, ids.len() > MOST);
            ids.truncate(MOST);
            let scope = Vec::new;
            let named = ids.into_iter().map(|id| Named { id, scope: scope() });
            found.matches.insert(context, Some(named.collect()));
            continue;
        }
        found.truncations.insert(context, false);
        for (kind, all) in named(&known, context) {
            let (some, more) = best(all, &asked.text);
            if more {
                found.truncations.insert(kind, true);
            }
            if !some.is_empty() {
                found.matches.insert(kind, Some(some));
            }
        }
    }
    answer::read(&params, found.index, &found)
}

/// Those whose names have this part in any case: first where it stands at the front, and whether there are
/// more than are told of.
fn best(all: Vec<Named>, part: &str) -> (Vec<Named>, bool) {
    let part = part.to_lowercase();
    let found = all.into_iter().filter_map(|named| {
        let at = named.id.to_lowercase().find(&part)?;
        Some((at, named.id.len(), named))
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    found.dedup();
    let more = found.len() > MOST_FUZZY;
    found.truncate(MOST_FUZZY);
    (found.into_iter().map(|(_, _, named)| named).collect(), more)
}

/// Everything with a name that is found in a context, by kind.
fn named(known: &Known, context: &str) -> Vec<(&'static str, Vec<Named>)> {
    let plain = |names: Vec<String>| -> Vec<Named> {
        let scope = Vec::new;
        let names = names.into_iter();
        names.map(|id| Named { id, scope: scope() }).collect()
    };
    match context {
        "jobs" => of_jobs(&known.jobs),
        "allocs" => {
            let allocs = known.allocs.iter().map(|(namespace, id, name)| Named {
                id: name.clone(),
                scope: vec![namespace.clone(), id.clone()],
            });
            vec![("allocs", allocs.collect())]
        }
        "nodes" => {
            let (id, name) = known.node.clone();
            vec![(
                "nodes",
                vec![Named {
                    id: name,
                    scope: vec![id],
                }],
            )]
        }
        "vars" => {
            let vars = known.variables.iter().map(|(namespace, path)| Named {
                id: path.clone(),
                scope: vec![namespace.clone(), path.clone()],
            });
            vec![("vars", vars.collect())]
        }
        "namespaces" => vec![("namespaces", plain(known.namespaces.clone()))],
        "node_pools" => {
            let names = known.pools.iter().map(|name| (*name).to_owned());
            vec![("node_pools", plain(names.collect()))]
        }
        _ => Vec::new(),
    }
}

/// Jobs, and what is inside of them.
fn of_jobs(jobs: &[std::sync::Arc<Job>]) -> Vec<(&'static str, Vec<Named>)> {
    let mut found: BTreeMap<&'static str, Vec<Named>> = BTreeMap::new();
    let mut add = |kind, id: &str, scope: &[&str]| {
        let scope = scope.iter().map(|name| (*name).to_owned()).collect();
        let id = id.to_owned();
        found.entry(kind).or_default().push(Named { id, scope });
    };
    for job in jobs {
        let of_job = [job.namespace.as_str(), job.id.as_str()];
        add("jobs", &job.name, &of_job);
        for group in &job.task_groups {
            add("groups", &group.name, &of_job);
            let of_group = [&job.namespace, &job.id, &group.name].map(String::as_str);
            for service in &group.services {
                add("services", service_name(service), &of_group);
            }
            for task in &group.tasks {
                add("tasks", &task.name, &of_group);
                let of_task = [&job.namespace, &job.id, &group.name, &task.name];
                let of_task = of_task.map(String::as_str);
                for service in &task.services {
                    add("services", service_name(service), &of_task);
                }
                for (kind, option) in [
                    ("images", "image"),
                    ("commands", "command"),
                    ("classes", "class"),
                ] {
                    let value = task.config.get(option).and_then(|value| value.as_str());
                    if let Some(value) = value {
                        add(kind, value, &of_task);
                    }
                }
            }
        }
    }
    found.into_iter().collect()
}

/// The name of a service's block, as it was written.
fn service_name(block: &Value) -> &str {
    let fields = block.as_map();
    let name = fields.and_then(|fields| fields.get("Name").or_else(|| fields.get("name")));
    name.and_then(Value::as_str).unwrap_or_default()
}
