//! Lifecycle stages: which tasks of a group may start now.
//!
//! Every task waits at the gate of its stage before each start, restarts included. Stages only
//! go forward, except that running all tasks again goes back to the beginning.

use serde::{Deserialize, Serialize};

use crate::model::alloc::{TaskLife, TaskState};
use crate::model::task::Stage;

/// How far the group's life is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Coordinator {
    /// Everything is to run again: first what runs has to end.
    Again,
    /// What comes before the main tasks.
    #[default]
    Prestart,
    /// The main tasks start.
    Main,
    /// What comes after their start.
    Poststart,
    /// Everything that shall run was started.
    Running,
    /// Every other task is dead.
    Poststop,
}

impl Coordinator {
    /// Whether tasks of `stage` may start.
    pub fn is_open(self, stage: Stage) -> bool {
        match self {
            Coordinator::Again => false,
            Coordinator::Prestart => matches!(stage, Stage::Prestart | Stage::PrestartSidecar),
            Coordinator::Main => matches!(stage, Stage::PrestartSidecar | Stage::Main),
            Coordinator::Poststart => match stage {
                Stage::PrestartSidecar
                | Stage::Main
                | Stage::Poststart
                | Stage::PoststartSidecar => true,
                Stage::Prestart | Stage::Poststop => false,
            },
            Coordinator::Running => {
                matches!(
                    stage,
                    Stage::PrestartSidecar | Stage::Main | Stage::PoststartSidecar
                )
            }
            Coordinator::Poststop => stage == Stage::Poststop,
        }
    }

    /// The stage that follows from the tasks' states, and from whether anything of those that are not over may be
    /// alive: one that starts does not run yet.
    #[must_use]
    pub fn after<'a, I>(self, tasks: I, alive: bool) -> Coordinator
    where
        I: Iterator<Item = (Stage, &'a TaskState)> + Clone,
    {
        let mut stage = self;
        loop {
            let next = stage.next(tasks.clone(), alive);
            if next == stage {
                return stage;
            }
            stage = next;
        }
    }

    fn next<'a, I>(self, mut tasks: I, alive: bool) -> Coordinator
    where
        I: Iterator<Item = (Stage, &'a TaskState)> + Clone,
    {
        let over = |(stage, state): (Stage, &TaskState)| {
            stage == Stage::Poststop || state.state == TaskLife::Dead
        };
        if tasks.clone().all(over) {
            return Coordinator::Poststop;
        }
        let ready = match self {
            Coordinator::Again => !alive,
            Coordinator::Prestart => tasks.all(|(stage, state)| match stage {
                Stage::Prestart => state.is_successful(),
                Stage::PrestartSidecar => state.state == TaskLife::Running,
                Stage::Main | Stage::Poststart | Stage::PoststartSidecar | Stage::Poststop => true,
            }),
            Coordinator::Main => {
                tasks.all(|(stage, state)| stage != Stage::Main || state.state != TaskLife::Pending)
            }
            Coordinator::Poststart => tasks
                .all(|(stage, state)| stage != Stage::Poststart || state.state == TaskLife::Dead),
            Coordinator::Running | Coordinator::Poststop => false,
        };
        match self {
            Coordinator::Again if ready => Coordinator::Prestart,
            Coordinator::Prestart if ready => Coordinator::Main,
            Coordinator::Main if ready => Coordinator::Poststart,
            Coordinator::Poststart if ready => Coordinator::Running,
            Coordinator::Again
            | Coordinator::Prestart
            | Coordinator::Main
            | Coordinator::Poststart
            | Coordinator::Running
            | Coordinator::Poststop => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(state: TaskLife) -> TaskState {
        TaskState {
            state,
            ..TaskState::default()
        }
    }

    fn reached(tasks: &[(Stage, TaskState)]) -> Coordinator {
        let states = tasks.iter().map(|(stage, state)| (*stage, state));
        Coordinator::default().after(states, false)
    }

    #[test]
    fn main_tasks_wait_for_prestart() {
        let mut tasks = [
            (Stage::Prestart, state(TaskLife::Running)),
            (Stage::PrestartSidecar, state(TaskLife::Running)),
            (Stage::Main, state(TaskLife::Pending)),
        ];
        assert_eq!(reached(&tasks), Coordinator::Prestart);
        tasks[0].1 = TaskState {
            failed: true,
            ..state(TaskLife::Dead)
        };
        assert_eq!(
            reached(&tasks),
            Coordinator::Prestart,
            "a failed prestart opens nothing"
        );
        tasks[0].1 = state(TaskLife::Dead);
        assert_eq!(reached(&tasks), Coordinator::Main);
    }

    #[test]
    fn all_runs_again_when_nothing_is_alive() {
        let waiting = [
            (Stage::Prestart, state(TaskLife::Pending)),
            (Stage::Main, state(TaskLife::Pending)),
        ];
        let states = waiting.iter().map(|(stage, state)| (*stage, state));
        let again = |alive| Coordinator::Again.after(states.clone(), alive);
        assert_eq!(again(true), Coordinator::Again, "one of them starts");
        assert_eq!(again(false), Coordinator::Prestart);
    }

    #[test]
    fn poststop_starts_when_all_others_are_dead() {
        let tasks = [
            (
                Stage::Prestart,
                TaskState {
                    failed: true,
                    ..state(TaskLife::Dead)
                },
            ),
            (Stage::Main, state(TaskLife::Dead)),
            (Stage::Poststop, state(TaskLife::Pending)),
        ];
        assert_eq!(reached(&tasks), Coordinator::Poststop);
    }

    #[test]
    fn group_without_lifecycle_runs_with_its_tasks() {
        assert_eq!(
            reached(&[(Stage::Main, state(TaskLife::Pending))]),
            Coordinator::Main
        );
        assert_eq!(
            reached(&[(Stage::Main, state(TaskLife::Running))]),
            Coordinator::Running
        );
    }
}
