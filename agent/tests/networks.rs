//! Networks of groups of their own, as people use them. Each test is in a network namespace that it makes, with all
//! that it starts, so that nothing of the machine's network changes. Without root these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../io-real/tests/common/engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod engine;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use engine::Engine;
use serde_json::Value;
use support::netns::{has_port_link, leave_network, links, set_up};
use support::{Lone, TIMEOUT, until};

/// An address of the host that is none of its loopback's.
const HOST: &str = "10.9.0.1";

const CONFIG: &str = r#"
client {
  host_network "public" {
    cidr           = "10.9.1.0/24"
    reserved_ports = "18081"
  }
}
"#;

/// Puts this thread, and what it starts, into a network of its own, and starts an agent there that can make networks.
fn agent() -> Option<Lone> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root makes networks");
        return None;
    }
    leave_network()?;
    for address in ["10.9.0.1/32", "10.9.1.1/24"] {
        set_up(&["addr", "add", address, "dev", "lo"])?;
    }
    let lone = Lone::configured(CONFIG);
    if let Some(fault) = fault(&lone) {
        eprintln!("skipped: {fault}");
        return None;
    }
    Some(lone)
}

/// Why an agent makes no networks behind a bridge, if it makes none.
fn fault(lone: &Lone) -> Option<String> {
    let node = lone.agent.wait_for("/v1/nodes?resources=true", |nodes| {
        let node = nodes.get(0)?.clone();
        (node["Drivers"]["exec"]["Healthy"] == true).then_some(node)
    });
    let node = lone
        .agent
        .get(&format!("/v1/node/{}", node["ID"].as_str().unwrap()));
    let fault = node["Attributes"]["network.bridge.fault"].as_str();
    fault.map(str::to_owned)
}

/// What a program of the tests prints, if it works.
fn run(words: &[&str]) -> Option<String> {
    let done = Command::new(words[0]).args(&words[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    done.status.success().then_some(text)
}

fn web(name: &str, number: u16, network: &str) -> String {
    format!(
        r#"
  group "{name}" {{
    network {{
      mode = "bridge"
      port "http" {{
        static = {number}
        to     = 8080
        {network}
      }}
    }}
    service {{
      name         = "{name}"
      provider     = "nomad"
      port         = "http"
      address_mode = "alloc"
      check {{
        type     = "http"
        path     = "/"
        interval = "1s"
        timeout  = "5s"
      }}
    }}
    task "t" {{
      driver = "exec"
      config {{
        command = "/bin/busybox"
        args    = ["httpd", "-f", "-p", "8080", "-h", "/local"]
      }}
      template {{
        data        = "I am {name} at {{{{ env \"NOMAD_ALLOC_ADDR_http\" }}}}\n"
        destination = "local/index.html"
      }}
    }}
  }}
"#
    )
}

fn submit(lone: &Lone, name: &str, groups: &str) {
    let file = lone.world.file(
        &format!("{name}.hcl"),
        &format!("job \"{name}\" {{{groups}}}\n"),
    );
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
}

/// The allocations of a job, when the task of each is so far.
fn allocs(lone: &Lone, job: &str, count: usize, state: &str) -> Vec<Value> {
    let path = format!("/v1/job/{job}/allocations");
    lone.agent.wait_for(&path, |all| {
        let all = all.as_array()?;
        let far = all
            .iter()
            .filter(|alloc| alloc["TaskStates"]["t"]["State"] == state);
        (far.count() == count).then(|| all.clone())
    })
}

/// The address that an allocation has, as the API tells it.
fn address(lone: &Lone, alloc: &Value) -> String {
    let whole = lone
        .agent
        .get(&format!("/v1/allocation/{}", alloc["ID"].as_str().unwrap()));
    assert_eq!(whole["NetworkStatus"]["InterfaceName"], "eth0", "{whole}");
    whole["NetworkStatus"]["Address"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// What a web server answers; it may have to begin first.
fn fetch(at: &str) -> String {
    let until = std::time::Instant::now() + TIMEOUT;
    loop {
        if let Ok((200, body)) = support::exchange(at, b"GET / HTTP/1.0\r\n\r\n") {
            return body;
        }
        assert!(std::time::Instant::now() < until, "nobody serves at {at}");
        std::thread::yield_now();
    }
}

/// Waits until nothing of any network is left on the host but the bridge and its rules.
fn left_clean(lone: &Lone) {
    let until = std::time::Instant::now() + TIMEOUT;
    let dirs = lone.world.data().join("networks");
    loop {
        let held = fs::read_dir(&dirs).unwrap().filter_map(Result::ok);
        let held: Vec<_> = held
            .filter(|it| it.path().is_dir())
            .map(|it| it.path())
            .collect();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounted = mounts.contains(dirs.to_str().unwrap());
        let links = links();
        let rules = run(&["nft", "list", "map", "ip", "drover", "forwards"]).unwrap_or_default();
        let clean = held.is_empty() && !mounted && !has_port_link(&links);
        if clean && !rules.contains("elements") {
            return;
        }
        assert!(
            std::time::Instant::now() < until,
            "left: {held:?}, mounted: {mounted}, {links}, {rules}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn web_servers_behind_bridge_are_reached_and_leave_nothing() {
    let Some(lone) = agent() else { return };
    let groups = [web("one", 18080, ""), web("two", 18082, "")].concat();
    submit(&lone, "web", &groups);
    let running = allocs(&lone, "web", 2, "running");
    assert!(
        has_port_link(&links()),
        "what is looked for in the end is there"
    );
    for (group, port) in [("one", 18080), ("two", 18082)] {
        let alloc = running.iter().find(|it| it["TaskGroup"] == group).unwrap();
        let own = address(&lone, alloc);
        let expected = format!("I am {group} at {own}:8080\n");
        for host in ["127.0.0.1", HOST, "10.9.1.1", "172.26.64.1"] {
            assert_eq!(fetch(&format!("{host}:{port}")), expected, "{host}");
        }
        assert_eq!(fetch(&format!("{own}:8080")), expected);
        // By the host's port back to itself, and to its neighbour.
        let id = alloc["ID"].as_str().unwrap();
        let other = if port == 18080 { 18082 } else { 18080 };
        for at in [port, other] {
            let url = format!("http://{HOST}:{at}/");
            let words = ["alloc", "exec", id, "/bin/busybox", "wget", "-qO-", &url];
            assert!(lone.run(&words).ok().starts_with("I am"), "{group} to {at}");
        }
        let hosts = lone
            .run(&["alloc", "exec", id, "/bin/cat", "/etc/hosts"])
            .ok();
        let short = id.get(..8).unwrap();
        assert!(hosts.contains(&format!("{own} {short}")), "{hosts}");
        // The host's own loopback is none of theirs.
        let api = format!(
            "http://172.26.64.1:{}/",
            lone.agent.addr.rsplit(':').next().unwrap()
        );
        let refused = lone.run(&["alloc", "exec", id, "/bin/busybox", "wget", "-qO-", &api]);
        refused.failed();
    }
    let service = lone.agent.get("/v1/service/one");
    let own = running.iter().find(|it| it["TaskGroup"] == "one").unwrap();
    assert_eq!(service[0]["Address"], address(&lone, own));
    assert_eq!(service[0]["Port"], 8080);
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&lone, "web", 2, "dead");
    left_clean(&lone);
    lone.purge("web");
}

#[test]
fn network_outlives_agent_with_its_connections() {
    let Some(mut lone) = agent() else { return };
    let group = r#"
  group "g" {
    network {
      mode = "bridge"
      port "echo" { static = 18090 }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/busybox"
        args    = ["nc", "-ll", "-p", "18090", "-e", "/bin/cat"]
      }
    }
  }
"#;
    submit(&lone, "echo", group);
    let running = allocs(&lone, "echo", 1, "running");
    let before = address(&lone, &running[0]);
    let until = std::time::Instant::now() + TIMEOUT;
    let open = loop {
        match TcpStream::connect((HOST, 18090)) {
            Ok(open) if say(&open, "first") => break open,
            _ => assert!(std::time::Instant::now() < until, "nobody echoes"),
        }
        std::thread::yield_now();
    };
    for _ in 0..3 {
        lone = lone.next_agent();
        let running = allocs(&lone, "echo", 1, "running");
        assert_eq!(address(&lone, &running[0]), before);
        assert!(say(&open, "again"));
    }
    assert!(TcpStream::connect((HOST, 18090)).is_ok_and(|new| say(&new, "new")));
    lone.run(&["job", "stop", "-detach", "echo"]).ok();
    allocs(&lone, "echo", 1, "dead");
    left_clean(&lone);
}

/// Whether what is said comes back.
fn say(connection: &TcpStream, words: &str) -> bool {
    connection.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut both = connection;
    let mut line = String::new();
    let sent = both.write_all(format!("{words}\n").as_bytes());
    sent.is_ok() && BufReader::new(connection).read_line(&mut line).is_ok() && line.trim() == words
}

#[test]
fn group_without_network_has_loopback_alone() {
    let Some(lone) = agent() else { return };
    let group = |driver: &str| {
        format!(
            r#"
  group "{driver}" {{
    network {{
      mode     = "none"
      hostname = "lonely"
      dns {{
        servers  = ["10.0.0.53"]
        searches = ["a.example"]
      }}
    }}
    task "t" {{
      driver = "{driver}"
      config {{
        command = "/bin/sleep"
        args    = ["1000"]
      }}
    }}
  }}
"#
        )
    };
    submit(&lone, "none", &[group("exec"), group("raw_exec")].concat());
    for alloc in allocs(&lone, "none", 2, "running") {
        let id = alloc["ID"].as_str().unwrap();
        let script = "/bin/busybox hostname; /bin/busybox ip -o link; /bin/busybox ip -o addr; cat /etc/resolv.conf";
        let seen = lone
            .run(&["alloc", "exec", id, "/bin/sh", "-c", script])
            .ok();
        assert!(seen.starts_with("lonely\n"), "{seen}");
        assert!(
            seen.contains("127.0.0.1") && seen.contains("LOOPBACK,UP"),
            "{seen}"
        );
        assert!(!seen.contains("eth0") && !seen.contains(HOST), "{seen}");
        if alloc["TaskGroup"] == "exec" {
            assert!(
                seen.ends_with("search a.example\nnameserver 10.0.0.53"),
                "{seen}"
            );
        }
    }
    lone.run(&["job", "stop", "-detach", "none"]).ok();
    allocs(&lone, "none", 2, "dead");
    left_clean(&lone);
}

/// A program that is ended when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Another machine: a network of its own, from which the host is reached at 10.9.2.1.
struct Elsewhere {
    _program: Ended,
    pid: String,
}

impl Elsewhere {
    fn new() -> Elsewhere {
        let mut program = Command::new("unshare");
        program.args(["-n", "/bin/sh", "-c", "echo ready; exec sleep 1000"]);
        let mut program = Ended(program.stdout(Stdio::piped()).spawn().unwrap());
        let mut ready = [0; 6];
        let mut out = program.0.stdout.take().unwrap();
        out.read_exact(&mut ready).unwrap();
        let pid = program.0.id().to_string();
        let inside = ["nsenter", "-n", "-t", &pid];
        for words in [
            &[
                "ip", "link", "add", "out0", "type", "veth", "peer", "name", "in0", "netns", &pid,
            ][..],
            &["ip", "addr", "add", "10.9.2.1/24", "dev", "out0"],
            &["ip", "link", "set", "out0", "up"],
            &[
                &inside[..],
                &["ip", "addr", "add", "10.9.2.2/24", "dev", "in0"],
            ]
            .concat(),
            &[&inside[..], &["ip", "link", "set", "in0", "up"]].concat(),
            &[
                &inside[..],
                &["ip", "route", "add", "default", "via", "10.9.2.1"],
            ]
            .concat(),
        ] {
            run(words).unwrap_or_else(|| panic!("{words:?} fails"));
        }
        Elsewhere {
            _program: program,
            pid,
        }
    }

    /// What is served at a URL, as seen from there.
    fn fetch(&self, url: &str) -> Option<String> {
        run(&[
            "nsenter",
            "-n",
            "-t",
            &self.pid,
            "curl",
            "-sf",
            "--max-time",
            "5",
            url,
        ])
    }
}

#[test]
fn published_port_is_reached_from_elsewhere_though_host_drops_forwarding() {
    let Some(lone) = agent() else { return };
    // Docker's way: its policy, by the program that it uses.
    if run(&["iptables", "-P", "FORWARD", "DROP"]).is_none() {
        eprintln!("skipped: there is no iptables");
        return;
    }
    let elsewhere = Elsewhere::new();
    submit(&lone, "web", &web("one", 18080, ""));
    let running = allocs(&lone, "web", 1, "running");
    let own = address(&lone, &running[0]);
    assert!(fetch(&format!("{HOST}:18080")).starts_with("I am one"));
    let body = elsewhere.fetch("http://10.9.2.1:18080/");
    let body = body.expect("the port is published");
    assert!(body.starts_with("I am one"), "{body}");
    // What is not published is not reached from elsewhere, also by whoever knows the way.
    assert_eq!(elsewhere.fetch(&format!("http://{own}:8080/")), None);
    let rules = run(&["iptables", "-S", "FORWARD"]).expect("iptables reads its table as ever");
    assert!(rules.contains("-A FORWARD -i drover -j ACCEPT"), "{rules}");
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&lone, "web", 1, "dead");
    left_clean(&lone);
    assert_eq!(elsewhere.fetch("http://10.9.2.1:18080/"), None);
}

#[test]
fn published_port_is_reached_from_elsewhere_beside_docker_engine() {
    let Some(lone) = agent() else { return };
    // An engine drops what is forwarded if it is the one that has the host forward at all.
    fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap();
    let Some(_engine) = Engine::start_with_rules() else {
        return;
    };
    let rules = run(&["iptables", "-S"]).expect("the engine has rules");
    assert!(rules.contains("-P FORWARD DROP"), "{rules}");
    let elsewhere = Elsewhere::new();
    submit(&lone, "web", &web("one", 18080, ""));
    let running = allocs(&lone, "web", 1, "running");
    let own = address(&lone, &running[0]);
    let is_reached = || {
        let body = elsewhere.fetch("http://10.9.2.1:18080/")?;
        body.starts_with("I am one").then_some(())
    };
    until(is_reached);
    assert_eq!(elsewhere.fetch(&format!("http://{own}:8080/")), None);
    let rules = || run(&["iptables", "-S", "DOCKER-USER"]).unwrap();
    let ours = "-A DOCKER-USER -i drover -j ACCEPT";
    assert!(rules().contains(ours), "{}", rules());
    // An operator's script that begins anew.
    run(&["iptables", "-F", "DOCKER-USER"]).unwrap();
    until(|| rules().contains(ours).then_some(()));
    until(is_reached);
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&lone, "web", 1, "dead");
    left_clean(&lone);
}

#[test]
fn second_agent_with_same_bridge_touches_nothing() {
    let Some(mut first) = agent() else { return };
    submit(&first, "web", &web("one", 18080, ""));
    allocs(&first, "web", 1, "running");
    let is_reached = || assert!(fetch(&format!("{HOST}:18080")).starts_with("I am one"));
    is_reached();
    let second = Lone::configured(CONFIG);
    // It is found out beside other things.
    let why = until(|| fault(&second));
    assert!(why.contains("another agent on this host uses"), "{why}");
    assert!(why.contains("bridge_network_name"), "{why}");
    is_reached();
    submit(&second, "web", &web("two", 18082, ""));
    second.agent.wait_for("/v1/job/web/evaluations", |all| {
        all.to_string().contains("network mode").then_some(())
    });
    // The first one is down, and its tasks are not.
    let mut second = Some(second);
    first = first.next_agent_after(|| {
        second = second.take().map(Lone::next_agent);
        let why = until(|| fault(second.as_ref().unwrap()));
        assert!(why.contains("networks of another agent"), "{why}");
        is_reached();
    });
    allocs(&first, "web", 1, "running");
    is_reached();
    first.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&first, "web", 1, "dead");
    left_clean(&first);
    drop(first);
    let second = second.unwrap().next_agent();
    assert_eq!(fault(&second), None);
    submit(&second, "web", &web("two", 18082, ""));
    allocs(&second, "web", 1, "running");
    assert!(fetch(&format!("{HOST}:18082")).starts_with("I am two"));
    second.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&second, "web", 1, "dead");
    left_clean(&second);
}

#[test]
fn ports_are_published_again_when_somebody_removed_the_rules() {
    let Some(mut lone) = agent() else { return };
    let flush = || run(&["nft", "flush", "ruleset"]);
    if flush().is_none() {
        eprintln!("skipped: there is no nft");
        return;
    }
    let groups = [web("one", 18080, ""), web("two", 18082, "")].concat();
    submit(&lone, "web", &groups);
    allocs(&lone, "web", 2, "running");
    let are_reached = || {
        for (group, port) in [("one", 18080), ("two", 18082)] {
            let body = fetch(&format!("{HOST}:{port}"));
            assert!(body.starts_with(&format!("I am {group}")), "{body}");
        }
    };
    are_reached();
    flush().unwrap();
    are_reached();
    // While nobody sees it.
    lone = lone.next_agent_after(|| assert!(flush().is_some()));
    are_reached();
    flush().unwrap();
    are_reached();
    // What leads nowhere is told, and removed if that is asked for.
    let element = "{ 0.0.0.0 . tcp . 9999 : 172.26.64.77 . 80 }";
    run(&["nft", "add", "element", "ip", "drover", "forwards", element]).unwrap();
    let audit = lone.agent.get("/v1/agent/audit");
    let mut all = audit.as_array().unwrap().iter();
    let stale = all.find(|it| it["Name"] == "rule tcp 0.0.0.0:9999 to 172.26.64.77:80");
    assert_eq!(stale.unwrap()["Owner"], "leaked", "{audit}");
    lone.run(&["system", "audit", "-fix"]).ok();
    let rules = run(&["nft", "list", "map", "ip", "drover", "forwards"]).unwrap();
    assert!(
        !rules.contains("9999") && rules.contains("18080"),
        "{rules}"
    );
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&lone, "web", 2, "dead");
    left_clean(&lone);
    lone.purge("web");
}

#[test]
fn port_is_held_for_one_address_of_the_host() {
    let Some(lone) = agent() else { return };
    let public = "host_network = \"public\"";
    let groups = [web("one", 18080, ""), web("two", 18080, public)].concat();
    submit(&lone, "web", &groups);
    allocs(&lone, "web", 2, "running");
    assert!(fetch("10.9.1.1:18080").starts_with("I am two"));
    assert!(fetch("10.9.0.1:18080").starts_with("I am one"));
    let file = lone.world.file(
        "kept.hcl",
        &format!("job \"kept\" {{{}}}\n", web("kept", 18081, public)),
    );
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let why = lone.agent.wait_for("/v1/job/kept/evaluations", |all| {
        let text = all.to_string();
        text.contains("reserved port collision").then_some(text)
    });
    assert!(why.contains("kept"), "{why}");
    lone.run(&["job", "stop", "-purge", "-detach", "kept"]).ok();
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    allocs(&lone, "web", 2, "dead");
    left_clean(&lone);
}

#[test]
fn agent_that_dies_while_it_makes_networks_leaves_nothing() {
    let Some(mut lone) = agent() else { return };
    for round in 0..10 {
        let name = format!("web{round}");
        submit(&lone, &name, &web("one", 18100 + round, ""));
        // Whatever it is at now.
        for _ in 0..u32::from(round) * 400 {
            std::thread::yield_now();
        }
        lone = lone.next_agent();
        allocs(&lone, &name, 1, "running");
        assert!(fetch(&format!("{HOST}:{}", 18100 + round)).starts_with("I am one"));
    }
    for round in 0..10 {
        lone.run(&["job", "stop", "-detach", &format!("web{round}")])
            .ok();
        lone = lone.next_agent();
    }
    left_clean(&lone);
    let bridge = Path::new("/sys/class/net/drover");
    assert!(bridge.exists() || run(&["ip", "link", "show", "drover"]).is_some());
}
