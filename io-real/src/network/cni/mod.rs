//! Networks that plugins of the machine make, by the contract of CNI: programs that are run with five variables and a
//! text of JSON.
//!
//! The namespace is made here, as for the bridge. Then the plugins of the list ([`list`]) are added one after the
//! other, and each gets what the one before answered. They are taken back (`DEL`) in the opposite order, with the last
//! answer. What is added is remembered before that ([`memory`]), so an agent that finds a network half made, or one of
//! before a restart of the machine, takes it back first and makes it anew: plugins may be asked for that as often as
//! one likes. A plugin that fails costs the allocation, and what was added for it is taken back. Of a network that an
//! earlier agent made they are asked whether it is as it should be (`CHECK`); if not, that is reported, and it stays, since
//! tasks may be in it.
//!
//! Plugins are the operator's, and run as the agent does. A job chooses among networks that the operator described, and
//! says arguments; a list's configuration it does not see or change.

pub mod answer;
mod input;
pub mod list;
mod memory;
mod plugin;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drover_core::ids::AllocId;
use drover_core::model::network::{INTERFACE, PluginNetwork, is_arg, is_arg_name};
use drover_core::work::BuildNetwork;
use rustix::fs::{Access, access};
use serde_json::{Map, Value, json};

use super::{NAMESPACE, Networks, files, make_namespace, namespace};
use input::Input;
use list::{Lists, Plugin};
use memory::Memory;

/// How long one plugin may take, and how long one of an earlier agent's is waited for before it is killed.
const EACH: Duration = Duration::from_secs(25);
/// How long all of a list may take to be added. With the wait, with what was half made before, and with what fails now,
/// it is less than a hook may take.
const ADDING: Duration = Duration::from_secs(50);
/// How long all of a list may take to be taken back, or to be asked whether all is well.
const TAKING_BACK: Duration = Duration::from_secs(20);

/// The first version of the contract in which plugins are asked whether all is well, and told at the end what they
/// answered.
const PASSES_RESULT_AT_DELETE: (u64, u64) = (0, 4);

/// Where plugins and networks of CNI are on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CniPlugins {
    /// Where programs are; earlier directories win.
    pub path: Vec<PathBuf>,
    /// Where networks are described.
    pub config_dir: PathBuf,
}

impl Default for CniPlugins {
    fn default() -> CniPlugins {
        CniPlugins {
            path: vec![PathBuf::from("/opt/cni/bin")],
            config_dir: PathBuf::from("/opt/cni/config"),
        }
    }
}

/// What plugins are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Add,
    Check,
    Del,
}

impl Command {
    fn word(self) -> &'static str {
        match self {
            Command::Add => "ADD",
            Command::Check => "CHECK",
            Command::Del => "DEL",
        }
    }
}

impl Networks {
    /// Makes a network by plugins, or finds it, in the directory that was made for it.
    pub(super) fn build_by_plugins(
        &self,
        alloc: AllocId,
        dir: &OwnedFd,
        (name, work): (&str, &BuildNetwork),
    ) -> io::Result<PluginNetwork> {
        let mut input = Input::take(dir.as_fd(), EACH)?;
        let is_held = namespace::held(dir.as_fd(), NAMESPACE)?.is_some();
        let attachment = Attachment {
            dir,
            container: alloc.to_string(),
            namespace: self.path(alloc).join(NAMESPACE),
        };
        let known = Memory::read(dir.as_fd())?;
        let made = known.as_ref().and_then(|known| known.result.as_ref());
        let found = match (&known, made) {
            (Some(memory), Some(made)) if is_held => {
                attachment.check(&mut input, memory);
                read_result(made)?
            }
            _ => {
                if let Some(half) = &known {
                    attachment.take_back(&mut input, half, is_held)?;
                }
                // Whether that can be is found out before anything is made.
                let memory = self.memory(name, work)?;
                if !is_held {
                    make_namespace(dir)?;
                }
                attachment.add(&mut input, memory)?
            }
        };
        let address: Option<IpAddr> = found.reached_at();
        files::write(
            dir.as_fd(),
            files::HOSTS,
            &files::hosts(&work.hostname, address),
        )?;
        let (host, needed) = files::resolv_of_host(true);
        match work.dns.as_ref().or(found.dns.as_ref()) {
            Some(dns) => files::write(dir.as_fd(), files::RESOLV, &files::resolv(dns, &host))?,
            None if needed => files::write(dir.as_fd(), files::RESOLV, &host)?,
            None => {}
        }
        Ok(found)
    }

    /// What is asked of plugins for a network of this name.
    fn memory(&self, name: &str, work: &BuildNetwork) -> io::Result<Memory> {
        let plugins = self.0.plugins.get().cloned().unwrap_or_default();
        let mut lists = Lists::read(&plugins.config_dir)?;
        let list = lists.all.remove(name).ok_or_else(|| {
            let dir = plugins.config_dir.display();
            let why = format!("no file in {dir} describes a network {name} any more");
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        for plugin in &list.plugins {
            program(&plugins.path, plugin)?;
        }
        Ok(Memory {
            list,
            path: plugins.path,
            args: arguments(work)?,
            runtime: runtime(work),
            result: None,
        })
    }
}

/// Takes back what plugins made of a network, if they made any. The name is the allocation's.
pub(super) fn take_back(dir: &OwnedFd, path: &Path, name: &str) -> io::Result<()> {
    if Memory::read(dir.as_fd())?.is_none() {
        return Ok(());
    }
    let mut input = Input::take(dir.as_fd(), EACH)?;
    // Somebody may have taken it back meanwhile.
    let Some(memory) = Memory::read(dir.as_fd())? else {
        return Ok(());
    };
    let is_held = namespace::held(dir.as_fd(), NAMESPACE)?.is_some();
    let attachment = Attachment {
        dir,
        container: name.to_owned(),
        namespace: path.join(name).join(NAMESPACE),
    };
    attachment.take_back(&mut input, &memory, is_held)
}

/// Whether there is something that plugins made.
pub(super) fn is_made_by_plugins(dir: &OwnedFd) -> bool {
    // What cannot be read may have been made by them.
    !matches!(Memory::read(dir.as_fd()), Ok(None))
}

/// A network and the namespace that it leads to.
struct Attachment<'a> {
    dir: &'a OwnedFd,
    container: String,
    namespace: PathBuf,
}

impl Attachment<'_> {
    /// Adds the plugins, one after the other.
    fn add(&self, input: &mut Input, mut memory: Memory) -> io::Result<PluginNetwork> {
        memory.write(self.dir.as_fd())?;
        let made = self.add_all(input, &memory).and_then(|result| {
            let found = read_result(&result)?;
            memory.result = Some(result);
            memory.write(self.dir.as_fd())?;
            Ok(found)
        });
        if made.is_err()
            && let Err(error) = self.take_back(input, &memory, true)
        {
            let alloc = &self.container;
            tracing::warn!(alloc, %error, "what plugins of CNI added is still there");
        }
        made
    }

    fn add_all(&self, input: &mut Input, memory: &Memory) -> io::Result<Value> {
        let end = Instant::now() + ADDING;
        let mut last = None;
        for plugin in &memory.list.plugins {
            let request = request(memory, plugin, last.as_ref());
            let namespace = self.namespace.display().to_string();
            let of = (Command::Add, namespace);
            let answer = self.call(input, memory, (plugin, request), of, end)?;
            let answer: Result<Map<String, Value>, _> = serde_json::from_slice(&answer);
            let answer = answer.map_err(|error| {
                let why = format!(
                    "CNI plugin {}: its answer is no JSON object: {error}",
                    plugin.program
                );
                io::Error::new(io::ErrorKind::InvalidData, why)
            })?;
            last = Some(Value::Object(answer));
        }
        last.ok_or_else(|| io::Error::other("the network has no plugins"))
    }

    /// Asks the plugins whether what they made is as it should be, and tells if it is not.
    fn check(&self, input: &mut Input, memory: &Memory) {
        if memory.list.unchecked || !passes_result_at_delete(&memory.list.version) {
            return;
        }
        let end = Instant::now() + TAKING_BACK;
        for plugin in &memory.list.plugins {
            let request = request(memory, plugin, memory.result.as_ref());
            let of = (Command::Check, self.namespace.display().to_string());
            if let Err(error) = self.call(input, memory, (plugin, request), of, end) {
                let alloc = &self.container;
                tracing::warn!(alloc, %error, "its network is not as it should be");
                return;
            }
        }
    }

    /// Has the plugins take back what they made, the last one first, and forgets it. Each is asked, whatever the others
    /// say, and has its share of the time.
    fn take_back(&self, input: &mut Input, memory: &Memory, is_held: bool) -> io::Result<()> {
        let end = Instant::now() + TAKING_BACK;
        let passed_on = memory.result.as_ref();
        let passed_on = passed_on.filter(|_| passes_result_at_delete(&memory.list.version));
        let mut done = Ok(());
        for (before, plugin) in memory.list.plugins.iter().enumerate().rev() {
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            let share =
                u32::try_from(before).map_or(left, |before| left / before.saturating_add(1));
            let request = request(memory, plugin, passed_on);
            // After a restart of the machine there is no namespace to be left.
            let namespace = match is_held {
                true => self.namespace.display().to_string(),
                false => String::new(),
            };
            let of = (Command::Del, namespace);
            let one = self.call(input, memory, (plugin, request), of, now + share);
            done = done.and(one.map(drop));
        }
        done.and_then(|()| Memory::forget(self.dir.as_fd()))
    }

    fn call(
        &self,
        input: &mut Input,
        memory: &Memory,
        (plugin, request): (&Plugin, Map<String, Value>),
        (command, namespace): (Command, String),
        end: Instant,
    ) -> io::Result<Vec<u8>> {
        let path: Vec<_> = memory
            .path
            .iter()
            .map(|dir| dir.to_string_lossy())
            .collect();
        let env = [
            ("CNI_COMMAND", command.word().to_owned()),
            ("CNI_CONTAINERID", self.container.clone()),
            ("CNI_NETNS", namespace),
            ("CNI_IFNAME", INTERFACE.to_owned()),
            ("CNI_PATH", path.join(":")),
            ("CNI_ARGS", memory.args.clone()),
        ];
        let program = program(&memory.path, plugin)?;
        let input = input.with(&serde_json::to_vec(&request)?)?;
        let deadline = end.min(Instant::now() + EACH);
        plugin::run(&program, &env, input, deadline).map_err(|error| {
            let why = format!(
                "CNI plugin {} ({}): {error}",
                plugin.program,
                command.word()
            );
            io::Error::new(error.kind(), why)
        })
    }
}

/// The program of a plugin.
fn program(path: &[PathBuf], plugin: &Plugin) -> io::Result<PathBuf> {
    let all = path.iter().map(|dir| dir.join(&plugin.program));
    let mut programs = all.filter(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
    programs.next().ok_or_else(|| {
        let dirs: Vec<_> = path.iter().map(|dir| dir.to_string_lossy()).collect();
        let why = format!(
            "there is no CNI plugin {} in {}",
            plugin.program,
            dirs.join(":")
        );
        io::Error::new(io::ErrorKind::NotFound, why)
    })
}

/// What a plugin reads: its own configuration, and what the list, the allocation and the plugin before it have to say.
fn request(memory: &Memory, plugin: &Plugin, last: Option<&Value>) -> Map<String, Value> {
    let mut request = plugin.config.clone();
    // Files say what a plugin can be told, and not what it is told.
    for name in ["capabilities", "runtimeConfig", "prevResult"] {
        request.remove(name);
    }
    request.insert("name".to_owned(), memory.list.name.clone().into());
    request.insert("cniVersion".to_owned(), memory.list.version.clone().into());
    let passed_on = memory
        .runtime
        .iter()
        .filter(|(name, _)| plugin.capabilities.contains(name));
    let passed_on: Map<String, Value> = passed_on
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !passed_on.is_empty() {
        request.insert("runtimeConfig".to_owned(), passed_on.into());
    }
    if let Some(last) = last {
        request.insert("prevResult".to_owned(), last.clone());
    }
    request
}

/// What plugins that can be told so are told of the allocation.
fn runtime(work: &BuildNetwork) -> Map<String, Value> {
    let mut runtime = Map::new();
    let both = work.ports.iter().flat_map(|port| {
        ["tcp", "udp"].map(|protocol| {
            let inside = if port.to == 0 { port.value } else { port.to };
            let mut mapping = json!({
                "hostPort": port.value,
                "containerPort": inside,
                "protocol": protocol,
            });
            // In the default network a port is at all addresses of the host, as behind the bridge.
            if !port.host_network.is_empty() {
                mapping["hostIP"] = port.host_ip.clone().into();
            }
            mapping
        })
    });
    let mappings: Vec<Value> = both.collect();
    if !mappings.is_empty() {
        runtime.insert("portMappings".to_owned(), mappings.into());
    }
    if let Some(dns) = &work.dns {
        let dns = json!({
            "servers": dns.servers,
            "searches": dns.searches,
            "options": dns.options,
        });
        runtime.insert("dns".to_owned(), dns);
    }
    runtime
}

/// The text of arguments. Plugins that do not know one let it be, unless the job says otherwise.
fn arguments(work: &BuildNetwork) -> io::Result<String> {
    const LENIENT: &str = "IgnoreUnknown";
    let mut pairs = Vec::new();
    if !work.args.contains_key(LENIENT) {
        pairs.push(format!("{LENIENT}=1"));
    }
    for (name, value) in &work.args {
        if !is_arg_name(name) || !is_arg(value) {
            let why =
                format!("network: {value:?} is no value of an argument for CNI plugins: {name}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        pairs.push(format!("{name}={value}"));
    }
    Ok(pairs.join(";"))
}

fn read_result(result: &Value) -> io::Result<PluginNetwork> {
    let unreadable = |error| {
        let why = format!("the answer of the last CNI plugin is not understood: {error}");
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    answer::network(result).map_err(unreadable)
}

fn passes_result_at_delete(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= PASSES_RESULT_AT_DELETE
}

#[cfg(test)]
mod tests;
