//! What compose files and quadlets have in common: containers, as tasks of the driver `docker`.

pub(crate) mod capabilities;
pub(crate) mod health;
pub(crate) mod mounts;
pub(crate) mod ports;

use crate::hcl::{Body, Expr};
use crate::job::{Group, Names, Task};
use crate::measure::Duration;
use crate::text::Text;

/// How long a container has to end if nothing is said, with both engines.
pub(crate) const USUAL_GRACE: Duration = Duration::secs(10);
/// The longest that an agent gives a task to end, unless its configuration says more.
const LONGEST_GRACE: Duration = Duration::secs(30);

/// A container on its way to become a task: its group's parts, the task, and what is collected for `config`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Container {
    pub group: Group,
    pub task: Task,
    /// `volumes` of the driver.
    pub binds: Vec<Text>,
    /// Labels of ports that are published.
    pub published: Vec<Text>,
    /// `mount` blocks and the comments above them.
    pub mounts: Body,
    /// How the labels of its ports begin.
    pub prefix: String,
    pub labels: Names,
}

impl Container {
    /// The group with the task in it.
    pub(crate) fn finish(mut self) -> Group {
        let config = &mut self.task.config;
        config.set_list("ports", self.published);
        if !self.binds.is_empty() {
            config.comment(
                "Absolute paths are the host's, which the agent's configuration has to allow: `enabled = true` in \
                 `volumes` of its block for docker (docs/docker.md). Relative ones are below the task's own directory \
                 and need nothing.",
            );
            config.set_list("volumes", self.binds);
        }
        config.append(self.mounts);
        self.group.tasks = vec![self.task];
        self.group
    }

    /// How long it has to end.
    pub(crate) fn grace(&mut self, grace: Duration, line: usize) {
        end_within(&mut self.task.body, grace, line);
    }

    /// A device of the host, as `HOST[:CONTAINER][:PERMISSIONS]`; `what` is how the source calls it.
    pub(crate) fn device(&mut self, text: &str, what: &str, line: usize) {
        let mut parts = text.split(':');
        let host = parts.next().unwrap_or_default();
        let config = &mut self.task.config;
        if !host.starts_with('/') {
            let advice = "a device by a vendor's name is asked for with a block `device \"NAME\" {}` in resources";
            return config.lost(line, what, advice);
        }
        let mut body = Body::default();
        body.set("host_path", host);
        for part in parts {
            let is_path = part.starts_with('/');
            body.set(
                if is_path {
                    "container_path"
                } else {
                    "cgroup_permissions"
                },
                part,
            );
        }
        config.block("devices", body);
    }

    /// A path of the container that is kept in memory.
    pub(crate) fn tmpfs(
        &mut self,
        target: Text,
        size: Option<u64>,
        mode: Option<u64>,
        line: usize,
    ) {
        if let Some(path) = target.plain().filter(|path| !path.starts_with('/')) {
            self.mounts
                .lost(line, &format!("tmpfs {path}"), "the path must be absolute");
            return;
        }
        let mut mount = Body::default();
        mount.set("type", "tmpfs");
        mount.set("target", target);
        let mut options = Body::default();
        if let Some(size) = size {
            options.set("size", size);
        }
        if let Some(mode) = mode {
            options.set("mode", mode);
        }
        if !options.is_empty() {
            mount.block("tmpfs_options", options);
        }
        self.mounts.block("mount", mount);
    }
}

/// How long a task has to end.
pub(crate) fn end_within(body: &mut Body, grace: Duration, line: usize) {
    if grace > LONGEST_GRACE {
        let words =
            "an agent gives a task 30 s at most, unless its configuration says max_kill_timeout";
        body.remark(line, "kill_timeout", words);
    }
    // No job may say more: a deployment has failed by then.
    let most = Duration::secs(600);
    if grace > most {
        body.remark(
            line,
            "kill_timeout",
            "more than ten minutes cannot be expressed",
        );
    }
    body.set("kill_timeout", grace.min(most).text());
}

/// Memory in bytes as `resources` have it: what is reserved, and the limit.
pub(crate) fn memory(resources: &mut Body, reserved: Option<u64>, limit: Option<u64>) {
    /// The least memory of a task, in megabytes.
    const LEAST: u64 = 10;
    let megabytes = |bytes: u64| crate::measure::megabytes(bytes).max(LEAST);
    match (reserved.map(megabytes), limit.map(megabytes)) {
        (Some(reserved), Some(limit)) if reserved < limit => {
            resources.set("memory", reserved);
            resources.set("memory_max", limit);
        }
        (_, Some(limit)) => resources.set("memory", limit),
        (Some(reserved), None) => {
            resources.comment(
                "Only a reservation was given: it is the limit, too, unless memory_max says more.",
            );
            resources.set("memory", reserved);
        }
        (None, None) => {
            resources
                .comment("No limit was given. Here there is one: a task that needs more is ended.");
            resources.set("memory", 300_u64);
        }
    }
}

/// A share of a core, in thousandths, as `cpu` has it.
pub(crate) fn cpu(resources: &mut Body, thousandths: u64, line: usize, what: &str) {
    let words = "cpu counts MHz. A core is taken for 1000 of them here: `drover node status -self` says how many it has";
    resources.remark(line, what, words);
    resources.set("cpu", thousandths.clamp(1, 1 << 20));
}

/// A group whose task is not started again when it has ended.
pub(crate) fn never_again(group: &mut Body, is_batch: bool) {
    if !is_batch {
        group.comment("In a job of type service also an end with exit code 0 counts as a failure.");
    }
    let mut restart = Body::default();
    restart.set("attempts", 0_u64);
    restart.set("mode", "fail");
    group.block("restart", restart);
    let mut reschedule = Body::default();
    reschedule.set("attempts", 0_u64);
    reschedule.set("unlimited", false);
    group.block("reschedule", reschedule);
}

/// The longest pause before a task is started again.
const LONGEST_DELAY: Duration = Duration::secs(30 * 86_400);

/// A group whose task is started again after each end.
pub(crate) fn always_again(group: &mut Body, delay: Duration) {
    const ATTEMPTS: u128 = 10;
    let delay = delay.min(LONGEST_DELAY);
    let interval = Duration((delay.0 * ATTEMPTS).max(Duration::secs(60).0));
    let mut restart = Body::default();
    restart.set("attempts", 10_u64);
    restart.set("interval", interval.text());
    restart.set("delay", delay.text());
    restart.set("mode", "delay");
    group.block("restart", restart);
}

/// A group whose task is started again so many times, and has failed then.
pub(crate) fn again(group: &mut Body, attempts: u64, delay: Duration, within: Duration) {
    let delay = delay.min(LONGEST_DELAY);
    let needed = Duration(delay.0.saturating_mul(u128::from(attempts)));
    let within = within.max(needed).max(Duration::secs(5));
    let mut restart = Body::default();
    restart.set("attempts", attempts);
    restart.set("interval", within.text());
    restart.set("delay", delay.text());
    restart.set("mode", "fail");
    group.block("restart", restart);
}

/// A service of the node's own, with its checks.
pub(crate) fn service(name: &str, port: Option<&str>, check: Option<Body>) -> Body {
    let mut body = Body::default();
    body.set("name", name);
    if let Some(port) = port {
        body.set("port", port);
    }
    body.set("provider", "nomad");
    if let Some(check) = check {
        body.block("check", check);
    }
    body
}

/// A template whose text nothing is replaced in.
pub(crate) fn verbatim(data: Expr, destination: &str) -> Body {
    let mut body = Body::default();
    body.set("data", data);
    body.set("destination", destination);
    // The text is to stay as it is, whatever braces there are in it.
    body.set("left_delimiter", "[[[[");
    body.set("right_delimiter", "]]]]");
    body
}

/// A template with an item of the job's own variable.
pub(crate) fn secret(variable: &str, key: &str, destination: &str) -> Body {
    let mut body = Body::default();
    let data = format!("{{{{ with nomadVar \"{variable}\" }}}}{{{{ .{key} }}}}{{{{ end }}}}");
    body.set("data", data);
    body.set("destination", destination);
    body
}

/// A key of a variable for a name of any kind.
pub(crate) fn key(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let key: String = name
        .chars()
        .take(100)
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    match key.chars().next() {
        Some(first) if !first.is_ascii_digit() => key,
        _ => format!("_{key}"),
    }
}
