//! How many copies of a service run, what they may use, when they are started again, and how they are replaced.

use super::service::Service;
use crate::container;
use crate::error::{Result, quote};
use crate::hcl::Body;
use crate::measure::{self, Duration};
use crate::yaml::{Fields, Node};

/// How long a container pauses before it is started again.
const DELAY: Duration = Duration::secs(5);
/// The most attempts that are carried over.
const MAX_ATTEMPTS: u64 = 1_000;
/// The most copies of a service.
const MAX_COPIES: u64 = 10_000;

/// What `restart` or `deploy.restart_policy` says.
struct Policy {
    condition: Condition,
    attempts: Option<u64>,
    delay: Duration,
    within: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Unsaid,
    Never,
    OnFailure,
    Always,
}

/// Copies, restarts, updates, and whether the service is started at all.
pub(super) fn restart(service: &mut Service<'_, '_>, line: usize) -> Result<()> {
    let deploy = service.fields.take("deploy");
    let mut fields = match deploy {
        Some(node) => Some(node.fields("deploy")?),
        None => None,
    };
    count(service, fields.as_mut())?;
    let mut policy = of_restart(service)?;
    if let Some(node) = fields.as_mut().and_then(|it| it.take("restart_policy")) {
        of_deploy(service, node, &mut policy)?;
    }
    write(service, &policy, line);
    let Some(mut fields) = fields else {
        return Ok(());
    };
    if let Some(node) = fields.take("update_config") {
        update(service, node)?;
    }
    // Read by resources().
    fields.take("resources");
    for (key, _) in fields.rest() {
        let what = format!("deploy.{}", key.name);
        let advice = super::advice::of_deploy(&key.name);
        service.into.group.body.lost(key.at.line, &what, advice);
    }
    Ok(())
}

fn count(service: &mut Service<'_, '_>, mut deploy: Option<&mut Fields<'_>>) -> Result<()> {
    let mut count = None;
    if let Some(node) = service.fields.take("scale") {
        count = Some((copies(service, node, "scale")?, node.line()));
    }
    if let Some(node) = deploy.as_mut().and_then(|it| it.take("replicas")) {
        count = Some((copies(service, node, "replicas")?, node.line()));
    }
    if let Some(node) = deploy.as_mut().and_then(|it| it.take("mode"))
        && node.scalar().as_deref() != Some("replicated")
    {
        let advice = "on one node it is one copy; a job of type system has one on each node";
        service
            .into
            .group
            .body
            .lost(node.line(), "deploy.mode", advice);
    }
    let is_first = service.plan.is_first(service.name);
    if let Some(node) = service.fields.take("profiles") {
        let names: Vec<String> = match node.list("profiles") {
            Ok(list) => list.iter().filter_map(Node::scalar).collect(),
            Err(mistake) => return Err(mistake),
        };
        let names = names.join(", ");
        if is_first {
            let advice = "it runs because others wait for its end";
            let what = format!("profile {names}");
            service.into.task.body.lost(node.line(), &what, advice);
        } else if !names.is_empty() {
            let words = format!(
                "started only with the profile {names}; set count to {} to run it",
                count.map_or(1, |(count, _)| count)
            );
            service
                .into
                .group
                .body
                .remark(node.line(), "profiles", &words);
            count = Some((0, node.line()));
        }
    }
    match count {
        Some((count, line)) if is_first && count != 1 => {
            let advice = "it runs once in each group that waits for its end";
            service
                .into
                .task
                .body
                .lost(line, &format!("{count} copies"), advice);
        }
        Some((count, _)) => service.into.group.body.set("count", count),
        None => {}
    }
    Ok(())
}

fn copies(service: &mut Service<'_, '_>, node: &Node, what: &str) -> Result<u64> {
    let text = service.known(node, what)?;
    match text.parse::<u64>() {
        Ok(count) if count <= MAX_COPIES => Ok(count),
        _ => Err(node.mistake(format!(
            "{what}: {} is no number up to {MAX_COPIES}",
            quote(&text)
        ))),
    }
}

fn of_restart(service: &mut Service<'_, '_>) -> Result<Policy> {
    let mut policy = Policy {
        condition: Condition::Unsaid,
        attempts: None,
        delay: DELAY,
        within: Duration::secs(24 * 3_600),
    };
    let Some(node) = service.fields.take("restart") else {
        return Ok(policy);
    };
    let text = service.known(node, "restart")?;
    let (name, number) = text
        .split_once(':')
        .map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
    policy.condition = match name {
        "no" | "false" => Condition::Never,
        "always" | "unless-stopped" => Condition::Always,
        "on-failure" => Condition::OnFailure,
        _ => {
            let words = "restart must be no, always, on-failure or unless-stopped, not";
            return Err(node.mistake(format!("{words} {}", quote(&text))));
        }
    };
    if let Some(number) = number {
        let number = number.parse::<u64>();
        policy.attempts =
            Some(number.map_err(|_| node.mistake("on-failure: must be followed by a number"))?);
    }
    Ok(policy)
}

fn of_deploy(service: &mut Service<'_, '_>, node: &Node, policy: &mut Policy) -> Result<()> {
    let mut fields = node.fields("restart_policy")?;
    policy.condition = match fields.take("condition").and_then(Node::scalar).as_deref() {
        None | Some("any") => Condition::Always,
        Some("none") => Condition::Never,
        Some("on-failure") => Condition::OnFailure,
        Some(_) => return Err(node.mistake("condition must be none, on-failure or any")),
    };
    for name in ["delay", "window"] {
        let Some(node) = fields.take(name) else {
            continue;
        };
        let text = service.known(node, name)?;
        let duration = measure::duration(&text);
        let duration = duration
            .ok_or_else(|| node.mistake(format!("{name} must be a duration such as 5s")))?;
        match name {
            "delay" => policy.delay = duration,
            _ => policy.within = duration,
        }
    }
    if let Some(node) = fields.take("max_attempts") {
        let text = service.known(node, "max_attempts")?;
        let number = text.parse::<u64>();
        policy.attempts = Some(number.map_err(|_| node.mistake("max_attempts must be a number"))?);
    }
    for (key, _) in fields.rest() {
        let what = format!("deploy.restart_policy.{}", key.name);
        service
            .into
            .group
            .body
            .lost(key.at.line, &what, "restart blocks have nothing like it");
    }
    Ok(())
}

fn write(service: &mut Service<'_, '_>, policy: &Policy, line: usize) {
    let is_batch = service.cx.is_batch;
    if service.plan.is_first(service.name) {
        // The group's restart block is the other service's.
        if policy.condition == Condition::Always {
            let advice = "it runs to its end before the others start; the group's restart block holds for it, too";
            service.into.task.body.lost(line, "restart", advice);
        }
        return;
    }
    let body = &mut service.into.group.body;
    match (policy.condition, policy.attempts) {
        (Condition::Unsaid, _) => {
            let words = "compose leaves it when it has ended; here it is started again, unless there is \
                         `restart { attempts = 0 }` with `mode = \"fail\"`";
            body.remark(line, "no restart", words);
        }
        (Condition::Never, _) => container::never_again(body, is_batch),
        (Condition::Always, None) if !is_batch => container::always_again(body, policy.delay),
        (Condition::OnFailure, None) if !is_batch => {
            let words =
                "in a job of type service it is started again also when it ends with exit code 0";
            body.remark(line, "restart on failure", words);
            container::always_again(body, policy.delay);
        }
        (_, None) => container::always_again(body, policy.delay),
        (_, Some(attempts)) => {
            let attempts = attempts.min(MAX_ATTEMPTS);
            container::again(body, attempts, policy.delay, policy.within);
        }
    }
}

fn update(service: &mut Service<'_, '_>, node: &Node) -> Result<()> {
    let mut fields = node.fields("update_config")?;
    let mut body = Body::default();
    if let Some(node) = fields.take("parallelism") {
        let text = service.known(node, "parallelism")?;
        match text.parse::<u64>().ok().filter(|it| *it <= MAX_COPIES) {
            Some(0) => body.lost(
                node.line(),
                "parallelism 0",
                "say how many at once: max_parallel",
            ),
            Some(number) => body.set("max_parallel", number),
            None => return Err(node.mistake("parallelism must be a number")),
        }
    }
    if let Some(node) = fields.take("monitor") {
        let text = service.known(node, "monitor")?;
        match measure::duration(&text) {
            // More than that does not fit into the usual healthy_deadline of five minutes.
            Some(monitor) if monitor < Duration::secs(240) => {
                body.set("min_healthy_time", monitor.text())
            }
            Some(_) => body.lost(
                node.line(),
                "monitor",
                "set min_healthy_time, healthy_deadline and progress_deadline",
            ),
            None => return Err(node.mistake("monitor must be a duration")),
        }
    }
    match fields
        .take("failure_action")
        .and_then(Node::scalar)
        .as_deref()
    {
        Some("rollback") => body.set("auto_revert", true),
        Some("continue") => body.lost(
            node.line(),
            "failure_action continue",
            "a deployment that fails stops",
        ),
        _ => {}
    }
    for (key, _) in fields.rest() {
        let what = format!("deploy.update_config.{}", key.name);
        let advice = match key.name.as_str() {
            "order" => {
                "copies are replaced one after the other; with canaries new ones run beside the old"
            }
            "delay" => {
                "the next copy is replaced when the one before is healthy for min_healthy_time"
            }
            _ => "see docs/deployments.md",
        };
        body.lost(key.at.line, &what, advice);
    }
    if !body.is_empty() && !service.cx.is_batch && !service.plan.is_first(service.name) {
        service.into.group.body.block("update", body);
    }
    Ok(())
}

/// `resources` of the task.
pub(super) fn resources(service: &mut Service<'_, '_>) -> Result<()> {
    let mut limits = Limits::default();
    // A second look at what restart() took.
    if let Some(deploy) = service.fields.take("deploy")
        && let Some(node) = deploy.fields("deploy")?.take("resources")
    {
        of_resources(service, node, &mut limits)?;
    }
    for (name, is_limit) in [("mem_limit", true), ("mem_reservation", false)] {
        if let Some(node) = service.fields.take(name) {
            let bytes = Some(service.bytes(node, name)?);
            match is_limit {
                true => limits.memory = bytes,
                false => limits.reserved = bytes,
            }
        }
    }
    if let Some(node) = service.fields.take("cpus") {
        limits.cpu = Some((thousandths(service, node)?, node.line(), "cpus"));
    }
    if let Some(node) = service.fields.take("cpuset") {
        let set = service.text(node, "cpuset")?;
        service.into.task.config.set("cpuset_cpus", set);
    }
    for (from, to, most) in [
        ("pids_limit", "pids_limit", 1 << 22),
        ("oom_score_adj", "oom_score_adj", 1_000),
    ] {
        let Some(node) = service.fields.take(from) else {
            continue;
        };
        let text = service.known(node, from)?;
        match text.parse::<u64>() {
            Ok(number) if number <= most => service.into.task.config.set(to, number),
            _ => {
                let advice = format!("it can be from 0 to {most} here");
                service.into.task.config.lost(node.line(), from, &advice);
            }
        }
    }
    if let Some(pids) = limits.pids {
        service.into.task.config.set("pids_limit", pids);
    }
    let resources = &mut service.into.task.resources;
    if let Some((cpu, line, what)) = limits.cpu.filter(|(cpu, ..)| *cpu > 0) {
        container::cpu(resources, cpu, line, what);
        if limits.hard {
            service.into.task.config.set("cpu_hard_limit", true);
        }
    }
    container::memory(
        resources,
        limits.reserved,
        limits.memory.filter(|it| *it > 0),
    );
    Ok(())
}

struct Limits {
    memory: Option<u64>,
    reserved: Option<u64>,
    cpu: Option<(u64, usize, &'static str)>,
    /// Whether it gets no more, even if nobody else wants it.
    hard: bool,
    pids: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory: None,
            reserved: None,
            cpu: None,
            hard: true,
            pids: None,
        }
    }
}

fn of_resources(service: &mut Service<'_, '_>, node: &Node, limits: &mut Limits) -> Result<()> {
    let mut fields = node.fields("resources")?;
    for part in ["reservations", "limits"] {
        let Some(node) = fields.take(part) else {
            continue;
        };
        let is_limit = part == "limits";
        let mut fields = node.fields(part)?;
        if let Some(node) = fields.take("memory") {
            let bytes = Some(service.bytes(node, "memory")?);
            match is_limit {
                true => limits.memory = bytes,
                false => limits.reserved = bytes,
            }
        }
        if let Some(node) = fields.take("cpus") {
            limits.cpu = Some((thousandths(service, node)?, node.line(), "cpus"));
            limits.hard = is_limit;
        }
        if let Some(node) = fields.take("pids") {
            let text = service.known(node, "pids")?;
            limits.pids = text.parse().ok().filter(|it| *it <= 1 << 22);
            if limits.pids.is_none() {
                let what = format!("pids {}", quote(&text));
                let config = &mut service.into.task.config;
                config.lost(node.line(), &what, "it must be a number up to 4194304 here");
            }
        }
        for (key, _) in fields.rest() {
            let what = format!("deploy.resources.{part}.{}", key.name);
            let advice = match key.name.as_str() {
                "devices" => "ask for it with a block `device \"nvidia/gpu\" {}` in resources",
                _ => "resources have nothing like it",
            };
            service.into.task.resources.lost(key.at.line, &what, advice);
        }
    }
    for (key, _) in fields.rest() {
        let what = format!("deploy.resources.{}", key.name);
        service
            .into
            .task
            .resources
            .lost(key.at.line, &what, "limits and reservations are known");
    }
    Ok(())
}

/// A number of cores, in thousandths.
fn thousandths(service: &mut Service<'_, '_>, node: &Node) -> Result<u64> {
    let text = service.known(node, "cpus")?;
    let cpu = measure::decimal(&text, 1_000).and_then(|it| u64::try_from(it).ok());
    cpu.ok_or_else(|| node.mistake(format!("cpus: {} is no number of cores", quote(&text))))
}
