//! The link to the engine: it is looked for, watched, and looked for again.
//!
//! One stream of the engine's events says when containers of ours end, and its end says when the engine does. Nothing
//! is asked while it is open. A machine without an engine costs a look each [`RARELY`]; an engine that is gone, that
//! somebody waits for, or whose socket comes ([`super::arrival`]) is looked for at once, and then ever less often.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bollard::models::EventMessage;
use drover_core::device::reported::ReportedAttribute;
use drover_core::input::{DriverFingerprint, DriverHealth};
use drover_core::model::node::DriverInfo;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::World;
use super::arrival::Arrival;
use super::create::LAUNCH_LABEL;
use super::engine::{About, Engine};
use super::lines::{Line, Lines};
use super::wire;
use crate::clock;
use crate::http_client::encoded;

/// How often an engine is looked for that was never there.
const RARELY: Duration = Duration::from_secs(60);

/// The pauses before an engine is looked for that was there: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// An engine that answered for so long works: that it is gone says nothing of the next one.
const STEADY: Duration = Duration::from_secs(5);

/// How long it takes at most from asking for events to getting them: those of so long are asked for again.
const OVERLAP: i64 = 2;

/// How it stands with the engine.
#[derive(Clone)]
pub(super) enum Link {
    /// It was not looked for yet.
    New,
    /// It answers.
    Up(Engine),
    /// It does not answer: why, and what it was when it did.
    Down(String, Option<Arc<About>>),
}

impl Link {
    /// The engine, if it answers.
    pub(super) fn engine(&self) -> Option<&Engine> {
        match self {
            Link::Up(engine) => Some(engine),
            Link::New | Link::Down(..) => None,
        }
    }

    fn was(&self) -> Option<Arc<About>> {
        match self {
            Link::New => None,
            Link::Up(engine) => Some(Arc::new(engine.about().clone())),
            Link::Down(_, about) => about.clone(),
        }
    }

    /// The driver's condition.
    pub(super) fn info(&self) -> DriverInfo {
        match self {
            Link::Up(engine) => engine.about().info(),
            Link::New => unusable(false, "the engine was not asked yet".to_owned()),
            Link::Down(why, was) => {
                unusable(was.is_some(), format!("Failed to connect to docker: {why}"))
            }
        }
    }
}

fn unusable(detected: bool, description: String) -> DriverInfo {
    DriverInfo {
        detected,
        healthy: false,
        description,
    }
}

/// The engine, as soon as there is one. None when nobody looks for it any more.
pub(super) async fn next(link: &mut watch::Receiver<Link>) -> Option<Engine> {
    let up = link.wait_for(|link| link.engine().is_some()).await;
    up.ok()?.engine().cloned()
}

/// Looks for the engine for as long as its driver is there.
pub(super) async fn keep(world: Weak<World>) {
    let mut pause = PAUSES.0;
    // Until when an engine is expected whose socket came: it may not be listened to yet.
    let mut expected = Instant::now();
    loop {
        let Some(strong) = world.upgrade() else {
            return;
        };
        let (socket, wanted) = (strong.socket.clone(), strong.wanted.clone());
        let since = seconds() - OVERLAP;
        // Before the look: so what it misses is seen to come.
        let arrival = Arrival::of(&socket);
        let (arrival, longest) = match Engine::connect(&socket).await {
            Ok(engine) => {
                // Nobody reads what it sees for as long as the engine is there.
                drop(arrival);
                strong.engine_is_up(engine.clone());
                drop(strong);
                let begun = Instant::now();
                let why = events(&world, &engine, since).await;
                if begun.elapsed() >= STEADY {
                    pause = PAUSES.0;
                }
                let Some(strong) = world.upgrade() else {
                    return;
                };
                strong.engine_is_down(why);
                (Arrival::of(&socket), PAUSES.1)
            }
            Err(trouble) => {
                strong.engine_is_down(trouble.message().to_owned());
                let is_missed = strong.is_missed() || Instant::now() < expected;
                drop(strong);
                (arrival, if is_missed { PAUSES.1 } else { RARELY })
            }
        };
        pause = match longest == RARELY {
            true => RARELY,
            false => pause.min(longest),
        };
        tokio::select! {
            // Whoever needs it now does not wait.
            () = wanted.notified() => pause = PAUSES.0,
            () = comes(arrival) => {
                expected = Instant::now() + RARELY;
                pause = PAUSES.0;
            }
            () = sleep(pause) => pause = pause.saturating_mul(2).min(longest),
        }
    }
}

/// Waits until the engine's socket comes; for ever where that cannot be seen.
async fn comes(arrival: io::Result<Arrival>) {
    match arrival {
        Ok(arrival) => arrival.comes().await,
        Err(_) => std::future::pending().await,
    }
}

/// Hears what becomes of containers until the engine is gone; why.
async fn events(world: &Weak<World>, engine: &Engine, since: i64) -> String {
    let filters =
        json!({ "type": ["container"], "event": ["die", "oom"], "label": [LAUNCH_LABEL] });
    let filters = encoded(&filters.to_string());
    let path = engine.path(&format!("/events?since={since}&filters={filters}"));
    let mut lines = match wire::stream(engine.socket(), &path).await {
        Ok(body) => Lines::of(body),
        Err(trouble) => return trouble.message().to_owned(),
    };
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return "it ended".to_owned(),
            Err(trouble) => return trouble.message().to_owned(),
        };
        let Some(world) = world.upgrade() else {
            return String::new();
        };
        let event = match line {
            Line::Whole(line) => serde_json::from_slice::<EventMessage>(&line).ok(),
            Line::TooLong => None,
        };
        match event {
            Some(event) => world.on_event(event),
            // It may have been the end of any of them.
            None => world.inspect_all_launches(),
        }
    }
}

fn seconds() -> i64 {
    clock::now().wall.0 / 1_000_000_000
}

impl World {
    fn on_event(self: &Arc<Self>, event: EventMessage) {
        let id = event.actor.and_then(|actor| actor.id);
        match (id, event.action.as_deref()) {
            (Some(id), Some("oom")) => self.containers.note_oom(&id),
            (Some(id), Some("die")) => self.clone().container_ended(&id),
            _ => {}
        }
    }

    fn engine_is_up(self: &Arc<Self>, engine: Engine) {
        tracing::info!(
            version = engine.about().version,
            "the docker engine answers"
        );
        if engine.about().reaches_cryptography() {
            tracing::warn!(
                "containers of this engine may use sockets of the kernel's cryptography (AF_ALG), which Docker forbids \
                 from 29.4.3 on: update it, or keep the kernel from loading af_alg"
            );
        }
        self.link.send_replace(Link::Up(engine));
        self.report();
        // What ended meanwhile, and what is nobody's.
        self.clone().inspect_all_launches();
    }

    /// Whether an engine that does not answer did so before, or somebody waits for it.
    fn is_missed(&self) -> bool {
        self.link.borrow().was().is_some() || self.link.receiver_count() > 0
    }

    fn engine_is_down(&self, why: String) {
        let before = self.link.borrow().clone();
        if let Link::Up(_) = before {
            tracing::warn!(why, "the docker engine is gone");
        }
        let same = matches!(&before, Link::Down(known, _) if *known == why);
        if !same {
            self.link.send_replace(Link::Down(why, before.was()));
            self.report();
        }
    }

    /// Reports the driver's condition to whoever listens.
    pub(super) fn report(&self) {
        let link = self.link.borrow().clone();
        if matches!(link, Link::New) {
            return;
        }
        let info = link.info();
        let attributes = match &link {
            Link::Up(engine) => self.attributes(engine.about()),
            Link::New | Link::Down(..) => Vec::new(),
        };
        let text = |text: String| ReportedAttribute {
            string: Some(text),
            ..ReportedAttribute::default()
        };
        let fingerprint = DriverFingerprint {
            health: match (info.detected, info.healthy) {
                (false, _) => DriverHealth::Undetected,
                (true, false) => DriverHealth::Unhealthy,
                (true, true) => DriverHealth::Healthy,
            },
            description: info.description,
            attributes: attributes
                .into_iter()
                .map(|(key, value)| (key, text(value)))
                .collect(),
        };
        if let Some(stream) = &*self.stream() {
            stream.report(fingerprint);
        }
    }

    fn attributes(&self, about: &About) -> Vec<(String, String)> {
        let own = [
            ("driver.docker.version", about.version.clone()),
            ("driver.docker.os_type", about.os.clone()),
            ("driver.docker.runtimes", about.runtimes.join(",")),
        ];
        let own = own.map(|(key, value)| (key.to_owned(), value));
        let warned = about.reaches_cryptography().then(|| {
            let key = "driver.docker.kernel_cryptography".to_owned();
            (key, "allowed".to_owned())
        });
        let allowed = self.settings.attributes.iter().cloned();
        own.into_iter().chain(warned).chain(allowed).collect()
    }
}
