use super::*;

#[test]
fn unsupported_required_block_is_refused() {
    let block = || Value::Map(BTreeMap::new());
    let map = |key: &str, value| Value::Map([(key.to_owned(), value)].into());
    let found = task_with(|t| {
        t.vault = Some(block());
        t.csi_plugin_config = Some(block());
        t.secrets = vec![block()];
        t.schedule = Some(block());
        t.kind = "connect-proxy:x".into();
    });
    let blocks: Vec<&str> = found
        .iter()
        .filter_map(|line| line.split("not supported by this version: ").nth(1))
        .collect();
    assert_eq!(
        blocks,
        ["vault", "csi_plugin", "secret", "schedule", "connect",]
    );
    let connects = group_with(|g| g.services = vec![map("Connect", block())]);
    assert_eq!(connects.len(), 1);
    let found = job_with(|j| {
        j.multiregion = Some(block());
    });
    assert_eq!(found.len(), 1);
}

#[test]
fn what_is_meant_for_lost_servers_is_warned_about_in_each_form() {
    let warnings = warnings(|j| {
        for group in &mut j.task_groups {
            group.disconnect = Some(Value::Map(BTreeMap::new()));
            group.stop_after_client_disconnect = Some(Span::secs(60));
            group.max_client_disconnect = Some(Span::secs(60));
            group.prevent_reschedule_on_lost = Some(true);
        }
    });
    let blocks = [
        "disconnect",
        "stop_after_client_disconnect",
        "max_client_disconnect",
        "prevent_reschedule_on_lost",
    ];
    let expected =
        blocks.map(|block| format!("group[\"web\"].{block}: has no effect on this node"));
    assert_eq!(warnings, expected);
}

#[test]
fn ineffective_block_is_warned_about() {
    let block = || Value::Map(BTreeMap::new());
    let warnings = warnings(|j| {
        j.affinities = vec![block()];
        j.spreads = vec![block()];
        for group in &mut j.task_groups {
            group.services = vec![block()];
            group.consul = Some(block());
            for task in &mut group.tasks {
                task.services = vec![block()];
                task.consul = Some(block());
            }
        }
    });
    assert_eq!(warnings.len(), 6);
    assert_eq!(
        warnings.first().map(String::as_str),
        Some("job.affinity: has no effect on this node")
    );
    let system = job_with(|j| {
        j.job_type = JobType::System;
        j.spreads = vec![block()];
    });
    assert_eq!(
        system,
        ["job.spread: must not be given for a job of type system"]
    );
}
