//! What keeps this node from running a job: asked before the job is taken over from another node, when
//! it still runs there.
//!
//! Its drivers, its conditions, its ports by number, its CPU, memory, disk space, cores and devices, and
//! the variables that its templates cannot do without; and whether the node that has it can be asked from here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drover_core::agent::View;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::remote::Takeover;
use drover_core::model::template::Template;
use drover_core::model::variable::{Reads, VariableKey};
use drover_core::text::quote;
use drover_template::{Answer, Answers, Need, Options, Rendering, Variable, VariableMeta};

use tokio::time::timeout;

use super::Api;
use super::errors::ApiError;

/// The most reasons that are told.
const MOST: usize = 50;
/// How often a template is rendered: what it reads may say what it reads further.
const ROUNDS: usize = 8;
/// The most nodes that are asked whether they answer: a job comes from one.
const MOST_NODES: usize = 4;
/// How long asking all of them may take.
const ASKING: Duration = Duration::from_secs(30);

/// Why this node cannot run the job now; nothing if it can.
///
/// # Errors
/// The agent is gone.
pub(super) async fn reasons(api: &Api, job: &Job) -> Result<Vec<String>, ApiError> {
    let asked = job.clone();
    let found = api.agent_handle.ask(move |view| {
        let groups = asked.task_groups.iter();
        groups
            .flat_map(|group| of_group(view, &asked, group))
            .collect::<Vec<_>>()
    });
    let mut reasons = found.await?;
    for group in &job.task_groups {
        for task in &group.tasks {
            let reads = Reads::of(&job.namespace, job.known_as(), &group.name, &task.name);
            for template in &task.templates {
                for missing in missing_variables(api, &reads, template).await? {
                    let (task, path) = (quote(&task.name), quote(&missing));
                    reasons.push(format!(
                        "task {task} reads variable {path}, which does not exist"
                    ));
                }
            }
        }
    }
    reasons.truncate(MOST);
    Ok(reasons)
}

/// Why what the job is to replace could not be asked for: who gives it up would wait for this node without end.
pub(super) async fn unreached(api: &Api, from: &[Takeover]) -> Vec<String> {
    let mut nodes = BTreeMap::new();
    for Takeover { from, .. } in from {
        nodes.entry(&*from.address).or_insert(from.alloc);
    }
    let asked = async {
        let mut reasons = Vec::new();
        for (address, alloc) in nodes.into_iter().take(MOST_NODES) {
            if let Err(why) = api.settings.nodes.answers(address, alloc).await {
                reasons.push(format!(
                    "the node that has it cannot be asked from here: {why}"
                ));
            }
        }
        reasons
    };
    timeout(ASKING, asked).await.unwrap_or_else(|_| {
        let words = format!("the nodes that have it do not answer within {ASKING:?}");
        vec![words]
    })
}

fn of_group(view: View<'_>, of: &Job, group: &TaskGroup) -> Vec<String> {
    let name = quote(&group.name);
    let mut reasons: Vec<String> = Vec::new();
    if let Err(why) = view.admits(of, group) {
        reasons.push(format!("group {name}: {why}"));
    }
    if let Err(short) = view.shortage(of, group) {
        reasons.push(format!("group {name}: {short}"));
    }
    let reserved = group
        .networks
        .iter()
        .flat_map(|network| &network.reserved_ports);
    for port in reserved {
        let holder = view.allocs().find(|alloc| {
            let record = alloc.record();
            let holds = record
                .ports
                .iter()
                .any(|held| i64::from(held.value) == port.value);
            holds && !record.finished && record.job != of.key()
        });
        if let Some(holder) = holder {
            let (number, job) = (port.value, &holder.record().job);
            let of_whom = match *job.namespace == *of.namespace {
                true => format!("job {}", quote(&job.id)),
                false => "a job of another namespace".to_owned(),
            };
            reasons.push(format!("group {name}: {of_whom} holds port {number}"));
        }
    }
    reasons
}

/// The variables that a template cannot do without, and that are not there.
async fn missing_variables(
    api: &Api,
    reads: &Reads,
    template: &Template,
) -> Result<BTreeSet<String>, ApiError> {
    let options = Options {
        left: template.left_delim.clone(),
        right: template.right_delim.clone(),
        error_on_missing_key: template.err_missing_key,
        ..Options::default()
    };
    // What is no template was refused before.
    let Ok(parsed) = drover_template::Template::parse(&template.embedded_tmpl, options) else {
        return Ok(BTreeSet::new());
    };
    let mut answers = Answers::default();
    let mut wanted = BTreeSet::new();
    for _ in 0..ROUNDS {
        let (own, parsed_again) = (answers.clone(), parsed.clone());
        let rendered = tokio::task::spawn_blocking(move || parsed_again.render(&own)).await;
        // What fails here would fail on any node; what it says may hold a secret.
        let Ok(Ok(Rendering::Waiting { missing, .. })) = rendered else {
            return Ok(BTreeSet::new());
        };
        wanted = missing;
        let new: Vec<Need> = wanted
            .iter()
            .filter(|need| !answers.known.contains_key(need))
            .cloned()
            .collect();
        if new.is_empty() {
            break;
        }
        let reads = reads.clone();
        let known = api.agent_handle.ask(move |view| {
            let answer = |need: Need| {
                let answer = answer(view, &reads, &need)?;
                Some((need, answer))
            };
            new.into_iter()
                .filter_map(answer)
                .collect::<BTreeMap<_, _>>()
        });
        let known = known.await?;
        if known.is_empty() {
            break;
        }
        answers.known.extend(known);
    }
    let path = |need| match need {
        Need::Variable(path) => Some(path),
        _ => None,
    };
    Ok(wanted.into_iter().filter_map(path).collect())
}

/// What is known here; nothing of what only a task knows.
fn answer(view: View<'_>, reads: &Reads, need: &Need) -> Option<Answer> {
    match need {
        Need::Variable(named) => {
            let key = reads.find(named).ok();
            let found = key.and_then(|key| Some((view.variables().get(&key)?.clone(), key)));
            Some(match found {
                None => Answer::Absent,
                Some((variable, key)) => Answer::Variable(Variable {
                    meta: meta(&key),
                    items: variable.items.get().clone(),
                }),
            })
        }
        Need::Variables(prefix) => {
            let keys = reads.below(prefix).unwrap_or_default();
            let there = keys
                .iter()
                .filter(|key| view.variables().contains_key(*key));
            Some(Answer::Variables(there.map(meta).collect()))
        }
        Need::Service(_) | Need::ServiceChoice { .. } => Some(Answer::Instances(Vec::new())),
        Need::Services => Some(Answer::Services(Vec::new())),
        Need::Time => Some(Answer::Time(0)),
        Need::Env(_) | Need::File(_) => None,
    }
}

fn meta(key: &VariableKey) -> VariableMeta {
    VariableMeta {
        namespace: key.namespace.to_string(),
        path: key.path.to_string(),
        ..VariableMeta::default()
    }
}
