//! What the block `client` says of the machine, in place of what is found out about it.
//!
//! ```hcl
//! client {
//!   cpu_total_compute = 8000     # MHz of all cores together
//!   memory_total_mb   = 16384
//!   disk_total_mb     = 100000   # MB of the disk of the allocations' directories
//!   disk_free_mb      = 80000    # MB of it that allocations may have; goes before disk_total_mb
//!   network_speed     = 10000    # Mbit/s of the interface at which tasks are reached
//!   min_dynamic_port  = 20000    # the first and the last port for jobs that name no number
//!   max_dynamic_port  = 32000
//!   cni_path          = "/opt/cni/bin:/usr/lib/cni"   # where programs of CNI are looked for
//!   cni_config_dir    = "/opt/cni/config"
//! }
//! ```

use std::path::{Path, PathBuf};

use drover_core::text::quote;
use drover_io_real::fingerprint::Settings;

use super::literal::Fields;

/// The ports that the node gives away unless told otherwise.
const DYNAMIC_PORTS: (u16, u16) = (20_000, 32_000);

/// What is said of the machine. What is not given is found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// The first and the last port that is given to jobs that name no number.
    pub dynamic_ports: (u16, u16),
    /// Where programs of CNI are; earlier directories win. The usual one if there is none.
    pub cni_path: Vec<PathBuf>,
    /// Where networks of CNI are described.
    pub cni_config_dir: Option<PathBuf>,
    /// Mbit/s of the interface at which tasks are reached.
    pub network_speed: Option<u64>,
    /// MHz of all cores together.
    pub cpu_total_compute: Option<u64>,
    /// MiB of memory.
    pub memory_total_mb: Option<u64>,
    /// MiB of the disk of the allocations' directories.
    pub disk_mb: Option<u64>,
}

impl Default for MachineConfig {
    fn default() -> MachineConfig {
        MachineConfig {
            dynamic_ports: DYNAMIC_PORTS,
            cni_path: Vec::new(),
            cni_config_dir: None,
            network_speed: None,
            cpu_total_compute: None,
            memory_total_mb: None,
            disk_mb: None,
        }
    }
}

impl MachineConfig {
    /// The settings of probes, with what is said here.
    pub fn probe_settings(&self) -> Settings {
        let mut settings = Settings {
            network_speed: self.network_speed,
            cpu_total_compute: self.cpu_total_compute,
            memory_total_mb: self.memory_total_mb,
            disk_total_mb: self.disk_mb,
            ..Settings::default()
        };
        if !self.cni_path.is_empty() {
            settings.cni_path.clone_from(&self.cni_path);
        }
        if let Some(dir) = &self.cni_config_dir {
            settings.cni_config_dir.clone_from(dir);
        }
        settings
    }
}

/// Reads the attributes that are about the machine.
pub(super) fn machine(given: &mut Fields) -> Result<MachineConfig, String> {
    let disk = amount(given, "disk_total_mb")?;
    Ok(MachineConfig {
        dynamic_ports: dynamic_ports(given)?,
        cni_path: paths(given, "cni_path")?,
        cni_config_dir: paths(given, "cni_config_dir")?.into_iter().next(),
        network_speed: amount(given, "network_speed")?,
        cpu_total_compute: amount(given, "cpu_total_compute")?,
        memory_total_mb: amount(given, "memory_total_mb")?,
        disk_mb: amount(given, "disk_free_mb")?.or(disk),
    })
}

/// A number that replaces what is found out; 0 replaces nothing.
fn amount(given: &mut Fields, name: &'static str) -> Result<Option<u64>, String> {
    let Some(number) = given.number(name)? else {
        return Ok(None);
    };
    let amount = u64::try_from(number);
    let amount = amount.map_err(|_| format!("client: {name}: {number} is too few"))?;
    Ok(Some(amount).filter(|amount| *amount > 0))
}

fn dynamic_ports(given: &mut Fields) -> Result<(u16, u16), String> {
    let mut port = |name: &'static str, usual| match given.number(name)? {
        None | Some(0) => Ok(usual),
        Some(number) => {
            let port = u16::try_from(number);
            port.map_err(|_| format!("client: {name}: {number} is no port"))
        }
    };
    let first = port("min_dynamic_port", DYNAMIC_PORTS.0)?;
    let last = port("max_dynamic_port", DYNAMIC_PORTS.1)?;
    match first <= last {
        true => Ok((first, last)),
        false => Err(format!(
            "client: min_dynamic_port: {first} is above max_dynamic_port, which is {last}"
        )),
    }
}

/// Directories with colons between them.
fn paths(given: &mut Fields, name: &'static str) -> Result<Vec<PathBuf>, String> {
    let text = given.text(name)?.unwrap_or_default();
    let parts = text.split(':').filter(|part| !part.is_empty());
    let path = |part: &str| match Path::new(part).is_absolute() && !part.contains('\0') {
        true => Ok(PathBuf::from(part)),
        false => Err(format!(
            "client: {name}: {} is no absolute path",
            quote(part)
        )),
    };
    parts.map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(text: &str) -> Result<MachineConfig, String> {
        let config = parse(&format!("client {{\n{text}\n}}"))?;
        Ok(config.client.node.machine)
    }

    #[test]
    fn configured_machine_values_replace_fingerprinted_ones() {
        let text = "cpu_total_compute = 8000\n memory_total_mb = 16384\n disk_total_mb = 100000\n \
                    network_speed = \"10000\"\n cni_path = \"/opt/a:/opt/b\"\n \
                    cni_config_dir = \"/etc/cni\"\n min_dynamic_port = 30000\n max_dynamic_port = 30100";
        let machine = read(text).unwrap();
        assert_eq!(machine.dynamic_ports, (30_000, 30_100));
        let settings = machine.probe_settings();
        assert_eq!(settings.cpu_total_compute, Some(8_000));
        assert_eq!(settings.memory_total_mb, Some(16_384));
        assert_eq!(settings.disk_total_mb, Some(100_000));
        assert_eq!(settings.network_speed, Some(10_000));
        assert_eq!(settings.cni_path, ["/opt/a", "/opt/b"].map(PathBuf::from));
        assert_eq!(settings.cni_config_dir, Path::new("/etc/cni"));
        let free = read("disk_total_mb = 100000\n disk_free_mb = 5").unwrap();
        assert_eq!(free.disk_mb, Some(5));
    }

    #[test]
    fn unset_machine_settings_keep_defaults() {
        for text in ["", "cpu_total_compute = 0\n max_dynamic_port = 0"] {
            let machine = read(text).unwrap();
            assert_eq!(machine, MachineConfig::default(), "{text}");
            assert_eq!(machine.probe_settings(), Settings::default());
            assert_eq!(machine.dynamic_ports, (20_000, 32_000), "as in Nomad");
        }
    }

    #[test]
    fn invalid_setting_is_refused_by_name() {
        for (text, words) in [
            ("memory_total_mb = -1", "memory_total_mb: -1 is too few"),
            ("max_dynamic_port = 70000", "70000 is no port"),
            ("min_dynamic_port = 40000", "which is 32000"),
            ("cni_path = \"bin\"", "\"bin\" is no absolute path"),
            ("memory_total = 1", "did you mean memory_total_mb?"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
