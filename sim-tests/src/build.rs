//! Builders of jobs for scenarios.

use std::sync::Arc;

use drover_core::model::artifact::Artifact;
use drover_core::model::device::DeviceRequest;
use drover_core::model::dispatch::{DispatchPayload, ParameterizedJob};
use drover_core::model::group::{EphemeralDisk, Network, Port, TaskGroup};
use drover_core::model::identity::{Identity, RenewMode};
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::{
    PeriodicConfig, ReschedulePolicy, RestartMode, RestartPolicy, UpdateStrategy,
};
use drover_core::model::task::{Hook, Lifecycle, Task, WaitFor};
use drover_core::model::template::{ChangeMode, ChangeScript, Template};
use drover_core::model::value::Value;
use drover_core::model::volume::{HOST, VolumeMount, VolumeRequest};
use drover_core::time::Span;

/// Longer than any scenario.
pub const EVER: &str = "8760h";

/// A task of the mock driver that runs for ever.
pub fn task(name: &str) -> Task {
    Task {
        name: name.to_owned(),
        driver: "mock_driver".to_owned(),
        ..Task::default()
    }
    .with("run_for", EVER)
}

/// Words for a task.
pub trait TaskExt: Sized {
    /// The same with this option of the mock driver.
    #[must_use]
    fn with(self, option: &str, value: &str) -> Self;
    /// The same, ending after `run_for` with `code`.
    #[must_use]
    fn ends(self, run_for: &str, code: i64) -> Self;
    /// The same, at another moment of the group's life.
    #[must_use]
    fn hook(self, hook: Hook, sidecar: bool) -> Self;
    /// The same, as the leader.
    #[must_use]
    fn leader(self) -> Self;
    /// The same, with so many devices of this name.
    #[must_use]
    fn devices(self, name: &str, count: u64) -> Self;
    /// One more template, and what happens when it changes.
    #[must_use]
    fn template(self, mode: ChangeMode) -> Self;
    /// The same, registered as this service at this port of the group.
    #[must_use]
    fn serves(self, name: &str, port: &str) -> Self;
    /// The same, started when this service is healthy.
    #[must_use]
    fn waits_for(self, service: &str) -> Self;
    /// The same, with a token in a file that is good for so long, and what happens at a new one.
    #[must_use]
    fn token(self, ttl: Span, mode: RenewMode) -> Self;
    /// The same, wanting what a dispatch brings.
    #[must_use]
    fn payload(self) -> Self;
    /// The same, needing something that is fetched from there.
    #[must_use]
    fn fetches(self, source: &str) -> Self;
    /// The same, needing something that is fetched from there into its secrets.
    #[must_use]
    fn fetches_a_secret(self, source: &str) -> Self;
    /// The same, seeing this volume of its group at `/NAME`.
    #[must_use]
    fn mounts(self, volume: &str) -> Self;
    /// The same with this restart policy.
    #[must_use]
    fn restarts(self, attempts: i64, interval: Span, delay: Span, mode: RestartMode) -> Self;
}

impl TaskExt for Task {
    fn with(mut self, option: &str, value: &str) -> Task {
        self.config.insert(option.to_owned(), Value::from(value));
        self
    }

    fn ends(mut self, run_for: &str, code: i64) -> Task {
        self.config.insert("exit_code".to_owned(), Value::Int(code));
        self.with("run_for", run_for)
    }

    fn devices(mut self, name: &str, count: u64) -> Task {
        self.resources.devices.push(DeviceRequest {
            name: name.to_owned(),
            count,
            ..DeviceRequest::default()
        });
        self
    }

    fn template(mut self, change_mode: ChangeMode) -> Task {
        let number = self.templates.len();
        let signal = change_mode == ChangeMode::Signal;
        self.templates.push(Template {
            embedded_tmpl: "{{ env \"V\" }}".to_owned(),
            dest_path: format!("local/{number}"),
            change_mode,
            change_signal: if signal { "SIGHUP" } else { "" }.to_owned(),
            change_script: (change_mode == ChangeMode::Script).then(|| ChangeScript {
                command: "/bin/reload".to_owned(),
                args: vec![number.to_string()],
                ..ChangeScript::default()
            }),
            envvars: !signal,
            ..Template::default()
        });
        self
    }

    fn serves(mut self, name: &str, port: &str) -> Task {
        self.services.push(registered(name, port));
        self
    }

    fn waits_for(mut self, service: &str) -> Task {
        let service = service.to_owned();
        self.wait_for.push(WaitFor { service });
        self
    }

    fn token(mut self, ttl: Span, change_mode: RenewMode) -> Task {
        let signal = change_mode == RenewMode::Signal;
        self.identities.push(Identity {
            name: format!("i{}", self.identities.len()),
            file: true,
            env: !signal,
            change_mode,
            change_signal: if signal { "SIGHUP" } else { "" }.to_owned(),
            ttl,
            ..Identity::default()
        });
        self
    }

    fn mounts(mut self, volume: &str) -> Task {
        self.volume_mounts.push(VolumeMount {
            volume: volume.to_owned(),
            destination: format!("/{volume}"),
            ..VolumeMount::default()
        });
        self
    }

    fn payload(mut self) -> Task {
        let file = "in.txt".to_owned();
        self.dispatch_payload = Some(DispatchPayload { file });
        self
    }

    fn fetches(mut self, source: &str) -> Task {
        self.artifacts.push(Artifact {
            getter_source: source.to_owned(),
            ..Artifact::default()
        });
        self
    }

    fn fetches_a_secret(mut self, source: &str) -> Task {
        self.artifacts.push(Artifact {
            getter_source: source.to_owned(),
            relative_dest: "secrets/".to_owned(),
            ..Artifact::default()
        });
        self
    }

    fn hook(mut self, hook: Hook, sidecar: bool) -> Task {
        self.lifecycle = Some(Lifecycle { hook, sidecar });
        self
    }

    fn leader(mut self) -> Task {
        self.leader = true;
        self
    }

    fn restarts(mut self, attempts: i64, interval: Span, delay: Span, mode: RestartMode) -> Task {
        self.restart_policy = Some(RestartPolicy {
            attempts: Some(attempts),
            interval: Some(interval),
            delay: Some(delay),
            mode: Some(mode),
            render_templates: None,
        });
        self
    }
}

/// One copy of these tasks.
pub fn group(name: &str, tasks: impl Into<Vec<Task>>) -> TaskGroup {
    TaskGroup {
        name: name.to_owned(),
        tasks: tasks.into(),
        ..TaskGroup::default()
    }
}

/// Words for a group.
pub trait GroupExt: Sized {
    /// The same in so many copies.
    #[must_use]
    fn count(self, count: i64) -> Self;
    /// The same, replaced in steps of so many.
    #[must_use]
    fn rolls(self, max_parallel: i64) -> Self;
    /// The same; a failed allocation is never replaced.
    #[must_use]
    fn never_again(self) -> Self;
    /// The same; a failed allocation is replaced so often, after `delay`.
    #[must_use]
    fn reschedules(self, attempts: i64, delay: Span) -> Self;
    /// The same; a replacement takes over the disk.
    #[must_use]
    fn sticky(self) -> Self;
    /// The same, asking for the volume of the node that bears this name.
    #[must_use]
    fn volume(self, name: &str) -> Self;
    /// The same; each copy has a volume of its own.
    #[must_use]
    fn per_alloc(self, name: &str) -> Self;
    /// The same; it only reads.
    #[must_use]
    fn reads_volume(self, name: &str) -> Self;
    /// The same with a disk that comes along from other nodes, too.
    #[must_use]
    fn migrates(self) -> Self;
    /// The same with a port that this node chooses.
    #[must_use]
    fn dynamic_port(self, label: &str) -> Self;
    /// The same with a port that this node chooses, in this network of the host.
    #[must_use]
    fn dynamic_port_in(self, label: &str, host_network: &str) -> Self;
    /// The same, registered as this service at this port.
    #[must_use]
    fn registers(self, name: &str, port: &str) -> Self;
    /// The same with a network of this mode.
    #[must_use]
    fn network(self, mode: &str) -> Self;
    /// The same with this port.
    #[must_use]
    fn static_port(self, label: &str, number: i64) -> Self;
}

impl GroupExt for TaskGroup {
    fn count(mut self, count: i64) -> TaskGroup {
        self.count = Some(count);
        self
    }

    fn sticky(mut self) -> TaskGroup {
        self.ephemeral_disk = Some(EphemeralDisk {
            sticky: true,
            ..EphemeralDisk::default()
        });
        self
    }

    fn volume(self, name: &str) -> TaskGroup {
        asking(self, name, |_| ())
    }

    fn per_alloc(self, name: &str) -> TaskGroup {
        asking(self, name, |volume| volume.per_alloc = true)
    }

    fn reads_volume(self, name: &str) -> TaskGroup {
        asking(self, name, |volume| volume.read_only = true)
    }

    fn migrates(mut self) -> TaskGroup {
        self.ephemeral_disk = Some(EphemeralDisk {
            sticky: true,
            migrate: true,
            ..EphemeralDisk::default()
        });
        self
    }

    fn rolls(mut self, max_parallel: i64) -> TaskGroup {
        self.update = Some(UpdateStrategy {
            max_parallel,
            ..UpdateStrategy::default()
        });
        self
    }

    fn never_again(mut self) -> TaskGroup {
        self.reschedule_policy = Some(ReschedulePolicy {
            attempts: Some(0),
            unlimited: Some(false),
            ..ReschedulePolicy::default()
        });
        self
    }

    fn reschedules(mut self, attempts: i64, delay: Span) -> TaskGroup {
        self.reschedule_policy = Some(ReschedulePolicy {
            attempts: Some(attempts),
            interval: Some(Span::secs(24 * 3600)),
            delay: Some(delay),
            delay_function: Some("constant".to_owned()),
            unlimited: Some(false),
            ..ReschedulePolicy::default()
        });
        self
    }

    fn dynamic_port(mut self, label: &str) -> TaskGroup {
        network(&mut self).dynamic_ports.push(port(label, 0));
        self
    }

    fn dynamic_port_in(mut self, label: &str, host_network: &str) -> TaskGroup {
        let port = Port {
            host_network: host_network.to_owned(),
            ..port(label, 0)
        };
        network(&mut self).dynamic_ports.push(port);
        self
    }

    fn registers(mut self, name: &str, port: &str) -> TaskGroup {
        self.services.push(registered(name, port));
        self
    }

    fn network(mut self, mode: &str) -> TaskGroup {
        network(&mut self).mode = mode.to_owned();
        self
    }

    fn static_port(mut self, label: &str, number: i64) -> TaskGroup {
        network(&mut self).reserved_ports.push(port(label, number));
        self
    }
}

/// A check of a type with these fields besides, which runs each so many seconds and may take 5.
pub fn check(kind: &str, seconds: i64, fields: &[(&str, Value)]) -> Value {
    let own = [
        ("Name", Value::from("alive")),
        ("Type", Value::from(kind)),
        ("Path", Value::from("/")),
        ("Command", Value::from("/bin/probe")),
        ("Interval", Value::Int(Span::secs(seconds).0)),
        ("Timeout", Value::Int(Span::secs(5).0)),
    ];
    let all = own.iter().chain(fields);
    Value::Map(
        all.map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect(),
    )
}

/// When tasks are restarted because of a check.
pub fn check_restart(limit: i64, grace: Span) -> (&'static str, Value) {
    let fields = [("Limit", Value::Int(limit)), ("Grace", Value::Int(grace.0))];
    let fields = fields.map(|(key, value)| (key.to_owned(), value));
    ("CheckRestart", Value::Map(fields.into()))
}

/// The service with these checks.
#[must_use]
pub fn checked(mut service: Value, checks: impl Into<Vec<Value>>) -> Value {
    if let Value::Map(fields) = &mut service {
        fields.insert("Checks".to_owned(), Value::List(checks.into()));
    }
    service
}

fn asking(mut group: TaskGroup, name: &str, how: impl Fn(&mut VolumeRequest)) -> TaskGroup {
    let mut volume = VolumeRequest {
        name: name.to_owned(),
        kind: HOST.to_owned(),
        source: name.to_owned(),
        ..VolumeRequest::default()
    };
    how(&mut volume);
    group.volumes.insert(name.to_owned(), volume);
    group
}

/// A service whose provider is the agent.
pub fn registered(name: &str, port: &str) -> Value {
    let fields = [
        ("Name", name),
        ("PortLabel", port),
        ("Provider", "nomad"),
        ("AddressMode", "auto"),
    ];
    let fields = fields.map(|(key, text)| (key.to_owned(), Value::from(text)));
    Value::Map(fields.into())
}

fn network(group: &mut TaskGroup) -> &mut Network {
    if group.networks.is_empty() {
        group.networks.push(Network::default());
    }
    &mut group.networks[0]
}

fn port(label: &str, value: i64) -> Port {
    Port {
        label: label.to_owned(),
        value,
        ..Port::default()
    }
}

/// A job of these groups.
pub fn job(id: &str, job_type: JobType, groups: impl Into<Vec<TaskGroup>>) -> Job {
    Job {
        id: id.to_owned(),
        name: id.to_owned(),
        job_type,
        task_groups: groups.into(),
        ..Job::default()
    }
}

/// A service of one group `g`.
pub fn service(id: &str, tasks: impl Into<Vec<Task>>) -> Job {
    job(id, JobType::Service, [group("g", tasks)])
}

/// A batch job of one group `g` whose failed allocation is never replaced.
pub fn batch(id: &str, tasks: impl Into<Vec<Task>>) -> Job {
    job(id, JobType::Batch, [group("g", tasks).never_again()])
}

/// The job as a parameterized job for others, which [`drover_io_sim::Sim::dispatch`] makes.
#[must_use]
pub fn parameterized(mut job: Job) -> Job {
    job.parameterized_job = Some(ParameterizedJob {
        meta_required: vec!["who".to_owned()],
        meta_optional: vec!["why".to_owned()],
        ..ParameterizedJob::default()
    });
    job
}

/// The job as one that is launched by the clock.
#[must_use]
pub fn periodic(mut job: Job, cron: &str) -> Job {
    job.periodic = Some(PeriodicConfig {
        spec: cron.to_owned(),
        ..PeriodicConfig::default()
    });
    job
}

/// The same job after a change of its first group.
#[must_use]
pub fn changed(job: &Job, change: impl FnOnce(&mut TaskGroup)) -> Job {
    let mut job = job.clone();
    change(&mut job.task_groups[0]);
    job
}

/// The job, to hand in.
pub fn arc(job: &Job) -> Arc<Job> {
    Arc::new(job.clone())
}
