//! Many runs on all processors, with the same result on any number of them.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use drover_io_sim::rehearse::{Block, Outcome, Rehearsal, Trouble};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Who waits longer than this is shown how far it is.
const TIMEOUT: Duration = Duration::from_secs(1);
/// A world without trouble is tried so often at most: only the order of things differs.
const FAULTLESS_RUNS: usize = 10;

/// Runs a job under each of these troubles so often, from this seed on.
pub(super) fn rehearse(
    rehearsal: &Rehearsal,
    troubles: &[Trouble],
    seed: u64,
    runs: usize,
) -> Vec<Block> {
    let job = rehearsal.job();
    let meant = troubles.iter().filter(|t| t.not_for(job).is_none());
    let progress = Progress::new(meant.map(|trouble| often(*trouble, runs)).sum());
    let block = |trouble: &Trouble| match trouble.not_for(job) {
        Some(why) => Block::skipped(*trouble, why),
        None => {
            let runs = often(*trouble, runs);
            let outcomes = outcomes(rehearsal, *trouble, seed, runs, &progress);
            Block::of(rehearsal, *trouble, &outcomes)
        }
    };
    let blocks = troubles.iter().map(block).collect();
    progress.bar.finish_and_clear();
    blocks
}

fn often(trouble: Trouble, runs: usize) -> usize {
    match trouble {
        Trouble::Nothing => runs.min(FAULTLESS_RUNS),
        _ => runs,
    }
}

/// What came of each run, in the order of the seeds.
fn outcomes(
    rehearsal: &Rehearsal,
    trouble: Trouble,
    seed: u64,
    runs: usize,
    progress: &Progress,
) -> Vec<Outcome> {
    let (sender, receiver) = mpsc::channel();
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers.min(runs) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        return;
                    }
                    let outcome = rehearsal.run(trouble, seed + number as u64, false);
                    progress.one_more();
                    if sender.send(outcome).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut outcomes: Vec<Outcome> = receiver.iter().collect();
        outcomes.sort_by_key(|outcome| outcome.seed);
        outcomes
    })
}

/// How far it is, on terminals, for those who have waited for a while.
struct Progress {
    bar: ProgressBar,
    since: Instant,
    shown: AtomicBool,
}

impl Progress {
    fn new(runs: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs") {
            bar.set_style(style);
        }
        Progress {
            bar,
            since: Instant::now(),
            shown: AtomicBool::new(false),
        }
    }

    fn one_more(&self) {
        if self.since.elapsed() > TIMEOUT && !self.shown.swap(true, Ordering::Relaxed) {
            // Shows nothing where the error output is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }
}
