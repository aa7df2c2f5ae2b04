//! Who waits for whom, and what follows for the groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Mistake, Result, quote};
use crate::yaml::{Key, Kind, Node};

/// What one service waits for of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Started,
    Healthy,
    Completed,
}

/// One service waits for another.
#[derive(Clone, Debug)]
pub(super) struct Depends {
    pub name: String,
    pub condition: Condition,
    pub line: usize,
    /// What else is said of it.
    pub others: Vec<(String, usize)>,
}

/// Who waits for whom.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    depends: BTreeMap<String, Vec<Depends>>,
    /// The services that become tasks of others, and of whom.
    firsts: BTreeMap<String, BTreeSet<String>>,
    /// For each group the services that become tasks of it, in the order of the file.
    before: BTreeMap<String, Vec<String>>,
    /// Those for which others wait while they run.
    waited: BTreeSet<String>,
    /// Those of them that are to be healthy.
    healthy: BTreeSet<String>,
    /// Those that have a health check in the file.
    checked: BTreeSet<String>,
    pub is_batch: bool,
}

impl Plan {
    pub(super) fn of(services: &[(Key, Node)]) -> Result<Plan> {
        let mut plan = Plan::default();
        let names: BTreeSet<&str> = services.iter().map(|(key, _)| key.name.as_str()).collect();
        for (key, node) in services {
            let depends = read(node, &names)?;
            let running = depends
                .iter()
                .filter(|it| it.condition != Condition::Completed);
            plan.waited.extend(running.map(|it| it.name.clone()));
            let healthy = depends
                .iter()
                .filter(|it| it.condition == Condition::Healthy);
            plan.healthy.extend(healthy.map(|it| it.name.clone()));
            if value(node, "healthcheck").is_some() {
                plan.checked.insert(key.name.clone());
            }
            plan.depends.insert(key.name.clone(), depends);
        }
        plan.check_circles(services)?;
        plan.place(services);
        plan.is_batch = services
            .iter()
            .all(|(key, node)| ends_by_itself(node) && !plan.waited.contains(&key.name));
        Ok(plan)
    }

    /// What this service waits for.
    pub(super) fn depends(&self, name: &str) -> &[Depends] {
        self.depends.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether the service is a task of others, which runs before them.
    pub(super) fn is_first(&self, name: &str) -> bool {
        self.firsts.contains_key(name)
    }

    /// The groups of which this service becomes a task.
    pub(super) fn groups_of(&self, name: &str) -> Vec<&str> {
        let groups = self.firsts.get(name).into_iter().flatten();
        groups.map(String::as_str).collect()
    }

    /// The services that become tasks of this one's group.
    pub(super) fn before(&self, name: &str) -> &[String] {
        self.before.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether another one waits for this service while it runs.
    pub(super) fn is_waited_for(&self, name: &str) -> bool {
        self.waited.contains(name)
    }

    /// Whether another one waits until this service is healthy.
    pub(super) fn is_to_be_healthy(&self, name: &str) -> bool {
        self.healthy.contains(name)
    }

    /// Whether the service has a health check in the file.
    pub(super) fn is_checked(&self, name: &str) -> bool {
        self.checked.contains(name)
    }

    fn check_circles(&self, services: &[(Key, Node)]) -> Result<()> {
        // Taken away one after the other: those that wait for nobody who is left.
        let mut left: BTreeSet<&str> = self.depends.keys().map(String::as_str).collect();
        loop {
            let waits = |name: &str| {
                self.depends(name)
                    .iter()
                    .any(|it| left.contains(it.name.as_str()))
            };
            let free: Vec<&str> = left.iter().copied().filter(|name| !waits(name)).collect();
            if free.is_empty() {
                break;
            }
            left.retain(|name| !free.contains(name));
        }
        match services
            .iter()
            .find(|(key, _)| left.contains(key.name.as_str()))
        {
            Some((key, _)) => {
                let message = format!(
                    "service {} waits for itself, by what it depends on: {}",
                    quote(&key.name),
                    left.iter().copied().collect::<Vec<_>>().join(", ")
                );
                Err(Mistake::new(key.at, message))
            }
            None => Ok(()),
        }
    }

    /// Which services become tasks of which groups.
    fn place(&mut self, services: &[(Key, Node)]) {
        let mut completed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, depends) in &self.depends {
            for one in depends
                .iter()
                .filter(|it| it.condition == Condition::Completed)
            {
                completed.entry(one.name.as_str()).or_default().push(name);
            }
        }
        // A service that somebody waits for while it runs has a group of its own.
        completed.retain(|name, _| !self.waited.contains(*name));
        let mut firsts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in completed.keys() {
            let mut groups = BTreeSet::new();
            let (mut seen, mut next) = (BTreeSet::new(), vec![*name]);
            while let Some(one) = next.pop() {
                match completed.get(one) {
                    Some(waiting) => next.extend(waiting.iter().filter(|it| seen.insert(**it))),
                    None => {
                        groups.insert(one.to_owned());
                    }
                }
            }
            firsts.insert((*name).to_owned(), groups);
        }
        self.firsts = firsts;
        for (key, _) in services {
            for group in self.firsts.get(&key.name).into_iter().flatten() {
                let tasks = self.before.entry(group.clone()).or_default();
                tasks.push(key.name.clone());
            }
        }
    }
}

/// Whether a service says that it ends, and nobody is to reach it.
fn ends_by_itself(node: &Node) -> bool {
    let restart = value(node, "restart").and_then(Node::scalar);
    let restart = restart.unwrap_or_default();
    let once = restart == "no" || restart.starts_with("on-failure");
    once && value(node, "ports").is_none() && value(node, "healthcheck").is_none()
}

/// What a service says of something.
fn value<'a>(service: &'a Node, name: &str) -> Option<&'a Node> {
    let Kind::Map(map) = &service.kind else {
        return None;
    };
    let found = map.iter().find(|(key, _)| key.name == name);
    found.map(|(_, node)| node)
}

fn read(service: &Node, names: &BTreeSet<&str>) -> Result<Vec<Depends>> {
    let Some(node) = service.fields("a service")?.take("depends_on") else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    let one = |name: String, at: &Node| Depends {
        name,
        condition: Condition::Started,
        line: at.line(),
        others: Vec::new(),
    };
    if let Kind::List(list) = &node.kind {
        let mut seen = BTreeSet::new();
        for item in list {
            let Some(name) = item.scalar() else {
                return Err(item.mistake("depends_on must name services"));
            };
            known(&name, item, names)?;
            if seen.insert(name.clone()) {
                all.push(one(name, item));
            }
        }
        return Ok(all);
    }
    for (key, value) in node.map("depends_on")? {
        let mut depends = one(key.name.clone(), value);
        depends.line = key.at.line;
        let mut fields = value.fields("a dependency")?;
        let required = fields
            .take("required")
            .map_or(Ok(true), |it| it.flag("required"))?;
        if let Some(condition) = fields.take("condition") {
            depends.condition = self::condition(condition)?;
        }
        let others = fields
            .rest()
            .map(|(key, _)| (key.name.clone(), key.at.line));
        depends.others = others.collect();
        if !names.contains(key.name.as_str()) && !required {
            continue;
        }
        known(&key.name, value, names)?;
        all.push(depends);
    }
    Ok(all)
}

fn condition(node: &Node) -> Result<Condition> {
    match node.scalar().as_deref() {
        Some("service_started") => Ok(Condition::Started),
        Some("service_healthy") => Ok(Condition::Healthy),
        Some("service_completed_successfully") => Ok(Condition::Completed),
        _ => Err(node.mistake(
            "condition must be service_started, service_healthy or service_completed_successfully",
        )),
    }
}

fn known(name: &str, at: &Node, names: &BTreeSet<&str>) -> Result<()> {
    match names.contains(name) {
        true => Ok(()),
        false => {
            let message = format!("there is no service {} to depend on", quote(name));
            Err(at.mistake(message))
        }
    }
}
