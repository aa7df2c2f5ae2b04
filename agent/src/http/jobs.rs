//! All jobs: listing, submitting, parsing, validating.

use axum::extract::{Request, State};
use drover_core::agent::requests::{self, Register, TakeOver};
use drover_core::effect::Reply;
use drover_core::model::job::Job;
use drover_core::model::node::DriverInfo;
use drover_core::model::remote::{RemotePrevious, Takeover};
use drover_core::text::quote;
use drover_io_real::migrate::Nodes;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::{Principal, require};
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{JobStub, SubmissionDto, TakeoverAlloc, Validated, register_answer};
use super::errors::ApiError;
use super::list;
use super::params::Params;
use super::records::JobRecords;
use super::{Api, body, dispatch, suitability, versions};
use crate::acl::{Capability, HostVolumeCapability};
use crate::admission::{self, Admitted, FileOptions, Preserve, Refused};

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    list_of(&api, params, |_| true).await
}

/// Those jobs that `wanted` takes.
pub(super) async fn list_of(
    api: &Api,
    params: Params,
    wanted: impl Fn(&Job) -> bool + Send + Sync + Clone + 'static,
) -> Answer {
    let asked = params.clone();
    let seen = blocking_query(api, &params, move |view| {
        let wanted = view.jobs().filter(|record| {
            let job = &record.job;
            asked.includes(&job.namespace, Capability::ListJobs)
                && job.id.starts_with(asked.prefix())
                && wanted(job)
        });
        let jobs = wanted.map(|record| JobRecords::of(view, record));
        Indexed::whole(view, jobs.collect::<Vec<_>>())
    })
    .await?;
    let with_meta = params.flag("meta");
    list::list(
        params,
        seen,
        |job| format!("{}.{}", job.record.job.namespace, job.record.job.id),
        move |job| JobStub::of(job, with_meta),
    )
    .await
}

/// The body of a submission.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Submission {
    job: Option<Value>,
    enforce_index: bool,
    job_modify_index: u64,
    preserve_counts: bool,
    preserve_resources: bool,
    eval_priority: i64,
    /// What the job was made from.
    submission: Option<SubmissionDto>,
    /// What the job's copies replace on another node: an extension of our own.
    take_over: Vec<TakeoverAlloc>,
    /// Whether it is also asked if this node can run the job: an extension of our own.
    check_node: bool,
}

impl Submission {
    fn job(self) -> Result<Job, ApiError> {
        let job = self
            .job
            .ok_or_else(|| ApiError::bad("Job must be specified"))?;
        decode(job)
    }
}

/// Reads a job of a request.
pub(super) fn decode(job: Value) -> Result<Job, ApiError> {
    admission::job_of(job).map_err(|refused| ApiError::bad(refused.0.join("\n")))
}

pub(super) async fn register(State(api): State<Api>, params: Params, request: Request) -> Answer {
    submit(&api, &params, None, request).await
}

/// Takes a job in. `expect` is the id in the path, if there is one.
pub(super) async fn submit(
    api: &Api,
    params: &Params,
    expect: Option<&str>,
    request: Request,
) -> Answer {
    let mut submission: Submission = body::decode(request).await?;
    let (text, not_kept) = versions::handed_in(submission.submission.take());
    let expect_index = submission
        .enforce_index
        .then_some(submission.job_modify_index);
    let from = taken_over(api, &submission.take_over)?;
    evaluated_with(submission.eval_priority)?;
    let preserve = Preserve {
        counts: submission.preserve_counts,
        resources: submission.preserve_resources,
    };
    let job = submission.job()?;
    if job.id.is_empty() {
        return Err(ApiError::bad("Job ID hasn't been provided"));
    }
    if expect.is_some_and(|id| id != job.id) {
        return Err(ApiError::bad("Job ID does not match name"));
    }
    if from.is_empty() && !job.payload.is_empty() {
        return Err(ApiError::failed(
            "a payload comes with a dispatch, not with a job",
        ));
    }
    dispatch::check_payload(&job.payload)?;
    let mut admitted = admit(api, params, job, preserve).await?;
    admitted.warnings.extend(not_kept);
    let warnings = admitted.warning_text();
    let job = Arc::new(admitted.job);
    let input = if from.is_empty() {
        requests::Request::from(Register {
            job,
            expect_index,
            submission: text,
        })
    } else {
        TakeOver { job, from }.into()
    };
    match api.agent_handle.request(input).await? {
        Reply::Registered {
            eval,
            index,
            job_index,
            ..
        } => {
            let eval = eval.map(|id| id.to_string()).unwrap_or_default();
            let answer = register_answer(eval, index, job_index, warnings);
            answer::written(params, index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

/// Fills in what a job leaves open, and checks that it can be run here.
///
/// # Errors
/// Every reason why it cannot.
pub(super) async fn admit(
    api: &Api,
    params: &Params,
    mut job: Job,
    preserve: Preserve,
) -> Result<Admitted, ApiError> {
    let elsewhere = !matches!(job.namespace.as_str(), "" | "default");
    let asked = params.non_empty("namespace").filter(|name| *name != "*");
    if let Some(namespace) = asked.filter(|_| !elsewhere) {
        namespace.clone_into(&mut job.namespace);
    }
    let mut job = admission::canonical(job);
    check_rights(&params.principal, &job)?;
    let pool = keep_of_running(api, &mut job, preserve).await?;
    home(api, &job, &pool)
        .await?
        .map_err(|refused| ApiError::failed(refused.0.join("\n")))?;
    let consul = api.settings.client.consul_services;
    let admitted = admission::admit_for(job, consul);
    let admitted = admitted.map_err(|refused| ApiError::failed(refused.list()))?;
    let job = Arc::new(admitted.job.clone());
    match allowed(api, job).await? {
        Ok(()) => Ok(admitted),
        Err(refused) => Err(ApiError::bad(refused.list())),
    }
}

/// Whether the agent's configuration lets tasks of a canonical job ask for what they ask for. A node of a cluster is
/// asked by nobody, and says it when they start.
pub(super) async fn allowed(api: &Api, job: Arc<Job>) -> Result<Result<(), Refused>, ApiError> {
    if api.settings.status_servers.is_some() {
        return Ok(Ok(()));
    }
    let settings = api.settings.clone();
    let problems = tokio::task::spawn_blocking(move || settings.drivers.problems(&job));
    let problems = problems
        .await
        .map_err(|_| ApiError::failed("what the job asks for cannot be checked"))?;
    Ok(match problems.as_slice() {
        [] => Ok(()),
        problems => Err(Refused(problems.iter().map(ToString::to_string).collect())),
    })
}

/// How many copies of a group are asked for by the names of their own volumes.
const MOST_COPIES: u32 = 10_000;

/// Whether somebody may run a job: in its namespace, with its volumes.
pub(super) fn check_rights(principal: &Principal, job: &Job) -> Result<(), ApiError> {
    principal.require(&job.namespace, Capability::SubmitJob)?;
    check_volumes(principal, job)
}

/// Whether somebody may mount the host volumes of a job.
pub(super) fn check_volumes(principal: &Principal, job: &Job) -> Result<(), ApiError> {
    for group in &job.task_groups {
        let copies = u32::try_from(group.wanted()).unwrap_or(0);
        for volume in group.volumes.values().filter(|it| it.kind == "host") {
            let wanted = match volume.read_only {
                true => HostVolumeCapability::MountReadonly,
                false => HostVolumeCapability::MountReadwrite,
            };
            let may = |source: &str| principal.rights().may_host_volume(source, wanted);
            let copies = if volume.per_alloc {
                copies.min(MOST_COPIES)
            } else {
                0
            };
            let mut each = (0..copies).map(|copy| volume.source_for(copy));
            require(may(&volume.source) && each.all(|source| may(&source)))?;
        }
    }
    Ok(())
}

/// Whether the namespace and the pool are there that a job is to run in, and the namespace lets it use what it uses.
/// Registering it asks the same once more.
async fn home(api: &Api, job: &Job, pool: &str) -> Result<Result<(), Refused>, ApiError> {
    let asked = job.clone();
    let namespace = api
        .agent_handle
        .ask(move |view| view.check_home(&asked))
        .await?;
    Ok(namespace
        .map_err(Refused::one)
        .and_then(|()| admission::check_pool(job, pool)))
}

/// Refuses a priority of an evaluation: jobs are planned together, by priorities of their own, so that it
/// would change nothing and whoever sets it expects that it does.
pub(super) fn evaluated_with(priority: i64) -> Result<(), ApiError> {
    match priority {
        0 => Ok(()),
        _ => Err(ApiError::bad(format!(
            "EvalPriority {priority} is not supported: jobs are planned by their own priority, so set \
             that (priority in the job file) and leave EvalPriority out"
        ))),
    }
}

/// Takes over what the job is to keep of its version that runs. The node's pool.
async fn keep_of_running(api: &Api, job: &mut Job, preserve: Preserve) -> Result<String, ApiError> {
    let key = job.key();
    let asked = api.agent_handle.ask(move |view| {
        let running = view.job(&key).map(|record| record.job.clone());
        (
            running.filter(|_| preserve != Preserve::default()),
            view.node().pool.clone(),
        )
    });
    let (running, pool) = asked.await?;
    if let Some(running) = running {
        preserve.apply(job, &running);
    }
    Ok(pool)
}

/// The most allocations that one job takes over.
const MAX_TAKEN_OVER: usize = 10_000;
/// The longest address or token, in bytes.
const MAX_WORD: usize = 300;

fn taken_over(api: &Api, takeover: &[TakeoverAlloc]) -> Result<Vec<Takeover>, ApiError> {
    if takeover.len() > MAX_TAKEN_OVER {
        let words = format!("more than {MAX_TAKEN_OVER} allocations to take over");
        return Err(ApiError::bad(words));
    }
    let nodes = &api.settings.nodes;
    let each = takeover.iter().map(|one| one_taken_over(nodes, one));
    each.collect()
}

fn one_taken_over(nodes: &Nodes, takeover: &TakeoverAlloc) -> Result<Takeover, ApiError> {
    let bad = |why: &str| ApiError::bad(format!("TakeOver of allocation {:?}: {why}", takeover.id));
    let alloc = takeover.id.parse().map_err(|_| bad("the ID is no UUID"))?;
    if takeover.address.len() > MAX_WORD {
        return Err(bad("the Address is too long"));
    }
    let taken = nodes.takes(&takeover.address);
    taken.map_err(|why| bad(&format!("the Address cannot be used: {why}")))?;
    let readable = takeover.token.bytes().all(|byte| byte.is_ascii_graphic());
    if !readable || takeover.token.len() > MAX_WORD {
        return Err(bad("the Token is none"));
    }
    Ok(Takeover {
        group: takeover.group.as_str().into(),
        index: takeover.index,
        from: RemotePrevious {
            alloc,
            address: takeover.address.as_str().into(),
            token: takeover.token.as_str().into(),
            ended: false,
            of_servers: false,
        },
    })
}

/// The body of a request to parse.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ParseRequest {
    #[serde(rename = "JobHCL")]
    job_hcl: String,
    #[serde(rename = "Canonicalize")]
    canonicalize: bool,
    #[serde(rename = "Variables")]
    variables: String,
}

pub(super) async fn parse(params: Params, request: Request) -> Answer {
    let asked: ParseRequest = body::decode(request).await?;
    if asked.job_hcl.is_empty() {
        return Err(ApiError::bad("Job spec is empty"));
    }
    let mut options = FileOptions::default();
    if !asked.variables.is_empty() {
        options
            .var_files
            .push(("variables".to_owned(), asked.variables));
    }
    let text = asked.job_hcl;
    // A hostile file costs its own request some time, and nobody else's.
    let read =
        tokio::task::spawn_blocking(move || admission::read_file(&text, "input.hcl", &options));
    let read = read
        .await
        .map_err(|_| ApiError::failed("the job file cannot be read"))?;
    let failed = |refused: admission::Refused| {
        ApiError::bad(format!("Failed to parse job: {}", refused.0.join("\n")))
    };
    let job = read.map_err(failed)?.job;
    let job = if asked.canonicalize {
        admission::canonical(job)
    } else {
        job
    };
    answer::json(&params, &job)
}

/// What to tell of a job's drivers that this node does not have, or that do not work.
pub(super) fn missing_drivers(job: &Job, drivers: &BTreeMap<String, DriverInfo>) -> Vec<String> {
    let works = |name: &str| drivers.get(name).is_some_and(|driver| driver.healthy);
    let mut there: Vec<&str> = drivers.keys().map(String::as_str).collect();
    there.retain(|name| works(name));
    there.truncate(MOST_DRIVERS);
    let there = match there.as_slice() {
        [] => "none yet".to_owned(),
        names => names.join(", "),
    };
    let tasks = job.task_groups.iter().flat_map(|group| {
        let group_name = &group.name;
        group.tasks.iter().map(move |task| (group_name, task))
    });
    let missing = tasks.filter(|(_, task)| !works(&task.driver));
    let failures = missing.map(|(group, task)| {
        let (group, name, driver) = (quote(group), quote(&task.name), quote(&task.driver));
        let why = match drivers.get(&task.driver) {
            Some(_) => "does not work on this node now",
            None => "is not on this node",
        };
        format!("group[{group}].task[{name}].driver: {driver} {why}; drivers there: {there}")
    });
    failures.take(MOST_DRIVERS).collect()
}

/// The most drivers that are told of.
const MOST_DRIVERS: usize = 20;

pub(super) async fn validate(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let submission: Submission = body::decode(request).await?;
    let check_node = submission.check_node;
    let from = taken_over(&api, &submission.take_over)?;
    let job = admission::canonical(submission.job()?);
    // Whether it would run here depends on what variables hold, and asking others is what running it does.
    let needs = match check_node || !from.is_empty() {
        true => Capability::SubmitJob,
        false => Capability::ReadJob,
    };
    params.principal.require(&job.namespace, needs)?;
    let known = api
        .agent_handle
        .ask(|view| (view.node().pool.clone(), view.node().drivers.clone()));
    let (pool, drivers) = known.await?;
    let consul = api.settings.client.consul_services;
    let admitted = home(&api, &job, &pool)
        .await?
        .and_then(|()| admission::admit_for(job, consul));
    let mut reasons = match &admitted {
        Ok(admitted) if check_node => suitability::reasons(&api, &admitted.job).await?,
        Ok(_) | Err(_) => Vec::new(),
    };
    if admitted.is_ok() {
        reasons.extend(suitability::unreached(&api, &from).await);
    }
    let admitted = match reasons.is_empty() {
        true => admitted,
        false => Err(Refused(reasons)),
    };
    let admitted = match admitted {
        Ok(admitted) => allowed(&api, Arc::new(admitted.job.clone()))
            .await?
            .map(|()| admitted),
        Err(refused) => Err(refused),
    };
    let validated = match admitted.map(|mut admitted| {
        admitted
            .warnings
            .extend(missing_drivers(&admitted.job, &drivers));
        admitted
    }) {
        Ok(admitted) => Validated {
            driver_config_validated: true,
            warnings: admitted.warning_text(),
            ..Validated::default()
        },
        Err(refused) => Validated {
            driver_config_validated: true,
            error: refused.list(),
            validation_errors: Some(refused.0),
            ..Validated::default()
        },
    };
    answer::json(&params, &validated)
}
