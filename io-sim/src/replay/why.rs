//! The chain of inputs that touched something, and what followed for it.

use drover_core::time::SECOND;
use serde::Serialize;

use super::entity::Entity;
use super::player::Player;
use super::recording::Recording;
use crate::trace::Event;

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The step.
    pub step: usize,
    /// The time since the beginning of the recording, in nanoseconds.
    pub since: i64,
    /// What came.
    pub input: String,
    /// What followed for what is asked about.
    pub effects: Vec<String>,
}

/// Every step that spoke of `entity`, changed it, or asked for something about it.
pub fn chain(recording: &Recording, entity: &Entity) -> Vec<Link> {
    let mut player = Player::new(recording);
    let mut links = Vec::new();
    loop {
        let before = player.agent().map(|agent| entity.state(agent));
        let Some(played) = player.step() else { break };
        let after = player.agent().map(|agent| entity.state(agent));
        if !entity.is_touched(before.as_ref(), &played, after.as_ref()) {
            continue;
        }
        let effects = played.effects.iter();
        let about = effects.filter(|(effect, _)| entity.is_touched_by(effect));
        let words = about.filter_map(|(_, line)| line.as_ref().map(Event::words));
        links.push(Link {
            step: played.number,
            since: played.came.at.0,
            input: played.came.words(),
            effects: words.collect(),
        });
    }
    links
}

/// The chain as text.
pub fn text(links: &[Link]) -> String {
    let mut out = String::new();
    for link in links {
        let (seconds, millis) = (link.since / SECOND, link.since / 1_000_000 % 1000);
        let time = format!("{seconds}.{millis:03}s");
        out.push_str(&format!("{:>6}  {time:>10}  {}\n", link.step, link.input));
        for effect in &link.effects {
            out.push_str(&format!("{:20}so: {effect}\n", ""));
        }
    }
    out
}
