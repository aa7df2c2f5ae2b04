//! Networks that plugins of the machine make, as people use them. The plugins are small scripts that link the namespace
//! with the host and write down how they were called. Each test is in a network namespace that it makes. Without root,
//! and without the programs that the scripts need, these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use support::netns::{leave_network, links, set_up};
use support::{Lone, until};
use tempfile::TempDir;

/// The address that the first plugin gives, and the name of its link on the host.
const ADDRESS: &str = "10.99.0.7";
const LINK: &str = "cnihost";

/// Both plugins: the first one makes a link, the second one only says that all is well.
const PLUGIN: &str = r#"#!/bin/sh
home=${0%/*}
me=${0##*/}
if [ -z "$CNI_COMMAND" ]; then
    echo "CNI $me plugin v1.2.3"
    exit
fi
read -r input
echo "$CNI_COMMAND $me $CNI_CONTAINERID $CNI_IFNAME $CNI_ARGS $input" >> "$home/../calls"
if [ "$CNI_COMMAND" = ADD ] && [ -p "$home/../hold" ]; then
    read -r go < "$home/../hold"
fi
if [ "$CNI_COMMAND" = ADD ] && [ "$me" = second ] && [ -e "$home/../full" ]; then
    echo '{"cniVersion": "1.0.0", "code": 11, "msg": "no address is left"}'
    exit 1
fi
if [ "$CNI_COMMAND" = DEL ]; then
    if [ "$me" = first ]; then
        ip link del cnihost 2> /dev/null
    fi
    exit 0
fi
if [ "$CNI_COMMAND" = ADD ] && [ "$me" = first ]; then
    set -e
    inside="nsenter --net=$CNI_NETNS"
    $inside ip link add "$CNI_IFNAME" type veth peer name cnihost netns $$
    ip addr add 10.99.0.1/24 dev cnihost
    ip link set cnihost up
    $inside ip addr add 10.99.0.7/24 dev "$CNI_IFNAME"
    $inside ip link set "$CNI_IFNAME" up
fi
echo '{"cniVersion": "1.0.0", "interfaces": [{"name": "cnihost"}, {"name": "eth0", "sandbox": "'"$CNI_NETNS"'"}],
    "ips": [{"address": "10.99.0.7/24", "interface": 1}], "dns": {"nameservers": ["10.99.0.53"]}}'
"#;

const LIST: &str = r#"{
  "cniVersion": "1.0.0", "name": "mine",
  "plugins": [{"type": "first", "mtu": 1400}, {"type": "second", "capabilities": {"portMappings": true}}]
}"#;

/// An agent that has these plugins.
struct World {
    lone: Lone,
    home: TempDir,
}

impl World {
    fn new() -> Option<World> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root makes networks");
            return None;
        }
        for program in ["nsenter", "ip"] {
            if Command::new(program).arg("-V").output().is_err() {
                eprintln!("skipped: there is no {program}");
                return None;
            }
        }
        leave_network()?;
        // Whether such links can be made here.
        set_up(&[
            "link", "add", LINK, "type", "veth", "peer", "name", "cnipeer",
        ])?;
        set_up(&["link", "del", LINK])?;
        let home = tempfile::tempdir().unwrap();
        for dir in ["bin", "config"] {
            fs::create_dir(home.path().join(dir)).unwrap();
        }
        fs::write(home.path().join("config/10-mine.conflist"), LIST).unwrap();
        for plugin in ["first", "second"] {
            let file = home.path().join("bin").join(plugin);
            fs::write(&file, PLUGIN).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let dir = home.path().display();
        let config = format!(
            "client {{\n  cni_path = \"{dir}/bin\"\n  cni_config_dir = \"{dir}/config\"\n}}\n"
        );
        let lone = Lone::configured(&config);
        lone.isolating_node()?;
        Some(World { lone, home })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// How plugins were called until now: the command and the plugin of each call.
    fn called(&self) -> Vec<String> {
        let calls = self.calls();
        let two = |call: &String| call.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
        calls.iter().map(two).collect()
    }

    /// The same in full.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn run(&self, network: &str) {
        let text = format!("job \"web\" {{\n{}\n}}\n", group(network));
        let file = self.lone.world.file("web.hcl", &text);
        self.lone
            .run(&["job", "run", "-detach", file.to_str().unwrap()])
            .ok();
    }

    /// The job's allocation, when its task is so far.
    fn alloc(&self, state: &str) -> Value {
        let agent = &self.lone.agent;
        agent.wait_for("/v1/job/web/allocations", |all| {
            let alloc = all.get(0)?;
            (alloc["TaskStates"]["t"]["State"] == state).then(|| alloc.clone())
        })
    }

    /// Another agent goes on where the one before died.
    fn next_agent_after(self, meanwhile: impl FnOnce()) -> World {
        World {
            lone: self.lone.next_agent_after(meanwhile),
            home: self.home,
        }
    }

    /// Stops the job, and waits until nothing is left of its network.
    fn stop(&self) {
        self.lone.run(&["job", "stop", "-detach", "web"]).ok();
        let networks = self.lone.world.data().join("networks");
        until(|| {
            let held = fs::read_dir(&networks).unwrap().filter_map(Result::ok);
            let is_held = held.filter(|it| it.path().is_dir()).count() > 0;
            (!is_held && !links().contains(LINK)).then_some(())
        });
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(networks.to_str().unwrap()), "{mounts}");
    }
}

/// A group with a web server in this network.
fn group(network: &str) -> String {
    format!(
        r#"
  group "g" {{
    network {{
      mode = "cni/{network}"
      port "http" {{
        static = 18095
        to     = 8080
      }}
      cni {{
        args = {{
          IP               = "{ADDRESS}"
          NOMAD_JOB_ID     = "another"
        }}
      }}
    }}
    service {{
      name         = "web"
      provider     = "nomad"
      port         = "http"
      address_mode = "alloc"
    }}
    task "t" {{
      driver = "exec"
      config {{
        command = "/bin/busybox"
        args    = ["httpd", "-f", "-p", "8080", "-h", "/local"]
      }}
      template {{
        data        = "I am {{{{ env \"NOMAD_ALLOC_ADDR_http\" }}}}\n"
        destination = "local/index.html"
      }}
    }}
  }}
"#
    )
}

/// What the job's web server answers; it may have to begin first.
fn fetch() -> String {
    until(|| {
        let answer = support::exchange(&format!("{ADDRESS}:8080"), b"GET / HTTP/1.0\r\n\r\n");
        answer.ok().filter(|(status, _)| *status == 200)
    })
    .1
}

const ADDED: [&str; 2] = ["ADD first", "ADD second"];
const CHECKED: [&str; 2] = ["CHECK first", "CHECK second"];
const TAKEN_BACK: [&str; 2] = ["DEL second", "DEL first"];

#[test]
fn network_of_plugins_outlives_agent_and_is_taken_back() {
    let Some(mut world) = World::new() else {
        return;
    };
    world.run("mine");
    let alloc = world.alloc("running");
    let id = alloc["ID"].as_str().unwrap().to_owned();
    let whole = |world: &World| world.lone.agent.get(&format!("/v1/allocation/{id}"));
    let status = whole(&world)["NetworkStatus"].clone();
    assert_eq!(status["Address"], ADDRESS, "{status}");
    assert_eq!(status["InterfaceName"], "eth0", "{status}");
    assert_eq!(status["DNS"]["Servers"][0], "10.99.0.53", "{status}");
    assert_eq!(fetch(), format!("I am {ADDRESS}:8080\n"));
    let service = world.lone.agent.get("/v1/service/web");
    assert_eq!(service[0]["Address"], ADDRESS, "{service}");
    let resolv = [
        "alloc",
        "exec",
        &id,
        "/bin/cat",
        "/etc/resolv.conf",
        "/etc/hosts",
    ];
    let seen = world.lone.run(&resolv).ok();
    assert!(
        seen.contains("nameserver 10.99.0.53") && seen.contains(ADDRESS),
        "{seen}"
    );
    assert_eq!(world.called(), ADDED);
    let calls = world.calls();
    let mine = format!(
        " {id} eth0 IgnoreUnknown=1;IP={ADDRESS};NOMAD_ALLOC_ID={id};NOMAD_GROUP_NAME=g;NOMAD_JOB_ID=web;"
    );
    for call in &calls {
        assert!(call.contains(&mine), "{call}");
        assert!(call.contains(r#""name":"mine""#), "{call}");
    }
    assert!(
        calls[0].contains(r#""mtu":1400"#) && !calls[0].contains("runtimeConfig"),
        "{calls:?}"
    );
    let reported = [
        r#""hostPort":18095"#,
        r#""containerPort":8080"#,
        r#""prevResult":{"#,
    ];
    assert!(
        reported.iter().all(|reported| calls[1].contains(reported)),
        "{calls:?}"
    );
    // Killed and started anew, twice, each time when it asked both plugins.
    for restarts in 1..=2 {
        world = world.next_agent_after(|| assert!(fetch().starts_with("I am")));
        world.alloc("running");
        assert_eq!(whole(&world)["NetworkStatus"], status);
        assert_eq!(fetch(), format!("I am {ADDRESS}:8080\n"));
        let calls = ADDED.len() + restarts * CHECKED.len();
        until(|| (world.called().len() >= calls).then_some(()));
    }
    world.stop();
    let all: Vec<&str> = [ADDED, CHECKED, CHECKED, TAKEN_BACK].concat();
    assert_eq!(world.called(), all);
    let last = world.calls();
    assert!(last[6].contains(r#""prevResult":{"#), "{last:?}");
    world.lone.purge("web");
}

#[test]
fn network_that_was_half_made_when_agent_died_is_taken_back_first() {
    let Some(world) = World::new() else { return };
    let hold = world.file("hold");
    assert!(
        Command::new("mkfifo")
            .arg(&hold)
            .status()
            .unwrap()
            .success()
    );
    world.run("mine");
    until(|| (world.called() == ["ADD first"]).then_some(()));
    // The plugin outlives its agent, and ends while the next one wants to make the network.
    let world = world.next_agent_after(|| ());
    let held = fs::File::options().read(true).write(true).open(&hold);
    let mut held = held.unwrap();
    fs::remove_file(&hold).unwrap();
    held.write_all(b"go\n").unwrap();
    world.alloc("running");
    assert!(fetch().starts_with("I am"));
    let all = [&["ADD first"], &TAKEN_BACK[..], &ADDED[..]].concat();
    assert_eq!(world.called(), all);
    world.stop();
}

#[test]
fn failed_cni_network_is_reported_and_leaves_nothing() {
    let Some(world) = World::new() else { return };
    fs::write(world.file("full"), "").unwrap();
    world.run("mine");
    let why = world.lone.agent.wait_for("/v1/job/web/allocations", |all| {
        let text = all.to_string();
        text.contains("no address is left").then_some(text)
    });
    assert!(why.contains("CNI plugin second (ADD)"), "{why}");
    assert_eq!(world.called()[..4], [ADDED, TAKEN_BACK].concat());
    world.stop();
}

#[test]
fn job_is_placed_only_where_its_network_is_described() {
    let Some(world) = World::new() else { return };
    let evals = "/v1/job/web/evaluations";
    world.run("other");
    world.lone.agent.wait_for(evals, |all| {
        let text = all.to_string();
        let reported = text.contains("missing network mode") && text.contains("cni/other");
        reported.then_some(())
    });
    let nodes = world.lone.agent.get("/v1/nodes");
    let node = format!("/v1/node/{}", nodes[0]["ID"].as_str().unwrap());
    let version = |node: &Value| {
        let version = &node["Attributes"]["plugins.cni.version.first"];
        (version == "v1.2.3").then_some(())
    };
    world.lone.agent.wait_for(&node, version);
    assert_eq!(world.called(), [""; 0]);
    world.stop();
}
