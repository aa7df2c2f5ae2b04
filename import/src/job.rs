//! A job file in its parts, each with the comments that belong there, and in which order they are written.

use std::collections::BTreeMap;

use crate::hcl::{Body, Expr};
use crate::text::Text;

/// A job file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub name: String,
    /// What stands above everything.
    pub head: Vec<String>,
    /// `variable` blocks.
    pub variables: Vec<Variable>,
    /// Whether it is of type `batch`.
    pub is_batch: bool,
    /// Attributes and comments of the job itself.
    pub body: Body,
    pub groups: Vec<Group>,
}

/// A variable of the job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub name: String,
    /// What is written above it.
    pub comment: String,
    /// Its value, unless it has to be given.
    pub default: Option<String>,
    pub is_number: bool,
}

/// A group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub name: String,
    /// Attributes, blocks and comments of the group itself.
    pub body: Body,
    pub ports: Vec<Port>,
    /// Attributes and comments of its network.
    pub network: Body,
    /// Host volumes by their names in the group.
    pub volumes: BTreeMap<String, Volume>,
    pub tasks: Vec<Task>,
}

/// A port of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub label: String,
    /// The number at the host; any unless given.
    pub host: Option<Expr>,
    /// The number inside.
    pub inside: u16,
    pub host_network: Option<String>,
    pub comments: Vec<String>,
}

/// A host volume that a group asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub source: String,
    pub comments: Vec<String>,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub name: String,
    pub driver: &'static str,
    /// Attributes and comments before everything else.
    pub body: Body,
    /// `prestart`, `poststart` or `poststop`.
    pub hook: Option<&'static str>,
    pub wait_for: Vec<String>,
    pub config: Body,
    pub env: Vec<(String, Text)>,
    /// Comments on the environment, and what is written behind it.
    pub env_notes: Body,
    pub resources: Body,
    /// Templates, mounts, services and other blocks.
    pub blocks: Body,
}

impl Job {
    /// The text of the file.
    pub(crate) fn write(self) -> String {
        let mut file = Body::default();
        for text in &self.head {
            file.comment(text.as_str());
        }
        // The head stands apart from what follows.
        let head = file.file();
        let mut file = Body::default();
        for variable in self.variables {
            file.labelled_variable(variable);
        }
        let mut job = Body::default();
        job.set("type", if self.is_batch { "batch" } else { "service" });
        job.append(self.body);
        for group in self.groups {
            let name = group.name.clone();
            job.labelled("group", &name, group.body());
        }
        file.labelled("job", &self.name, job);
        match head.is_empty() {
            true => file.file(),
            false => format!("{head}\n{}", file.file()),
        }
    }
}

impl Body {
    fn labelled_variable(&mut self, variable: Variable) {
        let mut body = Body::default();
        let kind = if variable.is_number {
            "number"
        } else {
            "string"
        };
        body.set("type", Expr::Raw(kind.to_owned()));
        match variable.default {
            Some(default) if variable.is_number => body.set("default", Expr::Raw(default)),
            Some(default) => body.set("default", default),
            None => {}
        }
        if !variable.comment.is_empty() {
            self.comment(variable.comment);
        }
        self.labelled("variable", &variable.name, body);
    }
}

impl Group {
    fn body(self) -> Body {
        let mut body = Body::default();
        body.append(self.body);
        let mut network = Body::default();
        for port in self.ports {
            port.write(&mut network);
        }
        network.append(self.network);
        if !network.is_empty() {
            body.block("network", network);
        }
        for (name, volume) in self.volumes {
            for comment in volume.comments {
                body.comment(comment);
            }
            let mut block = Body::default();
            block.set("type", "host");
            block.set("source", volume.source);
            body.labelled("volume", &name, block);
        }
        for task in self.tasks {
            let name = task.name.clone();
            body.labelled("task", &name, task.body());
        }
        body
    }
}

impl Port {
    fn write(self, network: &mut Body) {
        for comment in self.comments {
            network.comment(comment);
        }
        let mut body = Body::default();
        if let Some(host) = self.host {
            body.set("static", host);
        }
        body.set("to", u64::from(self.inside));
        if let Some(name) = self.host_network {
            body.set("host_network", name);
        }
        network.labelled("port", &self.label, body);
    }
}

impl Task {
    fn body(self) -> Body {
        let mut body = Body::default();
        body.set("driver", self.driver);
        body.append(self.body);
        if let Some(hook) = self.hook {
            let mut block = Body::default();
            block.set("hook", hook);
            body.block("lifecycle", block);
        }
        for service in self.wait_for {
            let mut block = Body::default();
            block.set("service", service);
            body.block("wait_for", block);
        }
        body.block("config", self.config);
        body.pairs("env", self.env);
        body.append(self.env_notes);
        if !self.resources.is_empty() {
            body.block("resources", self.resources);
        }
        body.append(self.blocks);
        body
    }
}

/// A name for a job, a group, a task or a volume: letters, digits, `-`, `_` and dots.
pub(crate) fn name(text: &str) -> String {
    const LONGEST: usize = 60;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let sign = |c: char| if fits(c) { c } else { '-' };
    let name: String = text.chars().take(LONGEST).map(sign).collect();
    match name.trim_matches(['-', '.']) {
        // This one is the shared directory's.
        "" | "alloc" => "imported".to_owned(),
        name => name.to_owned(),
    }
}

/// A name for a service: letters, digits and `-`.
pub(crate) fn service_name(text: &str) -> String {
    const LONGEST: usize = 63;
    let name = name(text).replace(['_', '.'], "-");
    let name: String = name.chars().take(LONGEST).collect();
    match name.trim_matches('-') {
        "" => "imported".to_owned(),
        name => name.to_owned(),
    }
}

/// Names that were given, none of them twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(std::collections::BTreeSet<String>);

impl Names {
    /// The name, or the name with a number if it was given already.
    pub(crate) fn give(&mut self, name: String) -> String {
        let mut number = 2_u64;
        let mut free = name.clone();
        while !self.0.insert(free.clone()) {
            free = format!("{name}-{number}");
            number += 1;
        }
        free
    }
}
