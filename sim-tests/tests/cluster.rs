//! A node in a cluster: what it says to the servers, and what becomes of what they place on it.

use drover_core::agent::Waiting;
use drover_core::agent::requests::CollectGarbage;
use drover_core::ids::{AllocId, NodeId};
use drover_core::input::ShutdownMode;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::drain::Eligibility;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, changed, group, job, task};
use drover_sim_tests::inspect::{BENIGN, Inspect, SOON, times_checked};
use drover_sim_tests::{each_crash_in_cluster, for_seeds_in_cluster};

fn web() -> Job {
    let group = group("g", [task("main")]).registers("api", "8080");
    job("web", JobType::Service, [group])
}

fn node(sim: &Sim) -> NodeId {
    sim.config().node.id
}

/// What servers think of the copies of a job that they want.
fn statuses(sim: &Sim, job: &str) -> Vec<ClientStatus> {
    let servers = sim.world.link.servers.iter();
    let allocs = servers.flat_map(|it| it.allocs_of(node(sim)));
    let of_job = allocs.filter(|it| it.name.starts_with(job) && !it.desired.is_terminal());
    of_job.map(|it| it.client_status).collect()
}

fn is_running_at_servers(sim: &Sim, job: &str) -> bool {
    statuses(sim, job) == [ClientStatus::Running]
}

fn first(sim: &Sim) -> Option<AllocId> {
    let servers = sim.world.link.servers.as_ref()?;
    servers.allocs().next().map(|(id, _)| id)
}

/// How many allocations of servers are here.
fn of_servers(sim: &Sim) -> usize {
    let view = sim.view().into_iter();
    let allocs = view.flat_map(|view| view.allocs().collect::<Vec<_>>());
    allocs.filter(|it| it.record().of_servers).count()
}

fn runs_web(sim: &mut Sim) -> Result<(), Violation> {
    sim.at_servers(|servers| servers.register(&web(), true));
    sim.until(SOON, |sim| is_running_at_servers(sim, "web"))
}

#[test]
fn job_of_servers_runs_is_reported_and_stops() {
    for_seeds_in_cluster(60, |sim| {
        runs_web(sim)?;
        sim.until(SOON, |sim| services(sim) == 1)?;
        sim.at_servers(|servers| servers.deregister("web"));
        sim.until(SOON, |sim| sim.living("main") == 0 && services(sim) == 0)?;
        sim.until(SOON, |sim| {
            let alloc = first(sim).and_then(|id| sim.world.link.servers.as_ref()?.alloc(id)?.now());
            alloc.is_some_and(|it| it.client_status == ClientStatus::Complete)
        })?;
        sim.expect_that(of_servers(sim) == 1, "as long as servers have it")?;
        sim.at_servers(|servers| servers.collect());
        sim.until(SOON, |sim| of_servers(sim) == 0)?;
        sim.converge()
    });
}

fn services(sim: &Sim) -> usize {
    sim.world
        .link
        .servers
        .as_ref()
        .map_or(0, |it| it.services().count())
}

#[test]
fn job_of_servers_survives_each_crash_of_the_agent() {
    let steps = each_crash_in_cluster(|sim| {
        runs_web(sim)?;
        let mut other = web();
        other.task_groups[0].tasks[0].kill_timeout = Some(Span::secs(1));
        sim.at_servers(|servers| servers.register(&other, true));
        sim.run(Span::secs(5))?;
        let mut other = web();
        other.task_groups[0].tasks[0] = task("main").with("kill_after", "1s");
        sim.at_servers(|servers| servers.register(&other, false));
        sim.run(SOON)?;
        if sim.crash_at.is_some() {
            // It was dead after each step of the story: what follows is only heartbeats.
            return Ok(());
        }
        sim.converge()?;
        sim.expect_that(is_running_at_servers(sim, "web"), "one copy runs")
    });
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn job_of_servers_survives_each_trouble_of_calls() {
    let kinds = [
        Fault::LoseCall,
        Fault::LoseReply,
        Fault::RefuseCall,
        Fault::OddReply,
        Fault::ServerBehind,
        Fault::FewServers,
        Fault::DoubledAnswer,
    ];
    for kind in kinds {
        for_seeds_in_cluster(25, |sim| {
            sim.world.scene.faults = Faults::only(&[kind], 300);
            sim.at_servers(|servers| servers.register(&web(), true));
            sim.run(Span::secs(120))?;
            sim.at_servers(|servers| servers.stop_one("web", 0));
            sim.run(Span::secs(120))?;
            sim.converge()?;
            sim.expect_that(is_running_at_servers(sim, "web"), "one copy runs")
        });
    }
}

/// Servers that are behind say what an allocation was, also after this node heard what it is.
#[test]
fn older_index_from_servers_changes_nothing() {
    for_seeds_in_cluster(60, |sim| {
        runs_web(sim)?;
        sim.world.scene.faults = Faults::only(&[Fault::ServerBehind], 500);
        for count in 1..=6 {
            let mut other = web();
            other.task_groups[0].tasks[0].kill_timeout = Some(Span::secs(count));
            sim.at_servers(|servers| servers.register(&other, true));
            sim.run(Span::secs(3 * (count % 3)))?;
        }
        sim.converge()?;
        sim.expect_that(is_running_at_servers(sim, "web"), "one copy runs")
    });
}

/// Whoever is behind stays so for a while: `calls_to_servers_are_few`.
#[test]
fn servers_that_stay_behind_are_not_asked_without_a_pause() {
    for_seeds_in_cluster(60, |sim| {
        runs_web(sim)?;
        sim.world.scene.faults = Faults::only(&[Fault::ServerBehind], 1000);
        let mut other = web();
        other.task_groups[0].tasks[0].kill_timeout = Some(Span::secs(1));
        sim.at_servers(|servers| servers.register(&other, true));
        sim.run(SOON)?;
        sim.converge()?;
        sim.expect_that(is_running_at_servers(sim, "web"), "one copy runs")
    });
}

#[test]
fn restarted_agent_starts_nothing_again_and_loses_no_beat() {
    for_seeds_in_cluster(40, |sim| {
        runs_web(sim)?;
        sim.run(SOON)?;
        sim.shutdown(ShutdownMode::KeepTasks);
        sim.run(Span::secs(3))?;
        sim.restart()?;
        sim.run(Span::secs(300))?;
        let losses = sim.world.link.servers.as_ref().map_or(0, |it| it.losses());
        sim.expect_that(losses == 0, "the node is never lost")?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it was started once")?;
        sim.converge()
    });
}

/// Servers wait for it a little longer than its time.
#[test]
fn node_is_not_lost_for_one_heartbeat_that_fails() {
    for kind in [Fault::LoseReply, Fault::OddReply] {
        for_seeds_in_cluster(40, |sim| {
            if sim.seed() == BENIGN {
                return Ok(());
            }
            runs_web(sim)?;
            sim.run(SOON)?;
            let fails = |sim: &Sim| {
                let server = sim.view().and_then(|view| view.server());
                server.is_some_and(|it| it.heartbeat().is_failing())
            };
            // Nobody else calls.
            sim.world.scene.faults = Faults::only(&[kind], 1000).budget(1);
            sim.until(SOON, fails)?;
            sim.until(SOON, |sim| !fails(sim))?;
            let losses = sim.world.link.servers.as_ref().map_or(0, |it| it.losses());
            sim.expect_that(losses == 0, "it beats again in time")?;
            sim.converge()
        });
    }
}

/// Servers give it up, and have it run again on this node when it is back: the first copy ends before that.
#[test]
fn node_that_was_cut_off_ends_what_servers_gave_up() {
    for_seeds_in_cluster(40, |sim| {
        runs_web(sim)?;
        sim.world.cut_off(Span::secs(120));
        sim.run(Span::secs(100))?;
        sim.expect_that(statuses(sim, "web").is_empty(), "servers gave it up")?;
        sim.expect_that(sim.living("main") == 1, "it runs on meanwhile")?;
        let explained = sim
            .view()
            .and_then(|view| view.explain_alloc(sim.world.now(), first(sim)?));
        let waits = explained.map(|alloc| alloc.waiting).unwrap_or_default();
        let says = |one: &Waiting| {
            one.what.contains("servers of the cluster") && one.then.contains("goes on meanwhile")
        };
        sim.expect_that(waits.iter().any(says), "it says that it goes on")?;
        sim.until(Span::secs(120), |sim| is_running_at_servers(sim, "web"))?;
        sim.expect_that(sim.living("main") == 1, "one copy runs")?;
        sim.expect_that(sim.world.starts_of("main") == 2, "another one")?;
        sim.converge()
    });
}

#[test]
fn alloc_that_survives_disconnects_is_the_same_afterwards() {
    for_seeds_in_cluster(40, |sim| {
        let mut web = web();
        web.task_groups[0].max_client_disconnect = Some(Span::secs(3600));
        sim.at_servers(|servers| servers.register(&web, true));
        sim.until(SOON, |sim| is_running_at_servers(sim, "web"))?;
        sim.world.cut_off(Span::secs(120));
        sim.run(Span::secs(100))?;
        let unknown = statuses(sim, "web") == [ClientStatus::Unknown];
        sim.expect_that(unknown, "servers do not know what became of it")?;
        sim.until(Span::secs(120), |sim| is_running_at_servers(sim, "web"))?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it was started once")?;
        sim.converge()
    });
}

#[test]
fn alloc_stops_by_itself_when_servers_are_silent_for_too_long() {
    for_seeds_in_cluster(40, |sim| {
        let mut web = web();
        web.task_groups[0].stop_after_client_disconnect = Some(Span::secs(60));
        sim.at_servers(|servers| servers.register(&web, true));
        sim.until(SOON, |sim| is_running_at_servers(sim, "web"))?;
        sim.world.cut_off(Span::secs(300));
        sim.run(Span::secs(40))?;
        sim.expect_that(sim.living("main") == 1, "it runs on for a minute")?;
        let explained = sim
            .view()
            .and_then(|view| view.explain_alloc(sim.world.now(), first(sim)?));
        let waits = explained.map(|alloc| alloc.waiting).unwrap_or_default();
        let says =
            |one: &Waiting| one.what.contains("servers of the cluster") && one.until.is_some();
        sim.expect_that(waits.iter().any(says), "it says until when")?;
        sim.run(Span::secs(60))?;
        sim.expect_that(sim.living("main") == 0, "it is stopped")?;
        sim.converge()
    });
}

/// A node says nothing as long as its last heartbeat counts, which may be longer than a group wants to be without servers.
#[test]
fn alloc_goes_on_while_servers_answer_however_soon_it_ends_without_them() {
    for_seeds_in_cluster(20, |sim| {
        let mut web = web();
        web.task_groups[0].stop_after_client_disconnect = Some(Span::secs(5));
        sim.at_servers(|servers| servers.register(&web, true));
        sim.until(SOON, |sim| is_running_at_servers(sim, "web"))?;
        sim.run(Span::secs(3600))?;
        let same = sim.living("main") == 1 && sim.world.starts_of("main") == 1;
        sim.expect_that(same, "servers answer")?;
        sim.world.cut_off(Span::secs(300));
        // The last heartbeat counts for 19 s at most, the next one has 7 s, and then a task has time to end.
        sim.run(SOON)?;
        sim.expect_that(sim.living("main") == 0, "servers are silent")?;
        let times = times_checked(sim, "servers_that_answer_end_no_alloc_by_silence");
        sim.expect_that(times == 1, "it ended for that")?;
        sim.converge()
    });
}

/// Nobody watches its health where people say whether it is healthy. Servers that are not told that it is not wait until
/// the roll-out's deadline.
#[test]
fn failed_alloc_of_manual_health_deployment_is_reported_unhealthy() {
    for_seeds_in_cluster(40, |sim| {
        let main = task("main").ends("1s", 1);
        let main = main.restarts(0, Span::secs(3600), Span::secs(1), RestartMode::Fail);
        let mut group = group("g", [main]).rolls(1);
        if let Some(update) = &mut group.update {
            "manual".clone_into(&mut update.health_check);
        }
        let web = job("web", JobType::Service, [group]);
        sim.at_servers(|servers| servers.register(&web, false));
        sim.until(SOON, |sim| {
            let servers = sim.world.link.servers.iter();
            let mut allocs = servers.flat_map(|it| it.allocs_of(node(sim)));
            allocs.any(|it| it.client_status == ClientStatus::Failed)
        })?;
        let times = times_checked(sim, "failed_alloc_is_reported_with_health");
        sim.expect_that(times > 0, "it is reported")?;
        sim.converge()
    });
}

#[test]
fn node_that_servers_forgot_keeps_what_they_still_have() {
    for_seeds_in_cluster(40, |sim| {
        runs_web(sim)?;
        let node = node(sim);
        sim.at_servers(|servers| servers.forget_node(node, true));
        sim.run(Span::secs(120))?;
        sim.converge()?;
        sim.expect_that(is_running_at_servers(sim, "web"), "one copy runs")
    });
}

/// A batch job of which servers know that it is complete.
fn completes_sum(sim: &mut Sim) -> Result<(), Violation> {
    let sum = job(
        "sum",
        JobType::Batch,
        [group("g", [task("main").ends("2s", 0)])],
    );
    sim.at_servers(|servers| servers.register(&sum, true));
    sim.until(SOON, |sim| statuses(sim, "sum") == [ClientStatus::Complete])?;
    // The status goes ahead, the rest of the story follows.
    sim.run(Span::secs(10))
}

/// Servers that are behind place it again, as it was: what it came to is remembered.
#[test]
fn collected_alloc_of_servers_never_runs_again() {
    for_seeds_in_cluster(60, |sim| {
        completes_sum(sim)?;
        sim.ask(CollectGarbage {});
        sim.until(SOON, |sim| of_servers(sim) == 0)?;
        sim.world.scene.faults = Faults::only(&[Fault::ServerBehind], 500);
        for _ in 0..3 {
            sim.restart()?;
            sim.run(Span::secs(60))?;
        }
        sim.world.scene.faults = Faults::none();
        sim.expect_that(of_servers(sim) == 0, "it is removed")?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it was started once")?;
        let statuses = statuses(sim, "sum");
        let is_complete = statuses == [ClientStatus::Complete];
        sim.expect_that(is_complete, "servers know that it is complete")?;
        sim.at_servers(|servers| servers.collect());
        sim.run(Span::secs(120))?;
        sim.converge()
    });
}

/// A job of the node itself that has the same name is another one.
#[test]
fn collected_alloc_of_servers_completes_no_copy_of_own_job() {
    for_seeds_in_cluster(40, |sim| {
        let own = job("sum", JobType::Service, [group("g", [task("own")])]);
        sim.register(&own);
        sim.until(SOON, |sim| sim.living("own") == 1)?;
        completes_sum(sim)?;
        sim.ask(CollectGarbage {});
        sim.until(SOON, |sim| of_servers(sim) == 0)?;
        let next = changed(&own, |group| {
            group.tasks[0].env = [("V".to_owned(), "2".to_owned())].into();
        });
        sim.register(&next);
        sim.until(SOON, |sim| sim.world.starts_of("own") == 2)?;
        sim.at_servers(|servers| servers.collect());
        sim.run(Span::secs(120))?;
        sim.converge()
    });
}

#[test]
fn ended_alloc_of_servers_is_kept_until_they_know_that() {
    for_seeds_in_cluster(40, |sim| {
        let sum = job(
            "sum",
            JobType::Batch,
            [group("g", [task("main").ends("60s", 0)])],
        );
        sim.at_servers(|servers| servers.register(&sum, true));
        sim.until(SOON, |sim| is_running_at_servers(sim, "sum"))?;
        sim.world.cut_off(Span::secs(100));
        sim.run(Span::secs(80))?;
        sim.expect_that(sim.living("main") == 0, "it ended")?;
        sim.ask(CollectGarbage {});
        sim.run(Span::secs(10))?;
        sim.expect_that(of_servers(sim) == 1, "servers do not know that")?;
        sim.converge()
    });
}

/// Whatever step it dies after, nothing that ended is run again, and nothing is left.
#[test]
fn collection_of_alloc_of_servers_survives_each_crash() {
    let steps = each_crash_in_cluster(|sim| {
        completes_sum(sim)?;
        sim.ask(CollectGarbage {});
        sim.run(SOON)?;
        sim.ask(CollectGarbage {});
        sim.until(SOON, |sim| of_servers(sim) == 0)?;
        sim.expect_that(sim.world.starts_of("main") == 1, "it was started once")?;
        if sim.crash_at.is_some() {
            return Ok(());
        }
        sim.converge()
    });
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn sticky_disk_moves_to_replacement_that_servers_place_on_same_node() {
    for_seeds_in_cluster(40, |sim| {
        for version in 0..3 {
            let main = task("main").with("kill_after", &format!("{}s", version + 1));
            let db = job("db", JobType::Service, [group("g", [main]).sticky()]);
            sim.at_servers(|servers| servers.register(&db, false));
            sim.until(SOON, |sim| {
                let starts = sim.world.starts_of("main");
                starts == version + 1 && is_running_at_servers(sim, "db")
            })?;
            sim.restart()?;
        }
        sim.converge()?;
        sim.expect_that(sim.writers() == 3, "all three versions wrote to one disk")
    });
}

#[test]
fn disk_that_is_not_sticky_does_not_move_between_allocs_of_servers() {
    for_seeds_in_cluster(20, |sim| {
        for version in 0..2 {
            let main = task("main").with("kill_after", &format!("{}s", version + 1));
            let db = job("db", JobType::Service, [group("g", [main])]);
            sim.at_servers(|servers| servers.register(&db, false));
            sim.until(SOON, |sim| {
                let starts = sim.world.starts_of("main");
                starts == version + 1 && is_running_at_servers(sim, "db")
            })?;
        }
        sim.expect_that(sim.writers() == 1, "an empty disk")?;
        sim.converge()
    });
}

/// The index of older servers falls when they have the allocation no more that changed last. An agent to which the
/// answer that said so was lost asks by the index from before, and hears nothing newer.
#[test]
fn removed_alloc_with_lost_acknowledgement_is_removed() {
    for_seeds_in_cluster(40, |sim| {
        if sim.seed() == BENIGN {
            return Ok(());
        }
        let other = job("other", JobType::Service, [group("g", [task("other")])]);
        sim.at_servers(|servers| servers.register(&other, true));
        runs_web(sim)?;
        sim.at_servers(|servers| servers.deregister("web"));
        sim.run(SOON)?;
        sim.world.scene.faults = Faults::only(&[Fault::LoseReply], 1000).budget(1);
        sim.at_servers(|servers| servers.collect());
        // Had it been heard, a heartbeat would have confirmed it by now.
        sim.run(Span::secs(35))?;
        sim.expect_that(of_servers(sim) == 2, "the answer was lost")?;
        sim.until(Span::secs(1800), |sim| of_servers(sim) == 1)?;
        sim.expect_that(is_running_at_servers(sim, "other"), "the other one runs")?;
        sim.converge()
    });
}

/// Which version of a job's first allocation is here.
fn version_of_first(sim: &Sim) -> Option<u64> {
    let alloc = sim.view()?.alloc(first(sim)?)?;
    Some(alloc.record().job_version)
}

/// What they decided after it was taken they did not decide, and count on from before or not.
#[test]
fn servers_restored_from_a_snapshot_are_followed() {
    for placed in [true, false] {
        for_seeds_in_cluster(40, |sim| {
            runs_web(sim)?;
            sim.at_servers(|servers| servers.save());
            let mut other = web();
            other.task_groups[0].tasks[0].kill_timeout = Some(Span::secs(1));
            sim.at_servers(|servers| servers.register(&other, true));
            if placed {
                let db = job("db", JobType::Service, [group("g", [task("db")])]);
                sim.at_servers(|servers| servers.register(&db, true));
            }
            sim.until(SOON, |sim| {
                sim.living("db") == usize::from(placed) && version_of_first(sim) == Some(1)
            })?;
            sim.run(Span::secs(i64::try_from(sim.seed() % 4).unwrap_or(0)))?;
            sim.at_servers(|servers| servers.go_back());
            // A question that comes just after that waits for an index from before.
            sim.until(Span::secs(400), |sim| {
                sim.living("db") == 0 && version_of_first(sim) == Some(0)
            })?;
            let queue = job("queue", JobType::Service, [group("g", [task("queue")])]);
            sim.at_servers(|servers| servers.register(&queue, true));
            sim.until(SOON, |sim| is_running_at_servers(sim, "queue"))?;
            sim.expect_that(sim.world.starts_of("main") == 1, "web was started once")?;
            sim.converge()
        });
    }
}

#[test]
fn ineligible_node_keeps_what_runs_and_gets_nothing_new() {
    for_seeds_in_cluster(50, |sim| {
        runs_web(sim)?;
        let node = node(sim);
        sim.at_servers(|servers| servers.set_eligibility(node, Eligibility::Ineligible));
        sim.run(SOON)?;
        let other = job("other", JobType::Service, [group("g", [task("other")])]);
        sim.at_servers(|servers| servers.register(&other, true));
        sim.run(SOON)?;
        sim.expect_that(
            sim.living("main") == 1 && sim.living("other") == 0,
            "only web",
        )?;
        sim.at_servers(|servers| servers.set_eligibility(node, Eligibility::Eligible));
        sim.until(SOON, |sim| sim.living("other") == 1)?;
        sim.converge()
    });
}
