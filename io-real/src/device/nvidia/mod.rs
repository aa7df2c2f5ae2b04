//! GPUs of NVIDIA, known by the library that their driver brings (NVML), which is loaded at run
//! time. A machine without it is a machine without such GPUs.
//!
//! A GPU that is divided into MIG instances is handed out by its instances, never as a whole.
//!
//! - A machine without the library is asked no more until the agent's next start. A library that is
//!   there and does not work is trouble, which is reported and tried again.
//! - **A call of the driver may hang, and nothing ends it** ([`driver`]). Whoever asks waits for a
//!   bounded time: jobs wait a second at the agent's start (then there are no GPUs for now),
//!   statistics a quarter of a second, the fingerprint half a minute, after which the GPUs are gone
//!   until the driver answers again. Letting the library go is such a question too.
//! - **A lost GPU** does not even report its name, so what it reported last is remembered, and it
//!   is there, unhealthy.
//! - What the instances of a divided GPU share is the card's, and its power none of theirs.
//! - The old functions of the library are not used, so memory needs drivers from version 510 on.
//!   There are no metrics of devices.
//!
//! `io-real/examples/nvml_standin/` is a library with the same C interface, by which all of this is
//! tested without a GPU; on a machine with one, `io-real/tests/nvidia.rs` asks the real one too.

mod driver;
mod gpu;
mod known;
mod library;
mod reported;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drover_core::device::reported::ReportedGroup;
use drover_core::input::HookOutput;
use drover_core::model::device::GroupId;
use drover_core::op::Failure;
use drover_core::text::quote;
use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use self::driver::{AskError, Driver};
use self::gpu::Gpu;
use self::known::Known;
use self::library::Library;
use super::{DevicePlugin, DeviceStream, Measured};
use crate::one_task::OneTask;

/// The name of this plugin.
pub const NAME: &str = "nvidia-gpu";

/// The variable that names a task's GPUs.
const VARIABLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// How long a question waits for an earlier one, and how long everybody else's jobs wait for the
/// first answer.
const SOON: Duration = Duration::from_secs(1);

/// How long an answer may take: a driver that gets many sleeping GPUs ready is slow.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long who looks at statistics waits for an earlier question.
const AT_ONCE: Duration = Duration::from_millis(100);

/// How GPUs are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvidiaSettings {
    /// UUIDs of those that are never handed out.
    pub ignored: BTreeSet<String>,
    /// How often they are looked for.
    pub period: Duration,
    /// Where the driver's library is, if not where the machine's loader finds it.
    pub library: Option<OsString>,
}

impl Default for NvidiaSettings {
    fn default() -> NvidiaSettings {
        NvidiaSettings {
            ignored: BTreeSet::new(),
            period: Duration::from_secs(60),
            library: None,
        }
    }
}

/// The GPUs of this machine.
pub struct Nvidia {
    inner: Arc<Inner>,
    watch: OneTask,
}

struct Inner {
    settings: NvidiaSettings,
    driver: Driver,
    /// Whether anything was said of GPUs yet.
    spoke: AtomicBool,
    known: Arc<Known>,
}

impl Nvidia {
    /// The GPUs that there are, of which nothing is known yet.
    pub fn new(settings: NvidiaSettings) -> Nvidia {
        Nvidia {
            inner: Arc::new(Inner {
                driver: Driver::new(settings.library.clone()),
                settings,
                spoke: AtomicBool::new(false),
                known: Arc::default(),
            }),
            watch: OneTask::default(),
        }
    }
}

impl DevicePlugin for Nvidia {
    fn name(&self) -> &str {
        NAME
    }

    fn watch(&self, report: DeviceStream) {
        let inner = self.inner.clone();
        self.watch.begin(async move {
            let why = inner.report_changes(&report).await;
            report.ended(why);
        });
    }

    fn reserve<'a>(
        &'a self,
        group: &'a GroupId,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<HookOutput, Failure>> {
        Box::pin(async move {
            if self.inner.known.has_none() {
                // Asked for before anybody looked: a job of an earlier life of the agent.
                let queried = self.inner.query_gpus(SOON).await;
                queried.map_err(|error| Failure::recoverable(error.to_string()))?;
            }
            let known = &self.inner.known;
            if let Some(unknown) = ids.iter().find(|id| !known.has(id, &group.name)) {
                let why = format!("no GPU {} of this model here", quote(unknown));
                return Err(Failure::recoverable(why));
            }
            Ok(HookOutput {
                env: [(VARIABLE.to_owned(), ids.join(","))].into(),
                ..HookOutput::default()
            })
        })
    }

    fn measure<'a>(
        &'a self,
        ids: Option<&'a BTreeSet<String>>,
        to: &'a Measured,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.inner.measure(ids, to))
    }
}

impl Inner {
    /// Tells of the GPUs until that is of no use any more; why.
    async fn report_changes(&self, report: &DeviceStream) -> String {
        let mut last = None;
        // An earlier question that hangs is soon told of; one that is only slow is waited for.
        let mut turn = SOON;
        loop {
            let groups = match self.query_or_report_none(turn, report).await {
                Ok(groups) => groups,
                Err(AskError::Absent(why)) => {
                    tracing::debug!(why, "no NVIDIA driver is loaded");
                    report.report(Vec::new());
                    // A driver that is installed later is found by the agent's next start.
                    return std::future::pending().await;
                }
                Err(error) => return error.to_string(),
            };
            self.spoke.store(true, Ordering::Relaxed);
            if last.as_ref() != Some(&groups) {
                report.report(groups.clone());
                last = Some(groups);
            }
            turn = TIMEOUT;
            sleep(self.settings.period).await;
        }
    }

    /// Looks for GPUs. A first look that takes long says that there are none by now: jobs that
    /// want none need not wait.
    async fn query_or_report_none(
        &self,
        turn: Duration,
        report: &DeviceStream,
    ) -> Result<Vec<ReportedGroup>, AskError> {
        let mut query_gpus = pin!(self.query_gpus(turn));
        match timeout(SOON, &mut query_gpus).await {
            Ok(groups) => groups,
            Err(_) => {
                if !self.spoke.swap(true, Ordering::Relaxed) {
                    report.report(Vec::new());
                }
                query_gpus.await
            }
        }
    }

    async fn query_gpus(&self, turn: Duration) -> Result<Vec<ReportedGroup>, AskError> {
        let gpus = self.driver.ask(turn, TIMEOUT, Library::gpus).await;
        let gpus = gpus.inspect_err(|_| self.known.there_are(&[]))?;
        let seen = |gpu: &Gpu| !self.settings.ignored.contains(&gpu.id);
        let gpus: Vec<Gpu> = gpus.into_iter().filter(seen).collect();
        self.known.there_are(&gpus);
        Ok(reported::groups(&gpus))
    }

    /// Sees to it that what was measured is not older than a second, and that `to` has it.
    async fn measure(&self, ids: Option<&BTreeSet<String>>, to: &Measured) {
        let wanted = self.known.stale(ids);
        if !wanted.is_empty() {
            self.read(wanted, to).await;
        }
        if self.known.is_outdated() {
            self.known.report_stats(to);
        }
    }

    /// Measures these. What comes of it is told also if nobody waits any more.
    async fn read(&self, wanted: Vec<String>, to: &Measured) {
        let (known, measured) = (self.known.clone(), to.clone());
        let question = move |library: &mut Library| {
            for id in &wanted {
                // Somebody else may have asked just before.
                if !known.is_fresh(id) {
                    known.note(id, library.used(id).as_ref());
                }
            }
            known.report_stats(&measured);
            Ok(())
        };
        if let Err(error) = self.driver.ask(AT_ONCE, TIMEOUT, question).await {
            tracing::debug!(%error, "GPUs are not measured");
        }
    }
}
