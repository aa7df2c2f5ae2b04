//! Volumes and directories of the host in containers.

use super::Container;
use crate::hcl::Body;
use crate::job::{Volume, name};
use crate::text::Text;

/// Where files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A path of the host: what is written for it, and whether it begins at the root.
    Host(Text),
    /// A volume: its name in the file, and that of the node's volume.
    Named { name: String, source: String },
    /// A nameless volume.
    Nameless,
}

/// A mount of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub origin: Origin,
    pub target: Text,
    pub read_only: bool,
    /// `z` or `Z`, or nothing.
    pub label: String,
    pub line: usize,
}

impl Mount {
    /// Adds it to a container.
    pub(crate) fn add(self, container: &mut Container) {
        if let Some(target) = self.target.plain()
            && (!target.starts_with('/') || target.contains(':'))
        {
            let advice = "the path inside the container must be absolute, and without a colon";
            let what = format!("a volume at {target}");
            return container.mounts.lost(self.line, &what, advice);
        }
        match self.origin {
            Origin::Host(path) => {
                let mut text = path;
                text.push(":");
                text = text.then(self.target);
                let modes = [if self.read_only { "ro" } else { "" }, self.label.as_str()];
                let modes: Vec<&str> = modes.into_iter().filter(|it| !it.is_empty()).collect();
                if !modes.is_empty() {
                    text.push(&format!(":{}", modes.join(",")));
                }
                container.binds.push(text);
            }
            Origin::Named { name, source } => {
                let label = crate::job::name(&name);
                let comments = vec![made_by_hand(&source, &name, self.line)];
                let volume = Volume { source, comments };
                container
                    .group
                    .volumes
                    .entry(label.clone())
                    .or_insert(volume);
                let mut mount = Body::default();
                mount.set("volume", label);
                mount.set("destination", self.target);
                if self.read_only {
                    mount.set("read_only", true);
                }
                container.task.blocks.block("volume_mount", mount);
            }
            Origin::Nameless => {
                let mut mount = Body::default();
                mount.set("type", "volume");
                mount.set("target", self.target);
                container.mounts.block("mount", mount);
            }
        }
    }
}

/// How the volume comes to be.
fn made_by_hand(source: &str, given: &str, line: usize) -> String {
    format!(
        "The volume {given} (line {line}) becomes a host volume, which the job waits for. Make it once with `drover volume create FILE`, where FILE has\n  \
         name      = \"{source}\"\n  type      = \"host\"\n  plugin_id = \"mkdir\"\nIt is empty then: what the engine's volume holds has to be copied."
    )
}

/// The name of the node's volume.
pub(crate) fn source(project: &str, volume: &str) -> String {
    name(&format!("{project}-{volume}"))
}

/// What the last part of a short form says: whether it is for reading only, the label, and what is not known.
pub(crate) fn modes(text: &str) -> (bool, String, Vec<String>) {
    let (mut read_only, mut label, mut others) = (false, String::new(), Vec::new());
    for mode in text.split(',').map(str::trim) {
        match mode {
            "" | "rw" => {}
            "ro" => read_only = true,
            "z" | "Z" => label = mode.to_owned(),
            other => others.push(other.to_owned()),
        }
    }
    (read_only, label, others)
}
