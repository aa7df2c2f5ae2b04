//! What an agent's configuration says at its top: settings of Nomad that have an effect here, those
//! that have none and are named once in a warning, and those that must not be ignored.
//!
//! ```hcl
//! bind_addr  = "127.0.0.1"          # where the HTTP API listens; ports says at which port
//! ports { http = 4646 }             # and addresses and advertise what else: see `address`
//! data_dir   = "/var/lib/drover"
//! name       = "node-1"
//! datacenter = "dc1"
//! region     = "global"
//! log_level  = "info"
//! log_json   = false
//! namespaces = ["ops"]              # of jobs, besides "default"
//! ```
//!
//! What the command line says goes before what the file says.

use std::path::PathBuf;

use drover_core::model::variable::check_namespace;
use hcl_edit::structure::Block;

use super::address::{address, with_port};
use super::literal::{Fields, fields};
use super::unknown;

/// Settings of Nomad at the top of a file that have no effect here.
const WITHOUT_EFFECT: &[&str] = &[
    "disable_anonymous_signature",
    "disable_update_check",
    "enable_debug",
    "enable_syslog",
    "http_api_response_headers",
    "leave_on_interrupt",
    "leave_on_terminate",
    "log_file",
    "log_include_location",
    "log_rotate_bytes",
    "log_rotate_duration",
    "log_rotate_max_files",
    "syslog_facility",
];

/// Blocks of Nomad at the top of a file that have no effect here.
pub(super) const BLOCKS_WITHOUT_EFFECT: &[&str] = &[
    "audit",
    "autopilot",
    "consul",
    "eventlog",
    "http_api_response_headers",
    "keyring",
    "reporting",
    "rpc",
    "sentinel",
    "ui",
    "vault",
];

/// The levels of a log.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// What the file says of the agent itself; what it leaves open is the command line's, or a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// The address at which the agent listens.
    pub bind_addr: Option<String>,
    /// The address at which the HTTP API listens, if it is another.
    pub http_address: Option<String>,
    /// Where others reach it, if that is elsewhere; with or without a port.
    pub advertised_http: Option<String>,
    /// Its port.
    pub http_port: Option<u16>,
    /// The agent's own directory.
    pub data_dir: Option<PathBuf>,
    /// The file with the root key of variables: the service manager's or the data directory's if none.
    pub root_key_file: Option<PathBuf>,
    /// The node's name.
    pub name: Option<String>,
    /// The node's data centre.
    pub datacenter: Option<String>,
    /// The node's region.
    pub region: Option<String>,
    /// How much the agent logs.
    pub log_level: Option<String>,
    /// Whether it logs in JSON.
    pub log_json: bool,
    /// The namespaces of jobs, besides `default`.
    pub namespaces: Vec<String>,
}

impl AgentConfig {
    /// The node's region; Nomad's unless given.
    pub fn region(&self) -> String {
        self.region.clone().unwrap_or_else(|| "global".to_owned())
    }

    /// Where the API listens: as the command line says, or the file.
    pub fn http(&self, given: Option<&str>) -> String {
        if let Some(given) = given {
            return given.to_owned();
        }
        let own = self.http_address.as_deref();
        let addr = own.or(self.bind_addr.as_deref()).unwrap_or("127.0.0.1");
        let port = self.http_port.unwrap_or(4646);
        match addr.contains(':') && !addr.starts_with('[') {
            true => format!("[{addr}]:{port}"),
            false => format!("{addr}:{port}"),
        }
    }

    /// Where others reach the API that listens at this address.
    pub fn advertised(&self, listening: &str) -> String {
        let port = listening.rsplit_once(':').map_or("4646", |(_, port)| port);
        match &self.advertised_http {
            None => listening.to_owned(),
            Some(address) => with_port(address, port),
        }
    }
}

/// Reads what stands at the top of the file, except for blocks. What has no effect is noted.
pub(super) fn agent(top: &mut Fields, ignored: &mut Vec<String>) -> Result<AgentConfig, String> {
    let config = AgentConfig {
        bind_addr: address(top, "bind_addr")?,
        http_address: None,
        advertised_http: None,
        http_port: None,
        data_dir: top.text("data_dir")?.map(PathBuf::from),
        root_key_file: top.text("root_key_file")?.map(PathBuf::from),
        name: top.text("name")?,
        datacenter: top.text("datacenter")?,
        region: top.text("region")?,
        log_level: top.text("log_level")?.map(|level| level.to_lowercase()),
        log_json: top.flag("log_json")?.unwrap_or(false),
        namespaces: top.texts("namespaces")?,
    };
    for name in &config.namespaces {
        check_namespace(name).map_err(|why| format!("namespaces: {why}"))?;
    }
    if let Some(level) = (config.log_level.as_deref()).filter(|level| !LEVELS.contains(level)) {
        return Err(format!("log_level: {}", unknown("level", level, &LEVELS)));
    }
    ignored.extend(top.ignore(WITHOUT_EFFECT));
    Ok(config)
}

/// Reads the block `ports`.
pub(super) fn ports(block: &Block) -> Result<Option<u16>, String> {
    let mut given = fields(&block.body)?;
    let http = given.number("http")?;
    // Nobody connects to these.
    let (_, _) = (given.number("rpc")?, given.number("serf")?);
    given.nothing_else("ports")?;
    let port = |number| u16::try_from(number).ok().filter(|port| *port > 0);
    http.map(|number| port(number).ok_or_else(|| format!("ports: http: {number} is no port")))
        .transpose()
}

/// Whether a block that is not read here is known to have no effect.
pub(super) fn is_without_effect(name: &str) -> bool {
    BLOCKS_WITHOUT_EFFECT.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// A configuration as one has it for Nomad.
    const USUAL: &str = r#"
        bind_addr  = "127.0.0.1"
        data_dir   = "/srv/nomad"
        name       = "node-7"
        datacenter = "dc9"
        region     = "eu"
        log_level  = "DEBUG"
        log_json   = true
        leave_on_terminate = true
        ports {
          http = 5646
          rpc  = 5647
          serf = 5648
        }
        advertise {
          http = "10.0.0.1"
        }
        client {
          enabled    = true
          node_class = "large"
          node_pool  = "gpus"
          meta {
            rack  = "r1"
            "a.b" = "c"
          }
          host_volume "data" {
            path      = "/srv/data"
            read_only = false
          }
          host_network "private" {
            cidr = "10.0.0.0/8"
          }
          reserved {
            cpu    = 500
            memory = 512
            cores  = "0-1"
            reserved_ports = "22"
          }
          overcommit {
            cpu = 150
          }
          server_join {
            retry_join = ["10.0.0.2"]
          }
        }
        server {
          enabled          = true
          bootstrap_expect = 1
        }
        ui {
          enabled = true
        }
    "#;

    #[test]
    fn nomad_configuration_is_read() {
        let config = parse(USUAL).unwrap();
        assert_eq!(config.agent.http(None), "127.0.0.1:5646");
        assert_eq!(config.agent.advertised("127.0.0.1:5646"), "10.0.0.1:5646");
        assert_eq!(config.agent.http(Some("[::1]:1")), "[::1]:1");
        assert_eq!(config.agent.name.as_deref(), Some("node-7"));
        assert_eq!(config.agent.datacenter.as_deref(), Some("dc9"));
        assert_eq!(config.agent.log_level.as_deref(), Some("debug"));
        assert!(config.agent.log_json);
        assert_eq!(config.client.node.class, "large");
        assert_eq!(config.client.node.pool.as_deref(), Some("gpus"));
        assert_eq!(config.client.node.meta["rack"], "r1");
        assert_eq!(config.client.node.meta["a.b"], "c");
        assert_eq!(config.client.node.reserved.cores.len(), 2);
        assert_eq!(config.client.node.reserved.mhz, 500);
        assert_eq!(config.client.node.reserved_ports[""], [(22, 22)]);
        assert_eq!(config.client.node.reserved.amounts.memory, 512);
        let overcommit = config.client.node.overcommit;
        assert_eq!((overcommit.cpu, overcommit.memory), (150, 100));
        assert_eq!(config.client.node.host_networks[0].name, "private");
        assert_eq!(config.client.node.host_volumes["data"].path, "/srv/data");
        let ignored = [
            "leave_on_terminate",
            "ui",
            "client.servers",
            "server.bootstrap_expect",
        ];
        for name in ignored {
            assert!(
                config.ignored.iter().any(|it| it == name),
                "{name}: {:?}",
                config.ignored
            );
        }
        assert_eq!(config.ignored.len(), ignored.len(), "{:?}", config.ignored);
    }

    #[test]
    fn unsupported_security_setting_is_refused() {
        for (text, words) in [
            ("client {\n enabled = false\n}", "is nothing else"),
            (
                "log_level = \"loud\"",
                "known are error, warn, info, debug, trace",
            ),
            ("bind_adr = \"x\"", "did you mean bind_addr?"),
            ("ports {\n http = 70000\n}", "70000 is no port"),
            ("servr {}", "did you mean server?"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn empty_configuration_listens_on_loopback() {
        let agent = parse("").unwrap().agent;
        assert_eq!(agent.http(None), "127.0.0.1:4646");
        assert_eq!(
            parse("bind_addr = \"::1\"").unwrap().agent.http(None),
            "[::1]:4646"
        );
    }
}
