//! Compose files, units of systemd and quadlets as job files: text in, text out.
//!
//! [`import`] reads one file (and the timer beside a unit) and answers with a job file in HCL, in the layout of
//! `drover fmt`. What is not carried over, or not quite the same, is stated in a comment where it would stand, with the
//! line of the file that it comes from and what to do about it. Nothing is dropped unsaid, and unknown settings are
//! named, too.
//!
//! Nothing is read but what is given: no other files, no environment. Text from outside is bounded in size, depth and
//! number of everything, and what cannot be read is an error with its place.

mod compose;
mod container;
mod error;
mod hcl;
mod job;
mod measure;
mod quadlet;
mod text;
mod unit;
mod words;
mod yaml;

pub use error::{Error, Place};

/// The longest file, in bytes.
pub const MAX_SIZE: usize = 1 << 20;

/// A file that is read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, with or without directories: what comes behind the last dot says what it is.
    pub name: &'a str,
    /// The directory in which it lies, absolute, for paths in it that are relative.
    pub directory: &'a str,
    /// What is in it.
    pub text: &'a str,
}

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Compose,
    Service,
    Timer,
    Container,
}

impl Source<'_> {
    fn kind(&self) -> Option<Kind> {
        let (_, ending) = self.file().rsplit_once('.')?;
        match ending {
            "yml" | "yaml" => Some(Kind::Compose),
            "service" => Some(Kind::Service),
            "timer" => Some(Kind::Timer),
            "container" => Some(Kind::Container),
            _ => None,
        }
    }

    /// Its name without directories.
    fn file(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    /// Its name without directories and what comes behind the last dot.
    fn stem(&self) -> &str {
        let file = self.file();
        file.rsplit_once('.').map_or(file, |(stem, _)| stem)
    }

    /// The name of the directory, which is how compose names a project.
    fn project(&self) -> String {
        let last = self.directory.trim_end_matches('/').rsplit('/').next();
        match last {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => self.stem().to_owned(),
        }
    }

    fn whole(&self, message: String) -> Error {
        Error {
            file: self.name.to_owned(),
            place: Place::default(),
            message,
        }
    }

    fn check(&self) -> Result<(), Error> {
        match self.text.len() {
            0..=MAX_SIZE => Ok(()),
            _ => Err(self.whole(format!("it is larger than {} KiB", MAX_SIZE / 1024))),
        }
    }
}

/// The job file for these files: a compose file, a service or a container, the latter two with a timer or without.
///
/// # Errors
/// A file cannot be read: which one, where, and why. Or they are none that can be read together.
pub fn import(files: &[Source<'_>]) -> Result<String, Error> {
    let mut main: Option<(&Source<'_>, Kind)> = None;
    let mut timer: Option<&Source<'_>> = None;
    for file in files {
        file.check()?;
        match file.kind() {
            Some(Kind::Timer) if timer.is_none() => timer = Some(file),
            Some(kind) if main.is_none() && kind != Kind::Timer => main = Some((file, kind)),
            Some(_) => {
                let message =
                    "one file is imported at a time, with a timer beside a service".to_owned();
                return Err(file.whole(message));
            }
            None => {
                let message = "its kind is recognised by its name: .yml or .yaml (compose), .service, .timer or \
                               .container";
                return Err(file.whole(message.to_owned()));
            }
        }
    }
    match (main, timer) {
        (Some((file, Kind::Compose)), None) => {
            compose::import(file).map_err(|mistake| mistake.of(file.name))
        }
        (Some((file, Kind::Service)), timer) => unit::import(file, timer),
        (Some((file, Kind::Container)), timer) => quadlet::import(file, timer),
        (Some((file, _)), Some(_)) => {
            Err(file.whole("a timer belongs to a service or a container".to_owned()))
        }
        (None, Some(timer)) => Err(timer.whole("name the service that it starts, too".to_owned())),
        (Some((file, Kind::Timer)), None) => Err(file.whole("name the service, too".to_owned())),
        (None, None) => Err(Error {
            file: "drover job import".to_owned(),
            place: Place::default(),
            message: "a file is needed".to_owned(),
        }),
    }
}

/// What stands above each job file.
fn made_from(files: &[&str]) -> String {
    format!(
        "Made from {} by `drover job import`. What is not carried over, or not quite the same, is said in comments: read \
         them before you run it.",
        files.join(" and ")
    )
}
