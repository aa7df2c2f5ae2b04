//! A service of a group or task, read from the block as it was written.

use super::value::Value;

/// The longest name.
const MAX_NAME: usize = 63;

/// What is registered of a service whose provider we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// Its name, with references.
    pub name: &'a str,
    /// The label of a port of the group, or a number.
    pub port: &'a str,
    /// Instead of the port's address, if not empty.
    pub address: &'a str,
    /// How the address is found.
    pub address_mode: &'a str,
    /// Of a group's service, the task that it is about; empty for the group.
    pub task: &'a str,
    /// Its tags, with references.
    pub tags: Vec<&'a str>,
    /// The same while its allocation is a canary; its tags if there are none.
    pub canary_tags: Vec<&'a str>,
}

impl<'a> Service<'a> {
    /// The service; none if somebody else is to know of it. `consul` is whether the node runs the services of that
    /// provider too, which is also the one that a block without a provider means.
    pub fn run_here(block: &'a Value, consul: bool) -> Option<Service<'a>> {
        let text = |name| field(block, name).and_then(Value::as_str).unwrap_or("");
        let ours = match text("provider") {
            "nomad" => true,
            "" | "consul" => consul,
            _ => false,
        };
        if !ours {
            return None;
        }
        let texts = |name| {
            let list = field(block, name).and_then(Value::as_list);
            let texts = list.into_iter().flatten();
            texts.filter_map(Value::as_str).collect::<Vec<_>>()
        };
        Some(Service {
            name: text("name"),
            port: text("port_label"),
            address: text("address"),
            address_mode: text("address_mode"),
            task: text("task_name"),
            tags: texts("tags"),
            canary_tags: texts("canary_tags"),
        })
    }

    /// Who is to know of it, where that is not us.
    pub fn provider_of_others(block: &'a Value) -> Option<&'a str> {
        let provider = field(block, "provider").and_then(Value::as_str);
        Some(provider.unwrap_or("")).filter(|name| *name != "nomad")
    }

    /// Whether anything of it refers to the environment or the node.
    pub fn has_references(&self) -> bool {
        let texts = self.tags.iter().chain([&self.name, &self.address]);
        let texts = texts.chain(&self.canary_tags);
        texts.into_iter().any(|text| text.contains("${"))
    }
}

/// Whether this can be the name of a service: a label of a host's name.
pub fn is_name(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    let ends = name.starts_with('-') || name.ends_with('-');
    !name.is_empty() && name.len() <= MAX_NAME && !ends && name.bytes().all(plain)
}

/// A field of a block that is kept as it was written: `PortLabel`, `portlabel` or `port_label`.
pub(super) fn field<'a>(block: &'a Value, name: &str) -> Option<&'a Value> {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    let map = block.as_map()?;
    let wanted = plain(name);
    map.iter()
        .find(|(key, _)| plain(key) == wanted)
        .map(|(_, value)| value)
}
