//! Commands about the node: what it has and does, whether it takes work, and its place among servers.

use super::tests::{alloc_of, run, submit};
use crate::testing::Rig;

#[tokio::test]
async fn node_status_shows_allocated_resources() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    alloc_of(&rig, "web").await;
    let (code, out, _) = run(&rig, &["node", "status", "-self"]).await;
    assert_eq!(code, 0);
    let after = out
        .split("Allocated Resources\n")
        .nth(1)
        .unwrap_or_default();
    let mut lines = after.lines();
    let header = lines.next().unwrap_or_default();
    assert!(header.ends_with("Alloc Count"), "{out}");
    let row = lines.next().unwrap_or_default();
    assert!(
        row.contains("16 MiB/") && row.trim_end().ends_with('1'),
        "{out}"
    );
}

#[tokio::test]
async fn resource_usage_is_shown_on_request() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let id = alloc_of(&rig, "web").await;
    let (code, out, _) = run(&rig, &["alloc", "status", "-stats", &id]).await;
    assert_eq!(code, 0);
    assert!(out.contains("\n-/20 MHz  -/16 MiB  300 MiB"), "{out}");
    assert!(!out.contains("Memory Stats"), "nothing is measured here");
    let (_, plain, _) = run(&rig, &["alloc", "status", &id]).await;
    assert!(
        plain.contains("\n-/20 MHz  -/16 MiB  300 MiB") && !plain.contains("CPU Stats"),
        "{plain}"
    );
    let (code, out, _) = run(&rig, &["node", "status", "-self", "-stats"]).await;
    assert_eq!(code, 0);
    let sections = [
        "\nUptime        = ",
        "\nAllocated Resources\nCPU",
        "\n20/- MHz",
        "\nAllocation Resource Utilization\nCPU",
        "\nHost Resource Utilization\nCPU",
        "\nCPU Stats\nCPU    = cpu0\nUser",
        "\nMemory Stats\nTotal     = ",
        "\nAllocations\nID",
    ];
    let positions = sections.map(|section| out.find(section));
    assert!(positions.iter().all(Option::is_some), "{positions:?} {out}");
    assert!(positions.is_sorted(), "{positions:?} {out}");
    let (_, plain, _) = run(&rig, &["node", "status", "-self"]).await;
    assert!(!plain.contains("CPU Stats"), "{plain}");
}

#[tokio::test]
async fn node_is_drained_and_eligible_again() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (code, out, err) = run(
        &rig,
        &[
            "node",
            "drain",
            "-enable",
            "-self",
            "-yes",
            "-m",
            "new disks",
        ],
    )
    .await;
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("drain strategy set"), "{out}");
    assert!(
        out.lines().last().unwrap().ends_with("have stopped"),
        "{out}"
    );
    let (_, out, _) = run(&rig, &["node", "status", "-self"]).await;
    assert!(out.contains("Drain         = false"), "{out}");
    assert!(out.contains("Eligibility   = ineligible"), "{out}");
    assert!(out.contains("message=new disks"), "{out}");
    let (_, out, _) = run(&rig, &["explain", "web"]).await;
    assert!(out.contains("node eligibility -enable -self"), "{out}");
    let (code, out, _) = run(&rig, &["node", "eligibility", "-enable", "-self"]).await;
    let words = "scheduling eligibility set: eligible for scheduling";
    assert!(code == 0 && out.trim_end().ends_with(words), "{out}");
    let (_, out, _) = run(&rig, &["status", "web"]).await;
    assert_eq!(out.matches("  run ").count(), 1, "{out}");
}

#[tokio::test]
async fn contradictory_drain_options_are_refused() {
    let rig = Rig::start().await;
    for (args, words) in [
        (vec!["-self"], "Use one of"),
        (vec!["-enable"], "Name the node"),
        (vec!["-enable", "-self"], "use -yes"),
        (vec!["-enable", "-self", "-deadline", "x"], "is no time"),
        (vec!["-enable", "-self", "-meta", "x"], "KEY=VALUE"),
    ] {
        let args: Vec<&str> = ["node", "drain"].into_iter().chain(args).collect();
        let (code, _, err) = run(&rig, &args).await;
        assert!(code == 1 && err.contains(words), "{args:?}: {err}");
    }
    let (code, out, _) = run(&rig, &["node", "drain", "-monitor", "-self"]).await;
    assert!(code == 1 && out.contains("does not drain"), "{out}");
}

#[tokio::test]
async fn node_metadata_is_applied_and_shown() {
    let rig = Rig::start().await;
    let (code, _, err) = run(&rig, &["node", "meta", "apply", "rack=r7", "zone=a"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    run(&rig, &["node", "meta", "apply", "-unset", "zone"]).await;
    let (_, out, _) = run(&rig, &["node", "meta", "read"]).await;
    assert_eq!(
        out,
        "All Meta\nrack = r7\n\nDynamic Meta\nrack = r7\n\nStatic Meta\n<none>\n"
    );
    let (code, _, err) = run(&rig, &["node", "meta", "apply", "rack"]).await;
    assert!(code == 1 && err.contains("KEY=VALUE"), "{err}");
}

#[tokio::test]
async fn pools_and_servers_are_shown() {
    let rig = Rig::start().await;
    let (_, out, _) = run(&rig, &["node", "pool", "list"]).await;
    assert!(out.contains("default  Default node pool."), "{out}");
    let (_, out, _) = run(&rig, &["node", "pool", "nodes", "all"]).await;
    assert!(out.contains("eligible"), "{out}");
    let (_, out, _) = run(&rig, &["node", "pool", "jobs", "default"]).await;
    assert_eq!(out, "No running jobs\n");
    let (code, _, _) = run(&rig, &["node", "pool", "info", "zz"]).await;
    assert_eq!(code, 1);
    let (code, out, _) = run(&rig, &["node", "config", "-servers"]).await;
    assert!(code == 0 && out.starts_with("127.0.0.1:"), "{out}");
    let own = out.trim().to_owned();
    let (code, out, _) = run(&rig, &["node", "config", "-update-servers", &own]).await;
    assert_eq!((code, out.as_str()), (0, "Updated server list\n"));
    let other = ["node", "config", "-update-servers", "10.0.0.1:4647"];
    let (code, _, err) = run(&rig, &other).await;
    assert!(code == 1 && err.contains("its own server"), "{err}");
}

#[tokio::test]
async fn agent_is_shown_as_single_server() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (code, out, _) = run(&rig, &["server", "members"]).await;
    assert_eq!(code, 0);
    assert!(out.starts_with("Name "), "{out}");
    assert!(out.contains("  alive   true  "), "{out}");
    let (_, out, _) = run(&rig, &["agent-info"]).await;
    let (lines, counted) = (out.lines().collect::<Vec<_>>(), "  num_allocations = 1");
    assert!(out.starts_with("client\n  known_servers = "), "{out}");
    assert!(lines.contains(&counted), "{out}");
    for section in ["core", "nomad", "runtime"] {
        assert!(lines.contains(&section), "{out}");
    }
    for name in [
        "node_id",
        "leader",
        "arch",
        "cpu_count",
        "threads",
        "version",
    ] {
        assert!(out.contains(&format!("\n  {name} = ")), "{out}");
    }
    assert!(
        !out.contains("heartbeat"),
        "nobody is told that it lives: {out}"
    );
    let (_, out, _) = run(&rig, &["eval", "list", "-job", "web"]).await;
    assert!(out.starts_with("ID "), "{out}");
    assert!(out.contains("job-register"), "{out}");
    let (_, out, _) = run(&rig, &["eval", "list", "-job", "other"]).await;
    assert_eq!(out, "No evals found\n");
    let (_, out, _) = run(&rig, &["operator", "metrics", "-format", "prometheus"]).await;
    assert!(out.contains("# TYPE "), "{out}");
}
