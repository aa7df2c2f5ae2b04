//! What templates ask for, looked up when they do: variables of the task, its files, the time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use drover_core::effect::Rendering;
use drover_core::task::place::Place;
use drover_template::{Answer, Need, Source};

use crate::dirs::{Glimpse, TaskFiles};

/// The largest file that a template may use, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 20;

/// The answers of one round: the same question has the same answer all through it.
pub(super) struct Answers<'a> {
    work: &'a Rendering,
    files: &'a TaskFiles,
    task: &'a str,
    known: RefCell<BTreeMap<Need, Option<Answer>>>,
    glimpses: RefCell<Vec<Glimpse>>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(work: &'a Rendering, files: &'a TaskFiles, task: &'a str) -> Answers<'a> {
        Answers {
            work,
            files,
            task,
            known: RefCell::default(),
            glimpses: RefCell::default(),
        }
    }

    /// What to watch in order to hear of other answers.
    pub(super) fn glimpses(self) -> Vec<Glimpse> {
        self.glimpses.into_inner()
    }

    fn look_up(&self, need: &Need) -> Option<Answer> {
        match need {
            Need::Env(name) => {
                let value = self.work.env.get(name);
                Some(value.map_or(Answer::Absent, |text| Answer::Text(text.clone().into())))
            }
            Need::File(path) => self.file(path),
            Need::Time => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let now = now.map_or(0, |since| since.as_nanos());
                Some(Answer::Time(i128::try_from(now).unwrap_or(0)))
            }
            Need::Variable(_)
            | Need::Variables(_)
            | Need::Service(_)
            | Need::ServiceChoice { .. }
            | Need::Services => {
                let why = "this agent keeps no variables and knows no services";
                Some(Answer::Refused(why.to_owned()))
            }
        }
    }

    fn file(&self, path: &str) -> Option<Answer> {
        let seen = Place::of(path, &self.work.root, self.task)
            .and_then(|place| self.files.look(&place, MAX_FILE).map_err(|e| e.to_string()));
        match seen {
            Ok(seen) => {
                self.glimpses.borrow_mut().extend(seen.glimpses);
                seen.bytes.map(Answer::Text)
            }
            Err(why) => Some(Answer::Refused(format!("file {path:?}: {why}"))),
        }
    }
}

impl Source for Answers<'_> {
    fn answer(&self, need: &Need) -> Option<Answer> {
        if let Some(known) = self.known.borrow().get(need) {
            return known.clone();
        }
        let answer = self.look_up(need);
        self.known.borrow_mut().insert(need.clone(), answer.clone());
        answer
    }
}
