//! The measuring client of `bench/everyday.sh`, `bench/cluster.sh` and `bench/isolation.sh`: what people, their programs
//! and servers do all day, asked of any agent that speaks Nomad's API, so that two of them can be compared.
//!
//! Each command prints one line of numbers. Times are in microseconds unless stated otherwise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::zombie_processes,
    reason = "a benchmark may panic, and leaves the agent to the script that called it"
)]

mod api;
mod cluster;
mod fleet;
mod isolation;
mod jobs;
mod life;
mod lists;
mod logs;
mod session;
mod stream;
mod tasks;

use std::env;

use api::Api;
use isolation::{cpusets, docker, lives, networks};

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // What runs as a task of the measured agent.
    match args.as_slice() {
        ["answer", port] => return tasks::answer(port.parse().unwrap()),
        ["stamp", socket] => return tasks::stamp(socket),
        ["chatter", count, millis] => {
            return tasks::chatter(count.parse().unwrap(), millis.parse().unwrap());
        }
        ["until", moment] => return cluster::until(moment.parse().unwrap()),
        ["wait", millis] => return cluster::rest(millis.parse().unwrap()),
        ["figures", addr, file] => return cluster::figures(addr, file),
        ["bulk", mebibytes] => return tasks::bulk(mebibytes.parse().unwrap()),
        _ => {}
    }
    let [name, addr, rest @ ..] = args.as_slice() else {
        println!("this is a part of bench/everyday.sh, cluster.sh and isolation.sh: run these");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        if !measure_isolation(name, addr, rest).await {
            measure(name, addr, rest).await;
        }
    });
}

/// What `bench/isolation.sh` asks for; whether it is that.
async fn measure_isolation(name: &str, addr: &str, rest: &[&str]) -> bool {
    let number = |text: &str| text.parse::<u64>().expect("no number");
    match (name, rest) {
        ("lacks", [what, seconds]) => isolation::lacks(addr, what, number(seconds)).await,
        ("many", [job, driver, count, args @ ..]) => {
            isolation::many(addr, job, driver, number(count), args).await;
        }
        ("isolated-lives", [driver, count, seconds]) => {
            lives::lives(addr, driver, number(count), number(seconds)).await;
        }
        ("added-by-networks", [driver, count, seconds]) => {
            lives::added_by_networks(addr, driver, number(count), number(seconds)).await;
        }
        ("fits", [job, megabytes]) => lives::fits(addr, job, number(megabytes)).await,
        ("networks", [job, count]) => networks::rate(addr, job, number(count)).await,
        ("cpusets", [driver, count, seconds]) => {
            cpusets::changes(addr, driver, number(count), number(seconds)).await;
        }
        ("containers", [socket, dirs, count, seconds]) => {
            docker::starts(addr, (socket, dirs), number(count), number(seconds)).await;
        }
        ("container-services", [socket, dirs, job, count]) => {
            docker::services(addr, (socket, dirs), job, number(count)).await;
        }
        ("look", [job, seconds]) => docker::poll_each_second(addr, job, number(seconds)).await,
        ("engine-returns", [socket, job, seconds]) => {
            docker::engine_returns(addr, socket, job, number(seconds)).await;
        }
        _ => return false,
    }
    true
}

async fn measure(name: &str, addr: &str, rest: &[&str]) {
    match (name, rest) {
        ("ready", []) => api::await_node(addr).await,
        ("checks", [job, count, seconds, port]) => {
            let (count, seconds) = (count.parse().unwrap(), seconds.parse().unwrap());
            life::checks(addr, job, count, seconds, port.parse().unwrap()).await;
        }
        ("batch", [job, count]) => life::batch(addr, job, count.parse().unwrap()).await,
        ("batch-jobs", [count]) => life::batch_jobs(addr, count.parse().unwrap()).await,
        ("service", [job, count]) => life::service(addr, job, count.parse().unwrap()).await,
        ("periodic", [count]) => life::periodic(addr, count.parse().unwrap()).await,
        ("lateness", [count, socket]) => {
            life::lateness(addr, count.parse().unwrap(), socket).await;
        }
        ("plan", [groups]) => life::plan(addr, groups.parse().unwrap()).await,
        ("stop", [job]) => life::stop(&mut Api::new(addr).await, job).await,
        ("gc", []) => life::collect(addr).await,
        ("exec", []) => session::measure(addr).await,
        ("list", []) => lists::list(addr).await,
        ("meanwhile", []) => lists::meanwhile(addr).await,
        ("filter", []) => lists::filter(addr).await,
        ("rate", [what, seconds]) => lists::rate(addr, what, seconds.parse().unwrap()).await,
        ("blocking", [count]) => stream::blocking(addr, count.parse().unwrap()).await,
        ("event", []) => stream::event(addr).await,
        ("subscribers", [count]) => stream::subscribers(addr, count.parse().unwrap()).await,
        ("join", [log, "--", command @ ..]) => cluster::join(addr, log, command).await,
        ("start", [log, "--", command @ ..]) => println!("{}", cluster::start(log, command)),
        ("stay", [job, count]) => cluster::stay(addr, job, count.parse().unwrap()).await,
        ("purge", []) => cluster::purge(addr).await,
        ("placed", [count, socket]) => cluster::placed(addr, count.parse().unwrap(), socket).await,
        ("lives", [count]) => cluster::lives(addr, count.parse().unwrap()).await,
        ("together", [job, count]) => cluster::together(addr, job, count.parse().unwrap()).await,
        ("beside", [other, count, socket]) => {
            fleet::beside(addr, other, count.parse().unwrap(), socket).await;
        }
        ("pulled", [node, count]) => fleet::pulled(addr, node, count.parse().unwrap()).await,
        ("nodes", [count]) => fleet::nodes(addr, count.parse().unwrap()).await,
        ("failover", [figures, pids, seconds, agents @ ..]) => {
            fleet::failover(addr, figures, pids, seconds.parse().unwrap(), agents).await;
        }
        ("follower", []) => logs::follower(addr).await,
        ("follow", [mebibytes]) => logs::follow(addr, mebibytes.parse().unwrap()).await,
        _ => panic!("no measurement {name} {rest:?}"),
    }
}
