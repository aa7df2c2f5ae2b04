//! What every plugin of Nomad's protocol has: its identity, and its configuration.

use std::collections::BTreeSet;

use drover_core::driver::spec::Spec;
use drover_core::model::processors::Processors;
use drover_core::model::value::Value;

use super::error::PluginError;
use super::proto::base as reported;
use super::proto::base::base_plugin_client::BasePluginClient;
use super::wire::Channel;
use super::{Plugin, msgpack, spec};

/// The version of drivers' and devices' services that is spoken.
pub const API_VERSION: &str = "v0.1.0";

/// What a plugin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PluginKind {
    /// It starts tasks.
    Driver,
    /// It knows devices.
    Device,
}

/// Who a plugin is, in its own words, which were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// What it is for.
    pub kind: PluginKind,
    /// Its name; that of its file may be another.
    pub name: String,
    /// Its own version.
    pub version: Version,
    /// The version of the services that is spoken with it.
    pub api_version: String,
}

/// A version of a plugin: `v1.2.3`, also with fewer parts and with a word after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As it was said.
    pub text: String,
    parts: [u64; 3],
    /// Without it the version is the finished one, and later.
    before: String,
}

impl Version {
    /// Reads a version.
    pub fn parse(text: &str) -> Option<Version> {
        let plain = text.trim().trim_start_matches('v');
        let (plain, _build) = plain.split_once('+').unwrap_or((plain, ""));
        let (numbers, before) = plain.split_once('-').unwrap_or((plain, ""));
        let mut parts = [0; 3];
        let mut given = numbers.split('.');
        for part in &mut parts {
            match given.next() {
                Some(number) => *part = number.parse().ok()?,
                None if numbers.is_empty() => return None,
                None => {}
            }
        }
        given.next().is_none().then(|| Version {
            text: text.trim().to_owned(),
            parts,
            before: before.to_owned(),
        })
    }

    /// Whether this is a later version than another.
    pub fn is_later_than(&self, other: &Version) -> bool {
        let order = |version: &Version| {
            let finished = version.before.is_empty();
            (version.parts, finished, version.before.clone())
        };
        order(self) > order(other)
    }
}

/// What a driver is told of the agent. Drivers of Nomad end in a panic when they start a task
/// and were told nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverSettings {
    /// The first and the last port that its helpers may listen on.
    pub ports: (u16, u16),
    /// The machine's processors.
    pub processors: Processors,
}

impl Plugin {
    /// Asks who it is.
    ///
    /// # Errors
    /// It does not answer, or is nobody that can be used.
    pub async fn info(&self) -> Result<PluginInfo, PluginError> {
        let request = reported::PluginInfoRequest {};
        let mut client = self.base();
        let info = self
            .wire
            .call("PluginInfo", client.plugin_info(request))
            .await?;
        read(info)
    }

    /// Asks what may stand in its configuration; `None` if it has none.
    ///
    /// # Errors
    /// It does not answer, or its schema has no sense.
    pub async fn config_schema(&self) -> Result<Option<Spec>, PluginError> {
        let request = reported::ConfigSchemaRequest {};
        let mut client = self.base();
        let answer = self
            .wire
            .call("ConfigSchema", client.config_schema(request))
            .await?;
        let announced = answer.spec.filter(|spec| spec.block.is_some());
        announced.as_ref().map(spec::read).transpose()
    }

    /// Gives it its configuration, as it was decoded by its schema.
    ///
    /// # Errors
    /// It does not answer, or refuses it.
    pub async fn configure(
        &self,
        config: &Value,
        api_version: &str,
        driver: Option<&DriverSettings>,
    ) -> Result<(), PluginError> {
        let driver = driver.map(|settings| reported::NomadDriverConfig {
            client_min_port: settings.ports.0.into(),
            client_max_port: settings.ports.1.into(),
            topology: Some(topology(&settings.processors)),
        });
        let request = reported::SetConfigRequest {
            msgpack_config: msgpack::encode(config)?,
            nomad_config: Some(reported::NomadConfig { driver }),
            plugin_api_version: api_version.to_owned(),
        };
        let mut client = self.base();
        let set = self.wire.call("SetConfig", client.set_config(request));
        set.await.map(drop)
    }

    fn base(&self) -> BasePluginClient<Channel> {
        let (channel, origin) = self.wire.channel();
        BasePluginClient::with_origin(channel, origin)
            .max_decoding_message_size(self.wire.limits().message)
    }
}

/// The machine's processors in Nomad's words.
fn topology(processors: &Processors) -> reported::ClientTopology {
    use reported::client_topology_core::Grade;
    let nodes: BTreeSet<u32> = processors.cores.iter().map(|core| core.node).collect();
    let cores = processors
        .cores
        .iter()
        .map(|core| reported::ClientTopologyCore {
            socket_id: core.socket,
            node_id: core.node,
            core_id: core.id,
            core_grade: if core.efficiency {
                Grade::Efficiency.into()
            } else {
                Grade::Performance.into()
            },
            disable: false,
            base_speed: core.base_mhz,
            max_speed: core.max_mhz,
            guess_speed: 0,
        });
    let (total, usable) = (processors.total_compute, processors.usable_compute);
    reported::ClientTopology {
        distances: Some(distances(nodes.len())),
        node_ids: nodes.into_iter().collect(),
        cores: cores.collect(),
        override_total_compute: total,
        override_withold_compute: total.saturating_sub(usable),
    }
}

/// As the kernel says it where nothing better is known: 10 to itself, 20 to any other.
fn distances(nodes: usize) -> reported::ClientTopologySlit {
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    reported::ClientTopologySlit {
        dimension: u32::try_from(nodes).unwrap_or(u32::MAX),
        values: pairs
            .map(|(from, to)| if from == to { 10 } else { 20 })
            .collect(),
    }
}

fn read(info: reported::PluginInfoResponse) -> Result<PluginInfo, PluginError> {
    let kind = match info.r#type() {
        reported::PluginType::Driver => PluginKind::Driver,
        reported::PluginType::Device => PluginKind::Device,
        reported::PluginType::Unknown => {
            let what = format!("it is neither a driver nor of devices, but {}", info.r#type);
            return Err(PluginError::Invalid(what));
        }
    };
    let plain = |c: char| c.is_ascii_graphic() && c != '/';
    if info.name.is_empty() || info.name.len() > 128 || !info.name.chars().all(plain) {
        let name: String = info.name.chars().take(128).collect();
        return Err(PluginError::Invalid(format!("its name is {name:?}")));
    }
    let version = Version::parse(&info.plugin_version);
    let version = version.ok_or_else(|| {
        let reported: String = info.plugin_version.chars().take(80).collect();
        PluginError::Invalid(format!("its version is {reported:?}"))
    })?;
    let mut versions = info.plugin_api_versions.iter();
    if !versions.any(|version| version == API_VERSION) {
        let reported: String = info
            .plugin_api_versions
            .join(", ")
            .chars()
            .take(80)
            .collect();
        let what = format!("it supports API versions {reported:?}, and this agent {API_VERSION:?}");
        return Err(PluginError::Invalid(what));
    }
    Ok(PluginInfo {
        kind,
        name: info.name,
        version,
        api_version: API_VERSION.to_owned(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn versions_have_an_order() {
        let version = |text: &str| Version::parse(text).unwrap();
        let rising = ["0.1", "v0.1.1-beta", "0.1.1", "1", "v1.0.1+build", "1.10.0"];
        for pair in rising.windows(2) {
            let (one, next) = (version(pair[0]), version(pair[1]));
            assert!(next.is_later_than(&one), "{pair:?}");
            assert!(!one.is_later_than(&next), "{pair:?}");
        }
        for bad in ["", "v", "x", "1.2.3.4", "1..2", "-beta"] {
            assert_eq!(Version::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn driver_config_has_cpu_topology() {
        use drover_core::model::processors::Core;
        let core = |id, node| Core {
            id,
            node,
            ..Core::default()
        };
        let reported = topology(&Processors {
            total_compute: 3000,
            usable_compute: 2500,
            cores: vec![core(0, 0), core(1, 1)],
        });
        assert_eq!(reported.node_ids, [0, 1]);
        assert_eq!(reported.distances.unwrap().values, [10, 20, 20, 10]);
        assert_eq!(reported.override_withold_compute, 500);
    }

    #[test]
    fn plugin_that_cannot_be_used_is_refused() {
        let good = reported::PluginInfoResponse {
            r#type: 3,
            plugin_api_versions: vec!["v0.2.0".to_owned(), API_VERSION.to_owned()],
            plugin_version: "v0.1.0".to_owned(),
            name: "fpga".to_owned(),
        };
        assert_eq!(read(good.clone()).unwrap().kind, PluginKind::Device);
        let spoil: [fn(&mut reported::PluginInfoResponse); 6] = [
            |info| info.r#type = 0,
            |info| info.r#type = 99,
            |info| info.name.clear(),
            |info| info.name = "../x".to_owned(),
            |info| info.plugin_version = "latest".to_owned(),
            |info| info.plugin_api_versions = vec!["v0.2.0".to_owned()],
        ];
        for spoil in spoil {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert!(read(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
