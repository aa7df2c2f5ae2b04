//! The measuring client of `bench/agent.sh`: what bash is too slow for. It knows the agent by its
//! program and its HTTP API alone, as any client does.
//!
//! Each command prints one line of numbers. Times are in microseconds unless stated otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::zombie_processes,
    reason = "a benchmark may panic, and leaves the agent to the script that called it"
)]

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// How long anything may take before the measurement is given up.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long a client rests between two looks at the state, so that looking costs the agent little.
const REST: Duration = Duration::from_millis(2);

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["stamp", socket] => stamp(socket),
        ["launch", addr, log, "--", program @ ..] => launch(addr, log, program, None),
        ["relaunch", addr, log, job, count, "--", program @ ..] => {
            launch(addr, log, program, Some((job, count.parse().unwrap())));
        }
        ["latency", addr, count, socket] => latency(addr, count.parse().unwrap(), socket),
        ["batch", addr, job, count] => batch(addr, job, count.parse().unwrap()),
        ["service", addr, job, count] => service(addr, job, count.parse().unwrap()),
        ["rate", addr, what, seconds] => rate(addr, what, seconds.parse().unwrap()),
        ["each", addr, path, seconds] => each_second(addr, path, seconds.parse().unwrap()),
        ["learn", addr, log, "--", program @ ..] => learn(addr, log, program),
        ["stop", addr, job] => stop(&mut Client::new(addr), job),
        ["forget", dir] => forget(dir),
        _ => println!("this is a part of bench/agent.sh: run that"),
    }
}

/// Removes a directory in which an agent was. Thousands of secrets may be mounted there, and `umount` reads the table of
/// all mounts for each.
fn forget(dir: &str) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let below = format!("{dir}/");
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    for point in points.filter(|point| point.starts_with(&below)) {
        // A point that lay below one that is gone is gone, too.
        let _ = rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH);
    }
    let _ = fs::remove_dir_all(dir);
}

/// One connection to the agent.
struct Client {
    host: String,
    stream: BufReader<TcpStream>,
}

impl Client {
    fn new(addr: &str) -> Client {
        Client::connect(addr).expect("the agent does not listen")
    }

    fn connect(addr: &str) -> std::io::Result<Client> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client {
            host: addr.to_owned(),
            stream: BufReader::new(stream),
        })
    }

    /// One request: the status, and the answer's body.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, Value)> {
        let (host, len) = (&self.host, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len}\r\n");
        let request = format!("{head}Content-Type: application/json\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or(std::io::ErrorKind::ConnectionReset)?;
        let mut length = 0;
        while line.trim() != "" {
            line.clear();
            self.stream.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        Ok((
            status,
            serde_json::from_slice(&answer).unwrap_or(Value::Null),
        ))
    }

    /// Asks, reads the answer and forgets it: how long it was.
    fn swallow(&mut self, request: &str, buffer: &mut [u8]) -> usize {
        let asked = self.stream.get_mut().write_all(request.as_bytes());
        asked.unwrap();
        let mut have = 0;
        let (head, length) = loop {
            let read = self.stream.get_mut().read(&mut buffer[have..]).unwrap();
            assert!(read > 0, "the agent hung up");
            have += read;
            let text = &buffer[..have];
            if let Some(end) = text.windows(4).position(|it| it == b"\r\n\r\n") {
                let head = str::from_utf8(&text[..end]).unwrap();
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
                break (
                    end + 4,
                    length.expect("no length").1.parse::<usize>().unwrap(),
                );
            }
        };
        let mut left = (head + length).saturating_sub(have);
        while left > 0 {
            let most = left.min(buffer.len());
            left -= self.stream.get_mut().read(&mut buffer[..most]).unwrap();
        }
        length
    }

    fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, "").expect("no answer").1
    }

    /// Submits a job. Returns the state's index.
    fn submit(&mut self, job: &Value) -> u64 {
        let body = json!({ "Job": job }).to_string();
        let (status, answer) = self.ask("PUT", "/v1/jobs", &body).expect("no answer");
        assert_eq!(status, 200, "the job was refused: {answer}");
        answer["Index"].as_u64().unwrap()
    }

    /// Looks at a job in the list until `done` likes it.
    fn wait_for(&mut self, job: &str, done: impl Fn(&Value) -> bool) {
        let begin = Instant::now();
        loop {
            let list = self.get(&format!("/v1/jobs?prefix={job}"));
            if done(&list[0]) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "nothing becomes of: {list}");
            sleep(REST);
        }
    }
}

fn of_group(job: &Value, what: &str) -> u64 {
    job["JobSummary"]["Summary"]["g"][what]
        .as_u64()
        .unwrap_or(0)
}

/// Small as they come: what is measured is the agent.
fn job(id: &str, kind: &str, count: u64, command: &str, args: &[&str]) -> Value {
    json!({
        "ID": id,
        "Type": kind,
        "Datacenters": ["dc1"],
        "TaskGroups": [{
            "Name": "g",
            "Count": count,
            "EphemeralDisk": { "SizeMB": 10 },
            "Tasks": [{
                "Name": "t",
                "Driver": "raw_exec",
                "Config": { "command": command, "args": args },
                "Resources": { "CPU": 1, "MemoryMB": 10 },
                "LogConfig": { "MaxFiles": 1, "MaxFileSizeMB": 5 },
            }],
        }],
    })
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// The task whose start is measured: says when it was started, and waits for its end.
fn stamp(socket: &str) {
    let now = wall().as_nanos().to_le_bytes();
    UnixDatagram::unbound()
        .and_then(|own| own.send_to(&now, socket))
        .expect("nobody wants to know");
    loop {
        sleep(TIMEOUT);
    }
}

/// Starts an agent. Prints its pid, the time until it answers, and, if tasks of a job are
/// expected, until it holds all of them again.
fn launch(addr: &str, log: &str, program: &[&str], tasks: Option<(&str, u64)>) {
    let (begin, child) = spawn(log, program);
    let mut client = loop {
        let client = Client::connect(addr);
        let asked = client.and_then(|mut client| {
            let (status, _) = client.ask("GET", "/v1/agent/self", "")?;
            Ok((status == 200).then_some(client))
        });
        if let Ok(Some(client)) = asked {
            break client;
        }
        assert!(begin.elapsed() < TIMEOUT, "the agent does not answer");
        sleep(Duration::from_micros(200));
    };
    let answered = begin.elapsed();
    let mut held = answered;
    if let Some((job, count)) = tasks {
        // It says that they run, and it has its hand on each of them.
        client.wait_for(job, |job| of_group(job, "Running") == count);
        while pidfds(child.id()) < count {
            assert!(begin.elapsed() < TIMEOUT, "the agent does not find them");
            sleep(REST);
        }
        held = begin.elapsed();
    }
    let pid = child.id();
    println!("{pid} {} {}", answered.as_micros(), held.as_micros());
}

/// Starts a program; when, and the program.
fn spawn(log: &str, program: &[&str]) -> (Instant, Child) {
    let (name, args) = program.split_first().expect("no program");
    let log = File::options().create(true).append(true).open(log).unwrap();
    let mut command = Command::new(name);
    let errors = log.try_clone().unwrap();
    command.args(args).stdin(Stdio::null());
    command.stdout(log).stderr(errors);
    let begin = Instant::now();
    (
        begin,
        command.spawn().expect("the agent's program cannot run"),
    )
}

/// How many processes an agent has handles of.
fn pidfds(pid: u32) -> u64 {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).expect("the agent is gone");
    let links = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    let handles = links.filter(|link| link.as_os_str() == "anon_inode:[pidfd]");
    u64::try_from(handles.count()).unwrap()
}

/// One allocation after the other. Prints p50 and p99 until the task's process ran, and of the
/// time until a client saw it.
fn latency(addr: &str, count: usize, socket: &str) {
    let own = env::current_exe().unwrap();
    let stamps = UnixDatagram::bind(socket).unwrap();
    stamps.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut client = Client::new(addr);
    let (mut started, mut seen) = (Vec::new(), Vec::new());
    for number in 0..count {
        let id = format!("latency-{number}");
        let command = own.to_str().unwrap();
        let job = job(&id, "service", 1, command, &["stamp", socket]);
        let begin = wall();
        let mut index = client.submit(&job);
        loop {
            let path = format!("/v1/job/{id}/allocations?index={index}&wait=60s");
            let allocs = client.get(&path);
            if allocs[0]["ClientStatus"] == "running" {
                break;
            }
            // Above what was seen already; before the first answer that is the submission.
            index = allocs[0]["ModifyIndex"]
                .as_u64()
                .map_or(index, |seen| seen.max(index));
        }
        seen.push(wall() - begin);
        let mut bytes = [0; 16];
        assert_eq!(stamps.recv(&mut bytes).expect("no task ran"), 16);
        let at = Duration::from_nanos(u64::try_from(u128::from_le_bytes(bytes)).unwrap());
        started.push(at - begin);
        stop(&mut client, &id);
    }
    let [first, last] = [50, 99].map(|percent| quantile(&mut started, percent));
    println!("{first} {last} {}", quantile(&mut seen, 50));
    fs::remove_file(socket).unwrap();
}

fn quantile(list: &mut [Duration], percent: usize) -> u128 {
    list.sort_unstable();
    list[(list.len() * percent / 100).min(list.len() - 1)].as_micros()
}

/// Runs a batch job to its end. Prints how long that took.
fn batch(addr: &str, id: &str, count: u64) {
    let mut client = Client::new(addr);
    let begin = Instant::now();
    client.submit(&job(id, "batch", count, "/bin/true", &[]));
    client.wait_for(id, |job| {
        assert_eq!(of_group(job, "Failed") + of_group(job, "Lost"), 0, "{job}");
        job["Status"] == "dead"
    });
    println!("{}", begin.elapsed().as_micros());
}

/// Starts a service. Prints how long it took until all of it ran.
fn service(addr: &str, id: &str, count: u64) {
    let mut client = Client::new(addr);
    let begin = Instant::now();
    client.submit(&job(id, "service", count, "/bin/sleep", &["86400"]));
    client.wait_for(id, |job| of_group(job, "Running") == count);
    println!("{}", begin.elapsed().as_micros());
}

/// Asks one thing again and again over one connection. Prints how many answers a second there were,
/// and the bytes of one. `alloc` is the statistics of the first running allocation.
fn rate(addr: &str, what: &str, seconds: u64) {
    let mut client = Client::new(addr);
    let path = match what {
        "alloc" => {
            let allocs = client.get("/v1/allocations");
            let mut allocs = allocs.as_array().expect("no list").iter();
            let runs = allocs.find(|alloc| alloc["ClientStatus"] == "running");
            let id = runs.expect("nothing runs")["ID"].as_str().unwrap();
            format!("/v1/client/allocation/{id}/stats")
        }
        path => path.to_owned(),
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\n\r\n");
    let mut buffer = vec![0; 1 << 20];
    let (mut count, mut bytes) = (0_u64, 0);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        bytes = client.swallow(&request, &mut buffer);
        count += 1;
    }
    let rate = u128::from(count) * 1_000_000 / begin.elapsed().as_micros();
    println!("{rate} {bytes}");
}

/// Asks once a second. Prints the bytes of the last answer.
fn each_second(addr: &str, path: &str, seconds: u64) {
    let mut client = Client::new(addr);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\n\r\n");
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    for _ in 0..seconds {
        bytes = client.swallow(&request, &mut buffer);
        sleep(Duration::from_secs(1));
    }
    println!("{bytes}");
}

/// Probes that have nothing to tell of some machines.
const QUIET: [&str; 5] = ["bridge", "cgroup", "cni", "landlock", "plugins_cni"];

/// Starts an agent. Prints its pid, and the time until every probe that has something to tell of any
/// machine told it or failed, and the driver is there.
fn learn(addr: &str, log: &str, program: &[&str]) {
    let (begin, child) = spawn(log, program);
    let is_reported = |probe: &Value| {
        let quiet = QUIET.contains(&probe["Name"].as_str().unwrap_or_default());
        quiet || probe["State"] != "ok" || probe["Known"] != 0
    };
    let knows = || {
        let mut client = Client::connect(addr).ok()?;
        let (_, nodes) = client.ask("GET", "/v1/nodes", "").ok()?;
        let path = format!("/v1/node/{}", nodes[0]["ID"].as_str()?);
        let (_, node) = client.ask("GET", &path, "").ok()?;
        let all = node["Probes"].as_array()?.iter().all(is_reported);
        Some(all && node["Attributes"]["driver.raw_exec"] == "1")
    };
    while knows() != Some(true) {
        assert!(begin.elapsed() < TIMEOUT, "not all is known");
        sleep(Duration::from_micros(500));
    }
    println!("{} {}", child.id(), begin.elapsed().as_micros());
}

/// Stops a job and waits until nothing is left of it.
fn stop(client: &mut Client, id: &str) {
    let path = format!("/v1/job/{id}?purge=true");
    client.ask("DELETE", &path, "").expect("no answer");
    client.wait_for(id, |job| job.is_null() || job["Status"] == "dead");
}
