//! Versions of jobs: which are kept, what they were made from, and what goes back to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::requests::{Register, Request, RevertJob, SetStable};
use drover_core::agent::{Agent, View};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::Reply;
use drover_core::ids::{JobKey, RequestId};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::job::Job;
use drover_core::model::submission::Submission;
use drover_core::model::version::VersionTag;
use drover_core::store::record::JobRecord;

use super::limits::VERSIONS_OF_JOB;
use super::policy::says_the_same;
use super::{Checker, Property, Verdict};

/// What is remembered of versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    /// The jobs as they were when they were looked at last in this life of the agent.
    before: BTreeMap<JobKey, Arc<JobRecord>>,
    /// What a job is to be after this step.
    asked: Option<Asked>,
    /// Whether each registration that names an index, and is not answered yet, is to be refused.
    refused: BTreeMap<RequestId, bool>,
}

/// What somebody asks of a job in this step.
#[derive(Clone, Debug)]
struct Asked {
    key: JobKey,
    /// The latest version before.
    before: Option<Arc<JobRecord>>,
    /// What the job is to be.
    wanted: Arc<Job>,
    /// What a new version of it was made from.
    submission: Option<Arc<Submission>>,
    /// Whether it goes back.
    reverts: bool,
    /// Whether nothing comes of it: who asks saw another index.
    refused: bool,
}

impl Versions {
    pub(super) fn agent_died(&mut self) {
        *self = Versions::default();
    }

    /// Somebody is about to ask.
    pub(super) fn asked(&mut self, agent: &Agent, request: RequestId, asked: &Request) {
        let view = agent.view();
        self.asked = None;
        if view.shutdown().is_some() {
            return;
        }
        self.asked = match asked {
            Request::Register(Register {
                job,
                expect_index,
                submission,
            }) => {
                let before = view.job(&job.key()).cloned();
                let shown = before.as_ref().map_or(0, |one| one.job.job_modify_index);
                let refused = expect_index.is_some_and(|expected| expected != shown);
                if expect_index.is_some() {
                    self.refused.insert(request, refused);
                }
                Some(Asked {
                    key: job.key(),
                    before,
                    wanted: job.clone(),
                    submission: submission.clone(),
                    reverts: false,
                    refused,
                })
            }
            Request::RevertJob(asked) => reverted(view, asked),
            _ => None,
        };
    }
}

/// What comes of going back, unless that is refused.
fn reverted(view: View<'_>, asked: &RevertJob) -> Option<Asked> {
    let (key, version) = (&asked.job, asked.version);
    let before = view.job(key)?;
    let wanted = before.version(version)?;
    let latest = before.job.version;
    let is_latest = latest == version && !before.job.stop;
    let expected = asked
        .expect_version
        .is_none_or(|expected| expected == latest);
    (expected && !is_latest).then(|| Asked {
        key: key.clone(),
        before: Some(before.clone()),
        wanted: wanted.clone(),
        submission: view.submission(key, version).cloned(),
        reverts: true,
        refused: false,
    })
}

impl Checker {
    /// What was asked of a job in this step is its latest version, with the text that it was made from.
    pub(super) fn asked_version_is_latest(&mut self, agent: &Agent) -> Verdict {
        let Some(asked) = self.versions.asked.take() else {
            return Ok(());
        };
        let view = agent.view();
        if asked.refused {
            let before = asked.before.map(|before| before.job.version);
            let after = view.job(&asked.key).map(|after| after.job.version);
            let same = after.is_none() || before == after;
            return self.holds(Property::RegistrationChecksIndex, same, || {
                format!("{}: version {after:?} after {before:?}", asked.key)
            });
        }
        // It may have been forgotten at once, having been dead.
        let Some(after) = view.job(&asked.key) else {
            return Ok(());
        };
        let property = match asked.reverts {
            true => Property::RevertBringsVersionBack,
            false => Property::RegisteredJobIsLatest,
        };
        let same = says_the_same(&asked.wanted, &after.job) && !after.job.stop;
        let before = asked.before.as_ref().map(|before| before.job.version);
        let version = after.job.version;
        let next = before.map_or(0, |before| before + 1);
        self.holds(
            property,
            same && (before == Some(version) || version == next),
            || format!("{}: version {version} after {before:?}", asked.key),
        )?;
        if before == Some(version) {
            return Ok(());
        }
        self.sometimes(Property::SometimesJobIsReverted, asked.reverts);
        let kept = view.submission(&asked.key, version);
        self.holds(
            Property::VersionKeepsItsSubmission,
            kept == asked.submission.as_ref(),
            || format!("{} version {version}", asked.key),
        )
    }

    /// Who names an index is refused exactly if the job was shown with another one.
    pub(super) fn registration_checks_index(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        let Some(refused) = self.versions.refused.remove(&request) else {
            return Ok(());
        };
        let was = matches!(reply, Reply::Refused(_));
        self.sometimes(Property::SometimesRegistrationIsStale, was);
        self.holds(Property::RegistrationChecksIndex, refused == was, || {
            format!("{request:?} {reply:?}")
        })
    }

    /// Looks at the versions of all jobs.
    pub(super) fn versions(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        for job in view.jobs() {
            let key = job.job.key();
            let before = self.versions.before.insert(key, job.clone());
            if before.as_ref().is_some_and(|one| Arc::ptr_eq(one, job)) {
                continue;
            }
            // What became of no use since goes with the next version.
            if (before.as_ref()).is_some_and(|one| one.job.version != job.job.version) {
                self.job_versions_are_bounded(view, job)?;
            }
            let before = before.filter(|one| one.job.create_index == job.job.create_index);
            if let Some(before) = before {
                self.needed_version_is_kept(view, &before, job)?;
                self.stable_version_proved_itself(view, &before, job)?;
                self.version_keeps_its_name(&before, job)?;
            }
        }
        let submissions = view.submissions();
        for (key, version) in submissions.keys() {
            let known = view.job(key).and_then(|job| job.version(*version));
            self.holds(Property::VersionKeepsItsSubmission, known.is_some(), || {
                format!("{key} version {version} is not kept, its text is")
            })?;
        }
        Ok(())
    }

    /// A version has its name until somebody gives it or another version another one.
    fn version_keeps_its_name(&mut self, before: &JobRecord, job: &JobRecord) -> Verdict {
        let key = job.job.key();
        let renamed = self.replies.any(|asked| match asked {
            Request::TagVersion(asked) => asked.job == key,
            Request::UntagVersion(asked) => asked.job == key,
            _ => false,
        });
        let kept = |(version, tag): (&u64, &Arc<VersionTag>)| {
            job.tags.get(version).is_some_and(|it| it.name == tag.name)
        };
        let lost = before.tags.iter().find(|one| !renamed && !kept(*one));
        let lost = lost.map(|(version, tag)| (*version, tag.name.clone()));
        self.holds(Property::VersionKeepsItsName, lost.is_none(), || {
            format!("{key} has lost {lost:?}")
        })
    }

    /// Whether somebody said in this life of the agent how stable a version is.
    fn stability_was_asked(&self, key: &JobKey, number: u64) -> bool {
        self.replies.any(|asked| {
            let Request::SetStable(SetStable { job, version, .. }) = asked else {
                return false;
            };
            job == key && *version == number
        })
    }

    /// With a new version, a job keeps a bounded number besides those that are tagged, stable or in use, each once and in
    /// order; each tag is of one of them.
    fn job_versions_are_bounded(&mut self, view: View<'_>, job: &JobRecord) -> Verdict {
        let key = job.job.key();
        let used = used(view, &key);
        let plain = job.newest_first().filter(|one| {
            !job.tags.contains_key(&one.version) && !used.contains(&one.version) && !one.stable
        });
        let plain = plain.count();
        let numbers: Vec<u64> = job.newest_first().map(|one| one.version).collect();
        let ordered = numbers.is_sorted_by(|newer, older| newer > older);
        let tags = job.tags.keys().all(|version| numbers.contains(version));
        let mut names: Vec<&str> = job.tags.values().map(|tag| &*tag.name).collect();
        names.sort_unstable();
        names.dedup();
        let holds = ordered && tags && names.len() == job.tags.len() && plain <= VERSIONS_OF_JOB;
        self.holds(Property::JobVersionsAreBounded, holds, || {
            format!("{key}: versions {numbers:?}, tags {:?}", job.tags)
        })
    }

    /// A version is dropped only if it has no tag, nothing runs it, it is not the last stable one, and as many
    /// newer ones without a tag are kept as people may go back to.
    fn needed_version_is_kept(
        &mut self,
        view: View<'_>,
        before: &JobRecord,
        job: &JobRecord,
    ) -> Verdict {
        let key = job.job.key();
        let used = used(view, &key);
        let stable = before
            .newest_first()
            .find(|one| one.stable && job.job.version > one.version);
        let dropped = before
            .newest_first()
            .filter(|one| job.version(one.version).is_none());
        for one in dropped {
            let number = one.version;
            let newer = job
                .newest_first()
                .filter(|other| other.version > number && !job.tags.contains_key(&other.version));
            let last_stable = stable.is_some_and(|stable| stable.version == number)
                && !job.newest_first().any(|other| other.stable)
                && !self.stability_was_asked(&key, number);
            let holds = newer.count() >= VERSIONS_OF_JOB
                && !job.tags.contains_key(&number)
                && !used.contains(&number)
                && !last_stable;
            self.holds(Property::NeededVersionIsKept, holds, || {
                format!("{key} version {number} is dropped, {:?} are kept", {
                    job.newest_first()
                        .map(|one| one.version)
                        .collect::<Vec<_>>()
                })
            })?;
        }
        Ok(())
    }

    /// A version is stable exactly since its deployment succeeded, or as somebody said.
    fn stable_version_proved_itself(
        &mut self,
        view: View<'_>,
        before: &JobRecord,
        job: &JobRecord,
    ) -> Verdict {
        let key = job.job.key();
        for one in job.newest_first() {
            let was = before.version(one.version).is_some_and(|one| one.stable);
            if was == one.stable || self.stability_was_asked(&key, one.version) {
                continue;
            }
            let mut of_version = view
                .deployments()
                .filter(|other| other.job == key && other.job_version == one.version);
            let proved = of_version.any(|one| one.status == DeploymentStatus::Successful);
            self.holds(
                Property::StableVersionProvedItself,
                one.stable && proved,
                || format!("{key} version {} stable {}", one.version, one.stable),
            )?;
        }
        Ok(())
    }
}

/// The versions that allocations of a job run.
fn used(view: View<'_>, key: &JobKey) -> Vec<u64> {
    let allocs = view.allocs_of(key).map(AllocRunner::record);
    allocs.map(|alloc| alloc.job_version).collect()
}
