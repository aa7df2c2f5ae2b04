//! What templates ask for, and the answers.
//!
//! Rendering does no I/O: whoever renders looks things up, and renders again when it knows more.

use std::collections::BTreeMap;
use std::fmt;

/// Something from outside that a template asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// A variable of the task's environment: [`Answer::Text`] or [`Answer::Absent`].
    Env(String),
    /// The content of a file, by the path as the template says it: [`Answer::Text`]. Whether the
    /// path may be read is the answerer's decision.
    File(String),
    /// A Nomad variable, by its path, with `@namespace` if the template says one:
    /// [`Answer::Variable`] or [`Answer::Absent`].
    Variable(String),
    /// The Nomad variables below a prefix, which may be empty: [`Answer::Variables`].
    Variables(String),
    /// The instances of a Nomad service: [`Answer::Instances`].
    Service(String),
    /// A few instances of a Nomad service, the same ones for the same key: [`Answer::Instances`].
    ServiceChoice {
        /// The service.
        name: String,
        /// How many instances at most.
        count: u64,
        /// By what they are chosen; usually the allocation's id.
        key: String,
    },
    /// The names of all Nomad services: [`Answer::Services`].
    Services,
    /// The time: [`Answer::Time`].
    Time,
}

impl fmt::Display for Need {
    /// As people are told what is missing: `nomadVar nomad/jobs/web`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env {name}"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Variable(path) => write!(f, "nomadVar {path}"),
            Self::Variables(prefix) if prefix.is_empty() => write!(f, "nomadVarList"),
            Self::Variables(prefix) => write!(f, "nomadVarList {prefix}"),
            Self::Service(name) => write!(f, "nomadService {name}"),
            Self::ServiceChoice { name, count, key } => {
                write!(f, "nomadService {count} {key} {name}")
            }
            Self::Services => write!(f, "nomadServices"),
            Self::Time => write!(f, "timestamp"),
        }
    }
}

/// What is known of a [`Need`]. One of a sort that does not fit the need is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A text; it need not be UTF-8.
    Text(Vec<u8>),
    /// It is known that there is none. A template that only asks whether a variable exists goes
    /// on; one that needs it waits.
    Absent,
    /// A Nomad variable.
    Variable(Variable),
    /// What is known of some Nomad variables without their items, in the order of their paths.
    Variables(Vec<VariableMeta>),
    /// Instances of a service.
    Instances(Vec<Instance>),
    /// Names of services.
    Services(Vec<Service>),
    /// Nanoseconds since 1970, UTC.
    Time(i128),
    /// It must not be had; the text says why. Rendering fails.
    Refused(String),
}

/// A Nomad variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variable {
    /// What is known of it.
    pub meta: VariableMeta,
    /// Its items.
    pub items: BTreeMap<String, String>,
}

/// What is known of a Nomad variable without its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableMeta {
    /// Its namespace.
    pub namespace: String,
    /// Its path.
    pub path: String,
    /// The index at which it was made.
    pub create_index: u64,
    /// The index at which it was changed last.
    pub modify_index: u64,
    /// When it was made, in nanoseconds since 1970.
    pub create_time: i64,
    /// When it was changed last, in nanoseconds since 1970.
    pub modify_time: i64,
}

/// An instance of a Nomad service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// The registration's id.
    pub id: String,
    /// The service's name.
    pub name: String,
    /// The id of the node.
    pub node: String,
    /// Where it listens.
    pub address: String,
    /// The port there.
    pub port: i64,
    /// The node's datacenter.
    pub datacenter: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The job.
    pub job_id: String,
    /// The allocation.
    pub alloc_id: String,
}

/// The name of a Nomad service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// The tags of its instances.
    pub tags: Vec<String>,
}

/// Who answers.
pub trait Source {
    /// What is known of a need now; nothing if it is not known yet. The same need has the same
    /// answer all through one rendering.
    fn answer(&self, need: &Need) -> Option<Answer>;
}

/// Answers that are at hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The whole environment: a variable that is not here is known to be absent.
    pub env: BTreeMap<String, String>,
    /// Everything else; what is not here is not known yet.
    pub known: BTreeMap<Need, Answer>,
}

impl Source for Answers {
    fn answer(&self, need: &Need) -> Option<Answer> {
        if let Some(answer) = self.known.get(need) {
            return Some(answer.clone());
        }
        let Need::Env(name) = need else { return None };
        let value = self.env.get(name);
        Some(value.map_or(Answer::Absent, |text| Answer::Text(text.clone().into())))
    }
}
