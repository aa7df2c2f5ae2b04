//! The checks of the allocation's services: whose runs they are about, what is asked of the world, and what follows
//! from the answers. What one check decides is in [`crate::checks`].

use std::sync::Arc;

use super::{AllocRunner, Phase};
use crate::checks::endpoint::endpoint;
use crate::checks::judge::{self, Judgement};
use crate::checks::runner::{Due, Target};
use crate::checks::{self, About, CheckRunner, CheckSpec};
use crate::config::Config;
use crate::cx::Cx;
use crate::effect::{CheckEffect, Effect, Notification, Probe, ProbeKind, request};
use crate::ids::{LaunchId, TaskName};
use crate::input::{CheckInput, DriverInput};
use crate::interpolate::{Names, interpolate};
use crate::model::check::{CheckKind, HttpRequest};
use crate::model::event::HEALTHCHECK;
use crate::model::job::Job;
use crate::model::notice::Notice;
use crate::op::Op;
use crate::operations::{Owner, Purpose};
use crate::store::record::AllocRecord;
use crate::task::runner::{Phase as TaskPhase, Scope, TaskRunner};
use crate::text::quote;
use crate::time::Span;

/// The checks of an allocation of this group, none of which runs yet.
pub(super) fn of_group(config: &Config, job: &Job, group: &str) -> Vec<CheckRunner> {
    let specs = job
        .group(group)
        .map(|group| checks::of_group(group, config.consul_services));
    let specs = specs.into_iter().flatten();
    specs.map(CheckRunner::new).collect()
}

impl AllocRunner {
    /// The checks of its services, in the order of the job file.
    pub fn checks(&self) -> &[CheckRunner] {
        &self.checks
    }

    /// What keeps it from being healthy as far as checks go, in words.
    pub(super) fn failing_check(&self) -> Option<String> {
        let failing = self.checks.iter().find(|check| !check.lets_be_healthy());
        failing.map(CheckRunner::words)
    }

    /// Begins, stops and runs checks as it is their time.
    pub(super) fn advance_checks(&mut self, cx: &mut Cx<'_>) {
        if self.checks.is_empty() {
            return;
        }
        let mut all = core::mem::take(&mut self.checks);
        for (at, check) in all.iter_mut().enumerate() {
            self.follow_tasks(cx, check);
            if let Due::Ask(target, timeout) = check.due(cx.now.at) {
                self.ask(cx, at, check, &target, timeout);
            }
        }
        self.checks = all;
    }

    /// A check runs while a task that it is about does, and begins anew with each start of one.
    fn follow_tasks(&self, cx: &mut Cx<'_>, check: &mut CheckRunner) {
        let running = self.checked_launches(&check.spec().about);
        if check.goes_on_with(&running) {
            return check.keep(&running);
        }
        give_up(cx, check.stop());
        if running.is_empty() {
            return;
        }
        let half = Span(check.spec().check.interval.0 / 2);
        let first = cx.jittered(half);
        let (names, target) = self.resolve(cx.config, check.spec());
        check.begin(cx.now.at, running, names, target, first);
    }

    /// The launches that a check is about: of tasks that run, and that nobody ends.
    fn checked_launches(&self, about: &About) -> Vec<LaunchId> {
        if self.kill.is_some() || !matches!(self.phase, Phase::Tasks(_)) {
            return Vec::new();
        }
        let runs = |task: &&TaskRunner| {
            let runs = matches!(task.phase(), TaskPhase::Running) && !task.is_ending();
            let spec = task.spec();
            runs && about.includes(&spec.key.task, spec.stage())
        };
        let running = self.tasks.iter().filter(runs);
        let launch = |task: &TaskRunner| Some(task.record().launch.as_ref()?.id);
        running.filter_map(launch).collect()
    }

    fn ask(
        &self,
        cx: &mut Cx<'_>,
        at: usize,
        check: &mut CheckRunner,
        target: &Target,
        timeout: Span,
    ) {
        let owner = Owner::Alloc(self.record.id);
        let asked = match target {
            Target::Nobody(why) => Err(why.clone()),
            Target::Service(probe) => {
                let op = cx.operation(owner, Purpose::Check, timeout);
                cx.send(Effect::Check(CheckEffect::Run {
                    op,
                    alloc: self.record.id,
                    check: at,
                    probe: probe.clone(),
                }));
                Ok(op)
            }
            Target::Script(task, command, args) => self.run_check(cx, task, command, args, timeout),
            Target::Own(task) => self.ask_task(cx, task, timeout),
        };
        match asked {
            Ok(op) => check.asked(cx.now.at, op),
            // Nobody was asked: it fails as if the answer said so, at each of its times.
            Err(why) => {
                check.judged(cx.now, Judgement::failed(why));
                tell_of_check(cx, &self.record, self.health.is_some(), check);
            }
        }
    }

    /// Runs the program of a check in its task.
    fn run_check(
        &self,
        cx: &mut Cx<'_>,
        task: &TaskName,
        command: &str,
        args: &[String],
        timeout: Span,
    ) -> Result<Op, String> {
        let scope = Scope {
            alloc: &self.record,
            gate_open: true,
        };
        let task = self.task(task);
        let task = task.ok_or_else(|| "the group has no such task".to_owned())?;
        let (launch, program) = task.program_beside(cx, scope, command, args, timeout)?;
        let limit = task.time_of_program(cx, timeout);
        let op = cx.operation(Owner::Alloc(self.record.id), Purpose::Check, limit);
        let effect = request::Exec {
            op,
            launch,
            program: Arc::new(program),
            output: true,
        };
        cx.drive(&task.spec().driver, &task.spec().key, effect);
        Ok(op)
    }

    /// Asks what a task's own health check says.
    fn ask_task(&self, cx: &mut Cx<'_>, task: &TaskName, timeout: Span) -> Result<Op, String> {
        let task = self.task(task).ok_or("the group has no such task")?;
        let launch = task.record().launch.as_ref();
        let launch = launch.ok_or("the task does not run")?.id;
        let op = cx.operation(Owner::Alloc(self.record.id), Purpose::Check, timeout);
        let effect = request::Health { op, launch };
        cx.drive(&task.spec().driver, &task.spec().key, effect);
        Ok(op)
    }

    /// A service answered, or did not.
    pub fn on_check(&mut self, cx: &mut Cx<'_>, input: CheckInput) {
        let owner = Owner::Alloc(self.record.id);
        let succeeded = input.result.is_ok();
        match cx.shared.operations.answered(&owner, input.op, succeeded) {
            Some(_) => self.judged(cx, input.op, judge::of_probe(input.result)),
            None => cx.count_stale(),
        }
    }

    /// Takes what a driver says of a check in a task. Gives back what is nothing of the kind.
    pub(super) fn on_check_program(
        &mut self,
        cx: &mut Cx<'_>,
        input: DriverInput,
    ) -> Option<DriverInput> {
        let own = |op: Op| self.checks.iter().any(|check| check.awaited() == Some(op));
        if !matches!(&input, DriverInput::Executed { op, .. } if own(*op)) {
            return Some(input);
        }
        if let DriverInput::Executed {
            op, result, output, ..
        } = input
        {
            let owner = Owner::Alloc(self.record.id);
            match cx.shared.operations.answered(&owner, op, result.is_ok()) {
                Some(_) => {
                    let judgement = match self.is_own_check(op) {
                        true => judge::of_health(result, output),
                        false => judge::of_script(result, output),
                    };
                    self.judged(cx, op, judgement);
                }
                None => cx.count_stale(),
            }
        }
        None
    }

    /// Whether a task's own health check is what was asked.
    fn is_own_check(&self, op: Op) -> bool {
        let mut asked = self.checks.iter().filter(|one| one.awaited() == Some(op));
        asked.any(|one| one.spec().check.kind == CheckKind::Own)
    }

    /// Nothing came in time.
    pub(super) fn check_is_overdue(&mut self, cx: &mut Cx<'_>, op: Op) {
        cx.send(Effect::Check(CheckEffect::Cancel { op }));
        let check = self.checks.iter().find(|one| one.awaited() == Some(op));
        let Some(check) = check else { return };
        let why = format!("no answer within {}", check.spec().check.timeout);
        self.judged(cx, op, Judgement::failed(why));
    }

    fn judged(&mut self, cx: &mut Cx<'_>, op: Op, judgement: Judgement) {
        let check = self.checks.iter_mut().find(|one| one.awaited() == Some(op));
        let Some(check) = check else {
            return cx.count_stale();
        };
        let restarts = check.judged(cx.now, judgement);
        tell_of_check(cx, &self.record, self.health.is_some(), check);
        if !restarts {
            return;
        }
        let name = quote(check.name());
        let reason = match check.why() {
            Some(why) => format!("{HEALTHCHECK}check {name} unhealthy: {why}"),
            None => format!("{HEALTHCHECK}check {name} unhealthy"),
        };
        let about = check.spec().about.clone();
        for task in &mut self.tasks {
            let meant = match &about {
                About::Task(name) => task.spec().key.task == *name,
                // As in Nomad: everything of the group that runs.
                About::Group => true,
            };
            if meant {
                task.restart_unhealthy(cx, &reason);
            }
        }
    }

    /// A new version of the job may have other checks. What is the same goes on.
    pub(super) fn renew_checks(&mut self, cx: &mut Cx<'_>) {
        let mut before = core::mem::take(&mut self.checks);
        let new = of_group(cx.config, &self.job, self.record.group.as_str());
        for check in new {
            let same = before.iter().position(|old| old.spec() == check.spec());
            let check = same.map_or(check, |at| before.remove(at));
            self.checks.push(check);
        }
        for mut gone in before {
            give_up(cx, gone.stop());
        }
    }

    /// The names of a check and of its service, and what is to be asked, for this run of its tasks.
    fn resolve(&self, config: &Config, spec: &CheckSpec) -> ((Arc<str>, Arc<str>), Target) {
        let record = &self.record;
        let owner = spec.owner.as_ref().and_then(|name| self.task(name));
        let refers = spec.check.has_references() || spec.service.contains("${");
        let env = match (refers, owner, self.tasks.first()) {
            (true, Some(task), _) => task.environment_of_services(config, record),
            (true, None, Some(task)) => task.environment_of_group(config, record),
            (true, None, None) | (false, _, _) => Default::default(),
        };
        let names = Names {
            env: &env,
            node: &config.node,
        };
        let text = |text: &str| interpolate(text, &names);
        let shown = (text(&spec.service).into(), text(&spec.check.name).into());
        let how = match &spec.check.kind {
            CheckKind::Http(request) => ProbeKind::Http(HttpRequest {
                path: text(&request.path),
                headers: (request.headers.iter())
                    .map(|(name, value)| (name.clone(), text(value)))
                    .collect(),
                body: text(&request.body),
                ..request.clone()
            }),
            CheckKind::Tcp => ProbeKind::Tcp,
            CheckKind::Grpc(service) => ProbeKind::Grpc(text(service)),
            CheckKind::Script { command, args } => {
                let args = args.iter().map(|arg| text(arg)).collect();
                let target = match self.task_of_script(&spec.about) {
                    Some(task) => Target::Script(task, text(command), args),
                    None => Target::Nobody("no task runs in which it could run".to_owned()),
                };
                return (shown, target);
            }
            CheckKind::Own => {
                let target = match self.task_of_script(&spec.about) {
                    Some(task) => Target::Own(task),
                    None => Target::Nobody("no task runs that it is about".to_owned()),
                };
                return (shown, target);
            }
        };
        let task = match &spec.about {
            About::Task(name) => self.task(name),
            About::Group => None,
        };
        let target = target(config, record, task, spec, how);
        (shown, target)
    }

    fn task_of_script(&self, about: &About) -> Option<TaskName> {
        let runs = |task: &&TaskRunner| {
            let spec = task.spec();
            matches!(task.phase(), TaskPhase::Running)
                && about.includes(&spec.key.task, spec.stage())
        };
        let task = self.tasks.iter().find(runs)?;
        Some(task.spec().key.task.clone())
    }
}

/// Where a service is asked: at its own address only.
fn target(
    config: &Config,
    record: &AllocRecord,
    task: Option<&TaskRunner>,
    spec: &CheckSpec,
    how: ProbeKind,
) -> Target {
    let check = &spec.check;
    let port = match check.port.as_str() {
        "" => spec.service_port.as_str(),
        own => own,
    };
    let mode = match check.address_mode.as_str() {
        "" => "host",
        mode => mode,
    };
    let network = task.and_then(TaskRunner::network);
    match endpoint(record, &config.node.address, port, mode, network) {
        Some((host, port)) if port > 0 && !host.is_empty() => Target::Service(Arc::new(Probe {
            host: host.into_owned(),
            port,
            timeout: check.timeout,
            how,
        })),
        Some(_) | None => {
            let port = quote(port);
            Target::Nobody(format!("the service has no address and port for {port}"))
        }
    }
}

/// The answer is not awaited any more. A program in a task ends with that.
fn give_up(cx: &mut Cx<'_>, op: Option<Op>) {
    let Some(op) = op else { return };
    cx.shared.operations.end(op);
    cx.send(Effect::Check(CheckEffect::Cancel { op }));
}

/// Tells operators when a check begins to fail, and when it passes again; `is_starting` is whether it is not decided
/// yet if its allocation is healthy.
fn tell_of_check(cx: &mut Cx<'_>, alloc: &AllocRecord, is_starting: bool, check: &mut CheckRunner) {
    if !cx.config.notices {
        return;
    }
    let Some(fails) = check.news(cx.now.at, is_starting) else {
        return;
    };
    // The names as the job file has them: what stands for a variable may be secret.
    let spec = check.spec();
    let names = (spec.service.as_str(), spec.check.name.as_str());
    let subject = alloc.subject(spec.owner.clone());
    let notice = Notice::check(fails, names, subject, cx.now.wall);
    cx.send(Effect::Notify(Notification::Notice(Arc::new(notice))));
}
