//! The service of a unit, as a group.

use super::common;
use super::exec::{Command, chain};
use super::read::{Specifiers, Unit, at_most, words};
use crate::container::{self, capabilities};
use crate::error::{Mistake, Place, Result};
use crate::hcl::{Body, Expr};
use crate::job::{Group, Task};
use crate::measure::Duration;
use crate::text::{Text, string};

const SERVICE: &str = "Service";
/// The most files of variables.
const MAX_FILES: usize = 100;
/// The most variables of the environment.
const MAX_VARIABLES: usize = 2_000;
/// Where `exec` shows the host's files.
const SHOWN: [&str; 5] = ["/usr/", "/bin/", "/sbin/", "/lib", "/etc/"];

/// Settings that keep a service apart from the machine.
const SANDBOX: [&str; 34] = [
    "CapabilityBoundingSet",
    "InaccessiblePaths",
    "IPAddressAllow",
    "IPAddressDeny",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateIPC",
    "PrivateMounts",
    "PrivateNetwork",
    "PrivatePIDs",
    "PrivateTmp",
    "PrivateUsers",
    "ProcSubset",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHome",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "ProtectSystem",
    "ReadOnlyPaths",
    "ReadWritePaths",
    "RemoveIPC",
    "RestrictAddressFamilies",
    "RestrictFileSystems",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "SystemCallArchitectures",
    "SystemCallFilter",
];

/// Directories that systemd makes for a service: the setting, where they are, and the variable that names them.
const DIRECTORIES: [(&str, &str, &str); 5] = [
    ("RuntimeDirectory", "/run", "RUNTIME_DIRECTORY"),
    ("StateDirectory", "/var/lib", "STATE_DIRECTORY"),
    ("CacheDirectory", "/var/cache", "CACHE_DIRECTORY"),
    ("LogsDirectory", "/var/log", "LOGS_DIRECTORY"),
    ("ConfigurationDirectory", "/etc", "CONFIGURATION_DIRECTORY"),
];

/// What all tasks of the unit have in common.
struct Tasks {
    driver: &'static str,
    user: Option<String>,
    work_dir: Option<String>,
    env: Vec<(String, Text)>,
}

/// Reads the section `[Service]`.
pub(super) fn read(
    unit: &mut Unit,
    name: &str,
    is_batch: bool,
    specifiers: &Specifiers,
) -> Result<Group> {
    let mut group = Group {
        name: name.to_owned(),
        ..Group::default()
    };
    let start = commands(unit, "ExecStart", specifiers)?;
    let Some(first) = start.first() else {
        let message = "there is no ExecStart in a section [Service]: nothing can be started";
        return Err(Mistake::new(Place::default(), message));
    };
    if start.len() > 1 && !is_batch {
        let place = Place {
            line: start.get(1).map_or(0, |it| it.line),
            column: 1,
        };
        return Err(Mistake::new(
            place,
            "only a service of Type=oneshot has several ExecStart",
        ));
    }
    let mut task = Task {
        name: name.to_owned(),
        ..Task::default()
    };
    let shared = shared(unit, first, &mut task, specifiers)?;
    kind(unit, &mut task.body);
    fill(&mut task, &shared, &start);
    for file in at_most(MAX_FILES, unit.all(SERVICE, "EnvironmentFile"))? {
        environment_file(&mut task.blocks, &file.value, file.line, specifiers);
    }
    rights(unit, &mut task);
    common::ends(unit, &mut task.body, Duration::secs(30));
    common::resources(unit, &mut task.resources);
    common::restart(unit, &mut group.body, is_batch)?;
    common::longest(unit, &mut group.body, is_batch);
    reload(unit, &mut task.blocks, specifiers)?;
    if let Some(entry) = unit.last(SERVICE, "ExecStop") {
        let advice = "a task is asked to end by its kill_signal; a task with `lifecycle { hook = \"poststop\" }` runs after it";
        task.body.lost(
            entry.line,
            &format!("ExecStop={}", super::short_value(&entry.value)),
            advice,
        );
    }
    for (key, hook, ending) in [
        ("ExecStartPre", "prestart", "before"),
        ("ExecStartPost", "poststart", "after-start"),
        ("ExecStopPost", "poststop", "after-end"),
    ] {
        let commands = commands(unit, key, specifiers)?;
        if commands.is_empty() {
            continue;
        }
        let mut other = Task {
            name: format!("{name}-{ending}"),
            hook: Some(hook),
            ..Task::default()
        };
        other.body.comment(format!("{key} of the unit."));
        other.body.end_comments();
        fill(&mut other, &shared, &commands);
        other.resources.set("memory", 64_u64);
        group.tasks.push(other);
    }
    group.tasks.push(task);
    Ok(group)
}

fn commands(unit: &mut Unit, key: &str, specifiers: &Specifiers) -> Result<Vec<Command>> {
    let entries = unit.all(SERVICE, key);
    entries
        .iter()
        .map(|entry| Command::read(entry, specifiers))
        .collect()
}

/// The program of a task, its user, and its environment.
fn fill(task: &mut Task, shared: &Tasks, commands: &[Command]) {
    task.driver = shared.driver;
    if let Some(user) = &shared.user {
        task.body.set("user", user.as_str());
    }
    for command in commands {
        for remark in &command.remarks {
            task.config.remark(command.line, "The command", remark);
        }
    }
    let (program, args) = chain(commands);
    task.config.set("command", program);
    task.config.set_list("args", args);
    if let Some(directory) = &shared.work_dir {
        task.config.set("work_dir", directory.as_str());
    }
    task.env.clone_from(&shared.env);
}

/// Driver, user, directory and environment.
fn shared(
    unit: &mut Unit,
    first: &Command,
    task: &mut Task,
    specifiers: &Specifiers,
) -> Result<Tasks> {
    let user = unit
        .last(SERVICE, "User")
        .map(|entry| specifiers.replace(&entry.value).0);
    let is_dynamic = unit.flag(SERVICE, "DynamicUser")?.unwrap_or(false);
    let user = match (user, is_dynamic) {
        (_, true) => {
            task.body
                .comment("DynamicUser: the user is nobody, which other tasks may be, too.");
            Some("nobody".to_owned())
        }
        (user, false) => user,
    };
    let mut work_dir = None;
    if let Some(entry) = unit.last(SERVICE, "WorkingDirectory") {
        let path = specifiers.replace(entry.value.trim_start_matches('-')).0;
        match path.starts_with('/') {
            true => work_dir = Some(path),
            false => task
                .config
                .lost(entry.line, "WorkingDirectory", "work_dir must be absolute"),
        }
    }
    let mut env = environment(unit, &mut task.env_notes, specifiers)?;
    let has_directories = directories(unit, &mut env, &mut task.body);
    let is_root = matches!(user.as_deref(), None | Some("root" | "0"));
    let shows =
        |path: &str| !path.starts_with('/') || SHOWN.iter().any(|shown| path.starts_with(shown));
    let sees_all = first.program().is_some_and(shows) && work_dir.as_deref().is_none_or(shows);
    let (driver, why) = match (is_root, sees_all && !has_directories) {
        (true, _) => ("raw_exec", "it was root's, and sees and may do what it did"),
        (false, true) => (
            "exec",
            "it sees the host's programs, for reading only, and its own files",
        ),
        (false, false) => (
            "raw_exec",
            "it needs files of the host that exec does not show",
        ),
    };
    task.body
        .comment(format!("Driver {driver}: {why} (docs/exec.md)."));
    task.body.end_comments();
    Ok(Tasks {
        driver,
        user,
        work_dir,
        env,
    })
}

fn environment(
    unit: &mut Unit,
    notes: &mut Body,
    specifiers: &Specifiers,
) -> Result<Vec<(String, Text)>> {
    let mut env: Vec<(String, Text)> = Vec::new();
    for entry in unit.all(SERVICE, "Environment") {
        for word in words(&entry)? {
            let (word, unknown) = specifiers.replace(&word);
            for sign in unknown {
                let words = format!("%{sign} is not known here and stays as it is");
                notes.remark(entry.line, "Environment", &words);
            }
            match word.split_once('=') {
                Some(_) if env.len() > MAX_VARIABLES => {
                    return Err(entry.mistake(format!("more than {MAX_VARIABLES} variables")));
                }
                Some((name, value)) if !name.is_empty() => {
                    env.retain(|(other, _)| other != name);
                    env.push((name.to_owned(), value.into()));
                }
                _ => {
                    return Err(entry.mistake("Environment must have words of the form NAME=VALUE"));
                }
            }
        }
    }
    Ok(env)
}

/// Directories that were made for the service; whether there are any.
fn directories(unit: &mut Unit, env: &mut Vec<(String, Text)>, body: &mut Body) -> bool {
    let mut found = false;
    for (key, above, variable) in DIRECTORIES {
        let entries = unit.all(SERVICE, key);
        let names = entries
            .iter()
            .flat_map(|entry| entry.value.split_whitespace());
        let paths: Vec<String> = names
            .map(|name| format!("{above}/{}", name.split(':').next().unwrap_or(name)))
            .collect();
        let Some(entry) = entries.first() else {
            continue;
        };
        found = true;
        let words = format!(
            "nobody makes it for the task: make {} once, for its user (below /run anew after each restart of the \
             machine), or use a host volume (docs/volumes.md)",
            paths.join(" and ")
        );
        body.remark(entry.line, key, &words);
        if !env.iter().any(|(name, _)| name == variable) {
            env.push((variable.to_owned(), paths.join(":").into()));
        }
    }
    found
}

fn kind(unit: &mut Unit, body: &mut Body) {
    let Some(entry) = unit.last(SERVICE, "Type") else {
        return;
    };
    let words = match entry.value.as_str() {
        "simple" | "exec" | "idle" | "oneshot" => return,
        "forking" => {
            "a program that goes to the background counts as ended, and what it leaves is killed: let it \
                      stay in the foreground"
        }
        "notify" | "notify-reload" => {
            "nobody receives the program's message that it is ready: write a check (docs/checks.md)"
        }
        "dbus" => "nobody notices when it has its name on the bus: write a check (docs/checks.md)",
        _ => "this type is not known here",
    };
    body.lost(
        entry.line,
        &format!("Type={}", super::short_value(&entry.value)),
        words,
    );
}

/// A file of variables: a template with what is in it when the job is submitted.
pub(crate) fn environment_file(
    blocks: &mut Body,
    value: &str,
    line: usize,
    specifiers: &Specifiers,
) {
    let path = specifiers.replace(value).0;
    let optional = path.starts_with('-');
    let path = path.trim_start_matches('-');
    if !path.starts_with('/') || path.contains(['*', '?', '[']) {
        let advice = "only a single absolute path is read";
        blocks.lost(
            line,
            &format!("EnvironmentFile={}", super::short_value(value)),
            advice,
        );
        return;
    }
    blocks.comment(format!(
        "The file of variables of line {line}, as it is when the job is submitted. It becomes a part of the job; for \
         secrets see `drover var put`."
    ));
    let path = string(path);
    let data = match optional {
        true => format!("fileexists({path}) ? file({path}) : \"# not there\\n\""),
        false => format!("file({path})"),
    };
    let destination = format!("secrets/variables-{line}.env");
    let mut template = container::verbatim(Expr::Raw(data), &destination);
    template.set("env", true);
    blocks.block("template", template);
}

/// Capabilities, and what keeps the service apart.
fn rights(unit: &mut Unit, task: &mut Task) {
    let is_exec = task.driver == "exec";
    let mut added = Vec::new();
    for entry in unit.all(SERVICE, "AmbientCapabilities") {
        let names = entry.value.split_whitespace();
        let names: Vec<_> = names.map(|name| (name.to_owned(), entry.line)).collect();
        match is_exec {
            true => {
                added.append(&mut capabilities::known(
                    &names,
                    &entry.key,
                    &mut task.config,
                ));
            }
            false => task
                .config
                .lost(entry.line, &entry.key, "only exec has cap_add"),
        }
    }
    if !added.is_empty() {
        task.config
            .comment("The agent has to allow them with allow_caps (docs/exec.md).");
        task.config.set_list("cap_add", added);
    }
    if let Some(entry) = unit.last(SERVICE, "OOMScoreAdjust") {
        match entry
            .value
            .parse::<u64>()
            .ok()
            .filter(|it| *it <= 1_000 && !is_exec)
        {
            Some(number) => task.config.set("oom_score_adj", number),
            None => task.config.lost(
                entry.line,
                "OOMScoreAdjust",
                "raw_exec has it, from 0 to 1000",
            ),
        }
    }
    let mut given = Vec::new();
    for key in SANDBOX {
        for entry in unit.all(SERVICE, key) {
            given.push((
                entry.line,
                format!(
                    "{key}={} (line {})",
                    super::short_value(&entry.value),
                    entry.line
                ),
            ));
        }
    }
    if given.is_empty() {
        return;
    }
    given.sort();
    let list: Vec<String> = given.into_iter().map(|(_, text)| text).collect();
    let words = match is_exec {
        true => "exec keeps the task apart in its own way, which docs/exec.md lists; compare",
        false => {
            "raw_exec isolates nothing; where that matters, let it be a task of exec, with what it needs in volumes"
        }
    };
    task.body
        .comment(format!("Not carried over: {}: {words}.", list.join(", ")));
    task.body.end_comments();
}

fn reload(unit: &mut Unit, blocks: &mut Body, specifiers: &Specifiers) -> Result<()> {
    let commands = commands(unit, "ExecReload", specifiers)?;
    let Some(first) = commands.first() else {
        return Ok(());
    };
    if commands.iter().any(|command| command.names("MAINPID")) {
        let words = "a task is sent a signal by `drover alloc signal -s SIGHUP ALLOC`";
        blocks.lost(first.line, "ExecReload", words);
        return Ok(());
    }
    let (program, args) = chain(&commands);
    let mut action = Body::default();
    action.set("command", program);
    action.set_list("args", args);
    blocks.comment("ExecReload: run it with `drover action -job JOB reload`.");
    blocks.labelled("action", "reload", action);
    Ok(())
}
