//! What tasks use, as the driver's plugin measures it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::driver::reported::ReportedUsage;
use drover_core::ids::LaunchId;
use drover_core::stats::reported;
use drover_core::stats::usage::TaskUsage;
use futures::StreamExt;
use futures::stream::unfold;

use super::{PluginDriver, World, setup};
use crate::clock;
use crate::plugin::TaskStats;
use crate::stats::listening::{INTERVAL, Listener, Listening, Measurements};

/// The launches that somebody looks at.
#[derive(Default)]
pub(super) struct Measured(Mutex<BTreeMap<LaunchId, One>>);

/// A launch that somebody looks at.
#[derive(Clone, Default)]
struct One {
    listening: Listening,
    latest: Latest,
}

/// What was measured last, while it is true.
type Latest = Arc<Mutex<Option<Arc<TaskUsage>>>>;

impl PluginDriver {
    /// What a launch uses, as the plugin said within the last seconds. The first look waits a
    /// moment for it; from then on the plugin measures, until a minute after the last look.
    pub async fn usage(&self, launch: LaunchId) -> Option<Arc<TaskUsage>> {
        if !self.runs(launch) {
            return None;
        }
        let one = self.world.measured.one(launch);
        let open = || Box::pin(measurements(self.world.clone(), launch)) as _;
        let listener = || {
            let latest = one.latest.clone();
            Box::new(StatsSink { launch, latest }) as _
        };
        one.listening.subscribe(open, listener).await;
        locked(&one.latest).clone()
    }

    /// Whether a launch runs.
    pub(crate) fn runs(&self, launch: LaunchId) -> bool {
        self.world.held.is_running(launch)
    }
}

impl Measured {
    fn all(&self) -> MutexGuard<'_, BTreeMap<LaunchId, One>> {
        locked(&self.0)
    }

    /// The one of this launch. Those that nobody looks at any more are let go.
    fn one(&self, launch: LaunchId) -> One {
        let mut all = self.all();
        all.retain(|known, one| *known == launch || !one.listening.is_idle());
        all.entry(launch).or_default().clone()
    }

    /// Lets go of what is over.
    pub(super) fn forget(&self, launch: LaunchId) {
        self.all().remove(&launch);
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds one of these can panic half way.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn measurements(
    world: Arc<World>,
    launch: LaunchId,
) -> Result<Measurements<ReportedUsage>, String> {
    let attached = world.attached().map_err(|failure| failure.message)?;
    let id = setup::id(launch);
    let stats = attached.plugin.task_stats(&id, INTERVAL).await;
    let stats = stats.map_err(|error| error.to_string())?;
    let next = |mut stats: TaskStats| async {
        let reported = stats.next().await.map_err(|error| error.to_string());
        Some((reported.transpose()?, stats))
    };
    Ok(unfold(stats, next).boxed())
}

/// Takes what the plugin measures of a launch.
struct StatsSink {
    launch: LaunchId,
    latest: Latest,
}

impl Listener<ReportedUsage> for StatsSink {
    fn take(&mut self, reported: ReportedUsage) -> Result<(), String> {
        let usage = reported::usage(&reported, clock::now().wall)?;
        *locked(&self.latest) = Some(Arc::new(usage));
        Ok(())
    }

    fn over(&mut self, why: Option<&str>) {
        *locked(&self.latest) = None;
        if let Some(why) = why {
            let launch = self.launch;
            tracing::debug!(%launch, why, "a plugin's task is not measured");
        }
    }
}
