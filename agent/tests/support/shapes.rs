//! What the program `nomad` shows of a node of ours and of Nomad's own, and of allocations on them: the same but for names,
//! numbers and times, and but for what is listed here with its reason.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::beside::{BOTH, Beside, OURS, pinned};
use crate::support::Ended;

/// Says what it does, and answers a signal.
const SCRIPT: &str = "echo out; echo err >&2; trap 'echo got usr1' USR1; echo content > local/file; \
                      while true; do sleep 0.05; done";

/// Fields of an allocation that Nomad's node fills and ours leaves empty: `docs/differences.md` says so.
const EMPTY_IN_ALLOCS: [&str; 5] = [
    ".NetworkStatus.Address",
    ".NetworkStatus.AddressIPv6",
    ".NetworkStatus.InterfaceName",
    ".NetworkStatus.DNS",
    ".TaskStates.t.Events[].Details",
];

/// Facts of a node that ours does not have: `docs/differences.md` says so.
const NOT_THERE: [&str; 6] = [
    "connect.",
    "driver.java",
    "driver.qemu",
    "plugins.host_volume.",
    "plugins.secrets.",
    "unique.platform.",
];

/// Files of a task that only Nomad's node makes.
const THEIR_FILES: [&str; 4] = [
    "executor.out",
    "private/",
    ".t.stdout.fifo",
    ".t.stderr.fifo",
];

/// A line without names, numbers and times: words in which there is a digit are `#`.
pub(crate) fn shape(line: &str) -> String {
    let word = |word: &str| {
        let has_digit = word.contains(|it: char| it.is_ascii_digit());
        if has_digit || BOTH.contains(&word) {
            "#"
        } else {
            word
        }
        .to_owned()
    };
    let words: Vec<String> = line.split_whitespace().map(word).collect();
    words.join(" ")
}

/// The words at the beginnings of lines: titles, headings of tables, and names of values.
fn titles(text: &str) -> Vec<String> {
    let title = |line: &str| match line.split_once(" = ") {
        Some((name, _)) => name.trim().to_owned(),
        None => line.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    text.lines()
        .map(title)
        .filter(|it| !it.is_empty())
        .collect()
}

/// A node of the two, and an allocation there.
struct Side<'a> {
    beside: &'a Beside,
    node: String,
    alloc: String,
}

impl Side<'_> {
    fn node(&self, words: &[&str]) -> String {
        let words = [&["node", "status"], words, &[self.node.as_str()]].concat();
        self.beside.nomad(&words).ok()
    }

    /// A command about the allocation.
    fn run(&self, before: &[&str], after: &[&str]) -> Ended {
        let words = [&["alloc"], before, &[self.alloc.as_str()], after].concat();
        self.beside.nomad(&words)
    }

    fn alloc(&self, before: &[&str], after: &[&str]) -> String {
        self.run(before, after).ok()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.beside.nomad(words).ok()).unwrap()
    }
}

pub(crate) fn commands_say_the_same(beside: &Beside) {
    let sides = BOTH.map(|name| {
        let job = pinned(&format!("side-{name}"), "service", SCRIPT, name);
        beside.submit(&job);
        let alloc = beside.alloc(&format!("side-{name}"), name, "running");
        let alloc = alloc["ID"].as_str().unwrap().to_owned();
        let node = beside.node(name);
        let side = Side {
            beside,
            node,
            alloc,
        };
        // Its trap is set then.
        crate::support::until(|| {
            (side.run(&["fs"], &["t/local/file"]).out == "content").then_some(())
        });
        side
    });
    let [ours, theirs] = &sides;
    nodes_have_the_same_facts(ours, theirs);
    allocs_have_the_same_fields(ours, theirs);
    statistics_have_a_value_below_each_name(ours, theirs);
    files_and_programs_are_reached_alike(ours, theirs);
    sides.iter().for_each(what_follows_goes_on);
    task_outcomes_are_reported_alike(ours, theirs);
    for name in BOTH {
        beside.stop(&format!("side-{name}"));
    }
}

/// All that Nomad's node says of itself, ours says too.
fn nodes_have_the_same_facts(ours: &Side<'_>, theirs: &Side<'_>) {
    for words in [&["-verbose"][..], &["-stats"], &[]] {
        let [here, there] = [ours, theirs].map(|side| titles(&side.node(words)));
        let is_missing = |title: &&String| {
            let is_table =
                title.starts_with(|it: char| it.is_ascii_digit()) || title.contains("true");
            !is_table && !here.contains(title) && !NOT_THERE.iter().any(|it| title.starts_with(it))
        };
        // Each machine has as many events, mounts and allocations as it has.
        let is_row = |title: &&String| {
            title
                .split(' ')
                .any(|word| shape(word) == "#" && word != "cpu0")
        };
        let missing: Vec<&String> = there
            .iter()
            .filter(is_missing)
            .filter(|it| !is_row(it))
            .collect();
        assert!(
            missing.is_empty(),
            "node status {words:?}: {missing:?} of {here:?}"
        );
    }
    let [here, there] =
        [ours, theirs].map(|side| side.json(&["node", "status", "-json", &side.node]));
    for driver in ["exec", "raw_exec"] {
        let [here, there] = [&here, &there].map(|node| fields(&node["Drivers"][driver]));
        assert_eq!(here, there, "{driver}");
    }
    assert_eq!(
        here["Attributes"]["os.version"],
        there["Attributes"]["os.version"]
    );
}

/// The fields of a document, and whether there is something in them; those of all elements of a list are put together.
fn fields(document: &Value) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    collect(document, "", &mut found);
    found
}

fn collect(value: &Value, path: &str, found: &mut BTreeMap<String, bool>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields
                .iter()
                .for_each(|(name, it)| collect(it, &format!("{path}.{name}"), found));
        }
        Value::Array(all) if !all.is_empty() => {
            all.iter()
                .for_each(|it| collect(it, &format!("{path}[]"), found));
        }
        value => {
            let is_set = !matches!(value, Value::Null | Value::Array(_) | Value::Object(_))
                && !matches!(value, Value::String(text) if text.is_empty());
            *found.entry(path.to_owned()).or_default() |= is_set;
        }
    }
}

/// What Nomad's node fills in an allocation, ours fills too.
fn allocs_have_the_same_fields(ours: &Side<'_>, theirs: &Side<'_>) {
    let shown = [ours, theirs].map(|side| side.json(&["alloc", "status", "-json", &side.alloc]));
    let [here, there] = shown.each_ref().map(fields);
    let is_missing = |(name, is_set): &(&String, &bool)| {
        here.get(*name).is_none_or(|here| **is_set && !here)
            && !EMPTY_IN_ALLOCS.contains(&name.as_str())
            && !name.contains("${")
    };
    let missing: Vec<_> = there.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?} of {:#}", shown[0]);
    for words in [&["status"][..], &["status", "-verbose"]] {
        let shown = [ours, theirs].map(|side| titles(&side.alloc(words, &[])));
        let names = shown.map(|all| {
            // What is used stands beside what is promised where it was measured.
            let kept = all.into_iter().map(|it| shape(&it));
            kept.filter(|it| !it.contains('#')).collect::<Vec<_>>()
        });
        assert_eq!(names[0], names[1], "alloc {words:?}");
    }
}

/// As many values as names, and all names that Nomad's node shows.
fn statistics_have_a_value_below_each_name(ours: &Side<'_>, theirs: &Side<'_>) {
    let table = |side: &Side<'_>, title: &str| {
        let text = side.alloc(&["status", "-stats"], &[]);
        let mut lines = text.lines().skip_while(|line| *line != title).skip(1);
        let columns = |line: Option<&str>| {
            let columns = line.unwrap_or_default().split("  ").map(str::trim);
            let columns = columns.filter(|it| !it.is_empty()).map(str::to_owned);
            columns.collect::<Vec<_>>()
        };
        (columns(lines.next()), columns(lines.next()))
    };
    for title in ["Memory Stats", "CPU Stats"] {
        let (names, values) = table(ours, title);
        assert!(!names.is_empty(), "no {title}");
        assert_eq!(names.len(), values.len(), "{title}: {names:?} {values:?}");
        let (expected, _) = table(theirs, title);
        let is_there = |name: &String| names.contains(name);
        assert!(expected.iter().all(is_there), "{expected:?} {names:?}");
    }
}

fn files_and_programs_are_reached_alike(ours: &Side<'_>, theirs: &Side<'_>) {
    let names = |side: &Side<'_>, path: &str| {
        let text = side.alloc(&["fs"], &[path]);
        let names = text
            .lines()
            .filter_map(|line| line.split_whitespace().next_back());
        let names = names.filter(|name| !THEIR_FILES.contains(name));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    for path in ["/", "t", "alloc/logs"] {
        assert_eq!(names(ours, path), names(theirs, path), "alloc fs {path}");
    }
    let both = |before: &[&str], after: &[&str]| {
        let [here, there] = [ours, theirs].map(|side| side.run(before, after));
        assert_eq!(
            here.code, there.code,
            "{before:?} {after:?}: {here:?} {there:?}"
        );
        [here, there]
    };
    for (before, after) in [
        (&["logs"][..], &[][..]),
        (&["logs", "-stderr"], &[]),
        (&["logs", "-tail", "-n", "1"], &[]),
        (
            &["exec", "-task", "t"],
            &["/bin/sh", "-c", "echo $NOMAD_TASK_NAME; exit 7"],
        ),
        (&["exec"], &["/bin/cat", "local/file"]),
    ] {
        let [here, there] = both(before, after);
        assert_eq!(
            (here.out, here.err),
            (there.out, there.err),
            "{before:?} {after:?}"
        );
    }
    for (before, after) in [
        (&["logs"][..], &["none"][..]),
        (&["fs"], &["t/local/none"]),
        (&["exec"], &["/no/such/program"]),
        (&["exec", "-task", "none"], &["/bin/true"]),
        (&["restart"], &["none"]),
    ] {
        let [here, _] = both(before, after);
        assert_ne!(here.code, 0, "{before:?} {after:?}");
    }
}

/// Logs and the agent's own log are followed.
fn what_follows_goes_on(side: &Side<'_>) {
    let logs = side.beside.command(&["alloc", "logs", "-f", &side.alloc]);
    logs.line("out");
    let log = side
        .beside
        .command(&["monitor", "-node-id", &side.node, "-log-level", "trace"]);
    side.alloc(&["signal", "-s", "SIGUSR1"], &[]);
    logs.line("got usr1");
    // It may follow from later on than that.
    crate::support::until(|| {
        side.alloc(&["signal", "-s", "SIGUSR1"], &[]);
        log.has_line("being sent a signal").then_some(())
    });
}

/// The events of a task that is restarted and then stopped, with all that is told of each.
fn task_outcomes_are_reported_alike(ours: &Side<'_>, theirs: &Side<'_>) {
    let [here, there] = [ours, theirs].map(|side| {
        side.alloc(&["restart"], &[]);
        let cluster = &side.beside.cluster;
        let path = format!("/v1/allocation/{}", side.alloc);
        cluster.wait(&path, |alloc| {
            let task = &alloc["TaskStates"]["t"];
            (task["State"] == "running" && task["Restarts"] == 1).then_some(())
        });
        side.alloc(&["stop", "-detach"], &[]);
        let alloc = cluster.wait(&path, |alloc| {
            (alloc["ClientStatus"] == "complete").then(|| alloc.clone())
        });
        let events = alloc["TaskStates"]["t"]["Events"]
            .as_array()
            .unwrap()
            .clone();
        let described = events.into_iter().map(|mut event| {
            event["Time"] = json!(0);
            // Nothing, or an empty map.
            if event["Details"] == json!({}) {
                event["Details"] = Value::Null;
            }
            event
        });
        // Before that each was sent as many signals as it took until one was followed, and the last ten events are kept.
        let described = described.skip_while(|event| event["Type"] != "Restart Signaled");
        described.collect::<Vec<_>>()
    });
    assert!(!here.is_empty(), "nothing is told of a restart");
    assert_eq!(here, there, "of {OURS}, and of Nomad's");
}
