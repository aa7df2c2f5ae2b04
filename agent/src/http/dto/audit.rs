//! What Drover made on the host. Nomad has no such list; names and shape are our own.

use drover_core::host::{Home, NamedAfter, Owner};
use drover_io_real::audit::Thing;
use serde::{Deserialize, Serialize};

/// One thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AuditDto {
    /// `process`, `container`, `image`, `cgroup`, `network`, `mount`, `directory` or `socket`.
    pub kind: String,
    /// A process's number, a group's or a container's name, an image's id or tag, a path.
    pub name: String,
    /// What a process calls itself, of which image a container is, or what an image is called.
    pub program: String,
    /// `agent`, `alloc`, `task`, `plugin`, `another agent`, `unknown` or `leaked`.
    pub owner: String,
    /// The owner's allocation.
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    /// The owner's task.
    pub task: String,
    /// The owner, if it is a plugin: the name of its program.
    pub plugin: String,
    /// The launch that it is called after.
    #[serde(rename = "LaunchID")]
    pub launch_id: String,
    /// The data directory of another agent that made it, or that did and is gone.
    pub data_dir: String,
    /// What else there is to say of it.
    pub remark: String,
    /// What was done about it, if it was leaked and is not any more.
    pub done: String,
    /// Why it could not be removed.
    pub error: String,
}

impl AuditDto {
    /// Whether it is nobody's, and still there.
    pub fn is_leaked(&self) -> bool {
        self.owner == LEAKED && self.done.is_empty()
    }
}

/// The owner of what has none.
const LEAKED: &str = "leaked";

pub(crate) fn audited(thing: &Thing, owner: Owner) -> AuditDto {
    let mut shape = AuditDto {
        kind: thing.kind.name().to_owned(),
        name: thing.name.clone(),
        program: thing.program.clone(),
        remark: thing.remark.clone(),
        ..AuditDto::default()
    };
    if let NamedAfter::Launch(launch) = &thing.named_after {
        shape.launch_id = launch.to_string();
    }
    if let Home::Other(path) | Home::Gone(path) = &thing.home {
        shape.data_dir.clone_from(path);
    }
    let kind = match owner {
        Owner::Agent => "agent",
        Owner::Alloc(id) => {
            shape.alloc_id = id.to_string();
            "alloc"
        }
        Owner::Task(key) => {
            shape.alloc_id = key.alloc.to_string();
            shape.task = key.task.to_string();
            "task"
        }
        Owner::Plugin(name) => {
            shape.plugin = name;
            "plugin"
        }
        Owner::Another(_) => "another agent",
        Owner::Unknown => "unknown",
        Owner::Leaked => LEAKED,
    };
    kind.clone_into(&mut shape.owner);
    shape
}
