//! Services: who is registered is who runs, through restarts, ends and deaths of the agent.

use drover_core::agent::requests::RestartScope;
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::value::Value;
use drover_core::task::runner::Phase;
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation};
use drover_sim_tests::build::{GroupExt, TaskExt, group, job, service, task};
use drover_sim_tests::inspect::{Inspect, SOON};
use drover_sim_tests::{each_crash, for_seeds};

/// The names of services that are registered.
fn registered(sim: &Sim) -> Vec<String> {
    let services = sim.view().map(|view| view.services()).unwrap_or_default();
    services.into_iter().map(|one| one.name).collect()
}

fn web() -> Job {
    let main = task("main").serves("of-the-task", "http");
    let group = group("g", [main])
        .dynamic_port("http")
        .registers("of-the-group", "http");
    job("web", JobType::Service, [group])
}

fn started(sim: &mut Sim) -> Result<(), Violation> {
    sim.register(&web());
    sim.until(SOON, |sim| sim.runs("web", "main"))
}

#[test]
fn running_task_is_registered_at_its_port() {
    for_seeds(50, |sim| {
        sim.register(&web());
        sim.expect_that(registered(sim).is_empty(), "nothing runs yet")?;
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(registered(sim) == ["of-the-group", "of-the-task"], "both")?;
        let port = sim.live("web").map(|alloc| alloc.record().ports[0].value);
        let services = sim.view().map(|view| view.services()).unwrap_or_default();
        let so = services.iter().all(|one| Some(one.port) == port);
        sim.expect_that(so, "at the port that it got")?;
        let ids: Vec<String> = services.iter().map(|one| one.id.clone()).collect();
        let alloc = services[0].alloc;
        let wanted = [
            format!("_nomad-task-{alloc}-group-g-of-the-group-http"),
            format!("_nomad-task-{alloc}-main-of-the-task-http"),
        ];
        sim.expect_that(ids == wanted, "by the names of Nomad")?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| sim.dead("web", "main"))?;
        sim.expect_that(registered(sim).is_empty(), "nothing runs any more")
    });
}

/// While the delay before the end passes, nobody new comes.
#[test]
fn stopping_task_is_not_registered() {
    for_seeds(50, |sim| {
        let mut web = web();
        web.task_groups[0].tasks[0].shutdown_delay = Span::secs(30);
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.deregister("web", false);
        sim.until(SOON, |sim| registered(sim).is_empty())?;
        let alive = sim.world.alive().count();
        sim.expect_that(alive == 1, "it still answers who came before")
    });
}

/// A task that fails and waits for its restart takes its own service away, and not that of its group.
#[test]
fn group_service_stays_during_restart_delay() {
    for_seeds(50, |sim| {
        let main = task("main")
            .serves("of-the-task", "http")
            .ends("5s", 1)
            .restarts(1, Span::secs(600), Span::secs(20), RestartMode::Fail);
        let group = group("g", [main])
            .dynamic_port("http")
            .registers("of-the-group", "http");
        sim.register(&job("web", JobType::Service, [group]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.until(SOON, |sim| {
            let task = sim.task("web", "main");
            task.is_some_and(|task| matches!(task.phase(), Phase::Pausing(_)))
        })?;
        sim.expect_that(registered(sim) == ["of-the-group"], "it waits")?;
        sim.until(Span::secs(60), |sim| sim.runs("web", "main"))?;
        sim.expect_that(registered(sim) == ["of-the-group", "of-the-task"], "both")?;
        sim.until(Span::secs(60), |sim| sim.dead("web", "main"))?;
        sim.expect_that(
            !registered(sim).contains(&"of-the-task".to_owned()),
            "it is over",
        )
    });
}

/// A service without a port is the node's address.
#[test]
fn service_without_a_port_is_registered_at_the_node() {
    for_seeds(10, |sim| {
        sim.register(&service("web", [task("main").serves("plain", "")]));
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let services = sim.view().map(|view| view.services()).unwrap_or_default();
        let found: Vec<u16> = services.iter().map(|one| one.port).collect();
        sim.expect_that(found == [0], "without a port")
    });
}

#[test]
fn restarted_task_is_registered_again() {
    for_seeds(50, |sim| {
        started(sim)?;
        sim.restart_tasks("web", RestartScope::Running);
        sim.until(SOON, |sim| registered(sim).is_empty())?;
        sim.until(SOON, |sim| registered(sim).len() == 2)?;
        sim.converge()
    });
}

/// An agent that finds a task running says so at once: nobody who reads services sees it go.
#[test]
fn restarted_agent_registers_running_tasks() {
    for_seeds(50, |sim| {
        started(sim)?;
        // It is saved that it runs.
        sim.converge()?;
        sim.restart()?;
        sim.expect_that(registered(sim).len() == 2, "as before")?;
        sim.converge()?;
        sim.expect_that(registered(sim).len() == 2, "and later")
    });
}

#[test]
fn running_tasks_are_registered_despite_crashes() {
    let steps = each_crash(1, |sim| {
        sim.register(&web());
        sim.until(Span::secs(600), |sim| sim.runs("web", "main"))?;
        sim.converge()?;
        sim.expect_that(registered(sim).len() == 2, "it runs")?;
        sim.deregister("web", false);
        sim.until(Span::secs(600), |sim| sim.dead("web", "main"))?;
        sim.expect_that(registered(sim).is_empty(), "it ended")
    });
    assert!(steps > 10, "{steps} moments to die at");
}

/// The port and the address that only the driver knows, and that of the host.
fn with_driver_network(mode: &str, advertise: bool) -> Job {
    let mut main = task("main")
        .with("driver_ip", "10.1.2.3")
        .with("driver_port_map", "http:8080")
        .serves("of-the-task", "http");
    let advertise = Value::Bool(advertise);
    main.config.insert("driver_advertise".to_owned(), advertise);
    if let Value::Map(fields) = &mut main.services[0] {
        fields.insert("AddressMode".to_owned(), Value::from(mode));
        let tags = Value::List(vec![Value::from("port-${NOMAD_PORT_http}")]);
        fields.insert("Tags".to_owned(), tags);
    }
    job(
        "web",
        JobType::Service,
        [group("g", [main]).dynamic_port("http")],
    )
}

/// The address of the one service, and whether its port and its tag are the driver's.
fn announced(sim: &Sim) -> Option<(String, bool, bool)> {
    let services = sim.view().map(|view| view.services()).unwrap_or_default();
    let one = services.first()?;
    let tagged = one.tags == ["port-8080"];
    Some((one.address.clone(), one.port == 8080, tagged))
}

#[test]
fn driver_network_is_announced_where_the_service_wants_it() {
    for (mode, advertise, inside) in [
        ("driver", false, true),
        ("auto", true, true),
        ("auto", false, false),
        ("host", true, false),
    ] {
        for_seeds(10, |sim| {
            sim.register(&with_driver_network(mode, advertise));
            sim.until(SOON, |sim| sim.runs("web", "main"))?;
            let (address, port, tagged) = announced(sim).unwrap_or_default();
            let so = (address == "10.1.2.3") == inside && port == inside && tagged;
            sim.expect_that(
                so,
                &format!("{mode} {advertise}: {address} {port} {tagged}"),
            )
        });
    }
}

/// What only the driver knows outlives the agent, and one that dies before it is saved asks for it again.
#[test]
fn driver_network_is_known_wherever_the_agent_dies() {
    let steps = each_crash(1, |sim| {
        sim.register(&with_driver_network("driver", false));
        sim.until(Span::secs(600), |sim| sim.runs("web", "main"))?;
        sim.converge()?;
        let wanted = Some(("10.1.2.3".to_owned(), true, true));
        sim.expect_that(announced(sim) == wanted, "it is the driver's")
    });
    assert!(steps > 5, "{steps} moments to die at");
}

/// A driver that reports what cannot be costs its task nothing but that.
#[test]
fn driver_network_that_cannot_be_is_ignored() {
    for_seeds(10, |sim| {
        let mut web = with_driver_network("driver", true);
        let main = &mut web.task_groups[0].tasks[0];
        let ip = Value::from("next door");
        main.config.insert("driver_ip".to_owned(), ip);
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        let (_, port, _) = announced(sim).unwrap_or_default();
        sim.expect_that(!port, "it is the host's")
    });
}

/// A service that Consul is to know of is nothing to us.
#[test]
fn services_of_other_providers_are_not_registered() {
    for_seeds(10, |sim| {
        let mut web = service("web", [task("main").serves("ours", "80")]);
        let block = &mut web.task_groups[0].tasks[0].services[0];
        if let drover_core::model::value::Value::Map(fields) = block {
            fields.remove("Provider");
        }
        sim.register(&web);
        sim.until(SOON, |sim| sim.runs("web", "main"))?;
        sim.expect_that(registered(sim).is_empty(), "it is not ours")
    });
}
