//! A plugin of devices, as the core's effects speak to it.

use std::sync::Arc;

use drover_core::input::HookOutput;
use drover_core::model::device::GroupId;
use drover_core::op::Failure;
use futures::future::BoxFuture;

use super::one::{One, Running};
use crate::device::{DevicePlugin, DeviceStream};

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

    fn watch(&self, news: DeviceStream) {
        let one = self.one.clone();
        self.one.watch(async move {
            match one.running().await {
                Ok(running) => {
                    let why = tell(&running, &news).await;
                    one.give_up(&running).await;
                    if why.contains(DISABLED) {
                        news.disabled(why);
                    } else {
                        news.ended(why);
                    }
                }
                Err(failure) => news.ended(failure.message),
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
}

/// Tells of the devices until nothing more comes; why.
async fn tell(running: &Running, news: &DeviceStream) -> String {
    let mut devices = match running.plugin.devices().await {
        Ok(devices) => devices,
        Err(error) => return error.to_string(),
    };
    loop {
        match devices.next().await {
            Ok(Some(groups)) => news.say(groups),
            Ok(None) => return "it ended its stream of devices".to_owned(),
            Err(error) => return running.broke(error).await,
        }
    }
}
