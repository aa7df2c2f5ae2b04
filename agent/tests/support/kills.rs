//! What the tests have in common that kill an agent again and again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{Agent, Dice};

/// A number of the environment.
pub fn env_number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Lets some time pass without a clock: a number of system calls.
pub fn spin(rounds: u64) {
    for _ in 0..rounds {
        std::thread::yield_now();
    }
}

/// Something that an operator may do to an allocation. It may be refused, and the agent may die over it. Returns
/// whether there is any.
pub fn disturb(agent: &Agent, dice: &mut Dice) -> bool {
    let allocs = agent.get("/v1/allocations");
    let allocs = allocs.as_array().unwrap();
    let wanted = allocs.iter().filter(|it| it["DesiredStatus"] == "run");
    let alive: Vec<&Value> = wanted.collect();
    if alive.is_empty() {
        return false;
    }
    let at = usize::try_from(dice.below(alive.len() as u64)).unwrap();
    let id = alive[at]["ID"].as_str().unwrap();
    let nothing = json!({});
    match dice.below(6) {
        0 | 1 => agent.put(&format!("/v1/client/allocation/{id}/restart"), &nothing),
        2 => agent.put(&format!("/v1/allocation/{id}/stop"), &nothing),
        3 => agent.put(
            &format!("/v1/client/allocation/{id}/signal"),
            &json!({"Signal": "SIGINT"}),
        ),
        4 => agent.put(
            &format!("/v1/client/allocation/{id}/signal"),
            &json!({"Signal": "SIGKILL"}),
        ),
        _ => agent.put("/v1/system/gc", &nothing),
    };
    true
}

/// How many allocations run that are to.
pub fn running(allocs: &Value) -> usize {
    let running =
        |alloc: &&Value| alloc["ClientStatus"] == "running" && alloc["DesiredStatus"] == "run";
    allocs.as_array().unwrap().iter().filter(running).count()
}

/// Stops a job, and waits until all that it ran is over.
pub fn stop_everything(agent: &Agent, job: &str) {
    let stopped = agent.delete(&format!("/v1/job/{job}?purge=false"));
    assert_eq!(stopped.map(|(status, _)| status), Some(200));
    agent.wait_for("/v1/allocations", |allocs| {
        let over = |alloc: &Value| {
            let tasks = alloc["TaskStates"].as_object();
            tasks.is_some_and(|tasks| tasks.values().all(|task| task["State"] == "dead"))
        };
        allocs.as_array().unwrap().iter().all(over).then_some(())
    });
}

/// Every line that a task of these allocations says it wrote is in the logs that are left, once, whole and in order. A line is `RUN line
/// NUMBER end`; how many a run wrote is in the file `count.RUN`.
pub fn check_lines(data: &Path, notes: &Path, of: impl Fn(&String) -> bool) {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut lines = 0;
    for log in logs(data, of) {
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [run, "line", number, "end"] = words.as_slice() else {
                panic!("a torn line: {line:?}")
            };
            let number: u64 = number.parse().unwrap();
            let before = last.insert((*run).to_owned(), number).unwrap_or(0);
            assert_eq!(number, before + 1, "run {run}: after line {before}");
            lines += 1;
        }
    }
    for (run, number) in &last {
        let count = fs::read_to_string(notes.join(format!("count.{run}")));
        let count = count.ok().and_then(|count| count.trim().parse().ok());
        let count: u64 = count.unwrap_or(0);
        assert!(
            *number >= count,
            "run {run} wrote {count} lines, and {number} are there"
        );
    }
    assert!(lines > 0, "no lines are left");
    eprintln!("{lines} lines of {} runs are complete", last.len());
}

/// The standard output of every task, its files put together.
pub fn logs(data: &Path, of: impl Fn(&String) -> bool) -> Vec<String> {
    let mut logs = Vec::new();
    for alloc in fs::read_dir(data.join("alloc")).unwrap() {
        let alloc = alloc.unwrap();
        if !of(&alloc.file_name().to_string_lossy().into_owned()) {
            continue;
        }
        let dir = alloc.path().join("alloc/logs");
        let mut of_tasks: BTreeMap<String, Vec<(u64, PathBuf)>> = BTreeMap::new();
        let files = fs::read_dir(&dir).into_iter().flatten();
        for file in files.map(|file| file.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let Some((task, number)) = name.split_once(".stdout.") else {
                continue;
            };
            let number = number.parse().unwrap();
            of_tasks
                .entry(task.to_owned())
                .or_default()
                .push((number, file));
        }
        for mut files in of_tasks.into_values() {
            files.sort();
            let files = files.iter();
            logs.push(
                files
                    .map(|(_, file)| fs::read_to_string(file).unwrap())
                    .collect(),
            );
        }
    }
    logs
}

/// A process that is none of the agent's business.
pub struct Stranger(Child);

impl Stranger {
    pub fn start() -> Stranger {
        let child = Command::new("sleep")
            .arg("100000")
            .stdin(Stdio::null())
            .spawn();
        Stranger(child.unwrap())
    }

    /// Fails if it was signalled.
    pub fn must_be_untouched(mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "a stranger was signalled");
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // Dead already, where something is wrong.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
