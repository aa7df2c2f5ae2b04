//! `drover alloc status`: an allocation with its tasks and what happened to them.

use serde_json::Value;

use super::args::AllocStatusArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, short, table};
use super::usage::{bytes, is_busy_known, memory_used, mhz, sections, unset};
use super::{alloc_checks, eval_status, job_status, lookup};
use crate::http::dto::{
    Alloc, AllocStats, AllocStub, DriverNetworkDto, ResourceUsage, TaskEventDto, TaskStateDto,
};
use crate::times;

/// Runs the command.
///
/// # Errors
/// The allocation cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: AllocStatusArgs) -> Outcome {
    let Some(prefix) = &args.alloc else {
        if args.shape.is_asked() {
            let all: Value = cx.client.get("/v1/allocations", &[]).await?;
            return cx.show(&args.shape, &all);
        }
        let allocs: Vec<AllocStub> = cx.client.get("/v1/allocations", &[]).await?;
        let shown = job_status::allocations(cx, &allocs, args.verbose);
        cx.screen.print_line(&shown)?;
        return Ok(0);
    };
    let stub = lookup::alloc(&cx.client, prefix).await?;
    let path = format!("/v1/allocation/{}", stub.id);
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let alloc: Alloc = cx.client.get(&path, &[]).await?;
    if args.short {
        return print_short(cx, &alloc, args.verbose);
    }
    let replaced = replaced_in(cx, &alloc).await;
    let head = head(cx, &alloc, replaced, args.verbose);
    cx.screen.print_line(&head)?;
    addresses(cx, &alloc)?;
    checks(cx, &alloc).await?;
    let stats = match (stats(cx, &alloc).await, args.stats) {
        (Ok(stats), _) => Some(stats),
        (Err(failure), true) => return Err(failure),
        // What it is and was can be told without.
        (Err(_), false) => None,
    };
    for (name, stage) in tasks_in_order(&alloc) {
        let stats = stats.as_ref().map(|stats| stats.tasks.get(&name));
        let used = stats.map(|task| task.map(|task| task.resource_usage.clone()));
        print_task(
            cx,
            &alloc,
            &name,
            stage,
            used.map(Option::unwrap_or_default),
            args.stats,
        )?;
    }
    Ok(0)
}

async fn checks(cx: &mut Context, alloc: &Alloc) -> Result<(), Failure> {
    // What else it is and was can be told without.
    let all = alloc_checks::of_alloc(cx, &alloc.stub.id).await;
    let Some(section) = alloc_checks::section(&all.unwrap_or_default()) else {
        return Ok(());
    };
    cx.screen.title("\nNomad Service Checks:")?;
    cx.screen.print_line(&section)
}

async fn stats(cx: &Context, alloc: &Alloc) -> Result<AllocStats, Failure> {
    let path = format!("/v1/client/allocation/{}/stats", alloc.stub.id);
    cx.client.get(&path, &[]).await
}

/// When it is replaced, if it failed and waits for that.
async fn replaced_in(cx: &Context, alloc: &Alloc) -> Option<String> {
    let id = Some(&alloc.stub.followup_eval_id).filter(|id| !id.is_empty())?;
    // What else it is and was can be told without.
    let eval = cx.client.get(&format!("/v1/evaluation/{id}"), &[]).await;
    eval_status::wait(&eval.ok()?)
}

fn head(cx: &Context, whole: &Alloc, replaced: Option<String>, verbose: bool) -> String {
    let alloc = &whole.stub;
    let mut lines = vec![
        ("ID", alloc.id.clone()),
        ("Eval ID", short(&alloc.eval_id, verbose)),
        ("Name", alloc.name.clone()),
        ("Node ID", short(&alloc.node_id, verbose)),
        ("Node Name", alloc.node_name.clone()),
        ("Job ID", alloc.job_id.clone()),
        ("Job Version", alloc.job_version.to_string()),
        ("Client Status", alloc.client_status.clone()),
        ("Client Description", alloc.client_description.clone()),
        ("Desired Status", alloc.desired_status.clone()),
        ("Desired Description", alloc.desired_description.clone()),
        ("Created", cx.time(alloc.create_time, verbose)),
        ("Modified", cx.time(alloc.modify_time, verbose)),
    ];
    if let Some(is_local) = alloc.local {
        lines.push(("Placed By", placed_by(is_local).to_owned()));
    }
    if !alloc.deployment_id.is_empty() {
        lines.push(("Deployment ID", short(&alloc.deployment_id, verbose)));
        let healthy = alloc
            .deployment_status
            .as_ref()
            .and_then(|status| status.healthy);
        let health = match healthy {
            Some(true) => "healthy",
            Some(false) => "unhealthy",
            None => "unset",
        };
        lines.push(("Deployment Health", health.to_owned()));
    }
    if !alloc.next_allocation.is_empty() {
        lines.push((
            "Replacement Alloc ID",
            short(&alloc.next_allocation, verbose),
        ));
    }
    lines.extend(replaced.map(|time| ("Reschedule Eligibility", time)));
    if !alloc.preempted_by_allocation.is_empty() {
        let by = short(&alloc.preempted_by_allocation, verbose);
        lines.push(("Preempted By", by));
    }
    if let Some(all) = &alloc.preempted_allocations {
        let all: Vec<String> = all.iter().map(|id| short(id, verbose)).collect();
        lines.push(("Preempted Allocs", all.join(", ")));
    }
    if whole.directory_collected {
        lines.push(("Directory", "garbage-collected".to_owned()));
    }
    block(lines)
}

/// Whose an allocation on a node of a cluster is.
fn placed_by(is_local: bool) -> &'static str {
    match is_local {
        true => "this node itself; its servers know nothing of it",
        false => "the servers of the cluster",
    }
}

fn addresses(cx: &mut Context, alloc: &Alloc) -> Result<(), Failure> {
    let ports = &alloc.allocated_resources.shared.ports;
    if let Some(network) = &alloc.network_status
        && !network.interface_name.is_empty()
    {
        let words = format!(
            "\nAllocation Network:\nAddress = {} ({})",
            network.address, network.interface_name
        );
        cx.screen.print_line(&words)?;
    }
    if ports.is_empty() {
        return Ok(());
    }
    cx.screen.title("\nAllocation Addresses:")?;
    let rows = ports.iter().map(|port| {
        let inside = if port.to > 0 {
            format!(" -> {}", port.to)
        } else {
            String::new()
        };
        [
            port.label.clone(),
            format!("{}:{}{inside}", port.host_ip, port.value),
        ]
    });
    cx.screen.print_line(&table(["Label", "Address"], rows))
}

/// The tasks' names with their stage of the group's life, as they begin.
fn tasks_in_order(alloc: &Alloc) -> Vec<(String, &'static str)> {
    let stage = |name: &String| {
        let lifecycle = alloc
            .allocated_resources
            .task_lifecycles
            .get(name)
            .copied()
            .flatten();
        let hook = lifecycle.map(|lifecycle| (lifecycle.hook, lifecycle.sidecar));
        use drover_core::model::task::Hook;
        match hook {
            Some((Hook::Prestart, false)) => (0, "prestart"),
            Some((Hook::Prestart, true)) => (1, "prestart sidecar"),
            None => (2, "main"),
            Some((Hook::Poststart, false)) => (3, "poststart"),
            Some((Hook::Poststart, true)) => (4, "poststart sidecar"),
            Some((Hook::Poststop, _)) => (5, "poststop"),
        }
    };
    let names = alloc.stub.task_states.keys();
    let mut tasks: Vec<_> = names.map(|name| (stage(name), name.clone())).collect();
    tasks.sort();
    tasks
        .into_iter()
        .map(|((_, stage), name)| (name, stage))
        .collect()
}

fn print_short(cx: &mut Context, alloc: &Alloc, verbose: bool) -> Outcome {
    let stub = &alloc.stub;
    let head = block([
        ("ID", stub.id.clone()),
        ("Name", stub.name.clone()),
        ("Created", cx.time(stub.create_time, verbose)),
        ("Modified", cx.time(stub.modify_time, verbose)),
    ]);
    let rows = tasks_in_order(alloc).into_iter().map(|(name, stage)| {
        let state = stub.task_states.get(&name).cloned().unwrap_or_default();
        let last = state.events.last().map(TaskEventDto::fields);
        let last = last.unwrap_or_default();
        let time = times::to_seconds(drover_core::time::Timestamp(last.time));
        let kind = last.kind.into_owned();
        [name, state.state.clone(), kind, time, stage.to_owned()]
    });
    let tasks = table(["Name", "State", "Last Event", "Time", "Lifecycle"], rows);
    cx.screen.print_line(&format!("{head}\n\nTasks\n{tasks}"))?;
    Ok(0)
}

/// A task, with what it uses if that is known, and all of it if that was asked for.
fn print_task(
    cx: &mut Context,
    alloc: &Alloc,
    name: &str,
    stage: &str,
    used: Option<ResourceUsage>,
    whole: bool,
) -> Result<(), Failure> {
    let state = alloc
        .stub
        .task_states
        .get(name)
        .cloned()
        .unwrap_or_default();
    let stage = if stage == "main" {
        String::new()
    } else {
        format!(" ({stage})")
    };
    cx.screen
        .title(&format!("\nTask \"{name}\"{stage} is \"{}\"", state.state))?;
    let resources = alloc
        .allocated_resources
        .tasks
        .get(name)
        .cloned()
        .unwrap_or_default();
    let (shares, memory) = (resources.cpu.cpu_shares, resources.memory.memory_mb);
    let (cpu, memory) = match &used {
        None => (format!("{shares} MHz"), format!("{memory} MiB")),
        Some(used) => {
            let own = memory_used(&used.memory_stats).map_or_else(unset, bytes);
            let ticks = is_busy_known(&used.cpu_stats).then_some(used.cpu_stats.total_ticks);
            let cpu = mhz(ticks, Some(shares as f64));
            (cpu, format!("{own}/{memory} MiB"))
        }
    };
    let disk = format!("{} MiB", alloc.allocated_resources.shared.disk_mb);
    let table = table(["CPU", "Memory", "Disk"], [[cpu, memory, disk]]);
    cx.screen
        .print_line(&format!("Task Resources:\n{table}\n"))?;
    let used = used.as_ref().filter(|_| whole);
    let used = used.map(sections).unwrap_or_default();
    if !used.is_empty() {
        cx.screen.print_line(used.trim_end_matches('\n'))?;
        cx.screen.print_line("")?;
    }
    if let Some(network) = &state.driver_network {
        cx.screen
            .print_line(&format!("Driver Network:\n{}\n", words_of(network)))?;
    }
    cx.screen
        .print_line(&format!("Task Events:\n{}\n", times_of(&state)))?;
    cx.screen.print_line(&format!(
        "Recent Events:\n{}",
        event_table(state.events.iter().rev())
    ))
}

/// What only the driver knows of a task's network.
fn words_of(network: &DriverNetworkDto) -> String {
    let ports = network.port_map.iter();
    let ports: Vec<String> = ports
        .map(|(label, port)| format!("{label}: {port}"))
        .collect();
    let advertised = if network.auto_advertise { "yes" } else { "no" };
    block([
        ("Address", network.ip.clone()),
        ("Advertised", advertised.to_owned()),
        ("Ports", ports.join(", ")),
    ])
}

fn times_of(state: &TaskStateDto) -> String {
    let time = |time: &Option<String>| {
        let parsed = time
            .as_deref()
            .and_then(times::parse)
            .filter(|time| time.0 > 0);
        parsed.map_or_else(|| "N/A".to_owned(), times::to_seconds)
    };
    block([
        ("Started At", time(&state.started_at)),
        ("Finished At", time(&state.finished_at)),
        ("Total Restarts", state.restarts.to_string()),
        ("Last Restart", time(&state.last_restart)),
    ])
}

/// A table of events.
pub(super) fn event_table<'a>(events: impl Iterator<Item = &'a TaskEventDto>) -> String {
    let rows = events.map(|event| {
        let event = event.fields();
        let time = times::to_seconds(drover_core::time::Timestamp(event.time));
        [
            time,
            event.kind.into_owned(),
            event.display_message.into_owned(),
        ]
    });
    table(["Time", "Type", "Description"], rows)
}
