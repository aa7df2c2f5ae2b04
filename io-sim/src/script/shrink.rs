//! Making a failing run small: the fewest jobs, tasks, acts, kinds of trouble and choices that still
//! break the same property.

use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::task::Task;
use drover_core::time::Span;

use super::{Script, Watch};
use crate::check::Violation;
use crate::choice::{Choice, Overrides};
use crate::point::Point;

/// A script that was made smaller.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest that was found.
    pub script: Script,
    /// What it violates.
    pub violation: Violation,
    /// How many runs it took.
    pub runs: u32,
}

/// Makes a script that violates `like` smaller, in at most `limit` runs. `None` if playing it does
/// not violate that at all.
pub fn shrink(script: &Script, like: &Violation, limit: u32) -> Option<Shrunk> {
    let watch = Watch {
        choices: true,
        ..Watch::default()
    };
    let ran = script.run(watch);
    let violation = ran.verdict.err().filter(|found| found.is_like(like))?;
    let mut shrinker = Shrinker {
        best: script.clone(),
        violation,
        runs: 1,
        limit,
    };
    // What chance decided becomes part of the script, and all else does no harm from now on.
    shrinker.attempt(Script {
        overrides: Overrides {
            rest_benign: true,
            chosen: ran.sim.world.scene.choices.log().to_vec(),
        },
        ..script.clone()
    });
    loop {
        let before = shrinker.best.clone();
        shrinker.drop_kinds();
        shrinker.drop_jobs();
        shrinker.drop_acts();
        shrinker.drop_points();
        shrinker.simplify_jobs();
        shrinker.drop_choices();
        shrinker.shorten_times();
        if shrinker.best == before || shrinker.runs >= limit {
            return Some(Shrunk {
                script: shrinker.best,
                violation: shrinker.violation,
                runs: shrinker.runs,
            });
        }
    }
}

struct Shrinker {
    best: Script,
    violation: Violation,
    runs: u32,
    limit: u32,
}

impl Shrinker {
    /// Keeps `script` if it is different and still fails in the same way.
    fn attempt(&mut self, script: Script) -> bool {
        if script == self.best || self.runs >= self.limit {
            return false;
        }
        self.runs += 1;
        match script.run(Watch::default()).verdict {
            Err(found) if found.is_like(&self.violation) => {
                self.best = script;
                self.violation = found;
                true
            }
            Ok(()) | Err(_) => false,
        }
    }

    fn attempt_with(&mut self, change: impl FnOnce(&mut Script)) -> bool {
        let mut script = self.best.clone();
        change(&mut script);
        self.attempt(script)
    }

    /// Whole kinds of trouble.
    fn drop_kinds(&mut self) {
        let kinds: Vec<_> = self.best.faults.kinds().collect();
        for kind in kinds {
            self.attempt_with(|script| {
                script.faults = script.faults.clone().without(kind);
                let point = Point::Fault(kind);
                (script.overrides.chosen).retain(|choice| choice.point != point);
            });
        }
    }

    /// Whole jobs, with all that is done to them.
    fn drop_jobs(&mut self) {
        let ids: Vec<String> = self.best.jobs.iter().map(|job| job.id.clone()).collect();
        for id in ids {
            self.attempt_with(|script| {
                script.jobs.retain(|job| job.id != id);
                script.acts.retain(|act| act.what.get().job() != Some(&id));
                let prefix = format!("{id}.");
                (script.overrides.chosen).retain(|choice| !choice.entity.starts_with(&prefix));
            });
        }
    }

    /// Acts, in halving chunks.
    fn drop_acts(&mut self) {
        self.halve(|script| &mut script.acts);
    }

    /// All choices at one point.
    fn drop_points(&mut self) {
        let chosen = &self.best.overrides.chosen;
        let mut points: Vec<Point> = chosen.iter().map(|choice| choice.point).collect();
        points.sort_by_key(|point| point.name());
        points.dedup();
        for point in points {
            self.attempt_with(|script| {
                (script.overrides.chosen).retain(|choice| choice.point != point);
            });
        }
    }

    /// Choices, in halving chunks.
    fn drop_choices(&mut self) {
        self.halve(|script: &mut Script| -> &mut Vec<Choice> { &mut script.overrides.chosen });
    }

    /// Takes out chunks of a list, half of it first, single items last.
    fn halve<T>(&mut self, of: impl Fn(&mut Script) -> &mut Vec<T>) {
        let mut chunk = of(&mut self.best).len();
        while chunk > 0 {
            let mut at = 0;
            while at < of(&mut self.best).len() {
                let gone = self.attempt_with(|script| {
                    let list = of(script);
                    let end = (at + chunk).min(list.len());
                    list.drain(at..end);
                });
                at += if gone { 0 } else { chunk };
            }
            chunk /= 2;
        }
    }

    /// Fewer copies, fewer tasks, fewer settings.
    fn simplify_jobs(&mut self) {
        for job in 0..self.best.jobs.len() {
            for simplify in JOB_STEPS {
                self.attempt_with(|script| script.jobs.get_mut(job).into_iter().for_each(simplify));
            }
            let groups = self
                .best
                .jobs
                .get(job)
                .map_or(0, |job| job.task_groups.len());
            for group in 0..groups {
                self.simplify_group(job, group);
            }
        }
    }

    fn simplify_group(&mut self, job: usize, group: usize) {
        let find = |script: &Script| {
            let job = script.jobs.get(job)?;
            job.task_groups.get(group).cloned()
        };
        let mut task = find(&self.best).map_or(0, |group| group.tasks.len());
        while task > 0 {
            task -= 1;
            self.attempt_group(job, group, |group| {
                let is_main = |task: &&Task| task.lifecycle.is_none();
                let mains = group.tasks.iter().filter(is_main).count();
                let last_main =
                    mains == 1 && group.tasks.get(task).is_some_and(|task| is_main(&task));
                // No agent would take a group without one, and such a group is over at once.
                if !last_main {
                    group.tasks.remove(task);
                }
            });
        }
        for simplify in GROUP_STEPS {
            self.attempt_group(job, group, simplify);
        }
        let Some(known) = find(&self.best) else {
            return;
        };
        for (task, known) in known.tasks.iter().enumerate() {
            for option in known.config.keys().filter(|option| *option != "run_for") {
                self.attempt_group(job, group, |group| {
                    if let Some(task) = group.tasks.get_mut(task) {
                        task.config.remove(option);
                    }
                });
            }
        }
    }

    fn attempt_group(&mut self, job: usize, group: usize, change: impl FnOnce(&mut TaskGroup)) {
        self.attempt_with(|script| {
            let group = (script.jobs.get_mut(job)).and_then(|job| job.task_groups.get_mut(group));
            if let Some(group) = group {
                change(group);
            }
        });
    }

    /// Pauses, towards nothing.
    fn shorten_times(&mut self) {
        let spans = [Span::ZERO, Span::millis(1), Span::secs(1)];
        for span in spans {
            self.attempt_with(|script| script.then = script.then.min(span));
        }
        for at in 0..self.best.acts.len() {
            for span in spans {
                self.attempt_with(|script| {
                    if let Some(act) = script.acts.get_mut(at) {
                        act.pause = act.pause.min(span);
                    }
                });
            }
            self.attempt_with(|script| {
                if let Some(act) = script.acts.get_mut(at) {
                    act.steps = 0;
                }
            });
        }
    }
}

const JOB_STEPS: &[fn(&mut Job)] = &[|job| job.task_groups.truncate(1)];

const GROUP_STEPS: &[fn(&mut TaskGroup)] = &[
    |group| group.count = Some(1),
    |group| group.networks.clear(),
    |group| group.update = None,
    |group| group.reschedule_policy = None,
    |group| group.shutdown_delay = None,
    |group| group.max_run_duration = None,
    |group| group.tasks.iter_mut().for_each(|task| task.leader = false),
    |group| (group.tasks.iter_mut()).for_each(|task| task.shutdown_delay = Span::ZERO),
    |group| (group.tasks.iter_mut()).for_each(|task| task.restart_policy = None),
];
