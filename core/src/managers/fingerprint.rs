//! The fingerprint manager: what is known of the machine, when it is asked again, what changed.
//!
//! Each probe is asked by itself: one that fails or hangs delays no other, is asked again after a
//! pause that grows, and what it found before stays true meanwhile. Until the essential probes
//! have answered, failed or taken too long once, nothing is placed, because conditions on what is
//! not known yet would be judged wrongly.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::config::ProbeConfig;
use crate::cx::Cx;
use crate::effect::{Effect, NodeEffect};
use crate::fingerprint::{Fingerprint, Plugin, Resources};
use crate::managers::Changed;
use crate::model::node::NodeEvent;
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::time::{Instant, Span};

/// The pause before a probe that failed is asked again; doubled each time.
const FIRST_PAUSE: Span = Span::secs(2);

/// The longest pause.
const LONGEST_PAUSE: Span = Span::secs(300);

/// The most facts that a probe may tell of.
const MAX_ATTRIBUTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum State {
    Asked(Op),
    Resting(Option<Instant>),
}

/// What is known of one probe.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    config: ProbeConfig,
    state: State,
    found: Fingerprint,
    /// Why it does not work, if it does not.
    last_error: Option<String>,
    tries: u32,
    /// Whether it answered, failed or took too long at least once.
    has_reported: bool,
}

impl Probe {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// What it found last.
    pub fn found(&self) -> &Fingerprint {
        &self.found
    }

    /// Why it does not work, if it does not.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// When it is asked again, if it is not being asked.
    pub fn asked_again(&self) -> Option<Instant> {
        match self.state {
            State::Asked(_) => None,
            State::Resting(until) => until,
        }
    }

    fn answers(&mut self, cx: &Cx<'_>, found: Fingerprint) -> Changed {
        self.tries = 0;
        self.has_reported = true;
        self.state = State::Resting(self.config.every.map(|every| cx.now.at + every));
        let recovered = self.last_error.take().is_some();
        let event = recovered.then(|| event(cx, &self.config.name, "works again"));
        let node = recovered || self.found != found;
        self.found = found;
        Changed {
            events: event.into_iter().collect(),
            node,
        }
    }

    fn fails(&mut self, cx: &mut Cx<'_>, why: &str) -> Changed {
        let pause = FIRST_PAUSE.0.saturating_mul(1 << self.tries.min(10));
        let pause = cx.jittered(Span(pause.min(LONGEST_PAUSE.0)));
        self.tries = self.tries.saturating_add(1);
        self.has_reported = true;
        self.state = State::Resting(Some(cx.now.at + pause));
        let news = self.last_error.as_deref() != Some(why);
        let event = news.then(|| event(cx, &self.config.name, &format!("failed: {why}")));
        self.last_error = Some(why.to_owned());
        Changed {
            events: event.into_iter().collect(),
            node: news,
        }
    }
}

/// Every probe of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Fingerprints {
    probes: Vec<Probe>,
}

impl Fingerprints {
    /// These probes, none of which was asked yet.
    pub fn new(configs: &[ProbeConfig]) -> Fingerprints {
        let probe = |config: &ProbeConfig| Probe {
            config: config.clone(),
            state: State::Resting(Some(Instant(0))),
            found: Fingerprint::default(),
            last_error: None,
            tries: 0,
            has_reported: false,
        };
        Fingerprints {
            probes: configs.iter().map(probe).collect(),
        }
    }

    /// Every probe.
    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter()
    }

    /// Whether the essential probes have had their time.
    pub fn is_fingerprinted(&self) -> bool {
        let mut essential = self.probes.iter().filter(|probe| probe.config.essential);
        essential.all(|probe| probe.has_reported)
    }

    /// Whether all probes have had their time, those too that hold nothing up.
    pub fn all_reported(&self) -> bool {
        self.probes.iter().all(|probe| probe.has_reported)
    }

    /// Whether all probes that look for plugins have had their time.
    pub fn plugins_reported(&self) -> bool {
        let mut plugins = (self.probes.iter()).filter(|probe| probe.name().starts_with("plugin "));
        plugins.all(|probe| probe.has_reported)
    }

    /// What all probes know together; where two speak of one thing, the later in the
    /// configuration's order counts.
    pub fn attributes(&self) -> impl Iterator<Item = (&String, &String)> {
        let all = self.probes.iter().flat_map(|probe| &probe.found.attributes);
        all.filter(|(key, value)| !key.is_empty() && !value.is_empty())
    }

    /// Plugins that were found to work, with who found them.
    pub fn plugins(&self) -> impl Iterator<Item = (&str, &Plugin)> {
        let all = (self.probes.iter()).map(|probe| (probe.name(), probe.found.plugins.as_slice()));
        all.flat_map(|(probe, plugins)| plugins.iter().map(move |plugin| (probe, plugin)))
    }

    /// Names of this machine elsewhere.
    pub fn links(&self) -> impl Iterator<Item = (&String, &String)> {
        self.probes.iter().flat_map(|probe| &probe.found.links)
    }

    /// What this machine has to give.
    pub fn resources(&self) -> Resources {
        let mut all = self.counted();
        for probe in self.probes.iter() {
            let of_probe = &probe.found.resources;
            all.networks.extend(of_probe.networks.iter().cloned());
            all.network_modes
                .extend(of_probe.network_modes.iter().cloned());
        }
        all
    }

    /// The network modes that it offers besides `host`.
    pub fn network_modes(&self) -> BTreeSet<String> {
        let all = self.probes.iter();
        all.flat_map(|probe| probe.found.resources.network_modes.iter().cloned())
            .collect()
    }

    /// What of it is counted: processors, memory and disk space.
    pub fn counted(&self) -> Resources {
        let mut all = Resources::default();
        for probe in self.probes.iter() {
            let of_probe = &probe.found.resources;
            if of_probe.processors.is_some() {
                all.processors.clone_from(&of_probe.processors);
            }
            all.memory_mb = of_probe.memory_mb.or(all.memory_mb);
            all.disk_mb = of_probe.disk_mb.or(all.disk_mb);
        }
        all
    }

    /// Takes the answer of a probe.
    pub fn on_answer(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        op: Op,
        result: Result<Fingerprint, Failure>,
    ) -> Changed {
        let asked = |probe: &&mut Probe| probe.name() == name && probe.state == State::Asked(op);
        let Some(probe) = self.probes.iter_mut().find(asked) else {
            cx.count_stale();
            return Changed::default();
        };
        match result {
            Ok(found) if found.attributes.len() > MAX_ATTRIBUTES => probe.fails(
                cx,
                &format!("it reports more than {MAX_ATTRIBUTES} attributes"),
            ),
            Ok(found) => probe.answers(cx, found),
            Err(failure) => probe.fails(cx, &failure.message),
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        for probe in &mut self.probes {
            if matches!(probe.state, State::Resting(Some(until)) if until <= cx.now.at) {
                let name = probe.config.name.clone();
                let purpose = Purpose::Probe(name.clone());
                let op = cx.operation(Owner::Machine, purpose, cx.config.timeouts.probe);
                probe.state = State::Asked(op);
                let probe = name;
                cx.send(Effect::Node(NodeEffect::Probe { op, probe }));
            }
        }
    }

    /// Of which first answers are awaited. A probe that is asked once more is waited for by
    /// nobody.
    pub fn awaited(&self) -> impl Iterator<Item = Op> {
        let first = self.probes.iter().filter(|probe| !probe.has_reported);
        first.filter_map(|probe| match probe.state {
            State::Asked(op) => Some(op),
            State::Resting(_) => None,
        })
    }

    /// When [`Fingerprints::handle_timeout`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.probes.iter().filter_map(Probe::asked_again).min()
    }
}

fn event(cx: &Cx<'_>, name: &str, what: &str) -> NodeEvent {
    NodeEvent {
        time: cx.now.wall,
        subsystem: "Fingerprint".to_owned(),
        message: format!("Probe \"{name}\" {what}"),
        details: [("probe".to_owned(), name.to_owned())].into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::agent::Agent;
    use crate::agent::Input;
    use crate::config::Config;
    use crate::fingerprint::Network;
    use crate::input::NodeInput;
    use crate::model::node::Node;
    use crate::model::processors::Processors;
    use crate::store::Saved;
    use crate::time::{Now, Timestamp};

    fn at(at: Instant) -> Now {
        Now {
            at,
            wall: Timestamp(0),
        }
    }

    /// Two probes; the first is asked again each minute.
    fn agent() -> Agent {
        let mut config = Config::new(1, Node::default(), "/alloc");
        config.probes = [("cpu", Some(Span::secs(60))), ("cloud", None)]
            .map(|(name, every)| ProbeConfig {
                name: name.into(),
                every,
                essential: true,
            })
            .into();
        let mut agent = Agent::restore(config, Saved::default(), at(Instant(0)));
        agent.handle_timeout(at(Instant(0)));
        agent
    }

    /// What is asked now, by the names of the probes.
    fn asked(agent: &mut Agent) -> Vec<(String, Op)> {
        let mut asked = Vec::new();
        while let Some(effect) = agent.poll_effect() {
            if let Effect::Node(NodeEffect::Probe { op, probe }) = effect {
                asked.push((probe.to_string(), op));
            }
        }
        asked
    }

    fn answer(agent: &mut Agent, now: Instant, result: Result<Fingerprint, Failure>, whom: &str) {
        let probes = asked(agent);
        let (probe, op) = probes.into_iter().find(|(name, _)| name == whom).unwrap();
        agent.handle(
            at(now),
            Input::Node(NodeInput::Probed { op, probe, result }),
        );
    }

    fn only<'a>(agent: &'a Agent, name: &str) -> &'a Probe {
        let mut probes = agent.view().machine().fingerprints().probes();
        probes.find(|probe| probe.name() == name).unwrap()
    }

    fn text(key: &str, value: &str) -> BTreeMap<String, String> {
        [(key.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn probe_results_are_merged() {
        let mut agent = agent();
        let network = |device: &str| Network {
            device: device.to_owned(),
            ..Network::default()
        };
        let mut cpu = Fingerprint {
            attributes: text("cpu.arch", "amd64"),
            ..Fingerprint::default()
        };
        cpu.resources.memory_mb = Some(100);
        cpu.resources.disk_mb = Some(7);
        cpu.resources.networks = vec![network("lo")];
        cpu.resources.network_modes = ["bridge".to_owned()].into();
        cpu.resources.processors = Some(Processors::default());
        let mut cloud = Fingerprint {
            links: text("cloud", "i-1"),
            ..Fingerprint::default()
        };
        cloud.resources.memory_mb = Some(200);
        cloud.resources.networks = vec![network("eth0")];
        cloud.resources.network_modes = ["cni/mine".to_owned()].into();
        let probes = asked(&mut agent);
        assert_eq!(probes.len(), 2);
        for ((probe, op), found) in probes.into_iter().zip([cpu.clone(), cloud]) {
            assert!(agent.view().machine().is_learning());
            let result = Ok(found);
            agent.handle(
                at(Instant(1)),
                Input::Node(NodeInput::Probed { op, probe, result }),
            );
        }
        assert!(!agent.view().machine().is_learning());
        assert_eq!(only(&agent, "cpu").found(), &cpu);
        let all = agent.view().machine().fingerprints();
        assert_eq!(all.links().count(), 1);
        assert_eq!(all.attributes().count(), 1);
        let known = all.resources();
        assert_eq!((known.memory_mb, known.disk_mb), (Some(200), Some(7)));
        assert_eq!(known.processors, Some(Processors::default()));
        let devices: Vec<&str> = known.networks.iter().map(|it| it.device.as_str()).collect();
        assert_eq!(devices, ["lo", "eth0"]);
        assert_eq!(known.network_modes.len(), 2);
    }

    #[test]
    fn failed_probe_reports_error_until_success() {
        let mut agent = agent();
        let failure = Failure::recoverable("no such file");
        answer(&mut agent, Instant(1), Err(failure), "cpu");
        let cpu = only(&agent, "cpu");
        assert_eq!(cpu.last_error(), Some("no such file"));
        let again = cpu.asked_again().unwrap();
        assert!(
            again > Instant(1) && again < Instant(1) + Span::secs(5),
            "{again:?}"
        );
        let messages = |agent: &Agent| -> Vec<String> {
            let events = agent.view().machine().events();
            events.map(|event| event.message.clone()).collect()
        };
        assert_eq!(messages(&agent), ["Probe \"cpu\" failed: no such file"]);
        agent.handle_timeout(at(again));
        assert_eq!(only(&agent, "cpu").asked_again(), None, "it is being asked");
        answer(&mut agent, again, Ok(Fingerprint::default()), "cpu");
        let cpu = only(&agent, "cpu");
        assert_eq!(cpu.last_error(), None);
        assert_eq!(cpu.asked_again(), Some(again + Span::secs(60)));
        assert_eq!(messages(&agent).len(), 2);
    }

    #[test]
    fn oversized_probe_report_is_refused() {
        for (count, believed) in [(MAX_ATTRIBUTES, true), (MAX_ATTRIBUTES + 1, false)] {
            let mut agent = agent();
            let attributes = (0..count).map(|n| (n.to_string(), "x".to_owned()));
            let found = Fingerprint {
                attributes: attributes.collect(),
                ..Fingerprint::default()
            };
            answer(&mut agent, Instant(1), Ok(found), "cpu");
            assert_eq!(only(&agent, "cpu").last_error().is_none(), believed);
        }
    }

    #[test]
    fn backoff_doubles_up_to_maximum() {
        let mut agent = agent();
        let mut now = Instant(0);
        let mut least = FIRST_PAUSE;
        for _ in 0..12 {
            let failure = Failure::recoverable("no");
            answer(&mut agent, now, Err(failure), "cpu");
            let again = only(&agent, "cpu").asked_again().unwrap();
            let pause = again - now;
            let most = Span(least.0 + least.0 / 4);
            assert!(pause >= least && pause <= most, "{pause}, not {least}");
            least = Span(least.0 * 2).min(LONGEST_PAUSE);
            now = again;
            agent.handle_timeout(at(now));
        }
    }
}
