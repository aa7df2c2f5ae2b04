//! What is remembered of containers: one small file for each launch.
//!
//! It is written before the container is made, with a word that nobody can guess, which the container bears as a
//! label. So what a start that was interrupted left behind is found. Nobody guesses that word, but an image that is
//! made of the container brings it along; so also the container's id is remembered as soon as there is one, and until
//! then its name, which no other has at the same time ([`super::proof`]).

mod images;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;
use rustix::fs::{Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(super) use self::images::{Brought, Pulling};

use crate::facts;
use crate::small_files::SmallFiles;

/// A file is never larger.
const MAX_SIZE: u64 = 64 << 10;

/// What names of tags that archives gave begin with.
const GIVEN: &str = "tag-";

/// What is remembered of all tags while an archive is loaded.
const TAGS: &str = "tags";

/// The most bytes of that.
const MAX_TAGS: usize = 1 << 20;

/// What a tag and its image take beside their letters, at most.
const TAG_EXTRA: usize = 16;

/// The most ports of which it is remembered what they are inside. Many would make a record that cannot be read.
const MAX_PORTS: usize = 256;

/// What is remembered of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record {
    /// Its container was, or was about to be, made.
    Asked(Ours),
    /// It ended, and its container is gone or will be.
    Ended(ExitResult, Ours),
}

/// What a container of ours bears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ours {
    /// Its name.
    pub(super) name: String,
    /// The value of its label.
    pub(super) token: String,
    /// The socket of its engine; empty in records of earlier agents.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(super) engine: PathBuf,
    /// How its network is told of.
    #[serde(default, skip_serializing_if = "Shown::is_usual")]
    pub(super) network: Shown,
    /// Its id, which is empty until it is made, and remembered before it is started; none in records of earlier
    /// agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) container: Option<String>,
    /// In which boot of the machine it was asked for; empty in records of earlier agents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) boot: String,
}

/// What a job says of a container's network that the engine does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Shown {
    /// Whether its address is that of version 6.
    pub(super) prefers_v6: bool,
    /// What its ports are inside, by their labels.
    pub(super) ports: BTreeMap<String, u16>,
}

impl Ours {
    /// Whether the machine started anew since: nothing of it can run that nobody started again.
    pub(super) fn is_of_earlier_boot(&self) -> bool {
        !self.boot.is_empty() && facts::boot_id().is_ok_and(|boot| boot != self.boot)
    }
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

impl Shown {
    fn is_usual(&self) -> bool {
        *self == Shown::default()
    }
}

impl Record {
    pub(super) fn ours(&self) -> &Ours {
        match self {
            Record::Asked(ours) | Record::Ended(_, ours) => ours,
        }
    }
}

/// The files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Records(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: SmallFiles,
    /// The same directory, for what is larger.
    tags: SmallFiles,
    dir: OwnedFd,
}

impl Records {
    /// Files in `dir`, which belongs to the agent alone.
    ///
    /// # Errors
    /// The directory cannot be opened again.
    pub fn new(dir: OwnedFd) -> io::Result<Records> {
        let (second, third) = (dir.try_clone()?, dir.try_clone()?);
        Ok(Records(Arc::new(Inner {
            files: SmallFiles::new(dir, MAX_SIZE),
            tags: SmallFiles::new(third, u64::try_from(MAX_TAGS).unwrap_or(u64::MAX)),
            dir: second,
        })))
    }

    /// Begins to remember a launch, so that it would survive a crash.
    pub(super) fn begin(
        &self,
        launch: LaunchId,
        name: String,
        mut network: Shown,
        engine: &Path,
    ) -> io::Result<Ours> {
        let token = format!("{:032x}", facts::random());
        network.ports = network.ports.into_iter().take(MAX_PORTS).collect();
        let ours = Ours {
            name,
            token,
            engine: engine.to_owned(),
            network,
            container: Some(String::new()),
            boot: facts::boot_id()?,
        };
        self.write(launch, &Record::Asked(ours.clone()))?;
        Ok(ours)
    }

    /// Remembers which container was made for a launch: that goes before its start.
    pub(super) fn made(&self, launch: LaunchId, id: String) -> io::Result<()> {
        match self.read(launch)? {
            Some(Record::Asked(mut ours)) => {
                ours.container = Some(id);
                self.write(launch, &Record::Asked(ours))
            }
            Some(Record::Ended(..)) | None => Ok(()),
        }
    }

    /// Remembers how a launch ended.
    pub(super) fn ended(&self, launch: LaunchId, result: ExitResult) -> io::Result<()> {
        match self.read(launch)? {
            Some(record) => self.write(launch, &Record::Ended(result, record.ours().clone())),
            None => Ok(()),
        }
    }

    fn write(&self, launch: LaunchId, record: &Record) -> io::Result<()> {
        let bytes = rmp_serde::to_vec_named(record).map_err(io::Error::other)?;
        self.0.files.write(&launch.to_string(), &bytes)
    }

    /// What is remembered; `None` if it was never asked for.
    pub(super) fn read(&self, launch: LaunchId) -> io::Result<Option<Record>> {
        let bytes = self.0.files.read(&launch.to_string())?;
        let record = bytes.map(|bytes| rmp_serde::from_slice(&bytes));
        record.transpose().map_err(invalid)
    }

    /// All launches that are remembered.
    pub(super) fn launches(&self) -> io::Result<Vec<LaunchId>> {
        let names = self.0.files.names()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Forgets a launch.
    pub(super) fn remove(&self, launch: LaunchId) -> io::Result<()> {
        let cursor = unlinkat(&self.0.dir, cursor(launch), rustix::fs::AtFlags::empty());
        match cursor {
            Ok(()) | Err(Errno::NOENT) => self.0.files.remove(&launch.to_string()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Remembers that an archive of a task gave an image this tag.
    pub(super) fn add_given(&self, tag: &str, id: &str) -> io::Result<()> {
        let bytes = rmp_serde::to_vec(&(tag, id)).map_err(io::Error::other)?;
        self.0.files.write(&given(tag), &bytes)
    }

    /// Whether this tag is of this image because an archive of a task said so.
    pub(super) fn was_given(&self, tag: &str, id: &str) -> io::Result<bool> {
        let found = self.given_as(&given(tag))?;
        Ok(found.is_some_and(|(_, given)| given == id))
    }

    /// Forgets that an archive gave a tag.
    pub(super) fn remove_given(&self, tag: &str) -> io::Result<()> {
        self.0.files.remove(&given(tag))
    }

    /// The tags that archives of tasks gave, and the images that got them.
    pub(super) fn given(&self) -> io::Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        for name in self.0.files.names()? {
            if name.starts_with(GIVEN) && !name.ends_with(".new") {
                found.extend(self.given_as(&name)?);
            }
        }
        Ok(found)
    }

    fn given_as(&self, name: &str) -> io::Result<Option<(String, String)>> {
        let bytes = self.0.files.read(name)?;
        let found = bytes.map(|bytes| rmp_serde::from_slice(&bytes));
        found.transpose().map_err(invalid)
    }

    /// Remembers, before an archive is loaded, which images tags mean: as many as there is room for.
    pub(super) fn note_tags(&self, tags: &BTreeMap<String, String>) -> io::Result<()> {
        let mut remaining = MAX_TAGS;
        let noted: BTreeMap<&String, &String> = tags
            .iter()
            .take_while(|(tag, id)| {
                let size = tag.len().saturating_add(id.len()).saturating_add(TAG_EXTRA);
                let fits = size <= remaining;
                remaining = remaining.saturating_sub(size);
                fits
            })
            .collect();
        if noted.len() < tags.len() {
            let (all, noted) = (tags.len(), noted.len());
            tracing::warn!(all, noted, "there is no room to remember all tags");
        }
        let bytes = rmp_serde::to_vec(&noted).map_err(io::Error::other)?;
        self.0.tags.write(TAGS, &bytes)
    }

    /// What tags meant before an archive; none if none was being loaded.
    pub(super) fn noted_tags(&self) -> io::Result<Option<BTreeMap<String, String>>> {
        let bytes = self.0.tags.read(TAGS)?;
        let tags = bytes.map(|bytes| rmp_serde::from_slice(&bytes));
        tags.transpose().map_err(invalid)
    }

    /// Forgets what tags meant.
    pub(super) fn remove_noted_tags(&self) -> io::Result<()> {
        self.0.tags.remove(TAGS)
    }

    /// The file that says how far the output of a launch was read; an empty one if nothing was.
    pub(super) fn cursor(&self, launch: LaunchId) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0.dir, cursor(launch), flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }
}

/// The file of a tag that an archive gave.
fn given(tag: &str) -> String {
    let digest = Sha256::digest(tag);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{GIVEN}{digits}")
}

fn invalid(error: rmp_serde::decode::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn cursor(launch: LaunchId) -> String {
    format!("{launch}.read")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn launch_is_remembered_until_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(File::open(dir.path()).unwrap().into()).unwrap();
        let launch = LaunchId(7);
        assert_eq!(records.read(launch).unwrap(), None);
        let network = Shown {
            prefers_v6: true,
            ports: [("http".to_owned(), 80)].into(),
        };
        let ours = records.begin(
            launch,
            "web-1".to_owned(),
            network,
            Path::new("/run/docker.sock"),
        );
        let mut ours = ours.unwrap();
        assert_eq!(ours.container.as_deref(), Some(""));
        records.made(launch, "0f0f".to_owned()).unwrap();
        ours.container = Some("0f0f".to_owned());
        assert_eq!(
            records.read(launch).unwrap(),
            Some(Record::Asked(ours.clone()))
        );
        drop(records.cursor(launch).unwrap());
        let image = format!("sha256:{}", "0f".repeat(32));
        records.add_given("a/b:1", &image).unwrap();
        assert!(records.was_given("a/b:1", &image).unwrap());
        assert!(!records.was_given("a/b:1", "sha256:00").unwrap());
        assert!(!records.was_given("a/b:2", &image).unwrap());
        let given = [("a/b:1".to_owned(), image.clone())];
        assert_eq!(records.given().unwrap(), given);
        records.remove_given("a/b:1").unwrap();
        let tags = BTreeMap::from(given);
        records.note_tags(&tags).unwrap();
        assert_eq!(records.noted_tags().unwrap(), Some(tags));
        records.remove_noted_tags().unwrap();
        assert_eq!(records.noted_tags().unwrap(), None);
        assert_eq!(records.launches().unwrap(), [launch]);
        let result = ExitResult::code(3);
        records.ended(launch, result.clone()).unwrap();
        assert_eq!(
            records.read(launch).unwrap(),
            Some(Record::Ended(result, ours))
        );
        records.remove(launch).unwrap();
        records.remove(launch).unwrap();
        assert_eq!(records.read(launch).unwrap(), None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// As agents knew it before they remembered how the network is told of.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Earlier {
        Asked(EarlierOurs),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct EarlierOurs {
        name: String,
        token: String,
    }

    #[test]
    fn record_is_read_by_earlier_and_later_agents() {
        let (name, token) = ("web-1".to_owned(), "7".to_owned());
        let earlier = Earlier::Asked(EarlierOurs {
            name: name.clone(),
            token: token.clone(),
        });
        let later = |network: Shown, engine: &str, boot: &str| {
            let (name, token) = (name.clone(), token.clone());
            Record::Asked(Ours {
                name,
                token,
                engine: engine.into(),
                network,
                container: None,
                boot: boot.to_owned(),
            })
        };
        let bytes = rmp_serde::to_vec_named(&earlier).unwrap();
        let read: Record = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(read, later(Shown::default(), "", ""));
        assert!(!read.ours().is_of_earlier_boot(), "nobody knows");
        let network = Shown {
            prefers_v6: true,
            ports: [("http".to_owned(), 80)].into(),
        };
        let written = later(network, "/run/docker.sock", "an earlier one");
        let bytes = rmp_serde::to_vec_named(&written).unwrap();
        assert!(written.ours().is_of_earlier_boot());
        assert_eq!(rmp_serde::from_slice::<Record>(&bytes).unwrap(), written);
        let read: Earlier = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(read, earlier);
    }
}
