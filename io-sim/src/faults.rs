//! What goes wrong, how often, and how often at most.

use std::collections::BTreeMap;

use crate::choice::Choices;

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// An answer comes about when nobody waits for it any longer.
    SlowAnswer,
    /// An answer comes twice.
    DoubledAnswer,
    /// A start is never answered; it may or may not have happened.
    HangStart,
    /// A start is said to have failed, though the process runs.
    FailStartedStart,
    /// A stop is never answered and has no effect.
    HangStop,
    /// A stop is refused.
    FailStop,
    /// A destroy is never answered and has no effect.
    HangDestroy,
    /// A destroy is refused.
    FailDestroy,
    /// A search for an earlier launch is never answered.
    HangRecover,
    /// An earlier launch cannot be found, though it may run.
    LoseLaunch,
    /// The end of a process that was asked to end is not told.
    SwallowExit,
    /// How a process ended is forgotten when it is destroyed.
    ForgetExit,
    /// A hook's work fails.
    FailHook,
    /// A hook's work never ends.
    HangHook,
    /// A commit is refused.
    FailCommit,
    /// A process ends by itself.
    KillProcess,
    /// The agent dies.
    Crash,
    /// The machine starts again.
    Reboot,
    /// The wall clock jumps.
    WallJump,
}

/// Every kind.
pub(crate) const ALL: &[Fault] = &[
    Fault::SlowAnswer,
    Fault::DoubledAnswer,
    Fault::HangStart,
    Fault::FailStartedStart,
    Fault::HangStop,
    Fault::FailStop,
    Fault::HangDestroy,
    Fault::FailDestroy,
    Fault::HangRecover,
    Fault::LoseLaunch,
    Fault::SwallowExit,
    Fault::ForgetExit,
    Fault::FailHook,
    Fault::HangHook,
    Fault::FailCommit,
    Fault::KillProcess,
    Fault::Crash,
    Fault::Reboot,
    Fault::WallJump,
];

/// How often each kind happens, in thousandths of its opportunities, and how many in all.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    permille: BTreeMap<Fault, u16>,
    budget: u32,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// Of each of these kinds, every `permille` of a thousand opportunities, 20 times in all.
    pub fn only(kinds: &[Fault], permille: u16) -> Faults {
        Faults {
            permille: kinds.iter().map(|kind| (*kind, permille)).collect(),
            budget: 20,
        }
    }

    /// A swarm: each kind is off or has a weight of its own, by seed; every other seed has
    /// everything moderately on.
    pub fn swarm(seed: u64) -> Faults {
        let mut choices = Choices::new(seed);
        let mut faults = Faults {
            budget: 4 + u32::try_from(choices.below(24, "fault budget", "")).unwrap_or(0),
            ..Faults::default()
        };
        for kind in ALL {
            let rare = matches!(kind, Fault::Crash | Fault::Reboot | Fault::WallJump);
            let name = format!("{kind:?}");
            let weights: &[u16] = match (seed % 2 == 0, rare) {
                (true, true) => &[0, 0, 2, 5, 20],
                (true, false) => &[0, 0, 0, 50, 200, 500],
                (false, true) => &[3],
                (false, false) => &[60],
            };
            let at = choices.below(weights.len(), "fault weight", &name);
            let weight = weights.get(at).copied().unwrap_or(0);
            faults.permille.insert(*kind, weight);
        }
        faults
    }

    /// The same, with at most this many.
    #[must_use]
    pub fn budget(mut self, budget: u32) -> Faults {
        self.budget = budget;
        self
    }

    /// The same, without this kind.
    #[must_use]
    pub fn without(mut self, kind: Fault) -> Faults {
        self.permille.remove(&kind);
        self
    }

    /// Whether `kind` happens to `entity` now.
    pub(crate) fn strikes(&mut self, choices: &mut Choices, kind: Fault, entity: &str) -> bool {
        let permille = self.permille.get(&kind).copied().unwrap_or(0);
        if self.budget == 0 || permille == 0 {
            return false;
        }
        let name = ALL.iter().position(|known| *known == kind).unwrap_or(0);
        let strikes = choices.chance(permille, "fault", &format!("{name} {entity}"));
        self.budget -= u32::from(strikes);
        strikes
    }
}
