//! What a node of a cluster says of itself, to a model of a server and to its own users, with settings as one has them
//! for Nomad's client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../tls/tests/authority/mod.rs"]
mod authority;
#[path = "support/model.rs"]
mod model;
mod support;

use std::net::{IpAddr, SocketAddr};

use authority::Authority;
use drover_rpc::msgpack::{Raw, Value as Sent};
use drover_rpc::types::status::{ServerMember, ServerMembers};
use model::wire::server::Does;
use model::{Model, registered};
use serde_json::{Value, json};
use support::nomad::job;
use support::{Lone, Program, World, free_addr, request};
use tokio::sync::mpsc;

/// A server whose only node is an agent.
struct Setup<A = Lone> {
    lone: A,
    model: Model,
    /// The node, each time that it registers.
    registered: mpsc::UnboundedReceiver<Value>,
}

impl Setup {
    /// With more settings of the agent, and of its block `client`.
    fn new(more: &str, client: &str) -> Setup {
        Setup::by(|server| {
            Lone::configured(&format!(
                "{more}\nclient {{\n servers = [\"{server}\"]\n{client}\n}}\n"
            ))
        })
    }
}

impl<A> Setup<A> {
    /// With what this starts for the server of this address.
    fn by(start: impl FnOnce(&str) -> A) -> Setup<A> {
        let (sender, registered) = mpsc::unbounded_channel();
        let model = Model::start(move |method, body, address| {
            let Sent::Map(mut fields) = body else {
                return does(method, "", address);
            };
            if method == "Node.Register" {
                let node = fields.remove("Node").unwrap_or_default();
                drop(sender.send(serde_json::to_value(node).unwrap()));
            }
            let region = match fields.remove("Region") {
                Some(Sent::Text(region)) => region,
                _ => String::new(),
            };
            does(method, &region, address)
        });
        Setup {
            lone: start(&model.address),
            model,
            registered,
        }
    }

    /// The node as it registers, once it is so.
    fn registered(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let registered = &mut self.registered;
        self.model.run(async {
            loop {
                let node = registered.recv().await.expect("a registration");
                if is_so(&node) {
                    return node;
                }
            }
        })
    }
}

impl Setup {
    fn ask(&self, path: &str) -> (u16, String) {
        request(&self.lone.agent.addr, "GET", path, None).unwrap()
    }
}

/// Another server, which does not lead.
const OTHER: &str = "127.0.0.7:4647";

/// One of another region, where nobody leads.
const FAR: &str = "127.0.0.8:4647";

/// A server, as servers know each other.
fn server(address: &str, region: &str) -> ServerMember {
    let address: SocketAddr = address.parse().unwrap();
    let IpAddr::V4(ip) = address.ip() else {
        panic!("{address}")
    };
    let tag = |name: &str, value: String| (name.to_owned(), value);
    ServerMember {
        addr: Raw(ip.to_ipv6_mapped().octets().to_vec()),
        name: format!("{ip}.{region}"),
        port: 4648,
        status: "alive".to_owned(),
        tags: [
            tag("region", region.to_owned()),
            tag("rpc_addr", ip.to_string()),
            tag("port", address.port().to_string()),
        ]
        .into(),
        ..ServerMember::default()
    }
}

fn does(method: &str, region: &str, address: &str) -> Does {
    match method {
        "Status.Leader" if region == "far" => Does::Error("No path to region"),
        "Node.Register" | "Node.UpdateStatus" => registered(address),
        "Node.GetClientAllocs" => Does::Nothing,
        "Status.Leader" => Does::reply(&address),
        "Status.Peers" => Does::reply(&vec![address, OTHER]),
        "Status.Members" => Does::reply(&ServerMembers {
            members: vec![
                server(address, "global"),
                server(OTHER, "global"),
                server(FAR, "far"),
            ],
            server_name: "s1".to_owned(),
            server_region: "global".to_owned(),
            server_dc: "dc1".to_owned(),
        }),
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
fn exec_session_with_remote_exec_disabled_is_refused() {
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
    let server = setup.model.address.clone();
    let servers = json!([server]);
    let itself = setup.lone.agent.get("/v1/agent/self");
    assert_eq!(itself["config"]["Server"]["Enabled"], false);
    assert_eq!(itself["config"]["Client"]["Enabled"], true);
    assert_eq!(itself["config"]["Client"]["Servers"], servers);
    assert_eq!(itself["member"]["Name"], "");
    assert_eq!(setup.lone.agent.get("/v1/agent/servers"), servers);
    let health = setup.lone.agent.get("/v1/agent/health");
    assert_eq!(health, json!({ "client": { "ok": true, "message": "ok" } }));
    assert_eq!(setup.ask("/v1/agent/schedulers").0, 400);
    let reported = |address: &str| {
        let path = format!("/v1/agent/servers?address={address}");
        setup.lone.agent.put(&path, &json!({})).unwrap()
    };
    assert_eq!(reported(&server).0, 200);
    let (status, words) = reported("203.0.113.7:4647");
    assert_eq!(status, 501);
    assert!(words.contains("client { servers }"), "{words}");
}

#[test]
fn node_asks_its_servers_who_they_are() {
    let mut setup = Setup::new("", "");
    setup.registered(|_| true);
    let server = setup.model.address.clone();
    let lone = &setup.lone;
    assert_eq!(lone.agent.get("/v1/status/leader"), json!(server));
    let leader = lone.agent.get("/v1/status/leader?region=global");
    assert_eq!(leader, json!(server));
    assert_eq!(lone.agent.get("/v1/status/peers"), json!([server, OTHER]));
    let members = lone.agent.get("/v1/agent/members");
    assert_eq!(members["ServerName"], "s1");
    assert_eq!(members["ServerDC"], "dc1");
    let other = &members["Members"][1];
    assert_eq!(other["Addr"], "127.0.0.7");
    assert_eq!(other["Port"], 4648);
    assert_eq!(other["Tags"]["rpc_addr"], "127.0.0.7");
    let shown = lone.run(&["server", "members"]);
    assert_eq!(shown.code, 1, "{}", shown.err);
    assert!(shown.err.contains("region \"far\""), "{}", shown.err);
    let leads = |name: &str| {
        let mut lines = shown.out.lines();
        let line = lines.find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().any(|word| word == "true")
    };
    assert!(leads("127.0.0.1.global"), "{}", shown.out);
    assert!(!leads("127.0.0.7.global"), "{}", shown.out);
    assert!(!leads("127.0.0.8.far"), "{}", shown.out);
}

/// Servers refuse this call of a node for this reason.
fn refused(method: &'static str, why: &'static str) {
    let (asked, mut each) = mpsc::unbounded_channel();
    let model = Model::start(move |called, _, address| {
        if called == method {
            drop(asked.send(called.to_owned()));
            return Does::Error(why);
        }
        does(called, "", address)
    });
    let (world, addr) = (World::new(), free_addr());
    let agent = Program::start(world.node_of(&model.address, &addr));
    let line = agent.err_line(why);
    assert!(line.contains("WARN") && line.contains(method), "{line}");
    // It is asked again, and that is not told again.
    model.run(async { each.recv().await.unwrap() });
    model.run(async { each.recv().await.unwrap() });
    let asked = |path: &str| request(&addr, "GET", path, None).unwrap().1;
    let health = asked("/v1/agent/health");
    assert!(
        health.contains("not registered") && health.contains(why),
        "{health}"
    );
    let stats = asked("/v1/agent/self");
    assert!(stats.contains("last_error"), "{stats}");
    agent.interrupt();
    let log = agent.end().err;
    let reported = log.lines().filter(|line| line.contains(why)).count();
    assert_eq!(reported, 1, "{log}");
}

#[test]
fn node_that_servers_refuse_says_why_once() {
    refused("Node.Register", "Permission denied");
}

#[test]
fn node_of_a_region_that_servers_do_not_know_says_so_once() {
    refused("Node.Register", "No path to region");
}

#[test]
fn job_of_its_own_is_refused_with_where_to_submit_it() {
    let mut setup = Setup::new("", "");
    setup.registered(|_| true);
    let sleeper = json!({ "Job": job("sleeper", "service", "exec sleep 1000") });
    let (status, words) = setup.lone.agent.put("/v1/jobs", &sleeper).unwrap();
    assert_eq!(status, 403, "{words}");
    assert!(words.contains("submit the job to one of them"), "{words}");
    assert!(words.contains("NOMAD_ADDR"), "{words}");
    let plan = json!({ "Job": sleeper["Job"] });
    let (_, planned) = (setup.lone.agent)
        .put("/v1/job/sleeper/plan", &plan)
        .unwrap();
    assert!(planned.contains("takes no new work"), "{planned}");
    assert_eq!(setup.lone.agent.get("/v1/jobs"), json!([]));
}

/// By what a node registers, servers and Nomad's programs reach its API.
#[test]
fn node_registers_whether_its_api_speaks_tls_whatever_its_servers_do() {
    let world = World::new();
    let own = Authority::new().member("client.global");
    let put = |name: &str, text: &str| world.file(name, text).display().to_string();
    let tls = format!(
        "tls {{\n http = true\n cert_file = \"{}\"\n key_file = \"{}\"\n}}\n",
        put("cert.pem", &own.certificate),
        put("key.pem", &own.key),
    );
    let file = put("agent.hcl", &tls);
    let mut setup = Setup::by(|server| {
        let mut args = world.node_of(server, &free_addr());
        args.extend(["-config".to_owned(), file]);
        Program::start(args)
    });
    let node = setup.registered(|_| true);
    assert_eq!(node["TLSEnabled"], true, "{node}");
    let mut plain = Setup::new("", "");
    let node = plain.registered(|_| true);
    assert_eq!(node["TLSEnabled"], false, "{node}");
}
