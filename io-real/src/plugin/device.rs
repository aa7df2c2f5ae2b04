//! Plugins of devices.

use std::time::Duration;

use drover_core::device::reported::ReportedGroup;
use drover_core::device::reported_stats::ReportedStats;
use drover_core::input::HookOutput;

use super::Plugin;
use super::error::PluginError;
use super::proto::device as proto;
use super::proto::device::device_plugin_client::DevicePluginClient;
use super::reported;
use super::stream::Messages;
use super::wire::Channel;

impl Plugin {
    /// Asks a plugin of devices to say what there is, now and whenever it changes.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn devices(&self) -> Result<Devices, PluginError> {
        let mut client = self.device();
        let request = proto::FingerprintRequest {};
        let answer = client.fingerprint(request);
        let stream = self.wire.call("Fingerprint", answer).await?;
        Ok(Devices {
            messages: Messages::new("Fingerprint", stream, self.wire.limits().per_second),
            last: None,
        })
    }

    /// Reserves devices of one group for a task: asks what the task needs to use them.
    ///
    /// # Errors
    /// It does not answer, or does not know one of them.
    pub async fn reserve(&self, ids: Vec<String>) -> Result<HookOutput, PluginError> {
        let mut client = self.device();
        let request = proto::ReserveRequest { device_ids: ids };
        let given = self.wire.call("Reserve", client.reserve(request)).await?;
        Ok(given
            .container_res
            .map(reported::reservation)
            .unwrap_or_default())
    }

    /// Asks for measurements of all devices at each interval.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn device_stats(&self, interval: Duration) -> Result<DeviceStats, PluginError> {
        let mut client = self.device();
        let request = proto::StatsRequest {
            collection_interval: prost_types::Duration::try_from(interval).ok(),
        };
        let stream = self.wire.call("Stats", client.stats(request)).await?;
        let per_second = self.wire.limits().per_second;
        Ok(DeviceStats(Messages::new("Stats", stream, per_second)))
    }

    fn device(&self) -> DevicePluginClient<Channel> {
        let (channel, origin) = self.wire.channel();
        DevicePluginClient::with_origin(channel, origin)
            .max_decoding_message_size(self.wire.limits().message)
    }
}

/// What a plugin says of its devices, again and again.
#[derive(Debug)]
pub struct Devices {
    messages: Messages<proto::FingerprintResponse>,
    last: Option<Vec<proto::DeviceGroup>>,
}

impl Devices {
    /// All groups, when they are others than the last time. `None` when the plugin ended the
    /// stream. Can be given up and asked again.
    ///
    /// # Errors
    /// The plugin broke the stream off, is gone, or sends too much; the stream is over then.
    pub async fn next(&mut self) -> Result<Option<Vec<ReportedGroup>>, PluginError> {
        while let Some(message) = self.messages.next().await? {
            // Many plugins repeat themselves: that costs no more than this.
            if self.last.as_ref() != Some(&message.device_group) {
                self.last = Some(message.device_group.clone());
                let groups = message.device_group.into_iter();
                return Ok(Some(groups.map(reported::group).collect()));
            }
        }
        Ok(None)
    }
}

/// What a plugin measures of its devices, again and again.
#[derive(Debug)]
pub struct DeviceStats(Messages<proto::StatsResponse>);

impl DeviceStats {
    /// The next measurements, by group. `None` when the plugin ended the stream. Can be given up
    /// and asked again.
    ///
    /// # Errors
    /// The plugin broke the stream off, is gone, or sends too much; the stream is over then.
    pub async fn next(&mut self) -> Result<Option<Vec<ReportedStats>>, PluginError> {
        let message = self.0.next().await?;
        Ok(message.map(|message| message.groups.into_iter().map(reported::stats).collect()))
    }
}
