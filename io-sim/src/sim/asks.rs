//! Requests of people to the agent, and reports of the node.

use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::agent::requests::{DispatchJob, HandOver, Register, Request, TakeOver};
use drover_core::claims::resources::Amounts;
use drover_core::effect::Reply;
use drover_core::ids::{JobKey, RequestId, SessionId};
use drover_core::input::ShutdownMode;
use drover_core::model::dispatch::Dispatch;
use drover_core::model::job::Job;
use drover_core::model::volume::HostVolume;
use drover_core::time::Span;

use super::Sim;
use crate::inbox::Source;
use crate::later::Later;
use crate::machine::DRIVER;
use crate::servers::Servers;

impl Sim {
    /// Asks something.
    pub fn ask(&mut self, what: impl Into<Request>) -> RequestId {
        let request = self.request();
        let what = what.into();
        if let Request::Register(Register { job, .. }) | Request::TakeOver(TakeOver { job, .. }) =
            &what
        {
            let namespace = job.namespace.as_str().into();
            self.namespaces.insert(job.id.clone(), namespace);
        }
        self.requests
            .insert(request, (self.world.scene.life, what.clone()));
        self.send(Source::Operator, Input::Request(request, what));
        request
    }

    /// The name of a job, in the namespace in which it was handed in last.
    pub fn key_of(&self, job: &str) -> JobKey {
        let mut key = JobKey::local(job);
        if let Some(namespace) = self.namespaces.get(job) {
            key.namespace = namespace.clone();
        }
        key
    }

    /// Makes a job of a parameterized one. What it brings is made of the number; every third has
    /// a token that others have too, and every second a priority of its own.
    pub fn dispatch(&mut self, job: &str, nth: u32) -> RequestId {
        let token = if nth % 3 == 1 { "again" } else { "" };
        let dispatch = Dispatch {
            payload: Arc::from(format!("payload+{nth:04}")),
            meta: [("who".to_owned(), nth.to_string())].into(),
            token: token.to_owned(),
            tag: nth,
            priority: [None, Some(30), None, Some(70)][nth as usize % 4],
            ..Dispatch::default()
        };
        self.ask(DispatchJob {
            job: self.key_of(job),
            dispatch: Arc::new(dispatch),
        })
    }

    /// The job, and those that were made of it.
    pub fn keys_of(&self, job: &str) -> Vec<JobKey> {
        let jobs = self.view().into_iter().flat_map(|view| view.jobs());
        let children = jobs.filter(|record| record.job.parent_id == job);
        let children = children.map(|record| record.job.key());
        core::iter::once(self.key_of(job)).chain(children).collect()
    }

    /// Something happens at the servers of the node's cluster.
    pub fn at_servers(&mut self, what: impl FnOnce(&mut Servers)) {
        if let Some(servers) = &mut self.world.link.servers {
            servers.go_on(self.world.scene.elapsed);
            what(servers);
        }
        self.world.servers_go_on();
    }

    /// Hands in a job that ran on another node until now.
    pub fn take_over(&mut self, job: &Job) -> RequestId {
        self.take_over_some(job, usize::MAX)
    }

    /// The same, and only so many of its copies replace anything there.
    pub fn take_over_some(&mut self, job: &Job, copies: usize) -> RequestId {
        let mut from = self.world.remotes.hand(job);
        from.truncate(copies);
        self.ask(TakeOver {
            job: Arc::new(job.clone()),
            from,
        })
    }

    /// Another node takes over a job.
    pub fn hand_over(&mut self, job: &str) -> RequestId {
        let job = self.key_of(job);
        self.ask(HandOver { job })
    }

    /// Tells the agent to end.
    pub fn shutdown(&mut self, mode: ShutdownMode) {
        self.send(Source::Control, Input::Shutdown(mode));
    }

    /// The driver's condition changes.
    pub fn driver(&mut self, healthy: bool) {
        self.driver_after(healthy, Span::ZERO);
    }

    pub(super) fn driver_after(&mut self, healthy: bool, pause: Span) {
        let driver = Arc::from(DRIVER);
        self.world
            .scene
            .after(pause, &driver, Later::Driver { healthy });
    }

    /// The next agent is configured with these volumes.
    pub fn configure_volumes(&mut self, volumes: &[HostVolume]) {
        let volumes = volumes.iter();
        let volumes = volumes.map(|volume| (volume.name.clone(), volume.clone()));
        self.config.node.host_volumes = volumes.collect();
    }

    /// The machine has so much of counted resources from now on. The agent learns that when it looks
    /// again, which it does every 15 minutes.
    pub fn machine_has(&mut self, has: Amounts) {
        self.world.machine.has = Some(has);
    }

    /// What some template is made of changes.
    pub fn a_template_changes(&mut self) {
        self.world.a_template_changes();
    }

    /// Sends an input as it is, from a source of its own.
    pub fn send_raw(&mut self, input: Input) {
        self.send(Source::Control, input);
    }

    fn send(&mut self, source: Source, input: Input) {
        let at = self.world.scene.at;
        let entity = Arc::from("people");
        self.world.scene.deliver(source, at, &entity, input);
    }

    /// A number under which nobody has opened a session yet: that of the request that comes next.
    pub fn next_session(&self) -> SessionId {
        SessionId(self.last_request + 1)
    }

    fn request(&mut self) -> RequestId {
        self.last_request += 1;
        RequestId(self.last_request)
    }

    /// The answer to a request, once there is one.
    pub fn reply(&self, request: RequestId) -> Option<&Reply> {
        self.checker.reply(request)
    }
}
