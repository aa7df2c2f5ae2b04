//! The points at which chance decides in a world.

use core::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::faults::Fault;

/// Each point once: what is decided, and its name in scripts.
macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// What chance decides.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Point {
            /// Whether a fault happens.
            Fault(Fault),
            $($(#[$doc])* $point,)*
        }

        impl Point {
            const OTHERS: &[Point] = &[$(Point::$point,)*];

            /// Its name in scripts.
            pub fn name(self) -> &'static str {
                match self {
                    Point::Fault(fault) => fault.name(),
                    $(Point::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// How long something takes.
    Latency = "latency",
    /// The rank of something that happens, among what is ready at the same time.
    Order = "order",
    /// The priority of an entity, in searches by priority.
    Priority = "priority",
    /// At which step a priority falls.
    PriorityChange = "priority change",
    /// Whether a start that hangs starts something.
    HangingStart = "hanging start",
    /// Whether what starts a process had let it go before it was killed.
    LostStart = "lost start",
    /// When a driver reports something of a task.
    Chatter = "chatter",
    /// When a process ends by itself.
    SuddenDeath = "sudden death",
    /// Whether a script that fails ran.
    FailingScript = "failing script",
    /// For how long a service is broken.
    BrokenFor = "broken for",
    /// How long a session lasts.
    SessionLasts = "session lasts",
    /// How much of what templates need is missing.
    Missing = "missing",
    /// For how long.
    MissingFor = "missing for",
    /// Whose template changes.
    Whose = "whose",
    /// Which of its templates.
    Which = "which",
    /// For how long the disk is full.
    FullFor = "full for",
    /// Whether what was under way is lost when the agent dies.
    LostAtCrash = "lost at a crash",
    /// Whether an allocation of another node has ended.
    RemoteEnds = "the remote one ends",
    /// For how long a node is cut off from its servers.
    CutOffFor = "cut off for",
    /// Whether servers that forget a node forget its allocations.
    ForgottenAllocs = "forgotten allocations",
    /// Why servers refuse a call.
    Refusal = "refusal",
    /// To what a server answers that was not asked.
    OddReply = "odd reply",
    /// How many changes a server is behind.
    Behind = "behind",
    /// How many servers a reply names.
    Names = "names",
    /// Whose device changes.
    Plugin = "plugin",
    /// Which device.
    Device = "device",
    /// Whether it is gone.
    Gone = "gone",
    /// What a plugin reports that cannot be.
    Odd = "odd",
    /// Whose stream ends or is odd.
    Speaker = "speaker",
    /// By how much the wall clock jumps.
    Wall = "wall",
    /// How long it takes until a new agent begins.
    Restart = "restart",
    /// For how long the driver is unhealthy.
    Flap = "flap",
    /// How late the agent is called back.
    Late = "late",
    /// Which of a launch's counters cannot be read.
    LostCounters = "lost counters",
    /// Whether the containers of an engine end with it.
    ContainersEnd = "containers end",
    /// For how long an engine is away.
    EngineAwayFor = "engine away for",
    /// For how long an engine is slow.
    EngineSlowFor = "engine slow for",
    /// When an engine lies of a container, or forgets it.
    EngineErrsAfter = "engine errs after",
    /// How a container is said to have ended that runs.
    ClaimedEnd = "claimed end",
    /// Whether a network that is half there has no address.
    BareNetwork = "bare network",
    /// What is measured that cannot be.
    OddStatistics = "odd statistics",
}

impl Point {
    /// The point of this name.
    pub fn named(name: &str) -> Option<Point> {
        let faults = Fault::ALL.iter().map(|fault| Point::Fault(*fault));
        let mut all = faults.chain(Point::OTHERS.iter().copied());
        all.find(|point| point.name() == name)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Point, D::Error> {
        let name = String::deserialize(from)?;
        Point::named(&name).ok_or_else(|| Error::custom(format!("{name:?} is no choice point")))
    }
}
