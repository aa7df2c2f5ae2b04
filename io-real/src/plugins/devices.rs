//! A plugin of devices, as the core's effects speak to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use drover_core::device::reported_stats::ReportedStats;
use drover_core::input::HookOutput;
use drover_core::model::device::GroupId;
use drover_core::op::Failure;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::unfold;

use super::one::{One, Running};
use crate::device::{DevicePlugin, DeviceStream, Measured};
use crate::stats::listening::{INTERVAL, Listener, Measurements};

/// What a plugin says whose devices are switched off.
const DISABLED: &str = "device is not enabled";

/// The plugin.
pub(super) struct Devices {
    name: String,
    one: Arc<One>,
}

impl Devices {
    pub(super) fn new(name: &str, one: Arc<One>) -> Devices {
        Devices {
            name: name.to_owned(),
            one,
        }
    }
}

impl DevicePlugin for Devices {
    fn name(&self) -> &str {
        &self.name
    }

    fn watch(&self, report: DeviceStream) {
        let one = self.one.clone();
        self.one.watch(async move {
            match one.running().await {
                Ok(running) => {
                    let why = forward_devices(&running, &report).await;
                    one.give_up(&running).await;
                    if why.contains(DISABLED) {
                        report.disabled(why);
                    } else {
                        report.ended(why);
                    }
                }
                Err(failure) => report.ended(failure.message),
            }
        });
    }

    fn reserve<'a>(
        &'a self,
        _: &'a GroupId,
        ids: &'a [String],
    ) -> BoxFuture<'a, Result<HookOutput, Failure>> {
        Box::pin(async move {
            let running = self.one.running().await?;
            Ok(running.plugin.reserve(ids.to_vec()).await?)
        })
    }

    /// Plugins measure all that they have.
    fn measure<'a>(
        &'a self,
        _: Option<&'a BTreeSet<String>>,
        to: &'a Measured,
    ) -> BoxFuture<'a, ()> {
        let open = || Box::pin(measurements(self.one.clone())) as _;
        let listener = || {
            let (plugin, to) = (self.name.clone(), to.clone());
            Box::new(StatsSink { plugin, to }) as _
        };
        Box::pin(self.one.device_stats().subscribe(open, listener))
    }
}

/// What a plugin measures; nothing is started for that.
async fn measurements(one: Arc<One>) -> Result<Measurements<Vec<ReportedStats>>, String> {
    let running = one.if_running().await.ok_or("it does not run")?;
    let stats = running.plugin.device_stats(INTERVAL).await;
    let stats = stats.map_err(|error| error.to_string())?;
    let next = |mut stats: crate::plugin::DeviceStats| async {
        let reported = stats.next().await.map_err(|error| error.to_string());
        Some((reported.transpose()?, stats))
    };
    Ok(unfold(stats, next).boxed())
}

/// Takes what a plugin measures.
struct StatsSink {
    plugin: String,
    to: Measured,
}

impl Listener<Vec<ReportedStats>> for StatsSink {
    fn take(&mut self, reported: Vec<ReportedStats>) -> Result<(), String> {
        self.to.report(reported)
    }

    fn over(&mut self, why: Option<&str>) {
        self.to.lose();
        if let Some(why) = why {
            tracing::debug!(
                plugin = self.plugin,
                why,
                "a plugin's devices are not measured"
            );
        }
    }
}

/// Tells of the devices until nothing more comes; why.
async fn forward_devices(running: &Running, report: &DeviceStream) -> String {
    let mut devices = match running.plugin.devices().await {
        Ok(devices) => devices,
        Err(error) => return error.to_string(),
    };
    loop {
        match devices.next().await {
            Ok(Some(groups)) => report.report(groups),
            Ok(None) => return "it ended its stream of devices".to_owned(),
            Err(error) => return running.broke(error).await,
        }
    }
}
