//! What is remembered of images and tags that the agent brought to engines, and of downloads that are under way.
//!
//! A file is there before what it tells of can be: that of a download says what was there before it began, and which
//! content it has as soon as the engine says that; that of an archive's image is written before the engine has the end
//! of the archive. So nothing is brought of which nobody knows, wherever an agent is killed.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Records, invalid};
use crate::{clock, facts};

/// What names of images that were fetched begin with.
const IMAGE: &str = "image-";

/// What names of images that archives brought begin with.
const LOADED: &str = "loaded-";

/// What names of downloads begin with.
const PULL: &str = "pull-";

/// The most bytes of an image's names that are remembered. Of one with more its other names are taken for others'.
const MOST: usize = 256 << 10;

/// How long an engine may take for an archive that it has as a whole, in seconds.
const LONGEST: i64 = 3600;

/// What of an image is there because of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Brought {
    /// Whether it is the image itself: it was not there before. Else only the names are.
    pub(in super::super) owns: bool,
    /// What it is called because of the agent. Earlier agents did not remember that.
    pub(in super::super) names: Option<BTreeSet<String>>,
    /// The socket of its engine; empty for images of earlier agents.
    pub(in super::super) engine: PathBuf,
}

/// A download that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Pulling {
    /// What is fetched.
    pub(in super::super) reference: String,
    /// What that was before.
    pub(in super::super) before: Option<String>,
    /// All images that were there before; none if they are too many to remember.
    pub(in super::super) ids: Option<BTreeSet<String>>,
    /// The socket of the engine.
    pub(in super::super) engine: PathBuf,
    /// The content, as soon as the engine says it: it has all of it then.
    pub(in super::super) digest: Option<String>,
}

impl Brought {
    /// What earlier agents remembered of an image.
    fn earlier() -> Brought {
        Brought {
            owns: true,
            ..Brought::default()
        }
    }

    /// Both of what two records say.
    fn and(mut self, other: Brought) -> Brought {
        self.owns |= other.owns;
        self.names = match (self.names, other.names) {
            (Some(mut names), Some(more)) => {
                names.extend(more);
                Some(names)
            }
            (None, _) | (_, None) => None,
        };
        if self.engine.as_os_str().is_empty() {
            self.engine = other.engine;
        }
        self
    }

    fn bounded(mut self) -> Brought {
        let mut remaining = MOST;
        self.names = self.names.map(|names| {
            let fits = |name: &String| {
                let left = remaining.checked_sub(name.len().saturating_add(super::TAG_EXTRA));
                remaining = left.unwrap_or(0);
                left.is_some()
            };
            names.into_iter().take_while(fits).collect()
        });
        self
    }
}

impl Records {
    /// Remembers that the agent fetched an image, beside what is known of it.
    pub(in super::super) fn add_image(&self, id: &str, what: Brought) -> io::Result<()> {
        self.add(&file(IMAGE, id)?, what)
    }

    /// Remembers that an archive brought an image, or will.
    pub(in super::super) fn add_loaded(&self, id: &str, what: Brought) -> io::Result<()> {
        self.add(&file(LOADED, id)?, what)
    }

    fn add(&self, name: &str, what: Brought) -> io::Result<()> {
        let what = match self.brought_in(name)? {
            Some(known) => known.and(what),
            None => what,
        };
        let bytes = rmp_serde::to_vec_named(&what.bounded()).map_err(io::Error::other)?;
        self.0.tags.write(name, &bytes)
    }

    /// Whether the agent fetched an image.
    pub(in super::super) fn has_image(&self, id: &str) -> io::Result<bool> {
        Ok(self.0.files.read(&file(IMAGE, id)?)?.is_some())
    }

    /// What of an image is there because of the agent; none if nothing is.
    pub(in super::super) fn brought(&self, id: &str) -> io::Result<Option<Brought>> {
        let fetched = self.brought_in(&file(IMAGE, id)?)?;
        let loaded = self.brought_in(&file(LOADED, id)?)?;
        Ok(match (fetched, loaded) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        })
    }

    fn brought_in(&self, name: &str) -> io::Result<Option<Brought>> {
        let Some(bytes) = self.0.tags.read(name)? else {
            return Ok(None);
        };
        // Earlier agents wrote the id.
        match bytes.first() {
            None => Ok(Some(Brought::earlier())),
            Some(first) if first.is_ascii_alphanumeric() => Ok(Some(Brought::earlier())),
            Some(_) => rmp_serde::from_slice(&bytes).map(Some).map_err(invalid),
        }
    }

    /// Whether an archive that brings an image was handed over so lately that the engine may not be done with it.
    pub(in super::super) fn may_come(&self, id: &str) -> io::Result<bool> {
        let name = file(LOADED, id)?;
        let found = match statat(&self.0.dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(false),
            found => found?,
        };
        let now = clock::now().wall.0 / 1_000_000_000;
        let age = now.saturating_sub(found.st_mtime);
        Ok((0..LONGEST).contains(&age))
    }

    /// Forgets an image.
    pub(in super::super) fn remove_image(&self, id: &str) -> io::Result<()> {
        self.0.files.remove(&file(IMAGE, id)?)?;
        self.0.files.remove(&file(LOADED, id)?)
    }

    /// The images of which something is there because of the agent.
    pub(in super::super) fn images(&self) -> io::Result<BTreeSet<String>> {
        let names = self.0.files.names()?;
        let digest = |name: &String| {
            let digest = name.strip_prefix(IMAGE).or(name.strip_prefix(LOADED))?;
            Some(format!("sha256:{digest}"))
        };
        let whole = names.iter().filter(|name| !name.ends_with(".new"));
        Ok(whole.filter_map(digest).collect())
    }

    /// Remembers a download that is about to begin. The name of what is remembered.
    pub(in super::super) fn begin_pull(&self, pulling: &Pulling) -> io::Result<String> {
        let name = format!("{PULL}{:032x}", facts::random());
        self.write_pull(&name, pulling)?;
        Ok(name)
    }

    /// Remembers how far a download came.
    pub(in super::super) fn write_pull(&self, name: &str, pulling: &Pulling) -> io::Result<()> {
        let mut bytes = rmp_serde::to_vec_named(pulling).map_err(io::Error::other)?;
        if bytes.len() > super::MAX_TAGS {
            let fewer = Pulling {
                ids: None,
                ..pulling.clone()
            };
            bytes = rmp_serde::to_vec_named(&fewer).map_err(io::Error::other)?;
        }
        self.0.tags.write(name, &bytes)
    }

    /// What is remembered of a download.
    pub(in super::super) fn pull(&self, name: &str) -> io::Result<Option<Pulling>> {
        let bytes = self.0.tags.read(name)?;
        let pulling = bytes.map(|bytes| rmp_serde::from_slice(&bytes));
        pulling.transpose().map_err(invalid)
    }

    /// The names of all downloads that are remembered.
    pub(in super::super) fn pulls(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.files.names()?;
        names.retain(|name| name.starts_with(PULL) && !name.ends_with(".new"));
        Ok(names)
    }

    /// Forgets a download.
    pub(in super::super) fn remove_pull(&self, name: &str) -> io::Result<()> {
        self.0.files.remove(name)
    }
}

/// The file of an image.
fn file(begin: &str, id: &str) -> io::Result<String> {
    let digest = id.strip_prefix("sha256:").unwrap_or(id);
    match digest.len() == 64 && digest.chars().all(|it| it.is_ascii_hexdigit()) {
        true => Ok(format!("{begin}{digest}")),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "that is no id of an image",
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs::File;

    use super::*;

    fn named(owns: bool, name: &str) -> Brought {
        Brought {
            owns,
            names: Some([name.to_owned()].into()),
            engine: "/run/docker.sock".into(),
        }
    }

    #[test]
    fn image_is_known_by_all_that_brought_it_until_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(File::open(dir.path()).unwrap().into()).unwrap();
        let image = format!("sha256:{}", "0f".repeat(32));
        records.add_image(&image, named(true, "web:1")).unwrap();
        assert!(records.has_image(&image).unwrap());
        assert!(records.add_image("../x", named(true, "web:1")).is_err());
        records.add_loaded(&image, named(false, "app:1")).unwrap();
        records.add_loaded(&image, named(false, "app:2")).unwrap();
        let known = records.brought(&image).unwrap().unwrap();
        let names = ["app:1", "app:2", "web:1"].map(str::to_owned);
        assert_eq!((known.owns, known.names), (true, Some(names.into())));
        assert_eq!(records.images().unwrap(), [image.clone()].into());
        records.remove_image(&image).unwrap();
        assert_eq!(records.brought(&image).unwrap(), None);
        let pulling = Pulling {
            reference: "web:1".to_owned(),
            ids: Some([image].into()),
            ..Pulling::default()
        };
        let name = records.begin_pull(&pulling).unwrap();
        assert_eq!(records.pulls().unwrap(), std::slice::from_ref(&name));
        assert_eq!(records.pull(&name).unwrap(), Some(pulling.clone()));
        let many = Pulling {
            ids: Some(
                (0..20_000)
                    .map(|number| format!("sha256:{number:064}"))
                    .collect(),
            ),
            ..pulling
        };
        records.write_pull(&name, &many).unwrap();
        let known = records.pull(&name).unwrap().unwrap();
        assert_eq!((known.reference.as_str(), known.ids), ("web:1", None));
        records.remove_pull(&name).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn image_of_an_earlier_agent_is_ours_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(File::open(dir.path()).unwrap().into()).unwrap();
        let image = format!("sha256:{}", "0f".repeat(32));
        records
            .0
            .files
            .write(&file(IMAGE, &image).unwrap(), image.as_bytes())
            .unwrap();
        assert_eq!(records.brought(&image).unwrap(), Some(Brought::earlier()));
        records.add_image(&image, named(false, "web:1")).unwrap();
        let known = records.brought(&image).unwrap().unwrap();
        assert_eq!((known.owns, known.names), (true, None));
    }
}
