//! Networks as files describe them: a list of plugins that are run one after the other, or one plugin alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use drover_core::model::network::is_name;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many files are read, and how long each may be.
const MOST: usize = 64;
const LONGEST: u64 = 256 * 1024;

/// How many names are looked at for them.
const NAMES: usize = 4096;

/// The most plugins of a list.
const PLUGINS: usize = 32;

/// The version of the contract where a file names none.
const OLDEST: &str = "0.1.0";

/// The plugins that make a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct List {
    /// The network's name.
    pub name: String,
    /// The version of the contract with plugins.
    pub(super) version: String,
    /// Whether its plugins are not to be asked later whether all is well (`disableCheck`).
    #[serde(default)]
    pub(super) unchecked: bool,
    /// The plugins with their configuration, in the order in which they are added.
    pub plugins: Vec<Plugin>,
}

/// A plugin of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    /// The name of its program.
    pub program: String,
    /// What it can be told about an allocation.
    pub(super) capabilities: Vec<String>,
    /// All that the file says of it.
    pub(super) config: Map<String, Value>,
}

/// What is described in a directory.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// By the networks' names; of one name, that of the first file.
    pub(crate) all: BTreeMap<String, List>,
    /// Files that describe none, and why.
    pub(crate) faults: Vec<String>,
}

impl Lists {
    /// What the files of a directory describe; nothing if there is no such directory. No link leads out of it.
    ///
    /// # Errors
    /// It cannot be read, or has too many files.
    pub(crate) fn read(dir: &Path) -> io::Result<Lists> {
        let handle = match File::open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lists::default()),
            handle => handle?,
        };
        let mut lists = Lists::default();
        for name in descriptions(dir)?.iter().take(MOST) {
            // One bad file costs its own network and no other.
            match text(handle.as_fd(), name).and_then(|text| List::parse(&text)) {
                Ok(list) => {
                    lists.all.entry(list.name.clone()).or_insert(list);
                }
                Err(why) => lists
                    .faults
                    .push(format!("{}/{name}: {why}", dir.display())),
            }
        }
        Ok(lists)
    }
}

/// The names of files that describe networks, in their order.
fn descriptions(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for (count, entry) in fs::read_dir(dir)?.enumerate() {
        if count >= NAMES {
            let why = format!("it has more than {NAMES} files");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        let name = entry?.file_name().into_string().ok();
        names.extend(name.filter(|name| is_description(name)));
    }
    names.sort_unstable();
    Ok(names)
}

fn is_description(file: &str) -> bool {
    [".conf", ".conflist", ".json"]
        .iter()
        .any(|ending| file.ends_with(ending))
}

/// What a plain file of a directory says.
fn text(dir: BorrowedFd<'_>, name: &str) -> Result<String, String> {
    let read = || {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = openat2(dir, name, flags, Mode::empty(), within)?;
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no plain file"));
        }
        let mut text = String::new();
        File::from(file)
            .take(LONGEST.saturating_add(1))
            .read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| error.to_string())?;
    match u64::try_from(text.len()).is_ok_and(|length| length <= LONGEST) {
        true => Ok(text),
        false => Err(format!("it is longer than {LONGEST} bytes")),
    }
}

impl List {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It describes no network.
    pub fn parse(text: &str) -> Result<List, String> {
        let whole: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let name = words(&whole, "name").unwrap_or_default();
        if !is_name(name) {
            return Err(format!("{name:?} is no name of a network"));
        }
        let version = words(&whole, "cniVersion").unwrap_or(OLDEST);
        let plugins = match whole.get("plugins") {
            None => vec![Plugin::parse(&whole)?],
            Some(Value::Array(plugins)) if (1..=PLUGINS).contains(&plugins.len()) => {
                let one = |plugin: &Value| match plugin {
                    Value::Object(plugin) => Plugin::parse(plugin),
                    _ => Err("a plugin is no object".to_owned()),
                };
                plugins.iter().map(one).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(format!("plugins: 1 to {PLUGINS} are needed")),
        };
        let unchecked = whole.get("disableCheck") == Some(&Value::Bool(true));
        Ok(List {
            unchecked,
            name: name.to_owned(),
            version: version.to_owned(),
            plugins,
        })
    }
}

impl Plugin {
    fn parse(config: &Map<String, Value>) -> Result<Plugin, String> {
        let program = words(config, "type").unwrap_or_default();
        let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"_.-".contains(&letter);
        let is_program = !program.is_empty()
            && !program.starts_with('.')
            && program.len() <= 128
            && program.bytes().all(plain);
        if !is_program {
            return Err(format!("type: {program:?} is no name of a plugin"));
        }
        let capabilities = config.get("capabilities").and_then(Value::as_object);
        let has =
            |(name, has): (&String, &Value)| (*has == Value::Bool(true)).then(|| name.clone());
        Ok(Plugin {
            program: program.to_owned(),
            capabilities: capabilities.into_iter().flatten().filter_map(has).collect(),
            config: config.clone(),
        })
    }
}

fn words<'a>(of: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn list_and_single_plugin_are_read() {
        let list = List::parse(
            r#"{"cniVersion": "1.0.0", "name": "mine", "plugins": [
                {"type": "bridge", "bridge": "b0"},
                {"type": "portmap", "capabilities": {"portMappings": true, "aliases": false}}]}"#,
        )
        .unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(
            (list.name.as_str(), list.version.as_str()),
            ("mine", "1.0.0")
        );
        let programs: Vec<&str> = list.plugins.iter().map(|it| it.program.as_str()).collect();
        assert_eq!(programs, ["bridge", "portmap"]);
        assert_eq!(list.plugins[1].capabilities, ["portMappings"]);
        let alone = List::parse(r#"{"name": "one", "type": "ptp", "mtu": 1400}"#)
            .unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(alone.version, "0.1.0");
        assert_eq!(alone.plugins[0].config["mtu"], 1400);
        assert!(!alone.unchecked);
        let text = r#"{"name": "one", "disableCheck": true, "plugins": [{"type": "ptp"}]}"#;
        assert!(List::parse(text).is_ok_and(|list| list.unchecked));
    }

    #[test]
    fn invalid_network_list_is_refused() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let many = vec![r#"{"type": "a"}"#; 33].join(",");
        for text in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"name": "a/b", "type": "x"}"#,
            r#"{"name": 1, "type": "x"}"#,
            r#"{"name": "a"}"#,
            r#"{"name": "a", "plugins": []}"#,
            r#"{"name": "a", "plugins": {}}"#,
            r#"{"name": "a", "plugins": ["x"]}"#,
            r#"{"name": "a", "type": "../../bin/sh"}"#,
            r#"{"name": "a", "type": "/bin/sh"}"#,
            r#"{"name": "a", "type": ".."}"#,
            r#"{"name": "a", "type": ["x"]}"#,
            &format!(r#"{{"name": "a", "plugins": [{many}]}}"#),
            &format!(r#"{{"name": "a", "type": "x", "deep": {deep}}}"#),
        ] {
            let start = text.get(..40).unwrap_or(text);
            assert!(List::parse(text).is_err(), "{start}");
        }
    }

    #[test]
    fn bad_file_costs_its_own_network_only() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        file(
            "10-good.conflist",
            r#"{"name": "good", "plugins": [{"type": "first"}]}"#,
        );
        file("20-good.conf", r#"{"name": "good", "type": "second"}"#);
        file("30-bad.json", "{");
        file("README", r#"{"name": "notme", "type": "x"}"#);
        let long = "a".repeat(300_000);
        file(
            "40-long.conf",
            &format!(r#"{{"name": "long", "type": "x", "a": "{long}"}}"#),
        );
        let stranger = outside.path().join("out.conf");
        fs::write(&stranger, r#"{"name": "out", "type": "x"}"#).unwrap();
        symlink(&stranger, dir.path().join("50-out.conf")).unwrap();
        symlink("10-good.conflist", dir.path().join("05-near.conf")).unwrap();
        fs::create_dir(dir.path().join("60-dir.conf")).unwrap();
        let lists = Lists::read(dir.path()).unwrap();
        let names: Vec<&String> = lists.all.keys().collect();
        assert_eq!(names, ["good"]);
        assert_eq!(lists.all["good"].plugins[0].program, "first");
        assert_eq!(lists.faults.len(), 4, "{:?}", lists.faults);
        let nowhere = Lists::read(&dir.path().join("none")).unwrap();
        assert!(nowhere.all.is_empty() && nowhere.faults.is_empty());
    }
}
