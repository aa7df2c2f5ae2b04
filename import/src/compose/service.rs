//! One service, as a group with one task.

use super::depends::{Condition, Plan};
use super::deploy;
use super::{Cx, advice, files, volumes};
use crate::container::ports::default_words;
use crate::container::{Container, USUAL_GRACE};
use crate::error::{Mistake, Place, Result, quote};
use crate::job::{Group, name};
use crate::measure::{self, Duration};
use crate::text::Text;
use crate::words;
use crate::yaml::{Fields, Key, Kind, Node};

/// The most services that a task waits for.
const MAX_WAITS: usize = 32;
/// The most values of a map or a list.
const MAX_PAIRS: usize = 2_000;

/// A service while it is read.
pub(super) struct Service<'a, 'p> {
    pub cx: &'a mut Cx,
    pub plan: &'p Plan,
    pub name: &'p str,
    pub fields: Fields<'p>,
    pub into: Container,
}

/// Reads a service.
pub(super) fn read(cx: &mut Cx, plan: &Plan, key: &Key, node: &Node) -> Result<Group> {
    let mut into = Container::default();
    into.task.name = name(&key.name);
    into.task.driver = "docker";
    if plan.is_first(&key.name) {
        into.task.hook = Some("prestart");
        // Of the labels of a group none may come twice; these names do not either.
        into.prefix = match cx.registered.get(&key.name) {
            Some(name) => format!("{name}-"),
            None => String::new(),
        };
    }
    let fields = node.fields("a service")?;
    let mut service = Service {
        cx,
        plan,
        name: &key.name,
        fields,
        into,
    };
    service.extends();
    service.placing()?;
    service.image(key.at)?;
    service.program()?;
    service.networks()?;
    service.ports()?;
    service.volumes()?;
    service.environment()?;
    service.rights()?;
    service.limits()?;
    service.ends()?;
    service.files()?;
    service.health()?;
    let line = key.at.line;
    deploy::restart(&mut service, line)?;
    deploy::resources(&mut service)?;
    for (key, _) in service.fields.rest() {
        let advice = advice::of_service(&key.name);
        service
            .into
            .task
            .config
            .lost(key.at.line, &key.name, advice);
    }
    Ok(service.into.finish())
}

impl<'p> Service<'_, 'p> {
    pub(super) fn text(&mut self, node: &Node, what: &str) -> Result<Text> {
        self.cx.variables.text(node, what)
    }

    /// A value that has to be understood here; variables in it have their defaults, which is told.
    pub(super) fn known(&mut self, node: &Node, what: &str) -> Result<String> {
        let (text, names) = self.cx.variables.resolved(node, what)?;
        if !names.is_empty() {
            let words = default_words(&names);
            self.into.task.body.remark(node.line(), what, &words);
        }
        Ok(text)
    }

    /// A single value, or a list of them.
    pub(super) fn texts(&mut self, node: &Node, what: &str) -> Result<Vec<Text>> {
        match &node.kind {
            Kind::List(list) => list.iter().map(|it| self.text(it, what)).collect(),
            _ => Ok(vec![self.text(node, what)?]),
        }
    }

    /// A map of values, or a list of `NAME=VALUE`. A name without a value has none here.
    pub(super) fn pairs(&mut self, node: &Node, what: &str) -> Result<Vec<(String, Option<Text>)>> {
        let many = match &node.kind {
            Kind::List(list) => list.len(),
            Kind::Map(map) => map.len(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => 0,
        };
        if many > MAX_PAIRS {
            return Err(node.mistake(format!("{what}: more than {MAX_PAIRS} values")));
        }
        let mut pairs: Vec<(String, Option<Text>)> = Vec::new();
        let mut add = |name: String, value: Option<Text>| {
            // Later ones win, as with the engine.
            pairs.retain(|(other, _)| *other != name);
            pairs.push((name, value));
        };
        match &node.kind {
            Kind::List(list) => {
                for item in list {
                    let Some(text) = item.scalar() else {
                        return Err(
                            item.mistake(format!("{what} must have texts of the form NAME=VALUE"))
                        );
                    };
                    let (name, value) = match text.split_once('=') {
                        Some((name, value)) => {
                            (name.to_owned(), Some(self.cx.variables.of(value, item.at)?))
                        }
                        None => (text, None),
                    };
                    add(name, value);
                }
            }
            _ => {
                for (key, value) in node.map(what)? {
                    let value = match value.is_null() {
                        true => None,
                        false => Some(self.cx.variables.text(value, &key.name)?),
                    };
                    add(key.name.clone(), value);
                }
            }
        }
        pairs.retain(|(name, _)| !name.is_empty());
        Ok(pairs)
    }

    pub(super) fn duration(&mut self, node: &Node, what: &str) -> Result<Duration> {
        let text = self.known(node, what)?;
        let duration = measure::duration(&text);
        duration.ok_or_else(|| {
            node.mistake(format!(
                "{what}: {} is no duration such as 1m30s",
                quote(&text)
            ))
        })
    }

    pub(super) fn bytes(&mut self, node: &Node, what: &str) -> Result<u64> {
        let text = self.known(node, what)?;
        let bytes = measure::bytes(&text);
        bytes.ok_or_else(|| {
            node.mistake(format!("{what}: {} is no size such as 512m", quote(&text)))
        })
    }

    /// What is in the same file is put in already.
    fn extends(&mut self) {
        let Some(node) = self.fields.take("extends") else {
            return;
        };
        if let Kind::Map(map) = &node.kind
            && map.iter().any(|(key, _)| key.name == "file")
        {
            let advice = "the other file is not read; put what it says in here";
            self.into.task.body.lost(node.line(), "extends", advice);
        }
    }

    /// What it waits for, whether it is started at all, and who runs it.
    fn placing(&mut self) -> Result<()> {
        self.fields.take("depends_on");
        if self.plan.groups_of(self.name).len() > 1 {
            let groups = self.plan.groups_of(self.name).join(", ");
            self.into.task.body.comment(format!(
                "It runs once in each of the groups that wait for its end: {groups}. It must stand that."
            ));
        }
        for one in self.plan.depends(self.name) {
            for (other, line) in &one.others {
                let advice =
                    "a service that restarts does not restart others; see `drover job restart`";
                self.into
                    .task
                    .body
                    .lost(*line, &format!("{other} of depends_on"), advice);
            }
            match one.condition {
                Condition::Started | Condition::Healthy => {
                    if one.condition == Condition::Healthy && !self.plan.is_checked(&one.name) {
                        let words =
                            "it has no healthcheck in this file: it is waited for until it runs";
                        let body = &mut self.into.task.body;
                        body.remark(one.line, &one.name, words);
                        body.end_comments();
                    }
                    let registered = self.cx.registered.get(&one.name);
                    self.into.task.wait_for.extend(registered.cloned());
                }
                Condition::Completed if !self.plan.is_first(&one.name) => {
                    let advice = "others wait for the same service while it runs";
                    let what = format!("waiting for the end of {}", one.name);
                    self.into.task.body.lost(one.line, &what, advice);
                }
                Condition::Completed if self.plan.is_first(self.name) => {
                    let words = "both are prestart tasks of the group, which run at the same time; put one of them \
                                 into the program of the other";
                    let what = format!("waiting for the end of {}", one.name);
                    self.into.task.body.lost(one.line, &what, words);
                }
                Condition::Completed => {}
            }
        }
        if self.into.task.wait_for.len() > MAX_WAITS {
            let words = format!("Not carried over: a task waits for {MAX_WAITS} services at most.");
            self.into.task.body.comment(words);
            self.into.task.wait_for.truncate(MAX_WAITS);
        }
        if let Some(node) = self.fields.take("user") {
            let user = self.text(node, "user")?;
            if user.plain().is_some_and(|it| it.contains(char::is_control)) {
                return Err(node.mistake("user must not contain control characters"));
            }
            self.into.task.body.set("user", user);
        }
        Ok(())
    }

    fn image(&mut self, at: Place) -> Result<()> {
        let build = self.fields.take("build");
        let image = match self.fields.take("image") {
            Some(node) => self.text(node, "image")?,
            None if build.is_some() => format!("{}-{}", self.cx.project, self.name).into(),
            None => {
                let message = format!("service {} has neither image nor build", quote(self.name));
                return Err(Mistake::new(at, message));
            }
        };
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if image
            .plain()
            .is_some_and(|it| it.is_empty() || it.contains(odd))
        {
            return Err(Mistake::new(at, "image must name an image"));
        }
        let config = &mut self.into.task.config;
        if let Some(build) = build {
            let advice =
                "images are not built here; `docker compose build` makes it, with this name";
            config.lost(build.line(), "build", advice);
        }
        config.set("image", image);
        if let Some(node) = self.fields.take("pull_policy") {
            match node.scalar().as_deref() {
                Some("always") => self.into.task.config.set("force_pull", true),
                Some("missing" | "if_not_present") => {}
                _ => {
                    let advice = "an image that is there is used, unless its tag is latest or force_pull is set";
                    self.into
                        .task
                        .config
                        .lost(node.line(), "pull_policy", advice);
                }
            }
        }
        Ok(())
    }

    fn program(&mut self) -> Result<()> {
        for (from, to) in [("entrypoint", "entrypoint"), ("command", "args")] {
            let Some(node) = self.fields.take(from) else {
                continue;
            };
            let words = self.command(node, from)?;
            if words.is_empty() {
                let advice = "an empty one cannot be expressed; the image's own is used";
                self.into.task.config.lost(node.line(), from, advice);
            }
            self.into.task.config.set_list(to, words);
        }
        for (from, to) in [("working_dir", "work_dir"), ("hostname", "hostname")] {
            if let Some(node) = self.fields.take(from) {
                let text = self.text(node, from)?;
                let (plain, _) = self.cx.variables.with_defaults(&text);
                if to == "work_dir" && !plain.starts_with('/') {
                    let advice = "work_dir must be absolute";
                    self.into.task.config.lost(node.line(), from, advice);
                    continue;
                }
                self.into.task.config.set(to, text);
            }
        }
        for (from, to) in [
            ("init", "init"),
            ("tty", "tty"),
            ("stdin_open", "interactive"),
            ("read_only", "readonly_rootfs"),
            ("privileged", "privileged"),
        ] {
            let Some(node) = self.fields.take(from) else {
                continue;
            };
            let text = self.known(node, from)?;
            let value = Node {
                at: node.at,
                kind: Kind::Text(text),
            }
            .flag(from)?;
            if value && from == "privileged" {
                let words = "the agent's configuration has to allow it: `allow_privileged = true` in its block for docker";
                self.into.task.config.remark(node.line(), from, words);
            }
            if value || from == "init" {
                self.into.task.config.set(to, value);
            }
        }
        Ok(())
    }

    /// A command line as a list, or as a text that is cut as a shell does it.
    fn command(&mut self, node: &Node, what: &str) -> Result<Vec<Text>> {
        if let Kind::List(_) = node.kind {
            return self.texts(node, what);
        }
        let whole = node.scalar().unwrap_or_default();
        let cut = words::split(&whole);
        let cut = cut.ok_or_else(|| node.mistake(format!("{what}: a quote has no end")))?;
        cut.iter()
            .map(|word| self.cx.variables.of(word, node.at))
            .collect()
    }

    fn volumes(&mut self) -> Result<()> {
        if let Some(node) = self.fields.take("volumes") {
            for item in node.list("volumes")? {
                volumes::read(self, item)?;
            }
        }
        let Some(node) = self.fields.take("tmpfs") else {
            return Ok(());
        };
        let line = node.line();
        for text in self.texts(node, "tmpfs")? {
            let mut parts = text.split(':').into_iter();
            let target = self.target(parts.next().unwrap_or_default());
            let (mut size, mut mode) = (None, None);
            let options = parts.next().and_then(|it| it.plain()).unwrap_or_default();
            for option in options.split(',').filter(|it| !it.is_empty()) {
                match option.split_once('=') {
                    Some(("size", value)) if measure::bytes(value).is_some() => {
                        size = measure::bytes(value);
                    }
                    Some(("mode", value)) if u64::from_str_radix(value, 8).is_ok() => {
                        mode = u64::from_str_radix(value, 8).ok();
                    }
                    _ => {
                        let what = format!("option {option} of tmpfs");
                        self.into
                            .mounts
                            .lost(line, &what, "the driver knows size and mode");
                    }
                }
            }
            self.into
                .tmpfs(target, size, mode.filter(|mode| *mode <= 0o7777), line);
        }
        Ok(())
    }

    /// A path in the container; with the default of its variables where that is none, which is told.
    pub(super) fn target(&self, target: Text) -> Text {
        match self.cx.variables.with_defaults(&target).0 {
            plain if plain.starts_with('/') && !plain.contains(':') => target,
            plain => plain.into(),
        }
    }

    fn environment(&mut self) -> Result<()> {
        if let Some(node) = self.fields.take("environment") {
            for (name, value) in self.pairs(node, "environment")? {
                if name.contains('=') {
                    let advice = "a name of a variable has no = in it";
                    self.into.task.env_notes.lost(node.line(), &name, advice);
                    continue;
                }
                let value = match value {
                    Some(value) => value,
                    // Compose passes on what it finds in its own environment.
                    None if crate::hcl::is_identifier(&name) => {
                        self.cx.variables.of(&format!("${{{name}}}"), node.at)?
                    }
                    None => {
                        let advice = "compose took its value from its own environment";
                        self.into.task.env_notes.lost(node.line(), &name, advice);
                        continue;
                    }
                };
                self.into.task.env.push((name, value));
            }
        }
        if let Some(node) = self.fields.take("labels") {
            let pairs = self.pairs(node, "labels")?.into_iter();
            let pairs = pairs.map(|(name, value)| (name, value.unwrap_or_default()));
            self.into.task.config.map("labels", pairs.collect());
        }
        let Some(node) = self.fields.take("env_file") else {
            return Ok(());
        };
        files::environment(self, node)
    }

    fn ends(&mut self) -> Result<()> {
        let (grace, line) = match self.fields.take("stop_grace_period") {
            Some(node) => (self.duration(node, "stop_grace_period")?, node.line()),
            None => (USUAL_GRACE, 0),
        };
        self.into.grace(grace, line);
        if let Some(node) = self.fields.take("stop_signal") {
            let signal = self.text(node, "stop_signal")?;
            self.into.task.body.set("kill_signal", signal);
        }
        Ok(())
    }

    fn files(&mut self) -> Result<()> {
        for kind in ["secrets", "configs"] {
            if let Some(node) = self.fields.take(kind) {
                for item in node.list(kind)? {
                    files::read(self, kind, item)?;
                }
            }
        }
        Ok(())
    }
}
