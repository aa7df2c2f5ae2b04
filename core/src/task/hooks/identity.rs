//! `identity`: tokens by which the task proves who it is, made before each start. When they are made
//! anew is said in `task/identities.rs`.

use std::sync::Arc;

use super::TaskHook;
use crate::cx::Cx;
use crate::driver::isolation::account;
use crate::hooks::HookStart;
use crate::input::HookOutput;
use crate::model::identity;
use crate::model::task::Task;
use crate::op::{Failure, Op};
use crate::paths::task_path::TaskPath;
use crate::task::runner::{Scope, TaskRunner};
use crate::task::spec::TaskSpec;
use crate::work::{IdentityWork, Issuing};

/// The hook.
pub struct Identity;

impl Identity {
    /// The name that others know it by.
    pub const NAME: &'static str = "identity";
}

impl TaskHook for Identity {
    fn name(&self) -> &'static str {
        Identity::NAME
    }

    /// Nothing is awaited any more of an earlier run.
    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        if task.signs_later(cx) {
            return HookStart::Waiting;
        }
        task.end_renewal(cx);
        match issuing(task.spec(), |_| true) {
            Ok(None) => HookStart::Done,
            Ok(Some(work)) => task.issue(cx, work),
            Err(why) => HookStart::Failed(Failure::fatal(why)),
        }
    }

    fn done(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _op: Op, _answer: &HookOutput) {
        task.identities_issued(cx);
    }

    fn is_outdated(&self, before: &Task, now: &Task) -> bool {
        of_another_time(before, now).next().is_some()
    }

    /// A token that shall be good for another time is made anew at once.
    fn update(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, before: &Task) {
        let now = task.spec().task();
        let names = of_another_time(before, now).map(|one| one.name().to_owned());
        task.identities_are_outdated(cx, names.collect());
    }
}

/// The identities of which a new version has tokens that are good for another time.
fn of_another_time<'a>(
    before: &'a Task,
    now: &'a Task,
) -> impl Iterator<Item = &'a identity::Identity> {
    let same = |one: &&identity::Identity| {
        let mut all = wanted(before);
        all.any(|before| before.name() == one.name() && before.ttl == one.ttl)
    };
    wanted(now).filter(move |one| !same(one))
}

/// The identities of which a task has tokens.
pub(crate) fn wanted(task: &Task) -> impl Iterator<Item = &identity::Identity> {
    let all = task.identity.iter().chain(&task.identities);
    all.filter(|identity| identity.is_wanted())
}

/// What is asked of whoever makes the tokens of these identities; none if there are none.
///
/// # Errors
/// The file of one is none of the task's own.
pub(crate) fn issuing(
    spec: &TaskSpec,
    of: impl Fn(&str) -> bool,
) -> Result<Option<Arc<Issuing>>, String> {
    let (job, task) = (spec.job(), spec.task());
    let wanted = wanted(task).filter(|one| of(one.name()));
    let identities = wanted.map(|one| work(one, &task.name));
    let identities = identities.collect::<Result<Vec<_>, String>>()?;
    if identities.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Issuing {
        authority: spec.authority,
        region: job.region.clone(),
        namespace: job.namespace.clone(),
        job: job.known_as().to_owned(),
        group: spec.group().name.clone(),
        user: account(task).to_owned(),
        identities,
    })))
}

/// What is made for an identity of the task of this name.
///
/// # Errors
/// Its file is none of the task's own.
fn work(identity: &identity::Identity, task: &str) -> Result<IdentityWork, String> {
    let file = identity
        .file
        .then(|| TaskPath::of_identity(identity, task))
        .transpose()?;
    Ok(IdentityWork {
        name: identity.name().to_owned(),
        audience: identity.audience.clone(),
        ttl: identity.ttl,
        file,
        variable: identity.env.then(|| identity.variable()),
    })
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
