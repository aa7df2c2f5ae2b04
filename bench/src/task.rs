//! What the tasks of `bench/isolation.sh` run. It is static, so that every root and every image can have it, handles no
//! signal, and looks at the clock before it does anything else.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::env;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["stamp"] => println!("{}", began.as_nanos()),
        ["stay"] => stay(began),
        ["beat", millis] => beat(millis.parse().unwrap()),
        ["load", mark] => load(mark),
        ["nothing", _] => {}
        _ => println!("this is a part of bench/isolation.sh: run that"),
    }
}

/// Says when it began, and waits.
fn stay(began: Duration) {
    println!("{}", began.as_nanos());
    loop {
        sleep(Duration::from_secs(86_400));
    }
}

/// Writes a line each so many milliseconds.
fn beat(millis: u64) {
    for number in 0_u64.. {
        println!("{number}");
        sleep(Duration::from_millis(millis));
    }
}

/// Makes processes without end, one after the other. All of them have the mark among their arguments.
fn load(mark: &str) {
    loop {
        let mut child = Command::new("/proc/self/exe");
        let ended = child.args(["nothing", mark]).status().unwrap();
        assert!(ended.success(), "a process failed: {ended}");
    }
}
