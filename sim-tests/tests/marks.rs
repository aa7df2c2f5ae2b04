//! What the flight recorder's marks notice: effects of random worlds are changed at one place each,
//! and all that is shown in recordings must change the mark, but for what is listed here. What is
//! hidden must not change it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::collections::{BTreeMap, BTreeSet};

use drover_core::effect::Effect;
use drover_core::record::Mark;
use drover_core::record::redact::{How, Redacted};
use drover_core::time::Span;
use drover_io_sim::replay::{Player, Recording};
use drover_io_sim::{Faults, Sim};
use drover_sim_tests::chaos;
use drover_sim_tests::look::Look;
use serde_json::{Value, json};

const SEEDS: u64 = 20;

/// No more effects of one shape are looked at.
const ENOUGH: u32 = 3;

/// Shown, but not covered, with what is in it: what stands in an effect or a record a second time, what
/// is long, and a task's events, each of which is an effect of its own too. (Keys of maps are not changed
/// here, and not covered either.) A path names fields and
/// variants; `*` is any key or index.
const NOT_COVERED: &[&str] = &[
    "Driver.*.Exec.program.task.config",
    "Driver.*.Exec.program.task.group",
    "Driver.*.Exec.program.task.job",
    "Driver.*.Exec.program.task.reserved",
    "Driver.*.Start.config.config.*",
    "Driver.*.Start.config.group",
    "Driver.*.Start.config.job",
    "Driver.*.Start.config.reserved",
    "Hook.Run.work.FetchArtifacts.artifacts.*",
    "Hook.Run.work.IssueIdentities.identities.*",
    "Hook.Run.work.RenderTemplates.templates.*",
    "Hook.Run.work.Reserve.devices.*",
    "Store.Commit.*.*.*.Alloc.devices.*.group",
    "Store.Commit.*.*.*.Alloc.id",
    "Store.Commit.*.*.*.Alloc.name",
    "Store.Commit.*.*.*.Deployment.id",
    "Store.Commit.*.*.*.Eval.id",
    "Store.Commit.*.*.*.Job.job",
    "Store.Commit.*.*.*.Task.hooks_done.*",
    "Store.Commit.*.*.*.Task.reserved",
    "Store.Commit.*.*.*.Task.state.Events.*",
    "Tell.Event.*.Details.*",
];

/// The words that a text may be exchanged for where not every text is one.
const WORDS: &[&str] = &[
    "pending",
    "running",
    "dead",
    "complete",
    "failed",
    "run",
    "stop",
    "successful",
    "cancelled",
    "Received",
    "Started",
    "Killed",
    "job-register",
    "job-deregister",
    "alloc-stop",
    "Meta",
];

fn effects_of(seed: u64) -> Vec<Effect> {
    let mut sim = Sim::new(seed);
    sim.world.faults = Faults::swarm(seed);
    for job in chaos::script(seed).jobs {
        sim.register(&job);
    }
    // What a world violates is for others to find.
    let _ = sim.run(Span::secs(60));
    let recording = Recording::of(vec![sim.recording().unwrap()]);
    let mut player = Player::new(&recording);
    std::iter::from_fn(|| player.step())
        .flat_map(|played| played.effects)
        .collect()
}

/// A place in a value: keys and indices.
type Place = Vec<String>;

/// Every place in `value` that holds something.
fn places(value: &Value, at: &mut Place, found: &mut Vec<Place>) {
    found.push(at.clone());
    let mut below = |key: String, child: &Value| {
        at.push(key);
        places(child, at, found);
        at.pop();
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, child)| below(key.clone(), child)),
        Value::Array(items) => {
            (items.iter().enumerate()).for_each(|(nth, child)| below(nth.to_string(), child));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn pointer(place: &[String]) -> String {
    let escaped = place
        .iter()
        .map(|key| key.replace('~', "~0").replace('/', "~1"));
    escaped.map(|key| format!("/{key}")).collect()
}

/// The place without what differs from effect to effect: indices, and keys of maps.
fn path(place: &[String]) -> String {
    let is_name = |key: &str| key.starts_with(|c: char| c.is_alphabetic()) && !key.contains('-');
    let in_map = |at: usize| {
        let above = at.checked_sub(1).map(|at| place[at].as_str());
        matches!(
            above,
            Some("env" | "launches" | "Details" | "hooks_done" | "device_env")
        ) || above == Some("config") && at > 1 && place[at - 2] == "config"
    };
    let keys = place.iter().enumerate().map(|(at, key)| {
        if is_name(key) && !in_map(at) {
            key.as_str()
        } else {
            "*"
        }
    });
    keys.collect::<Vec<_>>().join(".")
}

/// Other values for the one that stands there, of which some may be of no sense.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(is) => vec![json!(!is)],
        Value::Number(number) => number.as_i64().map(|n| json!(n + 1)).into_iter().collect(),
        Value::String(text) => {
            let mut all = vec![json!(format!("{text}x"))];
            let other_digit = if text.ends_with('0') { '1' } else { '0' };
            if let Some((last, _)) = text.char_indices().next_back() {
                all.push(json!(format!("{}{other_digit}", &text[..last])));
            }
            all.extend(
                WORDS
                    .iter()
                    .filter(|word| **word != text)
                    .map(|word| json!(word)),
            );
            all
        }
        Value::Array(items) => {
            let fewer = items.split_last().map(|(_, rest)| json!(rest));
            fewer.into_iter().collect()
        }
        Value::Object(map) => {
            let mut fewer = map.clone();
            if let Some(last) = map.keys().next_back() {
                fewer.remove(last);
            }
            vec![Value::Object(fewer)]
        }
    }
}

/// The effect with another value at this place; none if there is no other that makes an effect.
fn changed(effect: &Effect, whole: &Value, place: &[String]) -> Option<Effect> {
    let pointer = pointer(place);
    others(whole.pointer(&pointer)?)
        .into_iter()
        .find_map(|other| {
            let mut value = whole.clone();
            *value.pointer_mut(&pointer)? = other;
            let other: Effect = serde_json::from_value(value).ok()?;
            (other != *effect).then_some(other)
        })
}

/// What a change at a path did to the mark.
#[derive(Default)]
struct Seen {
    noticed: u32,
    missed: u32,
}

#[derive(Default)]
struct Table {
    shown: BTreeMap<String, Seen>,
    hidden: BTreeMap<String, Seen>,
}

impl Table {
    fn look_at(&mut self, effect: &Effect) {
        let whole = serde_json::to_value(effect).unwrap();
        let seen = serde_json::to_value(Redacted::new(effect, How::Omit)).unwrap();
        let mut all = Vec::new();
        places(&whole, &mut Vec::new(), &mut all);
        let mark = Mark::of(effect);
        for place in all {
            let Some(other) = changed(effect, &whole, &place) else {
                continue;
            };
            let other_seen = serde_json::to_value(Redacted::new(&other, How::Omit)).unwrap();
            let table = if seen == other_seen {
                &mut self.hidden
            } else {
                &mut self.shown
            };
            let row = table.entry(path(&place)).or_default();
            if Mark::of(&other) == mark {
                row.missed += 1;
            } else {
                row.noticed += 1;
            }
        }
    }
}

/// The shape of an effect: which fields it has.
fn shape(effect: &Effect) -> BTreeSet<String> {
    let whole = serde_json::to_value(effect).unwrap();
    let mut all = Vec::new();
    places(&whole, &mut Vec::new(), &mut all);
    all.iter().map(|place| path(place)).collect()
}

#[test]
fn a_mark_notices_what_is_shown_and_not_what_is_hidden() {
    let mut table = Table::default();
    let mut shapes: BTreeMap<BTreeSet<String>, u32> = BTreeMap::new();
    for effect in (0..SEEDS).flat_map(effects_of) {
        let times = shapes.entry(shape(&effect)).or_default();
        *times += 1;
        if *times <= ENOUGH {
            table.look_at(&effect);
        }
    }
    let paths = |rows: &BTreeMap<String, Seen>, is: fn(&Seen) -> bool| -> Vec<String> {
        let rows = rows.iter().filter(|(_, seen)| is(seen));
        rows.map(|(path, _)| path.clone()).collect()
    };
    let told = paths(&table.hidden, |seen| seen.noticed > 0);
    assert_eq!(told, Vec::<String>::new(), "marks tell what is hidden");
    let missed = paths(&table.shown, |seen| seen.missed > 0);
    let is_in = |path: &str, listed: &str| {
        let rest = path.strip_prefix(listed);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for path in &missed {
        let listed = NOT_COVERED.iter().any(|listed| is_in(path, listed));
        assert!(listed, "marks do not notice {path}, of {missed:#?}");
    }
    let is_idle = |listed: &&&str| !missed.iter().any(|path| is_in(path, listed));
    let idle: Vec<_> = NOT_COVERED.iter().filter(is_idle).collect();
    assert!(idle.is_empty(), "covered, or never there: {idle:?}");
    let noticed = paths(&table.shown, |seen| seen.missed == 0);
    assert!(noticed.len() > 100, "{noticed:#?}");
}
