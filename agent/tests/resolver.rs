//! The resolver at the bridge's address, as tasks use it: names of services, and those of elsewhere. Each test is in a
//! network namespace and has a view of the host's files that it makes, with all that it starts. Without root these
//! tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use serde_json::Value;
use support::netns::{leave_network, set_up};
use support::{Lone, TIMEOUT, World, until};

/// An address of the host, at which the server is that the host asks.
const HOST: &str = "10.9.0.1";
/// The bridge's.
const BRIDGE: &str = "172.26.64.1";

/// How long an answer is waited for before the question is put again: an agent says that it has none long before.
const EACH: Duration = Duration::from_secs(10);
/// What has a group ask the agent alone, however long that takes.
const BRIDGE_ALONE: &str = "dns { servers = [\"172.26.64.1\"] }";

const CONFIG: &str = "client {\n  bridge_network_resolver = true\n}\n";

/// A host that asks a name server at [`HOST`], with an agent.
struct Host {
    lone: Lone,
    upstream: Upstream,
    /// Its file is what the host's `/etc/resolv.conf` is.
    _files: World,
}

impl Host {
    /// Puts this thread, and what it starts, into a network and a view of files of its own.
    fn new(config: &str) -> Option<Host> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root makes networks");
            return None;
        }
        leave_network()?;
        set_up(&["addr", "add", "10.9.0.1/32", "dev", "lo"])?;
        let files = World::new();
        let resolv = files.file("resolv.conf", &format!("nameserver {HOST}\n"));
        if let Err(error) = see_instead(&resolv, Path::new("/etc/resolv.conf")) {
            eprintln!("skipped: no mounts can be made: {error}");
            return None;
        }
        let upstream = Upstream::start();
        let lone = Lone::configured(config);
        let node = lone.isolating_node()?;
        let id = node["ID"].as_str().unwrap();
        let node = lone.agent.get(&format!("/v1/node/{id}"));
        if let Some(fault) = node["Attributes"]["network.bridge.fault"].as_str() {
            eprintln!("skipped: {fault}");
            return None;
        }
        Some(Host {
            lone,
            upstream,
            _files: files,
        })
    }
}

/// Has this thread, and what it starts, see one file in place of another.
fn see_instead(file: &Path, of: &Path) -> rustix::io::Result<()> {
    // SAFETY: it is this thread's view of files alone; no descriptors become unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount_bind(file, fs::canonicalize(of).unwrap_or(of.to_owned()))
}

/// A name server that knows every name: each is at 192.0.2.7. Over packets it says that there is more to be had in a
/// connection where a name begins with `long`.
struct Upstream {
    asked: Arc<Mutex<Vec<(SocketAddr, String)>>>,
}

impl Upstream {
    fn start() -> Upstream {
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let packets = UdpSocket::bind((HOST, 53)).unwrap();
        let connections = TcpListener::bind((HOST, 53)).unwrap();
        let seen = asked.clone();
        // Both end with the test's process. Who went away meanwhile asks again.
        thread::spawn(move || {
            let mut packet = [0; 2048];
            while let Ok((length, from)) = packets.recv_from(&mut packet) {
                let question = &packet[..length];
                let name = name_of(question);
                seen.lock().unwrap().push((from, name.clone()));
                // What anybody might send who does not know the question's number.
                let mut forged = answer(question, [6, 6, 6, 6], false);
                forged[1] ^= 1;
                let _ = packets.send_to(&forged, from);
                let cut = name.starts_with("long.");
                let answer = answer(question, [192, 0, 2, 7], cut);
                let _ = packets.send_to(&answer, from);
            }
        });
        thread::spawn(move || {
            for mut connection in connections.incoming().filter_map(Result::ok) {
                let Ok(question) = receive(&mut connection) else {
                    continue;
                };
                let answer = answer(&question, [192, 0, 2, 8], false);
                let _ = send(&mut connection, &answer);
            }
        });
        Upstream { asked }
    }

    /// Who asked for a name.
    fn askers(&self, name: &str) -> Vec<SocketAddr> {
        let asked = self.asked.lock().unwrap();
        let of = asked.iter().filter(|(_, asked)| asked == name);
        of.map(|(from, _)| *from).collect()
    }
}

/// A question for the addresses of a name.
fn question(name: &str) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}

/// Where the question of a message ends.
fn end_of_question(message: &[u8]) -> usize {
    let mut at = 12;
    while message[at] != 0 {
        at += usize::from(message[at]) + 1;
    }
    at + 5
}

fn name_of(message: &[u8]) -> String {
    let mut labels = Vec::new();
    let mut at = 12;
    while message[at] != 0 {
        let end = at + 1 + usize::from(message[at]);
        labels.push(String::from_utf8_lossy(&message[at + 1..end]).into_owned());
        at = end;
    }
    labels.join(".")
}

/// An answer with this address if one of version 4 is asked for, and with nothing else; cut off if it is to be.
fn answer(question: &[u8], address: [u8; 4], cut: bool) -> Vec<u8> {
    let end = end_of_question(question);
    let is_asked = question[end - 3] == 1 && !cut;
    let mut message = question[..end].to_vec();
    message[2] = 0x81 | if cut { 2 } else { 0 };
    message[3] = 0x80;
    message[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_asked), 0, 0, 0, 0]);
    if is_asked {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        message.extend(address);
    }
    message
}

fn send(connection: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).unwrap();
    connection.write_all(&length.to_be_bytes())?;
    connection.write_all(message)
}

fn receive(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    connection.set_read_timeout(Some(EACH))?;
    let mut length = [0; 2];
    connection.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    connection.read_exact(&mut message)?;
    Ok(message)
}

/// What the agent answers to a question in a packet.
fn over_packets(name: &str) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(EACH))?;
    // Hostile packets come to nothing, and keep nobody off.
    for sent in [&[][..], &[0xff; 40], &question(name)[..20], &question(name)] {
        socket.send_to(sent, (BRIDGE, 53))?;
    }
    let mut packet = vec![0; 512];
    let (length, _) = socket.recv_from(&mut packet)?;
    packet.truncate(length);
    Ok(packet)
}

/// The same in a connection.
fn over_connection(name: &str) -> io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect((BRIDGE, 53))?;
    send(&mut connection, &question(name))?;
    receive(&mut connection)
}

/// A group with a service of its name at its own address, whose check ends with this code.
fn web(name: &str, code: u8) -> String {
    format!(
        r#"
  group "{name}" {{
    network {{
      mode = "bridge"
      port "http" {{ to = 8080 }}
    }}
    service {{
      name         = "{name}"
      tags         = ["v1"]
      provider     = "nomad"
      port         = "http"
      address_mode = "alloc"
      check {{
        type     = "script"
        task     = "t"
        command  = "/bin/busybox"
        args     = ["sh", "-c", "exit {code}"]
        interval = "1s"
        timeout  = "5s"
      }}
    }}
    task "t" {{
      driver = "exec"
      config {{
        command = "/bin/busybox"
        args    = ["sleep", "1000"]
      }}
    }}
  }}
"#
    )
}

/// A group from which a test asks.
fn client(name: &str, dns: &str) -> String {
    format!(
        r#"
  group "{name}" {{
    network {{
      mode = "bridge"
      {dns}
    }}
    task "t" {{
      driver = "exec"
      config {{
        command = "/bin/busybox"
        args    = ["sleep", "1000"]
      }}
    }}
  }}
"#
    )
}

/// Runs a job in a namespace; its allocations, when the task of each runs.
fn running(lone: &Lone, job: &str, namespace: &str, groups: &[String]) -> Vec<Value> {
    let text = format!(
        "job \"{job}\" {{\n  namespace = \"{namespace}\"\n{}}}\n",
        groups.concat()
    );
    let file = lone.world.file(&format!("{job}.hcl"), &text);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let path = format!("/v1/job/{job}/allocations?namespace={namespace}");
    lone.agent.wait_for(&path, |all| {
        let all = all.as_array()?;
        let runs = |alloc: &&Value| alloc["TaskStates"]["t"]["State"] == "running";
        (all.iter().filter(runs).count() == groups.len()).then(|| all.clone())
    })
}

fn id_of<'a>(allocs: &'a [Value], group: &str) -> &'a str {
    let alloc = allocs.iter().find(|it| it["TaskGroup"] == group);
    alloc.unwrap()["ID"].as_str().unwrap()
}

/// The address of an allocation.
fn address(lone: &Lone, id: &str) -> String {
    let alloc = lone.agent.get(&format!("/v1/allocation/{id}"));
    let address = alloc["NetworkStatus"]["Address"].as_str();
    address.unwrap().to_owned()
}

/// A namespace, and the id of an allocation of it.
type At<'a> = (&'a str, &'a str);

/// What a program in a task prints, whether it works or not.
fn inside(lone: &Lone, (namespace, id): At<'_>, words: &[&str]) -> String {
    let script = format!("/bin/busybox {} 2>&1; true", words.join(" "));
    let exec = ["alloc", "exec", "-namespace", namespace, id];
    lone.run(&[&exec[..], &["/bin/sh", "-c", &script]].concat())
        .ok()
}

/// Waits until a task is told this of the addresses of a name.
fn resolves_to(lone: &Lone, at: At<'_>, name: &str, expected: &str) {
    resolves_to_all(lone, at, ("a", name), &[expected]);
}

/// Waits until a task is told all this of a name.
fn resolves_to_all(lone: &Lone, at: At<'_>, (kind, name): (&str, &str), expected: &[&str]) {
    let mut last = String::new();
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        last = inside(lone, at, &["nslookup", &format!("-type={kind}"), name]);
        if expected.iter().all(|text| last.contains(text)) {
            return;
        }
        thread::yield_now();
    }
    panic!("{name}: not all of {expected:?} in {last}");
}

#[test]
fn services_are_found_by_name_within_their_namespace_while_they_pass() {
    let Some(host) = Host::new(CONFIG) else {
        return;
    };
    let (lone, upstream) = (host.lone, host.upstream);
    lone.run(&["namespace", "apply", "-description", "others", "other"])
        .ok();
    let alone = client("client", BRIDGE_ALONE);
    let groups = [web("web", 0), web("sick", 2), alone.clone()];
    let allocs = running(&lone, "shop", "default", &groups);
    let strangers = running(&lone, "shop", "other", &[alone]);
    let asker = ("default", id_of(&allocs, "client"));
    let stranger = ("other", id_of(&strangers, "client"));
    let own = address(&lone, id_of(&allocs, "web"));
    resolves_to(
        &lone,
        asker,
        "web.service.drover",
        &format!("Address: {own}"),
    );
    resolves_to(&lone, asker, "v1.web.service.drover", &own);
    let ports = ("srv", "web.service.drover");
    resolves_to_all(&lone, asker, ports, &["8080", ".addr.drover"]);
    // One whose check does not pass is there, and leads nowhere.
    let sick = address(&lone, id_of(&allocs, "sick"));
    let answered = inside(
        &lone,
        asker,
        &["nslookup", "-type=a", "sick.service.drover"],
    );
    assert!(
        !answered.contains(&sick) && !answered.contains("NXDOMAIN"),
        "{answered}"
    );
    resolves_to(&lone, asker, "v2.web.service.drover", "NXDOMAIN");
    resolves_to(&lone, stranger, "web.service.drover", "NXDOMAIN");
    for name in ["web.service.drover", "sick.service.drover"] {
        assert_eq!(upstream.askers(name), [], "{name}");
    }
    // Another agent answers as soon as it is there.
    let lone = lone.next_agent();
    resolves_to(&lone, asker, "web.service.drover", &own);
    end(&lone, &["default", "other"]);
}

#[test]
fn names_of_elsewhere_are_asked_of_servers_of_host() {
    let Some(host) = Host::new(CONFIG) else {
        return;
    };
    let (lone, upstream) = (host.lone, host.upstream);
    let own = "dns { servers = [\"10.0.0.53\"] }";
    let groups = [client("client", ""), client("own", own)];
    let allocs = running(&lone, "shop", "default", &groups);
    let asker = ("default", id_of(&allocs, "client"));
    let with_own = ("default", id_of(&allocs, "own"));
    let resolv = inside(&lone, asker, &["cat", "/etc/resolv.conf"]);
    let expected = format!("nameserver {BRIDGE}\nnameserver {HOST}");
    assert_eq!(resolv.trim(), expected);
    let resolv = inside(&lone, with_own, &["cat", "/etc/resolv.conf"]);
    assert_eq!(resolv.trim(), "nameserver 10.0.0.53");
    // Of the forged answer nothing is heard.
    resolves_to(&lone, asker, "www.example.org", "Address: 192.0.2.7");
    // In a connection: what is cut off in a packet, asked by whoever is behind the bridge. An agent to which the server
    // is too slow says that it has no answer.
    let packet = within(&lone, asker.1, || {
        let is_cut = |packet: &Vec<u8>| packet[2] & 2 != 0;
        until(|| over_packets("long.example.org").ok().filter(is_cut))
    });
    assert_eq!(packet[..3], [0x12, 0x34, 0x83], "cut off: {packet:?}");
    within(&lone, asker.1, || {
        let is_whole = |answer: &Vec<u8>| answer.ends_with(&[192, 0, 2, 8]);
        until(|| over_connection("long.example.org").ok().filter(is_whole))
    });
    // The agent alone asked the server: programs do that too, when they hear nothing from the agent for a while.
    let askers = upstream.askers("long.example.org");
    let behind = |from: &&SocketAddr| from.ip().to_string().starts_with("172.26.");
    assert!(!askers.is_empty(), "the agent asked");
    assert_eq!(askers.iter().find(behind), None, "{askers:?}");
    // Who is not behind the bridge is not answered, the host included.
    assert_eq!(host_answer("www.example.org"), [0; 0]);
    end(&lone, &["default"]);
}

#[test]
fn without_its_setting_nobody_listens_and_tasks_ask_as_the_host_does() {
    let Some(host) = Host::new("") else { return };
    let lone = host.lone;
    let allocs = running(&lone, "shop", "default", &[client("client", "")]);
    let asker = ("default", id_of(&allocs, "client"));
    let resolv = inside(&lone, asker, &["cat", "/etc/resolv.conf"]);
    assert_eq!(resolv.trim(), format!("nameserver {HOST}"));
    let refused = within(&lone, asker.1, || TcpStream::connect((BRIDGE, 53)));
    let refused = refused.map_err(|error| error.kind());
    assert_eq!(
        refused.map(drop),
        Err(std::io::ErrorKind::ConnectionRefused)
    );
    end(&lone, &["default"]);
}

/// What is sent to the host itself that asks for a name.
fn host_answer(name: &str) -> Vec<u8> {
    let mut connection = TcpStream::connect((BRIDGE, 53)).unwrap();
    let question = question(name);
    let length = u16::try_from(question.len()).unwrap();
    // It may be closed already.
    let _ = connection.write_all(&[&length.to_be_bytes()[..], &question].concat());
    connection.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut bytes = Vec::new();
    match connection.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    bytes
}

/// What a piece of work comes to in the network of an allocation.
fn within<T: Send + 'static>(lone: &Lone, id: &str, work: fn() -> T) -> T {
    let networks = lone.world.data().join("networks");
    let namespace = File::open(networks.join(id).join("ns")).unwrap();
    let inside = thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    });
    inside.join().unwrap()
}

/// Stops what runs, and waits until nothing of it is left.
fn end(lone: &Lone, namespaces: &[&str]) {
    for namespace in namespaces {
        let stop = ["job", "stop", "-detach", "-namespace", namespace, "shop"];
        lone.run(&stop).ok();
        let path = format!("/v1/job/shop/allocations?namespace={namespace}");
        lone.agent.wait_for(&path, |all| {
            let mut all = all.as_array()?.iter();
            all.all(|it| it["TaskStates"]["t"]["State"] == "dead")
                .then_some(())
        });
        let path = format!("/v1/job/shop?purge=true&namespace={namespace}");
        assert_eq!(
            lone.agent.delete(&path).map(|(status, _)| status),
            Some(200)
        );
    }
    let networks = lone.world.data().join("networks");
    let are_left = || {
        let mut entries = fs::read_dir(&networks).unwrap().filter_map(Result::ok);
        entries.any(|entry| entry.path().is_dir())
    };
    until(|| (!are_left()).then_some(()));
}
