//! Faults: what goes wrong, how often, and how often at most.
//!
//! A kind is one line of the table `kinds!`. It happens where the world asks [`Faults::fires`],
//! at the point that its sentence is about, such as `driver.rs` for starts and stops. Half of the
//! seeds are a swarm, in which each kind is off or has a random weight; the other half have
//! everything moderately on. In a test: `sim.world.scene.faults = Faults::only(&[Fault::HangStop],
//! 1000)`.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::choice::Choices;
use crate::dice::Dice;
use crate::point::Point;

/// Each kind of trouble once: its meaning, its name, and what people read.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $text:literal,)*) => {
        /// One kind of trouble.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Fault {
            $($(#[$doc])* $kind,)*
        }

        impl Fault {
            /// Every kind.
            pub const ALL: &[Fault] = &[$(Fault::$kind,)*];

            /// Its name in scripts.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Fault::$kind => stringify!($kind),)*
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Fault::$kind => $text,)*
                })
            }
        }
    };
}

kinds! {
    /// An answer comes about when nobody waits for it any longer.
    SlowAnswer = "an answer comes late",
    /// An answer comes twice.
    DoubledAnswer = "an answer comes twice",
    /// A start is never answered; it may or may not have happened.
    HangStart = "the start hangs",
    /// A start is said to have failed, though the process runs.
    FailStartedStart = "the start is reported as failed, and runs",
    /// A stop is never answered and has no effect.
    HangStop = "the stop hangs",
    /// A stop is refused.
    FailStop = "the stop is refused",
    /// A destroy is never answered and has no effect.
    HangDestroy = "the destroy hangs",
    /// A destroy is refused.
    FailDestroy = "the destroy is refused",
    /// A search for an earlier launch is never answered.
    HangRecover = "the search for the launch hangs",
    /// An earlier launch cannot be found, though it may run.
    LoseLaunch = "the launch cannot be found",
    /// The end of a process that was asked to end is not told.
    SwallowExit = "the exit is not reported",
    /// The end of a process is told twice.
    DoubledExit = "the exit is reported twice",
    /// How a process ended is forgotten when it is destroyed.
    ForgetExit = "the exit is forgotten",
    /// A hook's work fails.
    FailHook = "the hook fails",
    /// A hook's work never ends.
    HangHook = "the hook hangs",
    /// What a task needs cannot be fetched.
    FailFetch = "the artifact cannot be fetched",
    /// Fetching what a task needs does not go on.
    StallFetch = "fetching the artifact stalls",
    /// Another node does not answer.
    SilentNode = "the other node does not answer",
    /// Another node forgets an allocation, for good.
    ForgetfulNode = "the other node forgets the allocation",
    /// Another node says what was true once.
    OldNews = "the other node's answer is stale",
    /// A disk that is fetched from another node breaks off.
    BrokenDisk = "the disk breaks off on its way",
    /// A commit is refused.
    FailCommit = "the commit fails",
    /// Nothing can be written for a while.
    FullDisk = "the disk is full",
    /// A process ends by itself.
    KillProcess = "the process will end by itself",
    /// The driver's condition changes, there and back.
    FlapDriver = "the driver flaps",
    /// What starts a process is killed before it can say that it did, or before it does.
    LoseStart = "what starts the process is killed",
    /// The driver's plugin is gone: nobody knows how what it ran ends.
    LosePlugin = "the driver's plugin is gone",
    /// The agent dies after a step.
    Crash = "the agent dies",
    /// The agent dies in the middle of a step: some of what it asked for is never done.
    CrashInStep = "the agent dies in the middle of a step",
    /// The machine starts again.
    Reboot = "the machine starts again",
    /// The wall clock jumps.
    WallJump = "the wall clock jumps",
    /// The agent is called back late.
    SlowTimer = "the agent is called back late",
    /// A probe of the machine fails.
    FailProbe = "the probe fails",
    /// A probe of the machine never answers.
    HangProbe = "the probe hangs",
    /// A driver or plugin that is asked to tell of itself says nothing.
    HangNews = "it reports nothing",
    /// A driver or plugin says no more, until it is asked again.
    EndNews = "a report stream ends",
    /// News come of a stream that is over.
    LateNews = "a report comes from an ended stream",
    /// A driver or plugin says what cannot be.
    OddNews = "a report is invalid",
    /// A device breaks, goes, or comes back.
    FlapDevice = "a device changes",
    /// What a plugin reserves cannot be given.
    OddReservation = "the reservation fails",
    /// Somebody else fills most of the disk, and it stays so.
    DiskPressure = "others fill the disk",
    /// The driver has something to say of a task, in time or much too late.
    Chatter = "the driver sends a task event",
    /// What a template is made of changes.
    ChangeTemplate = "a template changes",
    /// A template cannot be rendered anew, and a moment later it can.
    BreakTemplate = "a template is broken for a moment",
    /// What a template needs is not there yet.
    MissingTemplate = "what a template needs is missing",
    /// The driver never says what became of a script.
    HangScript = "the script hangs",
    /// A script fails, or there is none.
    FailScript = "the script fails",
    /// The driver never says whether a session is open.
    HangSession = "the session hangs",
    /// The program of a session cannot be started.
    FailSession = "the session fails",
    /// A service never answers to a check.
    HangCheck = "the check hangs",
    /// A check fails.
    FailCheck = "the check fails",
    /// A service does not work for a while.
    BreakService = "the service is broken for a while",
    /// What the disk holds of a task cannot be read by the next agent.
    UnreadableRecord = "the record cannot be read",
    /// Counters of a task, a core or a device cannot be read.
    LoseCounters = "counters cannot be read",
    /// A counter begins again at zero.
    ResetCounters = "a counter jumps back",
    /// What a driver measured comes when the next one is asked for.
    LateStatistics = "statistics come late",
    /// A driver or a plugin measures what cannot be.
    OddStatistics = "statistics cannot be believed",
    /// A network cannot be made, and a part of it is there.
    HalfNetwork = "the network is made by half",
    /// The directory of an allocation takes more than before, or less.
    FillDir = "the directory's size changes",
    /// A call does not reach the servers.
    LoseCall = "the call is lost",
    /// What servers answer does not arrive; what they were asked for is done.
    LoseReply = "the reply of the servers is lost",
    /// A server refuses a call.
    RefuseCall = "the server refuses the call",
    /// A server answers to something else.
    OddReply = "the reply answers another call",
    /// A server knows less than others.
    ServerBehind = "the server is behind",
    /// A server does not name all servers.
    FewServers = "the reply names few servers",
    /// No call reaches the servers for a while.
    CutOff = "the node is cut off from its servers",
    /// The servers do not know the node any more.
    ForgetNode = "the servers forget the node",
    /// The servers do not sign what a task needs.
    RefuseSigning = "the servers do not sign the identities",
    /// The engine of containers dies, and is back after a while.
    EngineDies = "the engine dies",
    /// All that the engine answers for a while comes about when nobody waits for it any longer.
    EngineSlows = "the engine is slow for a while",
    /// The engine says that a container ended which runs.
    EngineLies = "the engine will tell an end that was none",
    /// The engine names a container as running that is not.
    EngineClaims = "the engine says that what is gone runs",
    /// A container is removed by somebody, and the engine knows nothing of it any more.
    EngineForgets = "the engine will forget the container",
    /// The engine does not know how a container ended.
    EngineLosesCode = "the engine does not know how it ended",
    /// An engine that comes back tells again what it told before it died.
    EngineRepeats = "the engine tells an end again",
    /// The agent dies while it makes a network, of which a part is there.
    CutNetwork = "the network is half made when the agent dies",
}

impl Fault {
    /// Whether it befalls what is known of the machine.
    fn is_of_the_machine(self) -> bool {
        matches!(
            self,
            Fault::FailProbe
                | Fault::HangProbe
                | Fault::HangNews
                | Fault::EndNews
                | Fault::LateNews
                | Fault::OddNews
                | Fault::FlapDevice
                | Fault::OddReservation
                | Fault::DiskPressure
        )
    }

    /// Whether it befalls what is measured.
    fn is_of_statistics(self) -> bool {
        matches!(
            self,
            Fault::LoseCounters
                | Fault::ResetCounters
                | Fault::LateStatistics
                | Fault::OddStatistics
        )
    }

    /// Whether it befalls what a node and the servers of its cluster say to each other.
    fn is_of_servers(self) -> bool {
        matches!(
            self,
            Fault::LoseCall
                | Fault::LoseReply
                | Fault::RefuseCall
                | Fault::OddReply
                | Fault::ServerBehind
                | Fault::FewServers
                | Fault::CutOff
                | Fault::ForgetNode
                | Fault::RefuseSigning
        )
    }

    /// Whether it befalls an engine of containers, and what stands beside them.
    fn is_of_engine(self) -> bool {
        matches!(
            self,
            Fault::EngineDies
                | Fault::EngineSlows
                | Fault::EngineLies
                | Fault::EngineClaims
                | Fault::EngineForgets
                | Fault::EngineLosesCode
                | Fault::EngineRepeats
                | Fault::CutNetwork
        )
    }

    /// Whether it has an opportunity at each step, and is rare therefore.
    fn is_rare(self) -> bool {
        matches!(
            self,
            Fault::Crash
                | Fault::CrashInStep
                | Fault::Reboot
                | Fault::WallJump
                | Fault::FlapDriver
                | Fault::LosePlugin
                | Fault::FullDisk
                | Fault::EndNews
                | Fault::OddNews
                | Fault::FlapDevice
                | Fault::ChangeTemplate
                | Fault::CutOff
                | Fault::ForgetNode
                | Fault::EngineDies
                | Fault::EngineSlows
        )
    }
}

/// How often each kind happens, in thousandths of its opportunities, how often it may at most,
/// and how many there may be in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    weights: BTreeMap<Fault, Weight>,
    budget: u32,
}

/// How often one kind happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Weight {
    permille: u16,
    at_most: u32,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// Of each of these kinds, every `permille` of a thousand opportunities, 20 times in all.
    pub fn only(kinds: &[Fault], permille: u16) -> Faults {
        let weight = Weight {
            permille,
            at_most: 20,
        };
        Faults {
            weights: kinds.iter().map(|kind| (*kind, weight)).collect(),
            budget: 20,
        }
    }

    /// A swarm: each kind is off or has a weight of its own, by seed; every other seed has
    /// everything moderately on.
    pub fn swarm(seed: u64) -> Faults {
        let mut dice = Dice::new(seed);
        let budget = 4 + dice.below(24, "fault budget", "") as u32;
        let machine = dice.below(3, "trouble of the machine", "") == 1;
        let statistics = dice.below(4, "trouble of statistics", "") == 1;
        let is_in = |kind: Fault| {
            (machine || !kind.is_of_the_machine())
                && (statistics || !kind.is_of_statistics())
                && !kind.is_of_servers()
                && !kind.is_of_engine()
        };
        Faults::some_of(seed, &mut dice, is_in).budget(budget)
    }

    /// The same of what goes wrong between a node and the servers of its cluster, as often as it may.
    pub fn of_servers(seed: u64) -> Faults {
        let mut dice = Dice::new(seed);
        let budget = 4 + dice.below(40, "budget of servers", "") as u32;
        Faults::some_of(seed / 2, &mut dice, Fault::is_of_servers).budget(budget)
    }

    /// The same of what goes wrong with an engine of containers.
    pub fn of_engine(seed: u64) -> Faults {
        let mut dice = Dice::new(seed);
        let budget = 4 + dice.below(20, "budget of the engine", "") as u32;
        Faults::some_of(seed / 2, &mut dice, Fault::is_of_engine).budget(budget)
    }

    fn some_of(seed: u64, dice: &mut Dice, is_in: impl Fn(Fault) -> bool) -> Faults {
        let mut faults = Faults::none();
        for kind in Fault::ALL.iter().filter(|kind| is_in(**kind)) {
            let name = kind.name();
            let weights: &[u16] = match (seed.is_multiple_of(2), kind.is_rare()) {
                (true, true) => &[0, 0, 2, 5, 20],
                (true, false) => &[0, 0, 0, 50, 200, 500],
                (false, true) => &[3],
                (false, false) => &[60],
            };
            let permille = dice.one_of(weights, "fault weight", name).unwrap_or(0);
            let at_most = dice.one_of(&[20, 1, 2, 5], "fault limit", name);
            if permille > 0 {
                let at_most = at_most.unwrap_or(20);
                faults.weights.insert(*kind, Weight { permille, at_most });
            }
        }
        faults
    }

    /// The same, with at most this many.
    #[must_use]
    pub fn budget(mut self, budget: u32) -> Faults {
        self.budget = budget;
        self
    }

    /// The same, and what `other` has as well.
    #[must_use]
    pub fn and(mut self, other: &Faults) -> Faults {
        self.weights.extend(other.weights.iter());
        self.budget = self.budget.saturating_add(other.budget);
        self
    }

    /// The same, without this kind.
    #[must_use]
    pub fn without(mut self, kind: Fault) -> Faults {
        self.weights.remove(&kind);
        self
    }

    /// The kinds that may happen.
    pub fn kinds(&self) -> impl Iterator<Item = Fault> {
        self.weights.keys().copied()
    }

    /// Whether `kind` happens to `entity` now.
    pub(crate) fn fires(&mut self, choices: &mut Choices, kind: Fault, entity: &str) -> bool {
        let Some(weight) = self.weights.get_mut(&kind) else {
            return false;
        };
        if self.budget == 0 || weight.at_most == 0 {
            return false;
        }
        let fires = choices.chance(weight.permille, Point::Fault(kind), entity);
        self.budget -= u32::from(fires);
        weight.at_most -= u32::from(fires);
        fires
    }
}
