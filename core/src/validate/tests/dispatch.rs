use super::*;
use crate::model::dispatch::{DispatchPayload, ParameterizedJob};

fn parameterized(required: &[&str], optional: &[&str]) -> ParameterizedJob {
    let list = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    ParameterizedJob {
        meta_required: list(required),
        meta_optional: list(optional),
        ..ParameterizedJob::default()
    }
}

fn found(kind: JobType, rules: ParameterizedJob) -> Vec<String> {
    job_with(|job| {
        job.job_type = kind;
        job.parameterized_job = Some(rules);
    })
}

#[test]
fn only_batch_jobs_are_parameterized() {
    for (kind, problems) in [
        (JobType::Service, 1),
        (JobType::System, 1),
        (JobType::Batch, 0),
        (JobType::Sysbatch, 0),
    ] {
        let found = found(kind, parameterized(&["a"], &["b"]));
        let own = found
            .iter()
            .filter(|line| line.contains("job.parameterized"));
        assert_eq!(own.count(), problems, "{found:?}");
    }
}

#[test]
fn dispatch_meta_keys_are_validated() {
    let twice = found(JobType::Batch, parameterized(&["a"], &["a"]));
    assert_eq!(
        twice,
        ["job.parameterized.meta_optional: \"a\" is there twice"]
    );
    assert_eq!(
        found(JobType::Batch, parameterized(&[""], &["a\0"])).len(),
        2
    );
    let many: Vec<String> = (0..257).map(|key| key.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(found(JobType::Batch, parameterized(&many, &[])).len(), 1);
}

#[test]
fn dispatch_payload_file_is_validated() {
    let with = |file: &str, rules: Option<ParameterizedJob>| {
        let file = file.to_owned();
        job_with(|job| {
            job.job_type = JobType::Batch;
            job.parameterized_job = rules;
            job.task_groups[0].tasks[0].dispatch_payload = Some(DispatchPayload { file });
        })
    };
    let rules = || Some(ParameterizedJob::default());
    assert_eq!(with("in/a.txt", rules()).len(), 0);
    assert_eq!(with("in/a.txt", None).len(), 1);
    for out in ["", "../secrets/a", "/..", "../../alloc/a"] {
        assert_eq!(with(out, rules()).len(), 1, "{out:?}");
    }
}
