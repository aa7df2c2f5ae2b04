//! What a node of a cluster says of itself, to a model of a server and to its own users, with settings as one has them
//! for Nomad's client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;
#[path = "../../rpc/tests/common/mod.rs"]
mod wire;

use drover_rpc::msgpack::Value as Sent;
use drover_rpc::types::registration::{NodeUpdateReply, ServerInfo};
use serde_json::{Value, json};
use support::nomad::job;
use support::{Lone, TIMEOUT, request};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wire::peer::Peer;
use wire::server::{Does, answer};

/// A server whose only node is an agent.
struct Setup {
    lone: Lone,
    server: String,
    /// The node, each time that it registers.
    registered: mpsc::UnboundedReceiver<Value>,
    runtime: Runtime,
}

impl Setup {
    /// With more settings of the agent, and of its block `client`.
    fn new(more: &str, client: &str) -> Setup {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let (tell, registered) = mpsc::unbounded_channel();
        runtime.spawn(listen(listener, tell));
        let lone = Lone::configured(&format!(
            "{more}\nclient {{\n servers = [\"{server}\"]\n{client}\n}}\n"
        ));
        Setup {
            lone,
            server,
            registered,
            runtime,
        }
    }

    /// The node as it registers, once it is so.
    fn registered(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let registered = &mut self.registered;
        let next = async {
            loop {
                let node = registered.recv().await.expect("a registration");
                if is_so(&node) {
                    return node;
                }
            }
        };
        let next = self
            .runtime
            .block_on(async { timeout(TIMEOUT, next).await });
        next.expect("the node never registers so")
    }

    fn ask(&self, path: &str) -> (u16, String) {
        request(&self.lone.agent.addr, "GET", path, None).unwrap()
    }
}

async fn listen(listener: TcpListener, tell: mpsc::UnboundedSender<Value>) {
    let address = listener.local_addr().unwrap().to_string();
    let mut peers = Vec::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (peer, incoming, _) = Peer::start(stream);
        peers.push(peer);
        let (address, tell) = (address.clone(), tell.clone());
        tokio::spawn(answer(incoming, move |method, body| {
            if let ("Node.Register", Sent::Map(mut fields)) = (method, body) {
                let node = fields.remove("Node").unwrap_or_default();
                drop(tell.send(serde_json::to_value(node).unwrap()));
            }
            does(method, &address)
        }));
    }
}

fn does(method: &str, address: &str) -> Does {
    match method {
        "Node.Register" | "Node.UpdateStatus" => Does::reply(&NodeUpdateReply {
            heartbeat_ttl: 10_000_000_000,
            servers: vec![ServerInfo {
                rpc_advertise_addr: address.to_owned(),
                ..ServerInfo::default()
            }],
            ..NodeUpdateReply::default()
        }),
        "Node.GetClientAllocs" => Does::Nothing,
        _ => Does::empty(),
    }
}

#[test]
fn host_network_is_registered_with_the_address_that_ports_may_name() {
    let client = "host_network \"inside\" {\n interface = \"lo\"\n cidr = \"127.0.0.0/8\"\n \
                  reserved_ports = \"8500-8600\"\n}";
    let mut setup = Setup::new("", client);
    let node = setup.registered(|node| node["HostNetworks"]["inside"].is_object());
    let network = &node["HostNetworks"]["inside"];
    assert_eq!(network["Interface"], "lo");
    assert_eq!(network["CIDR"], "127.0.0.0/8");
    assert_eq!(network["ReservedPorts"], "8500-8600");
    let networks = node["NodeResources"]["NodeNetworks"].as_array().unwrap();
    let addresses = |network: &Value| network["Addresses"].as_array().cloned();
    let all: Vec<Value> = networks.iter().filter_map(addresses).flatten().collect();
    let inside: Vec<&Value> = all.iter().filter(|it| it["Alias"] == "inside").collect();
    assert_eq!(inside.len(), 1, "{networks:?}");
    assert_eq!(inside[0]["Address"], "127.0.0.1");
    assert_eq!(inside[0]["ReservedPorts"], "8500-8600");
    assert!(all.iter().any(|it| it["Alias"] == "default"));
}

#[test]
fn settings_of_the_machine_are_registered_in_place_of_what_is_found() {
    let client = "min_dynamic_port = 30000\nmax_dynamic_port = 30100\nmemory_total_mb = 4096\n\
                  cpu_total_compute = 5000\ndisk_total_mb = 9999\nhost_network \"inside\" {\n interface = \"lo\"\n}";
    let mut setup = Setup::new("advertise {\n http = \"203.0.113.7\"\n}", client);
    let node = setup.registered(|node| node["HostNetworks"]["inside"].is_object());
    let resources = &node["NodeResources"];
    assert_eq!(resources["MinDynamicPort"], 30_000);
    assert_eq!(resources["MaxDynamicPort"], 30_100);
    assert_eq!(resources["Memory"]["MemoryMB"], 4096);
    assert_eq!(resources["Disk"]["DiskMB"], 9999);
    let topology = &resources["Processors"]["Topology"];
    assert_eq!(topology["OverrideTotalCompute"], 5000);
    let port = setup.lone.agent.addr.rsplit(':').next().unwrap().to_owned();
    let advertised = format!("203.0.113.7:{port}");
    assert_eq!(node["HTTPAddr"], advertised);
    assert_eq!(node["Attributes"]["unique.advertise.address"], advertised);
}

#[test]
fn no_program_runs_beside_a_task_where_the_configuration_says_so() {
    let lone = Lone::configured("client {\n disable_remote_exec = true\n}\n");
    let sleeper = json!({ "Job": job("sleeper", "service", "exec sleep 1000") });
    assert_eq!(lone.agent.put("/v1/jobs", &sleeper).unwrap().0, 200);
    let id = lone.agent.wait_for("/v1/allocations", |all| {
        let alloc = all.get(0)?;
        let runs = alloc["ClientStatus"] == "running";
        runs.then(|| alloc["ID"].as_str().unwrap().to_owned())
    });
    let ended = lone.run(&["alloc", "exec", &id, "/bin/true"]);
    assert_ne!(ended.code, 0);
    assert!(ended.err.contains("disable_remote_exec"), "{}", ended.err);
}

#[test]
fn node_says_that_it_is_a_client_and_which_servers_it_has() {
    let mut setup = Setup::new("", "");
    setup.registered(|_| true);
    let server = setup.server.clone();
    let servers = json!([server]);
    let itself = setup.lone.agent.get("/v1/agent/self");
    assert_eq!(itself["config"]["Server"]["Enabled"], false);
    assert_eq!(itself["config"]["Client"]["Enabled"], true);
    assert_eq!(itself["config"]["Client"]["Servers"], servers);
    assert_eq!(itself["member"]["Name"], "");
    for path in ["/v1/agent/servers", "/v1/status/peers"] {
        assert_eq!(setup.lone.agent.get(path), servers, "{path}");
    }
    let health = setup.lone.agent.get("/v1/agent/health");
    assert_eq!(health, json!({ "client": { "ok": true, "message": "ok" } }));
    for path in ["/v1/status/leader", "/v1/agent/members"] {
        let (status, words) = setup.ask(path);
        assert_eq!(status, 501, "{path}: {words}");
        assert!(words.contains(&server), "{path}: {words}");
    }
    assert_eq!(setup.ask("/v1/agent/schedulers").0, 400);
    let told = |address: &str| {
        let path = format!("/v1/agent/servers?address={address}");
        setup.lone.agent.put(&path, &json!({})).unwrap()
    };
    assert_eq!(told(&server).0, 200);
    let (status, words) = told("203.0.113.7:4647");
    assert_eq!(status, 501);
    assert!(words.contains("client { servers }"), "{words}");
}
