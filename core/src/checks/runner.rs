//! One check: when it runs, what is thought of it, and when that restarts a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::CheckSpec;
use super::judge::{Judgement, Outcome};
use crate::effect::Probe;
use crate::fnv::fnv1a;
use crate::ids::{AllocId, LaunchId, TaskName};
use crate::model::check::{CheckStatus, OnUpdate};
use crate::op::Op;
use crate::text::quote;
use crate::time::{Instant, Now, Span, Timestamp};

/// The most letters of an answer that an event or a description has.
const MAX_WORDS: usize = 200;

/// What is to be asked, once the names in it are resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// The service.
    Service(Arc<Probe>),
    /// A program in this task.
    Script(TaskName, String, Vec<String>),
    /// The health check that this task brings with it.
    Own(TaskName),
    /// Nobody: why not.
    Nobody(String),
}

/// The runs of tasks that are checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Watch {
    /// The launches that it is about.
    launches: Vec<LaunchId>,
    /// Since when.
    since: Instant,
    target: Target,
    next: Next,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Next {
    /// A run, then.
    At(Instant),
    /// The answer of the run that began then.
    Answer { op: Op, began: Instant },
}

/// The latest result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LastResult {
    /// When it came.
    pub at: Timestamp,
    /// The status of an HTTP answer.
    pub code: Option<u16>,
    /// What there is to read.
    pub output: Arc<str>,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckRunner {
    spec: Arc<CheckSpec>,
    /// The names of the service and the check, resolved once it runs.
    service: Arc<str>,
    name: Arc<str>,
    /// None while no task runs that it is about.
    watch: Option<Watch>,
    status: CheckStatus,
    /// Good runs in a row, bad runs in a row.
    successes: u32,
    failures: u32,
    /// How many results in a row, past the grace, found it failing.
    restart_failures: u32,
    last: Option<LastResult>,
    /// Whether it ever passed in this run of its tasks.
    #[serde(default)]
    passed: bool,
    /// Whether operators were told that it fails, and not yet that it passes again.
    #[serde(default)]
    told: bool,
}

/// What a check is to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// To ask; the answer may take so long.
    Ask(Target, Span),
}

impl CheckRunner {
    /// One that does not run yet.
    pub fn new(spec: Arc<CheckSpec>) -> CheckRunner {
        CheckRunner {
            service: spec.service.as_str().into(),
            name: spec.check.name.as_str().into(),
            watch: None,
            status: spec.check.initial,
            successes: 0,
            failures: 0,
            restart_failures: 0,
            last: None,
            passed: false,
            told: false,
            spec,
        }
    }

    /// What is known of it.
    pub fn spec(&self) -> &Arc<CheckSpec> {
        &self.spec
    }

    /// The name of its service.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is thought of it.
    pub fn status(&self) -> CheckStatus {
        self.status
    }

    /// Its latest result in this run of its tasks.
    pub fn last(&self) -> Option<&LastResult> {
        self.last.as_ref()
    }

    /// Whether a task runs that it is about.
    pub fn is_on(&self) -> bool {
        self.watch.is_some()
    }

    /// Its name in the world: 64 hexadecimal digits.
    pub fn id(&self, alloc: AllocId) -> String {
        let spec = &self.spec;
        let owner = spec.owner.as_ref().map_or("", TaskName::as_str);
        let parts = [owner, &spec.service, &spec.service_port, &spec.check.name];
        let words = format!("{alloc} {parts:?} {:?}", spec.check.kind);
        let part = |salt: u8| format!("{:016x}", fnv1a([salt].iter().chain(words.as_bytes())));
        (0..4).map(part).collect()
    }

    /// Whether these launches are those that it is about, or fewer of them: then it goes on as it is.
    pub fn goes_on_with(&self, launches: &[LaunchId]) -> bool {
        match &self.watch {
            None => launches.is_empty(),
            Some(watch) => {
                let known = |launch| watch.launches.contains(launch);
                !launches.is_empty() && launches.iter().all(known)
            }
        }
    }

    /// Some of the launches are over.
    pub fn keep(&mut self, launches: &[LaunchId]) {
        if let Some(watch) = &mut self.watch
            && watch.launches.len() != launches.len()
        {
            watch.launches = launches.to_vec();
        }
    }

    /// Begins anew with these launches; the first run is after `first`. What was asked before must have been
    /// given up.
    pub fn begin(
        &mut self,
        now: Instant,
        launches: Vec<LaunchId>,
        names: (Arc<str>, Arc<str>),
        target: Target,
        first: Span,
    ) {
        *self = CheckRunner::new(self.spec.clone());
        (self.service, self.name) = names;
        self.watch = Some(Watch {
            launches,
            since: now,
            target,
            next: Next::At(together(now + first, self.spec.check.interval)),
        });
    }

    /// Stops: what it asked for is not awaited any more. Returns that.
    pub fn stop(&mut self) -> Option<Op> {
        let op = self.awaited();
        if self.watch.is_some() {
            let names = (self.service.clone(), self.name.clone());
            *self = CheckRunner::new(self.spec.clone());
            (self.service, self.name) = names;
        }
        op
    }

    /// Whose answer is awaited.
    pub fn awaited(&self) -> Option<Op> {
        match self.watch.as_ref()?.next {
            Next::Answer { op, .. } => Some(op),
            Next::At(_) => None,
        }
    }

    /// When it runs next; none while an answer is awaited, whose time is the operation's.
    pub fn deadline(&self) -> Option<Instant> {
        match self.watch.as_ref()?.next {
            Next::At(at) => Some(at),
            Next::Answer { .. } => None,
        }
    }

    /// What is due.
    pub fn due(&self, now: Instant) -> Due {
        match &self.watch {
            Some(watch) if matches!(watch.next, Next::At(at) if at <= now) => {
                Due::Ask(watch.target.clone(), self.spec.check.timeout)
            }
            Some(_) | None => Due::Nothing,
        }
    }

    /// It was asked.
    pub fn asked(&mut self, now: Instant, op: Op) {
        if let Some(watch) = &mut self.watch {
            watch.next = Next::Answer { op, began: now };
        }
    }

    /// A run is over that began when it was asked, or that could not be begun. Returns whether its tasks are to be
    /// restarted for it.
    pub fn judged(&mut self, now: Now, judgement: Judgement) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        let began = match watch.next {
            Next::Answer { began, .. } => began,
            Next::At(_) => now.at,
        };
        let interval = self.spec.check.interval;
        watch.next = Next::At(together(began + interval, interval).max(now.at));
        self.last = Some(LastResult {
            at: now.wall,
            code: judgement.code,
            output: judgement.output.into(),
        });
        if judgement.outcome == Outcome::Undecided {
            return false;
        }
        self.count(judgement.outcome);
        self.is_in_grace(now.at) == Some(false) && self.is_to_restart()
    }

    /// What so many runs in a row mean.
    fn count(&mut self, outcome: Outcome) {
        let check = &self.spec.check;
        let well = match outcome {
            Outcome::Passing => Some(CheckStatus::Success),
            Outcome::Warning => Some(CheckStatus::Warning),
            Outcome::Failing => None,
            Outcome::Undecided => return,
        };
        if let Some(status) = well {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
            if self.successes >= check.success_before_passing {
                self.status = status;
                self.passed = true;
            }
            return;
        }
        self.successes = 0;
        self.failures = self.failures.saturating_add(1);
        let warns = check.failures_before_warning > 0;
        if self.failures >= check.failures_before_critical {
            self.status = CheckStatus::Failure;
        } else if warns && self.failures >= check.failures_before_warning {
            self.status = CheckStatus::Warning;
        }
    }

    /// Counts a result past the grace, and whether that is one too many.
    fn is_to_restart(&mut self) -> bool {
        let Some(restart) = self.spec.check.restart else {
            return false;
        };
        let fails = match self.status {
            CheckStatus::Failure => true,
            CheckStatus::Warning => !restart.ignore_warnings,
            CheckStatus::Pending | CheckStatus::Success => false,
        };
        if !fails {
            self.restart_failures = 0;
            return false;
        }
        self.restart_failures += 1;
        let over = self.restart_failures >= restart.limit;
        if over {
            self.restart_failures = 0;
        }
        over
    }

    /// What operators are to be told now: that it fails, or that it passes again.
    ///
    /// Whoever begins does not pass at once, and that is no news. So of a check that never passed yet nothing is
    /// told while it is still open whether its allocation becomes healthy (`is_starting`), nor within the grace of
    /// its restarts.
    pub fn news(&mut self, now: Instant, is_starting: bool) -> Option<bool> {
        let fails = self.status == CheckStatus::Failure;
        let spared = !self.passed && (is_starting || self.is_in_grace(now) == Some(true));
        if fails == self.told || (fails && spared) {
            return None;
        }
        self.told = fails;
        Some(fails)
    }

    /// Whether failures do not count yet; none if they never restart anything.
    fn is_in_grace(&self, now: Instant) -> Option<bool> {
        let grace = self.spec.check.restart?.grace;
        self.watch.as_ref().map(|watch| now < watch.since + grace)
    }

    /// Whether an allocation can be healthy as far as this goes.
    pub fn lets_be_healthy(&self) -> bool {
        match (self.spec.check.on_update, self.status) {
            (OnUpdate::Ignore, _) | (_, CheckStatus::Success) => true,
            (OnUpdate::IgnoreWarnings, CheckStatus::Warning) => true,
            (OnUpdate::RequireHealthy | OnUpdate::IgnoreWarnings, _) => false,
        }
    }

    /// Whether whoever waits for the service can rely on it as far as this goes.
    pub fn passes(&self) -> bool {
        matches!(self.status, CheckStatus::Success | CheckStatus::Warning)
    }

    /// Which check it is, how it is, and why.
    pub fn words(&self) -> String {
        let (service, name) = (quote(&self.service), quote(&self.name));
        let how = match self.status {
            CheckStatus::Pending => "pending",
            CheckStatus::Success => "passing",
            CheckStatus::Warning => "with a warning",
            CheckStatus::Failure => "failing",
        };
        match self.why() {
            Some(why) => format!("Service {service} check {name} {how}: {why}"),
            None => format!("Service {service} check {name} {how}"),
        }
    }

    /// What the latest result says, in a line.
    pub fn why(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        let line = last.output.lines().next().unwrap_or_default();
        let line: String = line
            .chars()
            .filter(|letter| !letter.is_control())
            .take(MAX_WORDS)
            .collect();
        Some(match (last.code, line.as_str()) {
            (Some(code), "") => format!("HTTP status {code}"),
            (Some(code), line) => format!("HTTP status {code}, {line}"),
            (None, line) => line.to_owned(),
        })
    }
}

/// The moment at which checks of this interval go that are due then: up to a thirty-second of the interval earlier.
/// Many checks wake the machine a few times, and not each of them.
fn together(due: Instant, interval: Span) -> Instant {
    let step = u64::try_from(interval.0 / 32).unwrap_or(0).max(1);
    Instant(due.0 - due.0 % step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::About;
    use crate::model::check::{Check, CheckKind, CheckRestart};

    fn runner(grace: Option<Span>) -> CheckRunner {
        let restart = grace.map(|grace| CheckRestart {
            limit: 3,
            grace,
            ignore_warnings: false,
        });
        let spec = CheckSpec {
            service: "web".to_owned(),
            service_port: String::new(),
            owner: None,
            about: About::Group,
            check: Check {
                name: "alive".to_owned(),
                kind: CheckKind::Tcp,
                interval: Span::secs(1),
                timeout: Span::secs(1),
                port: String::new(),
                address_mode: String::new(),
                task: String::new(),
                initial: CheckStatus::Pending,
                success_before_passing: 0,
                failures_before_critical: 0,
                failures_before_warning: 0,
                on_update: OnUpdate::RequireHealthy,
                restart,
            },
        };
        let mut check = CheckRunner::new(Arc::new(spec));
        let target = Target::Nobody(String::new());
        let names = (Arc::from("web"), Arc::from("alive"));
        check.begin(
            Instant(0),
            vec![LaunchId::default()],
            names,
            target,
            Span::ZERO,
        );
        check
    }

    fn at(second: i64) -> Now {
        Now {
            at: Instant(0) + Span::secs(second),
            wall: Timestamp(0),
        }
    }

    /// Whether its tasks are restarted when it passes or fails then.
    fn restarts(check: &mut CheckRunner, second: i64, passes: bool) -> bool {
        let judgement = Judgement {
            outcome: if passes {
                Outcome::Passing
            } else {
                Outcome::Failing
            },
            code: None,
            output: String::new(),
        };
        check.judged(at(second), judgement)
    }

    /// What is told when it passes or fails then.
    fn told(check: &mut CheckRunner, second: i64, passes: bool, is_starting: bool) -> Option<bool> {
        restarts(check, second, passes);
        check.news(at(second).at, is_starting)
    }

    #[test]
    fn failures_within_grace_do_not_count_toward_limit_of_restarts() {
        let mut check = runner(Some(Span::secs(10)));
        let restarted = [5, 8, 11, 12].map(|second| restarts(&mut check, second, false));
        assert_eq!(restarted, [false; 4]);
        assert!(restarts(&mut check, 13, false), "the third past the grace");
    }

    #[test]
    fn good_run_ends_row_of_bad_ones() {
        let mut check = runner(None);
        Arc::make_mut(&mut check.spec)
            .check
            .failures_before_critical = 3;
        for (second, passes) in [(1, false), (2, false), (3, true), (4, false), (5, false)] {
            restarts(&mut check, second, passes);
        }
        assert_eq!(check.status(), CheckStatus::Success);
        restarts(&mut check, 6, false);
        assert_eq!(check.status(), CheckStatus::Failure, "the third in a row");
    }

    #[test]
    fn check_that_never_passed_is_no_news_while_its_allocation_starts() {
        let mut check = runner(None);
        assert_eq!(told(&mut check, 1, false, true), None);
        assert_eq!(
            told(&mut check, 2, true, true),
            None,
            "it was not told to fail"
        );
        assert_eq!(
            told(&mut check, 3, false, true),
            Some(true),
            "it began to fail"
        );
        assert_eq!(told(&mut check, 4, false, false), None, "that is known");
        assert_eq!(told(&mut check, 5, true, false), Some(false));
    }

    #[test]
    fn check_that_still_fails_when_its_allocation_had_its_time_is_told() {
        let mut check = runner(None);
        assert_eq!(told(&mut check, 1, false, true), None);
        assert_eq!(told(&mut check, 2, false, false), Some(true));
    }

    #[test]
    fn grace_of_restarts_is_a_grace_for_those_who_are_told() {
        let mut check = runner(Some(Span::secs(10)));
        assert_eq!(told(&mut check, 9, false, false), None);
        assert_eq!(told(&mut check, 10, false, false), Some(true));
    }
}
