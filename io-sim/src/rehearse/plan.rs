//! The plan of one run of a trouble: what happens, and when, by seed.

use core::fmt;

use drover_core::model::job::Job;
use drover_core::model::task::Stage;
use drover_core::time::Span;

use super::Trouble;
use crate::dice;
use crate::faults::{Fault, Faults};
use crate::task_faults::{FaultWindow, TaskFault};

/// How long a job that begins after all faults is left alone.
const HEAD_START: Span = Span::secs(900);
/// How long trouble lasts that has no length of its own.
const HOUR: Span = Span::secs(3600);

/// What happens in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What tasks do otherwise than usual, and when.
    pub fault_windows: Vec<FaultWindow>,
    /// What happens, and when, since the beginning; in order.
    pub happenings: Vec<(Span, Happening)>,
    /// What else goes wrong, by chance.
    pub faults: Faults,
    /// When everything is over, since the beginning.
    pub over: Span,
}

/// Something that happens at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The processes of a task end by themselves.
    Ends {
        /// Of which group.
        group: String,
        /// Of which task.
        task: String,
        /// Whether it is that of each copy, or of one only.
        everywhere: bool,
        /// With which exit code.
        code: i32,
    },
    /// The agent dies; another begins after this time.
    AgentDown(Span),
    /// The machine starts again, which takes so long.
    Reboot(Span),
    /// Nothing can be written for so long.
    DiskFull(Span),
    /// Somebody restarts the tasks of an allocation.
    Restart,
    /// Somebody stops an allocation.
    StopAlloc,
    /// A new version of the job is handed in.
    Renew,
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Ends { group, task, .. } => write!(f, "{group}/{task} ends by itself"),
            Happening::AgentDown(span) => write!(f, "the agent is killed, for {span}"),
            Happening::Reboot(span) => write!(f, "the machine starts again, which takes {span}"),
            Happening::DiskFull(span) => write!(f, "the disk is full, for {span}"),
            Happening::Restart => f.write_str("an operator restarts an allocation's tasks"),
            Happening::StopAlloc => f.write_str("an operator stops an allocation"),
            Happening::Renew => f.write_str("an operator registers a new version of the job"),
        }
    }
}

impl Plan {
    /// The plan of a seed.
    pub(super) fn of(job: &Job, trouble: Trouble, seed: u64) -> Plan {
        let mut dice = Dice {
            numbers: dice::Dice::new(seed),
            job,
            trouble,
        };
        // One run in four begins in the middle of it.
        let begins = [HEAD_START, HEAD_START, HEAD_START, Span::ZERO];
        let from = dice.span("from", &begins);
        let mut plan = Plan {
            over: from,
            ..Plan::default()
        };
        plan.add(&mut dice, trouble, from);
        plan.happenings.sort_by_key(|(at, _)| *at);
        plan
    }

    fn add(&mut self, dice: &mut Dice<'_>, trouble: Trouble, from: Span) {
        let over = match trouble {
            Trouble::Nothing | Trouble::ServerGone => from,
            Trouble::CrashAtStart => {
                let of = dice.victim(Whom::Anybody);
                // What only prepares starts again with a new allocation.
                self.happenings.push((from, Happening::StopAlloc));
                self.bad_starts(dice, from, of.clone(), of, TaskFault::CrashesAtStart)
            }
            Trouble::RegistryDown => {
                let ends = dice.victim(Whom::WhoLasts);
                self.bad_starts(dice, from, ends, None, TaskFault::CannotStart)
            }
            Trouble::CrashNowAndThen => self.crashes(dice, from),
            Trouble::SlowStart => self.slow_starts(dice, from),
            Trouble::AgentKilled => self.agent_killed(dice, from),
            Trouble::Reboot => self.reboots(dice, from),
            Trouble::FullDisk => self.full_disk(dice, from),
            Trouble::HungStop => self.hung_stops(dice, from),
            Trouble::LeaderDies => self.leader_dies(dice, from),
            Trouble::Everything => {
                let single = |trouble: &&Trouble| {
                    **trouble != Trouble::Everything && trouble.not_for(dice.job).is_none()
                };
                let others: Vec<Trouble> = Trouble::ALL.iter().filter(single).copied().collect();
                for other in others {
                    if dice.below(other.name(), 2) == 0 {
                        dice.trouble = other;
                        self.add(dice, other, from);
                    }
                }
                from
            }
        };
        self.over = self.over.max(over);
    }

    /// For a while `of` has no good start, and the task that `ends` has to start.
    fn bad_starts(
        &mut self,
        dice: &mut Dice<'_>,
        from: Span,
        ends: Option<(String, String)>,
        of: Option<(String, String)>,
        fault: TaskFault,
    ) -> Span {
        let to = plus(from, dice.outage());
        self.happenings.extend(dice.ends(from, ends));
        self.fault_windows.push(FaultWindow {
            of,
            from,
            to,
            fault,
        });
        to
    }

    fn crashes(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let of = dice.victim(Whom::WhoLasts);
        for _ in 0..=dice.below("crashes", 6) {
            let at = dice.moment(from);
            self.happenings.extend(dice.ends(at, of.clone()));
        }
        plus(from, HOUR)
    }

    fn slow_starts(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let lengths = [5, 30, 120, 480].map(Span::secs);
        let (to, slow) = (plus(from, HOUR), dice.span("slow", &lengths));
        self.fault_windows.push(FaultWindow {
            of: None,
            from,
            to,
            fault: TaskFault::StartsAfter(slow),
        });
        for _ in 0..2 {
            let (at, of) = (dice.moment(from), dice.victim(Whom::WhoLasts));
            self.happenings.extend(dice.ends(at, of));
        }
        plus(to, slow)
    }

    fn agent_killed(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let lengths = [0, 1, 30, 600].map(Span::secs);
        for _ in 0..=dice.below("kills", 3) {
            let (at, away) = (dice.moment(from), dice.span("away", &lengths));
            self.happenings.push((at, Happening::AgentDown(away)));
            if dice.below("ends meanwhile", 2) == 0 {
                let (at, of) = (plus(at, Span(away.0 / 2)), dice.victim(Whom::WhoLasts));
                self.happenings.extend(dice.ends(at, of));
            }
        }
        self.also(&[Fault::Crash, Fault::CrashInStep], 10, 2);
        plus(from, Span(HOUR.0 + Span::secs(600).0))
    }

    fn reboots(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let lengths = [20, 60, 300].map(Span::secs);
        for _ in 0..=dice.below("reboots", 3) {
            let (at, takes) = (dice.moment(from), dice.span("takes", &lengths));
            self.happenings.push((at, Happening::Reboot(takes)));
        }
        plus(from, Span(HOUR.0 + Span::secs(300).0))
    }

    fn full_disk(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let length = dice.outage();
        self.happenings.push((from, Happening::DiskFull(length)));
        let within = [Span::ZERO, Span(length.0 / 2)];
        let (at, of) = (dice.span("within", &within), dice.victim(Whom::WhoLasts));
        self.happenings.extend(dice.ends(plus(from, at), of));
        plus(from, length)
    }

    fn hung_stops(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let to = plus(from, HOUR);
        self.fault_windows.push(FaultWindow {
            of: None,
            from: Span::ZERO,
            to,
            fault: TaskFault::IgnoresStop,
        });
        for _ in 0..=dice.below("acts", 3) {
            let act = match dice.below("act", 3) {
                0 => Happening::Restart,
                1 => Happening::StopAlloc,
                _ => Happening::Renew,
            };
            self.happenings.push((dice.moment(from), act));
        }
        self.also(&[Fault::HangStop], 300, 5);
        to
    }

    fn leader_dies(&mut self, dice: &mut Dice<'_>, from: Span) -> Span {
        let of = dice.victim(Whom::Leaders);
        for _ in 0..=dice.below("deaths", 3) {
            let at = dice.moment(from);
            self.happenings.extend(dice.ends(at, of.clone()));
        }
        plus(from, HOUR)
    }

    fn also(&mut self, kinds: &[Fault], permille: u16, budget: u32) {
        let faults = core::mem::take(&mut self.faults);
        self.faults = faults.and(&Faults::only(kinds, permille).budget(budget));
    }
}

/// Whom it may hit.
#[derive(Clone, Copy)]
enum Whom {
    Anybody,
    /// Tasks that run as long as their allocation does.
    WhoLasts,
    Leaders,
}

/// Chance, for one job and one trouble.
struct Dice<'a> {
    numbers: dice::Dice,
    job: &'a Job,
    trouble: Trouble,
}

impl Dice<'_> {
    fn below(&mut self, point: &'static str, n: usize) -> usize {
        self.numbers.below(n, point, self.trouble.name())
    }

    fn span(&mut self, point: &'static str, of: &[Span]) -> Span {
        let span = self.numbers.one_of(of, point, self.trouble.name());
        span.unwrap_or(Span::ZERO)
    }

    fn outage(&mut self) -> Span {
        self.span("outage", &[10, 60, 300, 1200, 3600].map(Span::secs))
    }

    /// Some moment of the hour after `from`: often close to another one, sometimes far.
    fn moment(&mut self, from: Span) -> Span {
        let after = [0, 1, 20, 60, 300, 900, 1800, 3540].map(Span::secs);
        plus(from, self.span("moment", &after))
    }

    /// A group and one of its tasks.
    fn victim(&mut self, whom: Whom) -> Option<(String, String)> {
        let mut all = Vec::new();
        for group in &self.job.task_groups {
            for task in &group.tasks {
                let stage = task.stage();
                let fits = match whom {
                    Whom::Anybody => stage != Stage::Poststop,
                    Whom::WhoLasts => stage == Stage::Main || stage.is_sidecar(),
                    Whom::Leaders => task.leader,
                };
                if fits {
                    all.push((&group.name, &task.name));
                }
            }
        }
        let at = self.below("victim", all.len());
        all.get(at)
            .map(|(group, task)| ((*group).clone(), (*task).clone()))
    }

    fn ends(&mut self, at: Span, of: Option<(String, String)>) -> Option<(Span, Happening)> {
        let (group, task) = of?;
        let everywhere = self.below("everywhere", 2) == 1;
        let ends = Happening::Ends {
            group,
            task,
            everywhere,
            code: 1,
        };
        Some((at, ends))
    }
}

fn plus(at: Span, span: Span) -> Span {
    Span(at.0.saturating_add(span.0))
}
