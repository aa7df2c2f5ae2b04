//! What was recorded between Nomad's node and its servers, in the core's form and back.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use drover_core::cluster::{AllocReport, ClientNode, PlacedAlloc, ServiceInstance};
use drover_core::ids::{AllocId, JobKey};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, TaskState};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::processors::{Core, Processors};
use drover_core::time::{Span, Timestamp};
use drover_rpc::msgpack::{decode, end_of};
use drover_rpc::types::allocation::Allocation;
use drover_rpc::types::job::UpdateStrategy;
use drover_rpc::types::query::Allocations;

use super::jobs::Jobs;
use super::network_tests::wire::session::{Session, versions};
use super::{node, placed, report, service};

fn recorded() -> Vec<PlacedAlloc> {
    replied().iter().map(|it| placed::of(it).unwrap()).collect()
}

/// One whose job servers sent with it.
fn recorded_with_groups() -> Allocation {
    let mut all = replied().into_iter();
    let has_groups = |it: &Allocation| {
        it.job
            .as_ref()
            .is_some_and(|job| !job.task_groups.is_empty())
    };
    all.find(has_groups).unwrap()
}

/// The allocations of a recording, in which each reply follows its header.
fn replied() -> Vec<Allocation> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rpc/tests/recorded/Alloc.GetAllocs.reply.msgpack");
    let bytes = fs::read(path).unwrap();
    let (mut rest, mut objects) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (object, more) = rest.split_at(end_of(rest).unwrap());
        objects.push(object);
        rest = more;
    }
    let replies = objects.chunks(2).map(|call| decode::<Allocations>(call[1]));
    replies.flat_map(|reply| reply.unwrap().allocs).collect()
}

#[test]
fn recorded_allocations_have_jobs_that_this_node_can_run() {
    let all = recorded();
    assert!(!all.is_empty());
    for alloc in all {
        let job = alloc.job.as_ref().unwrap();
        let group = job.group(alloc.group.as_str()).unwrap();
        assert_eq!(
            &*alloc.name,
            format!("{}.{}[{}]", job.id, group.name, alloc.index())
        );
        assert_ne!(alloc.id, AllocId::default());
        assert!(alloc.modify_index > 0 && alloc.create_time.0 > 0);
        assert!(!group.tasks.is_empty());
        let labels: Vec<&str> = alloc.ports.iter().map(|port| port.label.as_str()).collect();
        let asked = group.networks.iter().flat_map(|network| {
            let ports = network.reserved_ports.iter().chain(&network.dynamic_ports);
            ports.map(|port| port.label.as_str())
        });
        assert_eq!(labels, asked.collect::<Vec<_>>());
    }
}

#[test]
fn allocations_of_servers_of_each_version_have_jobs_that_this_node_can_run() {
    for version in versions() {
        let calls = Session::recorded(&version).calls().into_iter();
        let pulls = calls.filter(|call| call.method == "Alloc.GetAllocs");
        let replies = pulls.filter_map(|call| decode::<Allocations>(&call.reply?.1).ok());
        let all: Vec<Allocation> = replies.flat_map(|reply| reply.allocs).collect();
        assert!(!all.is_empty(), "{version}");
        for alloc in &all {
            let alloc = placed::of(alloc).unwrap();
            let job = alloc.job.unwrap_or_else(|why| panic!("{version}: {why}"));
            let group = job.group(alloc.group.as_str()).unwrap();
            let counts = (group.tasks.len(), group.services.len());
            assert_eq!(counts, (1, 1), "{version}");
        }
    }
}

#[test]
fn job_of_many_allocs_is_read_once_and_again_when_it_changed() {
    let jobs = Jobs::default();
    let job_of = |alloc: &Allocation| placed::of_jobs(alloc, &jobs).unwrap().job.unwrap();
    let mut alloc = recorded_with_groups();
    let first = job_of(&alloc);
    for id in 1..1000 {
        alloc.id = AllocId(id).to_string();
        assert!(Arc::ptr_eq(&first, &job_of(&alloc)));
    }
    // Whatever the indexes say: servers may be new ones.
    let group = &mut alloc.job.as_mut().unwrap().task_groups[0];
    group.tasks[0].user = "nobody".to_owned();
    let changed = job_of(&alloc);
    assert_eq!(changed.task_groups[0].tasks[0].user, "nobody");
    assert!(Arc::ptr_eq(&changed, &job_of(&alloc)));
    alloc.task_group = "none".to_owned();
    assert!(placed::of_jobs(&alloc, &jobs).unwrap().job.is_err());
}

#[test]
fn job_is_admitted_for_the_group_that_is_placed_here_whatever_others_need() {
    let mut alloc = recorded_with_groups();
    let job = alloc.job.as_mut().unwrap();
    let mut elsewhere = job.task_groups[0].clone();
    elsewhere.name = "elsewhere".to_owned();
    elsewhere.tasks[0].kind = "connect-proxy:web".to_owned();
    job.task_groups.insert(0, elsewhere);
    // So many there may be in a cluster, and not on one node.
    job.task_groups[1].count = 50_000;
    let placed = placed::of(&alloc).unwrap();
    let job = placed.job.unwrap();
    let names: Vec<&str> = job.task_groups.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, [alloc.task_group.as_str()]);
    assert_eq!(job.task_groups[0].wanted(), 50_000);

    alloc.task_group = "elsewhere".to_owned();
    let why = placed::of(&alloc).unwrap().job.unwrap_err();
    assert!(why.contains("connect"), "{why}");
    alloc.task_group = "nowhere".to_owned();
    let why = placed::of(&alloc).unwrap().job.unwrap_err();
    assert_eq!(why, "the job has no group \"nowhere\"");
}

#[test]
fn job_whose_canaries_servers_promote_is_admitted() {
    let mut alloc = recorded_with_groups();
    let group = &mut alloc.job.as_mut().unwrap().task_groups[0];
    group.update = Some(UpdateStrategy {
        auto_promote: true,
        auto_revert: true,
        canary: 1,
        health_check: "task_states".to_owned(),
        healthy_deadline: 40_000_000_000,
        max_parallel: 2,
        min_healthy_time: 500_000_000,
        progress_deadline: 60_000_000_000,
        stagger: 30_000_000_000,
    });
    let job = placed::of(&alloc).unwrap().job.unwrap();
    let update = job.task_groups[0].update.as_ref().unwrap();
    assert_eq!(update.min_healthy_time, Span(500_000_000));
}

#[test]
fn recorded_allocations_are_to_run_or_to_stop() {
    let wanted: Vec<DesiredStatus> = recorded().iter().map(|alloc| alloc.desired).collect();
    assert!(wanted.contains(&DesiredStatus::Run));
    assert!(wanted.contains(&DesiredStatus::Stop), "{wanted:?}");
}

#[test]
fn node_registers_with_what_nothing_is_placed_without() {
    let core = Core {
        max_mhz: 3_000,
        ..Core::default()
    };
    let here = ClientNode {
        name: "here".to_owned(),
        address: "10.0.0.9".to_owned(),
        processors: Processors {
            total_compute: 6_000,
            usable_compute: 5_000,
            cores: vec![
                core,
                Core {
                    id: 1,
                    disabled: true,
                    ..core
                },
            ],
        },
        network_modes: ["bridge".to_owned()].into(),
        memory_mb: 1_000,
        disk_mb: 2_000,
        dynamic_ports: (20_000, 32_000),
        ..ClientNode::default()
    };
    let shown = node::of(&here, "secret".into(), true);
    let resources = shown.node_resources.unwrap();
    let modes: Vec<&str> = resources
        .networks
        .iter()
        .map(|it| it.mode.as_str())
        .collect();
    assert_eq!(modes, ["host", "bridge"]);
    let at = &resources.node_networks[0].addresses[0];
    assert_eq!(
        (at.alias.as_str(), at.address.as_str()),
        ("default", "10.0.0.9")
    );
    let topology = resources.processors.topology.unwrap();
    assert_eq!(topology.cores.len(), 2);
    assert_eq!(topology.override_total_compute, 6_000);
    assert_eq!(
        (resources.memory.memory_mb, resources.disk.disk_mb),
        (1_000, 2_000)
    );
    let reserved = shown.reserved_resources.unwrap();
    assert_eq!(reserved.cpu.reserved_cpu_cores, [1]);
    assert_eq!(reserved.cpu.cpu_shares, 1_000);
    assert_eq!(shown.secret_id.expose(), "secret");
}

#[test]
fn report_contains_alloc_outcome() {
    let sent = AllocReport {
        id: AllocId(7),
        status: ClientStatus::Failed,
        description: "Failed tasks".into(),
        tasks: [("t".into(), drover_core::model::alloc::TaskState::default())].into(),
        health: None,
        address: None,
        found: None,
    };
    let update = report::of(&sent, "node");
    assert_eq!(update.id, AllocId(7).to_string());
    assert_eq!(update.client_status, "failed");
    assert_eq!(update.task_states["t"].state, "pending");
    assert_eq!(update.deployment_status, None);
}

#[test]
fn report_repeats_details_of_events_in_the_fields_of_old_versions() {
    let ended = TaskEvent::new(EventType::Terminated, Timestamp(1), "over");
    let ended = ended.detail("exit_code", 130).detail("signal", 2);
    let signaled = TaskEvent::new(EventType::Signaling, Timestamp(3), "told");
    let full = TaskEvent::new(EventType::DiskExceeded, Timestamp(4), "full");
    let gone = TaskEvent::new(EventType::Terminated, Timestamp(5), "over");
    let events = vec![
        ended.into(),
        TaskEvent::killing(Timestamp(2), Span(5_000_000_000), None).into(),
        signaled.detail("signal", "SIGUSR1").into(),
        full.detail("disk_limit", 1 << 20).into(),
        gone.detail("exit_code", "unknown").into(),
    ];
    let state = TaskState {
        events,
        ..TaskState::default()
    };
    let sent = AllocReport {
        id: AllocId(7),
        status: ClientStatus::Complete,
        description: "".into(),
        tasks: [("t".into(), state)].into(),
        health: None,
        address: None,
        found: None,
    };
    let update = report::of(&sent, "node");
    let [ended, killing, signaled, full, gone] = update.task_states["t"].events.as_slice() else {
        panic!("{update:?}")
    };
    assert_eq!((ended.exit_code, ended.signal), (130, 2));
    assert_eq!(ended.details["exit_code"], "130");
    assert_eq!(killing.kill_timeout, 5_000_000_000);
    assert_eq!(
        (signaled.task_signal.as_str(), signaled.signal),
        ("SIGUSR1", 0)
    );
    assert_eq!((full.disk_limit, full.exit_code), (1 << 20, 0));
    assert_eq!(gone.exit_code, -1);
}

#[test]
fn service_is_sent_with_all_that_servers_list() {
    let here = ServiceInstance {
        id: "_nomad-task-a-t-web-http".into(),
        name: "web".to_owned(),
        job: JobKey::local("job"),
        datacenter: "dc1".to_owned(),
        alloc: AllocId(7),
        task: Some("t".into()),
        tags: vec!["tag".to_owned()],
        address: "10.0.0.9".to_owned(),
        port: 8080,
    };
    let sent = service::of(&here, "node");
    assert_eq!(sent.id, "_nomad-task-a-t-web-http");
    assert_eq!((&*sent.service_name, &*sent.namespace), ("web", "default"));
    assert_eq!((&*sent.job_id, &*sent.node_id), ("job", "node"));
    assert_eq!(sent.alloc_id, AllocId(7).to_string());
    assert_eq!((&*sent.address, sent.port), ("10.0.0.9", 8080));
    assert_eq!((&*sent.datacenter, sent.tags), ("dc1", here.tags));
}
