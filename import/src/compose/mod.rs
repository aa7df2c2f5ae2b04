//! Compose files.
//!
//! # One job, a group for each service
//!
//! Services of compose are started, scaled, updated and restarted one by one, which is what groups are. They reach
//! each other by their names: that is done by the engine's own names in a network of the engine, which tasks of the
//! driver `docker` can be in. So all services are put into one such network, under the names that they have, and what
//! is written in their settings (`postgres://db:5432/`) works as it is; nothing is published that was not. The
//! network has to be made by hand, once; the head of the file says how. Several tasks in one group with one network
//! would reach each other by `127.0.0.1` alone, and would be placed, restarted and counted together.
//!
//! What a name of a service cannot do is leave the machine: that is what the services that are registered are for, and
//! a template with `nomadService`. The head of the file names both.
//!
//! A service that others wait for until it has *completed* is not a group of its own: it becomes a `prestart` task in
//! the group of each of those, which is what waiting for an end means here. `service_started` and `service_healthy`
//! become `wait_for` blocks.
//!
//! The file is read with its anchors and merge keys resolved, then `extends` within it (`extends.rs`); who waits for
//! whom comes first (`depends.rs`), then each service by itself (`service.rs`).

mod advice;
mod depends;
mod deploy;
mod extends;
mod files;
mod health;
mod interpolate;
mod network;
mod reach;
mod rights;
mod service;
mod volumes;

use std::collections::BTreeMap;

use crate::Source;
use crate::error::{Mistake, Place, Result, quote};
use crate::job::{Group, Job, Names, name, service_name};
use crate::yaml::{self, Key, Node};
use depends::Plan;
use files::Definition;
use interpolate::Variables;
use network::Networks;

/// The most services of a file.
const MAX_SERVICES: usize = 200;
/// The most tasks of the job; a service that several wait for is a task of each of them.
const MAX_TASKS: usize = 500;

/// What all services share.
struct Cx {
    project: String,
    directory: String,
    variables: Variables,
    networks: Networks,
    /// Names under which the services are registered.
    registered: BTreeMap<String, String>,
    volumes: BTreeMap<String, volumes::Definition>,
    secrets: BTreeMap<String, Definition>,
    configs: BTreeMap<String, Definition>,
    is_batch: bool,
}

impl Cx {
    /// The path of something that is named in the file relative to its directory.
    fn path(&mut self, path: &str) -> crate::text::Text {
        use crate::text::{Part, Text};
        if path.starts_with('/') {
            return path.into();
        }
        let (variable, rest) = match path.strip_prefix('~') {
            Some(rest) => {
                let words = "The home directory that ~ stood for.";
                self.variables.own("home_dir", "/root", words);
                ("home_dir", rest.trim_start_matches('/'))
            }
            None => {
                let words =
                    "The directory of the compose file, which relative paths in it are below.";
                let directory = self.directory.clone();
                self.variables.own("project_dir", &directory, words);
                ("project_dir", path.trim_start_matches("./"))
            }
        };
        let mut text = Text(vec![Part::Variable(variable.to_owned())]);
        if !rest.is_empty() && rest != "." {
            text.push("/");
            text.push(rest);
        }
        text
    }
}

/// The job file of a compose file.
pub(crate) fn import(source: &Source<'_>) -> Result<String> {
    let file = yaml::read(source.text)?;
    file.check()?;
    let mut fields = file.fields("a compose file")?;
    let mut variables = Variables::default();
    let project = match fields.take("name") {
        Some(node) => variables.resolved(node, "name")?.0,
        None => source.project(),
    };
    let project = name(&project.to_ascii_lowercase());
    let services = fields
        .take("services")
        .map_or(Ok(&[][..]), |it| it.map("services"))?;
    check_services(services, file.at)?;
    let services = extends::resolve(services)?;
    let plan = Plan::of(&services)?;
    let mut job = Job {
        name: project.clone(),
        is_batch: plan.is_batch,
        ..Job::default()
    };
    let networks = fields.take("networks");
    let networks = Networks::read(networks, &services, &project, &mut variables, &mut job.body)?;
    let mut cx = Cx {
        registered: registered(&services, &project),
        project,
        directory: source.directory.to_owned(),
        volumes: volumes::definitions(fields.take("volumes"), &mut variables, &mut job.body)?,
        secrets: files::definitions(fields.take("secrets"), "secrets", &mut job.body)?,
        configs: files::definitions(fields.take("configs"), "configs", &mut job.body)?,
        variables,
        networks,
        is_batch: plan.is_batch,
    };
    for (key, _) in fields.rest() {
        job.body
            .lost(key.at.line, &key.name, advice::of_file(&key.name));
    }
    let mut groups = BTreeMap::new();
    for (key, node) in &services {
        let group = service::read(&mut cx, &plan, key, node)?;
        groups.insert(key.name.clone(), group);
    }
    job.groups = together(&plan, &services, groups)?;
    job.head = head(source.name, &cx);
    job.variables = cx.variables.declared();
    Ok(job.write())
}

fn check_services(services: &[(Key, Node)], at: Place) -> Result<()> {
    match services.len() {
        0 => Err(Mistake::new(at, "there are no services in this file")),
        many if many > MAX_SERVICES => {
            let message = format!("{many} services; more than {MAX_SERVICES} are not read");
            Err(Mistake::new(at, message))
        }
        _ => {
            // Names become names of tasks and of the network.
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let is_bad = |name: &str| name.is_empty() || name.len() > 60 || !name.chars().all(fits);
            match services.iter().find(|(key, _)| is_bad(&key.name)) {
                Some((key, _)) => {
                    let name = quote(&key.name);
                    let words =
                        "is no name of a service: letters, digits, -, _ and dots, at most 60";
                    Err(Mistake::new(key.at, format!("{name} {words}")))
                }
                None => Ok(()),
            }
        }
    }
}

fn registered(services: &[(Key, Node)], project: &str) -> BTreeMap<String, String> {
    let mut names = Names::default();
    let name = |(key, _): &(Key, Node)| {
        let name = service_name(&format!("{project}-{}", key.name));
        (key.name.clone(), names.give(name))
    };
    services.iter().map(name).collect()
}

/// The groups of the job: those that run to their end before others are tasks of these.
fn together(
    plan: &Plan,
    services: &[(Key, Node)],
    mut groups: BTreeMap<String, Group>,
) -> Result<Vec<Group>> {
    let mut all = Vec::new();
    let mut tasks = 0;
    let mut names = Names::default();
    for (key, _) in services.iter().filter(|(key, _)| !plan.is_first(&key.name)) {
        let Some(mut group) = groups.remove(&key.name) else {
            continue;
        };
        group.name = names.give(name(&key.name));
        let before = plan.before(&key.name);
        tasks += 1 + before.len();
        if tasks > MAX_TASKS || before.len() >= 100 {
            let message = "too many services wait for each other to complete";
            return Err(Mistake::new(key.at, message));
        }
        let mut firsts = Vec::new();
        for first in before {
            let Some(mut other) = groups.get(first).cloned() else {
                continue;
            };
            group.ports.append(&mut other.ports);
            group.network.append(other.network);
            group.volumes.append(&mut other.volumes);
            group.body.append(other.body);
            firsts.append(&mut other.tasks);
        }
        firsts.append(&mut group.tasks);
        group.tasks = firsts;
        let mut names = Names::default();
        for task in &mut group.tasks {
            task.name = names.give(core::mem::take(&mut task.name));
        }
        all.push(group);
    }
    Ok(all)
}

fn head(file: &str, cx: &Cx) -> Vec<String> {
    let mut head = vec![crate::made_from(&[file])];
    if let Some(network) = &cx.networks.shared {
        head.push(format!(
            "\nThe services reach each other by their names in a network of the engine, which has to be there:\n  \
             docker network create {network}\n\
             It does not leave the machine. To reach a service from elsewhere, give it a port, and write a template \
             with\n  {{{{ range nomadService \"{}-NAME\" }}}}{{{{ .Address }}}}:{{{{ .Port }}}}{{{{ end }}}}",
            service_name(&cx.project)
        ));
    }
    head
}
