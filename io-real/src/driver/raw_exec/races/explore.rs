//! Every order of the steps of a few actors; of some more, every order with few interruptions; and some orders of many.
//!
//! Two orders that lead to the same state are gone on with once. A state is what the machine and the launches in hand
//! are, what the core heard, and all that each actor has seen, on which alone it depends what it does next.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::life::{Choice, Run, Scenario};
use super::rules;

/// No run of so few actors takes more steps.
const MOST_STEPS: usize = 500;

/// What was tried.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// How many runs that took.
    pub runs: usize,
    /// How many states there are.
    pub states: usize,
    /// How many orders of all steps these stand for.
    pub orders: u128,
}

/// Tries every order.
///
/// # Errors
/// A rule does not hold: which, and in which order of steps.
pub(super) fn every_order(scenario: Scenario) -> Result<Tally, String> {
    let mut search = Search::default();
    search.ahead.push_back(Vec::new());
    let mut runs = 0;
    while let Some(prefix) = search.ahead.pop_front() {
        runs += 1;
        let mut run = Run::begin(scenario);
        let left = scenario.interruptions.unwrap_or(u32::MAX);
        let ended = search.go(&mut run, &prefix, left);
        ended.map_err(|broken| broken.tell(&run))?;
    }
    Ok(Tally {
        runs,
        states: search.known.len(),
        orders: search.orders(),
    })
}

/// Tries one order, chosen by a seed.
///
/// # Errors
/// As [`every_order`].
pub(super) fn some_order(scenario: Scenario, seed: u64) -> Result<usize, String> {
    let mut run = Run::begin(scenario);
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for steps in 0..MOST_STEPS {
        let choices = run.choices();
        let checked = rules::rest(&run, &choices);
        checked.map_err(|broken| format!("seed {seed}: {}", broken.tell(&run)))?;
        if choices.is_empty() {
            return Ok(steps);
        }
        let by_itself = |one: &&Choice| !matches!(one, Choice::Ask | Choice::Death);
        let calm: Vec<Choice> = choices.iter().filter(by_itself).copied().collect();
        // The core asks now and then, not for everything at once.
        let among = match calm.is_empty() || next(&mut random).is_multiple_of(8) {
            true => &choices,
            false => &calm,
        };
        let which = usize::try_from(next(&mut random)).unwrap_or_default() % among.len();
        let taken = rules::step(&mut run, among[which]);
        taken.map_err(|broken| format!("seed {seed}: {}", broken.tell(&run)))?;
    }
    Err(format!("seed {seed}: {}", rules::no_rest().tell(&run)))
}

/// The next of a row of numbers that look as if drawn.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random >> 33
}

/// A state; and if there may be few interruptions, who went on last, and how many are left.
type State = (u64, Option<usize>, u32);

/// Whether this lets somebody wait who went on last and could go on.
fn interrupts(choice: Choice, choices: &[Choice], last: Option<usize>) -> bool {
    let goes_on = |one: &Choice| one.actor().is_some() && one.actor() == last;
    choices.iter().any(goes_on) && !goes_on(&choice) && !matches!(choice, Choice::Ask)
}

/// The choices for which there are interruptions enough.
fn affordable(choices: Vec<Choice>, last: Option<usize>, left: u32) -> Vec<Choice> {
    if left > 0 {
        return choices;
    }
    let all = choices.clone();
    let can = choices.into_iter();
    can.filter(|one| !interrupts(*one, &all, last)).collect()
}

#[derive(Default)]
struct Search {
    /// The beginnings of orders that are still to be tried.
    ahead: VecDeque<Vec<u8>>,
    known: HashSet<State>,
    /// From state to state.
    ways: HashMap<State, BTreeSet<State>>,
    /// Where it can end.
    ends: HashSet<State>,
    first: Option<State>,
}

impl Search {
    /// Goes the given way, and on from there until nothing is left or what follows is known. Notes the other ways.
    fn go(&mut self, run: &mut Run, prefix: &[u8], mut left: u32) -> Result<(), rules::Broken> {
        let mut way = prefix.to_vec();
        let mut last = None;
        let mut state = (run.state(), last, left);
        self.first.get_or_insert(state);
        for depth in 0..MOST_STEPS {
            let choices = run.choices();
            if choices.iter().all(|choice| !choice.is_certain()) {
                rules::rest(run, &choices)?;
                self.ends.insert(state);
            }
            let choices = affordable(choices, last, left);
            if depth >= prefix.len() {
                if !self.known.insert(state) {
                    return Ok(());
                }
                self.note_others(&way, &choices);
                way.push(0);
            }
            let Some(choice) = choices.get(usize::from(way[depth])) else {
                return Ok(());
            };
            if left < u32::MAX {
                left -= u32::from(interrupts(*choice, &choices, last));
                last = choice.actor().or(last);
            }
            rules::step(run, *choice)?;
            let next = (run.state(), last, left);
            self.ways.entry(state).or_default().insert(next);
            state = next;
        }
        Err(rules::no_rest())
    }

    fn note_others(&mut self, way: &[u8], choices: &[Choice]) {
        for other in 1..choices.len() {
            let mut ahead = way.to_vec();
            ahead.push(u8::try_from(other).unwrap_or(u8::MAX));
            self.ahead.push_back(ahead);
        }
    }

    /// How many ways lead from the first state to an end.
    fn orders(&self) -> u128 {
        let mut counted = HashMap::new();
        self.first
            .map_or(0, |first| self.orders_from(first, &mut counted))
    }

    fn orders_from(&self, state: State, counted: &mut HashMap<State, u128>) -> u128 {
        if let Some(known) = counted.get(&state) {
            return *known;
        }
        let next = self.ways.get(&state).into_iter().flatten();
        let further: u128 = next.map(|next| self.orders_from(*next, counted)).sum();
        let all = further + u128::from(self.ends.contains(&state));
        counted.insert(state, all);
        all
    }
}
