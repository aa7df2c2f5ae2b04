//! `job dispatch`: a job is made of a parameterized one.
//!
//! A parameterized job (`Job::is_parameterized`) wants no copies; everything else follows from
//! that. A dispatch makes a child of it, in the same way as a job is registered, with an id of its
//! own and with its parent's id, the meta and the payload in its record. From then on it is a job
//! like any other, and its parent may be removed. The random part of its id comes with the request,
//! and the second in it from the clock.
//!
//! The API checks the payload's size (`agent/src/http/dispatch.rs`); the core only asks whether
//! there is one, so that a recording without the payload plays the same.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, NewWork, OperatorRequest, Subject, conflict};
use crate::agent::Agent;
use crate::effect::{Refusal, Reply};
use crate::ids::JobKey;
use crate::model::dispatch::{self, Dispatch, child_id};
use crate::model::job::Job;
use crate::model::names::identifier;
use crate::store::record::JobRecord;
use crate::time::Now;

/// The most children of one job, those that are over included.
pub const MAX_CHILDREN: usize = 10_000;

/// Make a job of this parameterized one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DispatchJob {
    /// Which.
    pub job: JobKey,
    /// With what.
    pub dispatch: Arc<Dispatch>,
}

impl OperatorRequest for DispatchJob {
    fn name(&self) -> &'static str {
        "dispatch"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn registers(&self) -> bool {
        true
    }

    /// Its job is here, for others to dispatch it.
    fn new_work(&self) -> NewWork<'_> {
        NewWork::None
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        Some(asked.agent.dispatch(asked.now, &self.job, &self.dispatch))
    }
}

impl Agent {
    fn dispatch(&mut self, now: Now, key: &JobKey, asked: &Dispatch) -> Reply {
        let Some(parent) = self.local.jobs.get(key).cloned() else {
            let why = "parameterized job not found".to_owned();
            return Reply::Refused(Refusal::NotFound(why));
        };
        if let Err(why) = may_be_dispatched(&parent.job, asked) {
            return conflict(&why);
        }
        let children = self.children(key);
        let again = |child: &&Arc<JobRecord>| {
            child.job.dispatch_idempotency_token == asked.token && !child.purge
        };
        let known = children
            .iter()
            .find(again)
            .filter(|_| !asked.token.is_empty());
        if let Some(child) = known {
            return self.made_before(&child.job);
        }
        if children.len() >= MAX_CHILDREN {
            let why = format!("the job has {MAX_CHILDREN} dispatched jobs: let some end first");
            return conflict(&why);
        }
        let id = match self.free_id(now, key, asked) {
            Ok(id) => id,
            Err(why) => return Reply::Refused(Refusal::Invalid(why)),
        };
        let child = Arc::new(child_of(&parent.job, id, asked));
        self.register(now, &child, None);
        self.made(&child)
    }

    /// The answer to who made a job of another.
    pub(super) fn made(&self, child: &Job) -> Reply {
        let job = child.key();
        let eval = self.local.latest_eval(&job);
        let known = self.local.jobs.get(&job);
        Reply::Dispatched {
            eval: eval.map(|eval| eval.id),
            index: eval.map_or(self.shared.index, |eval| eval.create_index),
            job_index: known.map_or(0, |known| known.job.create_index),
            job,
        }
    }

    /// The answer to who wants a job that is there already: nothing is evaluated for them.
    fn made_before(&self, child: &Job) -> Reply {
        let job = child.key();
        Reply::Dispatched {
            eval: None,
            index: self.shared.index,
            job_index: child.create_index,
            job,
        }
    }

    /// An id that no job bears.
    fn free_id(&self, now: Now, parent: &JobKey, asked: &Dispatch) -> Result<String, String> {
        let seconds = now.wall.0.div_euclid(1_000_000_000);
        let mut tag = asked.tag;
        loop {
            let id = child_id(&parent.id, &asked.prefix, seconds, tag);
            identifier(&id).map_err(|why| format!("the id of the dispatched job {why}"))?;
            let key = JobKey {
                namespace: parent.namespace.clone(),
                id: id.as_str().into(),
            };
            if !self.local.jobs.contains_key(&key) {
                return Ok(id);
            }
            tag = tag.wrapping_add(1);
        }
    }
}

fn may_be_dispatched(parent: &Job, asked: &Dispatch) -> Result<(), String> {
    let id = &parent.id;
    let rules = parent.parameterized_job.as_ref();
    let Some(rules) = rules.filter(|_| parent.is_parameterized()) else {
        return Err(format!("Specified job \"{id}\" is not a parameterized job"));
    };
    if parent.stop {
        return Err(format!("Specified job \"{id}\" is stopped"));
    }
    let fits = |priority: &i64| (1..=100).contains(priority);
    if let Some(priority) = asked.priority.filter(|priority| !fits(priority)) {
        return Err(format!("the priority must be from 1 to 100, is {priority}"));
    }
    dispatch::fits(rules, asked)
}

fn child_of(parent: &Job, id: String, asked: &Dispatch) -> Job {
    let mut child = parent.clone();
    child.name.clone_from(&id);
    child.id = id;
    child.parent_id.clone_from(&parent.id);
    child.dispatched = true;
    child.payload = asked.payload.clone();
    child.dispatch_idempotency_token.clone_from(&asked.token);
    child.priority = asked.priority.unwrap_or(parent.priority);
    let meta = asked.meta.iter();
    child
        .meta
        .extend(meta.map(|(key, value)| (key.clone(), value.clone())));
    (child.version, child.stable) = (0, false);
    child
}
