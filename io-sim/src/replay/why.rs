//! The chain of inputs that touched something, and what followed for it.

use drover_core::record::brief;
use serde::Serialize;

use super::entity::Entity;
use super::player::{Played, Player};
use super::recording::Recording;
use super::story::seconds;

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
    let mut began = None;
    loop {
        let before = player.agent().cloned();
        let Some(played) = player.step() else { break };
        let began = *began.get_or_insert(played.now.at);
        let meant = played.input.is_some_and(|input| entity.is_meant_by(input));
        let effects: Vec<String> = (played.effects.iter())
            .filter(|effect| entity.is_touched_by(effect))
            .map(brief::effect)
            .collect();
        // Where a segment begins nothing changes that was not changed before.
        let comparable = before.is_some() && played.begins.is_none();
        let changed = comparable && entity.changed(before.as_ref(), player.agent());
        if meant || changed || !effects.is_empty() {
            links.push(Link {
                step: played.number,
                since: (played.now.at - began).0,
                input: input(&played),
                effects,
            });
        }
    }
    links
}

fn input(played: &Played<'_>) -> String {
    match played.begins {
        Some(segment) => format!("{} begins", segment.name),
        None => brief::input(played.input),
    }
}

/// The chain as text.
pub fn text(links: &[Link]) -> String {
    let mut out = String::new();
    for link in links {
        let (step, time) = (link.step, seconds(link.since));
        out.push_str(&format!("{step:>6}  {time:>10}  {}\n", link.input));
        for effect in &link.effects {
            out.push_str(&format!("{:20}so: {effect}\n", ""));
        }
    }
    out
}
