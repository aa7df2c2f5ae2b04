use super::*;

fn found(kind: JobType, change: impl FnOnce(&mut PeriodicConfig)) -> Vec<String> {
    let mut periodic = PeriodicConfig {
        spec: "*/5 * * * *".to_owned(),
        ..PeriodicConfig::default()
    };
    change(&mut periodic);
    job_with(|job| {
        job.job_type = kind;
        job.periodic = Some(periodic);
    })
}

#[test]
fn only_batch_jobs_are_periodic() {
    for (kind, problems) in [
        (JobType::Service, 1),
        (JobType::System, 1),
        (JobType::Batch, 0),
        (JobType::Sysbatch, 0),
    ] {
        let found = found(kind, |_| {});
        let own = found.iter().filter(|line| line.contains("job.periodic"));
        assert_eq!(own.count(), problems, "{found:?}");
    }
}

#[test]
fn mistakes_of_cron_name_their_expression() {
    type Change = fn(&mut PeriodicConfig);
    let one = |change: Change| found(JobType::Batch, change).join("; ");
    let cases: [(Change, &str); 6] = [
        (
            |it| it.spec = "* * *".to_owned(),
            "job.periodic.cron: must have 5 to 7 fields",
        ),
        (
            |it| it.spec.clear(),
            "job.periodic: cron or crons must be given",
        ),
        (
            |it| it.specs = vec!["@daily".to_owned()],
            "cannot both be given",
        ),
        (
            |it| {
                it.spec.clear();
                it.specs = vec!["@daily".to_owned(), "0 25 * * *".to_owned()];
            },
            "job.periodic.crons[1]: hour \"25\"",
        ),
        (
            |it| it.spec = "0 0 30 2 *".to_owned(),
            "no day of the calendar fits",
        ),
        (
            |it| it.time_zone = "a\nb".to_owned(),
            "job.periodic.time_zone",
        ),
    ];
    for (change, words) in cases {
        let found = one(change);
        assert!(found.contains(words), "{words}: {found}");
    }
}
