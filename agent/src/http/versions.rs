//! The versions of a job: what they are, how they differ, what they were made from, what they are called, and
//! going back to one.

use std::sync::Arc;

use axum::extract::Request;
use drover_core::agent::requests::{RevertJob, SetStable, TagVersion, UntagVersion};
use drover_core::effect::Reply;
use drover_core::ids::JobKey;
use drover_core::model::job::Job;
use drover_core::model::submission::{MAX_BYTES, Submission};
use drover_core::model::version::MAX_DESCRIPTION;
use drover_core::store::record::JobRecord;
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{JobDiff, SubmissionDto, Tagged, Versions, full_job, register_answer};
use super::errors::ApiError;
use super::params::Params;
use super::{Api, body, diff, jobs};

/// With which other version each version is compared.
enum Against {
    Nothing,
    TheOneBefore,
    Version(u64),
    Tag(String),
}

impl Against {
    fn of(params: &Params) -> Result<Against, ApiError> {
        if let Some(number) = params.non_empty("diff_version") {
            let number = number.parse().map_err(|_| {
                ApiError::bad("Unable to parse diff_version parameter: it is no version's number")
            })?;
            return Ok(Against::Version(number));
        }
        if let Some(tag) = params.non_empty("diff_tag") {
            return Ok(Against::Tag(tag.to_owned()));
        }
        Ok(match params.flag("diffs") {
            true => Against::TheOneBefore,
            false => Against::Nothing,
        })
    }
}

pub(super) async fn list(api: &Api, params: &Params, key: JobKey) -> Answer {
    let against = Against::of(params)?;
    let wanted = key.clone();
    let seen = blocking_query(api, params, move |view| match view.job(&wanted) {
        None => Indexed::whole(view, None),
        Some(record) => Indexed {
            index: record.job.modify_index,
            value: Some((record.clone(), view.job_status(&wanted).as_str())),
        },
    })
    .await?;
    let Some((record, status)) = seen.value else {
        return Err(ApiError::not_found("job versions not found").at(seen.index));
    };
    let versions = record.newest_first();
    let versions = versions.map(|job| full_job(job, status, record.tags.get(&job.version)));
    let versions = Versions {
        versions: versions.collect(),
        diffs: diffs(&record, &against)?,
        index: seen.index,
        known_leader: true,
        ..Versions::default()
    };
    answer::read(params, seen.index, &versions)
}

/// Each version against another, the latest first. Whoever has nothing to be compared with is left out.
fn diffs(record: &JobRecord, against: &Against) -> Result<Option<Vec<JobDiff>>, ApiError> {
    let all: Vec<&Arc<Job>> = record.newest_first().collect();
    let number = match against {
        Against::Nothing => return Ok(None),
        Against::TheOneBefore => {
            let pairs = all.windows(2).filter_map(|pair| match pair {
                [new, old] => Some(diff::job(Some(old), new)),
                _ => None,
            });
            return Ok(Some(pairs.collect()).filter(|diffs: &Vec<_>| !diffs.is_empty()));
        }
        Against::Version(number) => Some(*number),
        Against::Tag(tag) => record.tagged(tag),
    };
    let base = number.and_then(|number| record.version(number));
    let Some(base) = base else {
        return Err(ApiError::failed(match against {
            Against::Tag(tag) => format!("tag {tag:?} not found"),
            _ => format!("version {} not found", number.unwrap_or_default()),
        }));
    };
    let others = all.iter().filter(|job| job.version != base.version);
    Ok(Some(others.map(|job| diff::job(Some(base), job)).collect()))
}

/// The body of a request to go back.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RevertBody {
    #[serde(rename = "JobID")]
    job_id: String,
    job_version: u64,
    enforce_prior_version: Option<u64>,
}

pub(super) async fn revert(api: &Api, params: &Params, job: JobKey, request: Request) -> Answer {
    let asked: RevertBody = body::decode(request).await?;
    same_job(&asked.job_id, &job)?;
    let (known, wanted) = (job.clone(), asked.job_version);
    let version = api.agent_handle.ask(move |view| {
        let record = view.job(&known)?;
        record.version(wanted).cloned()
    });
    // What it mounts may be more than whoever asks may mount.
    if let Some(version) = version.await? {
        jobs::check_rights(&params.principal, &version)?;
        let allowed = jobs::allowed(api, version).await?;
        allowed.map_err(|refused| ApiError::bad(refused.list()))?;
    }
    let asked = RevertJob {
        job,
        version: asked.job_version,
        expect_version: asked.enforce_prior_version,
    };
    match api.agent_handle.request(asked).await? {
        Reply::Registered {
            eval,
            index,
            job_index,
            ..
        } => {
            let eval = eval.map(|id| id.to_string()).unwrap_or_default();
            let answer = register_answer(eval, index, job_index, String::new());
            answer::written(params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

/// The body of a request to mark a version.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct StableBody {
    #[serde(rename = "JobID")]
    job_id: String,
    job_version: u64,
    stable: bool,
}

pub(super) async fn stable(api: &Api, params: &Params, job: JobKey, request: Request) -> Answer {
    let asked: StableBody = body::decode(request).await?;
    same_job(&asked.job_id, &job)?;
    let asked = SetStable {
        job,
        version: asked.job_version,
        stable: asked.stable,
    };
    match api.agent_handle.request(asked).await? {
        Reply::Done { index } => answer::written(params, index, &json!({ "Index": index })),
        other => Err(ApiError::unexpected(other)),
    }
}

fn same_job(named: &str, job: &JobKey) -> Result<(), ApiError> {
    match named.is_empty() || *named == *job.id {
        true => Ok(()),
        false => Err(ApiError::bad("Job ID does not match")),
    }
}

/// The body of a request to name a version.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct TagBody {
    version: u64,
    latest: bool,
    description: String,
}

pub(super) async fn tag(
    api: &Api,
    params: &Params,
    job: JobKey,
    name: &str,
    request: Request,
) -> Answer {
    let asked: TagBody = body::decode(request).await?;
    if asked.description.len() > MAX_DESCRIPTION {
        return Err(ApiError::bad(format!(
            "the description of a tag has at most {MAX_DESCRIPTION} bytes"
        )));
    }
    let wanted = (job.clone(), name.to_owned());
    let asked = TagVersion {
        job,
        version: (!asked.latest).then_some(asked.version),
        name: name.into(),
        description: asked.description.into(),
    };
    let index = done(api.agent_handle.request(asked).await?)?;
    let tag = api.agent_handle.ask(move |view| {
        let record = view.job(&wanted.0)?;
        let version = record.tagged(&wanted.1)?;
        record.tags.get(&version).cloned()
    });
    let tag = tag.await?.unwrap_or_default();
    let tagged = Tagged {
        index,
        ..Tagged::of(&tag)
    };
    answer::written(params, index, &tagged)
}

pub(super) async fn untag(api: &Api, params: &Params, job: JobKey, name: &str) -> Answer {
    let name = name.into();
    let reply = api.agent_handle.request(UntagVersion { job, name });
    let index = done(reply.await?)?;
    let tagged = Tagged {
        index,
        ..Tagged::default()
    };
    answer::written(params, index, &tagged)
}

fn done(reply: Reply) -> Result<u64, ApiError> {
    match reply {
        Reply::Done { index } => Ok(index),
        other => Err(ApiError::unexpected(other)),
    }
}

pub(super) async fn submission(api: &Api, params: &Params, key: JobKey) -> Answer {
    let version = params.non_empty("version").unwrap_or_default().parse();
    let version: u64 =
        version.map_err(|_| ApiError::bad("Unable to parse job submission version parameter"))?;
    let wanted = key.clone();
    let seen = blocking_query(api, params, move |view| {
        let job = view.job(&wanted).and_then(|record| record.version(version));
        let text = view.submission(&wanted, version).cloned();
        let found = job.map(|job| job.job_modify_index).zip(text);
        Indexed {
            index: found.as_ref().map_or(view.index(), |(index, _)| *index),
            value: found,
        }
    })
    .await?;
    let Some((index, text)) = seen.value else {
        return Err(ApiError::not_found("job source not found").at(seen.index));
    };
    let mut shape = serde_json::to_value(SubmissionDto::of(&text)).unwrap_or_default();
    if let Some(fields) = shape.as_object_mut() {
        fields.insert("Namespace".to_owned(), json!(key.namespace));
        fields.insert("JobID".to_owned(), json!(key.id));
        fields.insert("Version".to_owned(), json!(version));
        fields.insert("JobModifyIndex".to_owned(), json!(index));
    }
    answer::read(params, seen.index, &shape)
}

/// What a job was made from, as far as that is kept; and what to tell of it if it is not.
pub(super) fn handed_in(given: Option<SubmissionDto>) -> (Option<Arc<Submission>>, Option<String>) {
    let Some(given) = given.filter(|given| !given.source.is_empty()) else {
        return (None, None);
    };
    let submission = given.into_submission();
    let bytes = submission.bytes();
    if bytes > MAX_BYTES {
        let words = format!(
            "the text of the job file is not kept: it has {bytes} bytes with its variables, and \
             at most {MAX_BYTES} are kept"
        );
        return (None, Some(words));
    }
    (Some(Arc::new(submission)), None)
}
