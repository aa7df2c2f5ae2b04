//! Finding things by how their ids begin: `nomad status ID` asks for it to learn what an id is of.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use drover_core::agent::View;
use serde::{Deserialize, Serialize};

use super::Api;
use super::answer::{self, Answer};
use super::body;
use super::errors::ApiError;
use super::params::{Params, has_prefix};

/// How many are found of one kind.
const MOST: usize = 20;

/// The kinds of things that are here. Of Nomad's others nothing is ever found.
const HERE: [&str; 5] = ["allocs", "deployment", "evals", "jobs", "nodes"];
const ELSEWHERE: [&str; 7] = [
    "host_volumes",
    "namespaces",
    "node_pools",
    "plugins",
    "scaling_policy",
    "vars",
    "volumes",
];

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    prefix: String,
    context: String,
}

/// What was found, by kind.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Found {
    matches: BTreeMap<String, Vec<String>>,
    truncations: BTreeMap<String, bool>,
    index: u64,
    known_leader: bool,
    last_contact: u64,
}

pub(super) async fn search(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let asked: Asked = body::decode(request).await?;
    let everywhere = matches!(asked.context.as_str(), "" | "all");
    let kinds: Vec<&str> = (HERE.into_iter().chain(ELSEWHERE))
        .filter(|kind| everywhere || *kind == asked.context)
        .collect();
    if kinds.is_empty() {
        let known = [&HERE[..], &ELSEWHERE[..]].concat().join(", ");
        let words = format!("context must be one of all, {known}");
        return Err(ApiError::failed(words));
    }
    let scope = params.clone();
    let found = api.agent_handle.ask(move |view: View<'_>| {
        let mut found = Found {
            index: view.index().max(1),
            known_leader: true,
            ..Found::default()
        };
        for kind in kinds {
            let mut ids = ids(view, &scope, kind, &asked.prefix);
            // An id that is the prefix comes first.
            ids.sort();
            found.truncations.insert(kind.to_owned(), ids.len() > MOST);
            ids.truncate(MOST);
            found.matches.insert(kind.to_owned(), ids);
        }
        found
    });
    let found = found.await?;
    answer::read(&params, found.index, &found)
}

/// The ids of one kind that begin so.
fn ids(view: View<'_>, scope: &Params, kind: &str, prefix: &str) -> Vec<String> {
    let uuids = |all: Vec<String>| {
        let begins = |id: &String| has_prefix(id, prefix);
        all.into_iter().filter(begins).collect()
    };
    match kind {
        "jobs" => {
            let jobs = view.jobs().map(|record| &record.job);
            let begins = jobs.filter(|job| job.id.starts_with(prefix));
            let here = begins.filter(|job| scope.includes(&job.namespace));
            here.map(|job| job.id.clone()).collect()
        }
        "allocs" => {
            let all = view.shown_allocs().map(|alloc| alloc.record().clone());
            let here = all.filter(|alloc| scope.includes(&alloc.job.namespace));
            uuids(here.map(|alloc| alloc.id.to_string()).collect())
        }
        "evals" => {
            let here = view.evals().filter(|it| scope.includes(&it.job.namespace));
            uuids(here.map(|eval| eval.id.to_string()).collect())
        }
        "deployment" => {
            let all = view.deployments();
            let here = all.filter(|it| scope.includes(&it.job.namespace));
            uuids(here.map(|deployment| deployment.id.to_string()).collect())
        }
        "nodes" => uuids(vec![view.node().id.to_string()]),
        _ => Vec::new(),
    }
}
