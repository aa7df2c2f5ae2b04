//! What templates ask for, looked up when they do: variables of the task, its files, the time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use drover_core::paths::task_path::TaskPath;
use drover_core::work::Rendering;
use drover_template::{Answer, Need, Source};

use super::known::Known;
use crate::dirs::{FileStamp, TaskFiles};

/// The largest file that a template may use, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 20;

/// What was asked of the agent's own state, and the answers.
pub(super) type Asked = BTreeMap<Need, Option<Answer>>;

fn is_of_the_state(need: &Need) -> bool {
    match need {
        Need::Variable(_)
        | Need::Variables(_)
        | Need::Service(_)
        | Need::ServiceChoice { .. }
        | Need::Services => true,
        Need::Env(_) | Need::File(_) | Need::Time => false,
    }
}

/// The answers of one round: the same question has the same answer all through it.
pub(super) struct Answers<'a> {
    work: &'a Rendering,
    files: &'a TaskFiles,
    task: &'a str,
    state: Option<&'a Known>,
    known: RefCell<BTreeMap<Need, Option<Answer>>>,
    glimpses: RefCell<Vec<FileStamp>>,
}

impl<'a> Answers<'a> {
    /// `state` is what is known of the agent's own state; nothing before that was asked for.
    pub(super) fn new(
        work: &'a Rendering,
        files: &'a TaskFiles,
        task: &'a str,
        state: Option<&'a Known>,
    ) -> Answers<'a> {
        Answers {
            work,
            files,
            task,
            state,
            known: RefCell::default(),
            glimpses: RefCell::default(),
        }
    }

    /// What to watch in order to hear of other answers: files, and what was asked of the state.
    pub(super) fn seen(self) -> (Vec<FileStamp>, Asked) {
        let mut asked = self.known.into_inner();
        asked.retain(|need, _| is_of_the_state(need));
        (self.glimpses.into_inner(), asked)
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
            | Need::Services => self.state?.answer(need, &self.work.reads),
        }
    }

    fn file(&self, path: &str) -> Option<Answer> {
        let seen = TaskPath::of(path, &self.work.root, self.task).and_then(|task_path| {
            self.files
                .read_watched(&task_path, MAX_FILE)
                .map_err(|e| e.to_string())
        });
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
