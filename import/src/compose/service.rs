//! One service, as a group with one task.

use super::depends::{Condition, Plan};
use super::deploy;
use super::{Cx, advice, files, volumes};
use crate::container::capabilities;
use crate::container::health::Health;
use crate::container::ports::{Publication, default_words};
use crate::container::{self, Container, USUAL_GRACE};
use crate::error::{Mistake, Place, Result, quote};
use crate::hcl::Body;
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

    fn duration(&mut self, node: &Node, what: &str) -> Result<Duration> {
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
                let advice = "an empty one cannot be said; the image's own is used";
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
                let words = "the agent's configuration has to allow it: `plugin \"docker\" { config { allow_privileged = true } }`";
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

    fn networks(&mut self) -> Result<()> {
        let networks = self.fields.take("networks");
        let mut more = Vec::new();
        if let Some(node) = self.fields.take("container_name") {
            more.push(self.text(node, "container_name")?);
            let words = "the engine gives containers other names here; it is known by this one in the network";
            self.into
                .task
                .config
                .remark(node.line(), "container_name", words);
        }
        match self.fields.take("network_mode") {
            Some(node) => self.network_mode(node)?,
            None => {
                let shared = self.cx.networks.clone();
                let (into, variables) = (&mut self.into, &mut self.cx.variables);
                shared.join(into, variables, self.name, networks, more)?;
            }
        }
        for (from, to) in [
            ("dns", "dns_servers"),
            ("dns_search", "dns_search_domains"),
            ("dns_opt", "dns_options"),
            ("group_add", "group_add"),
            ("security_opt", "security_opt"),
        ] {
            if let Some(node) = self.fields.take(from) {
                let list = self.texts(node, from)?;
                self.into.task.config.set_list(to, list);
            }
        }
        if let Some(node) = self.fields.take("extra_hosts") {
            let hosts = match &node.kind {
                Kind::List(_) => self
                    .texts(node, "extra_hosts")?
                    .into_iter()
                    .map(host)
                    .collect(),
                _ => {
                    let pairs = self.pairs(node, "extra_hosts")?;
                    let host = |(name, address): (String, Option<Text>)| {
                        Text::from(format!("{name}:")).then(address.unwrap_or_default())
                    };
                    pairs.into_iter().map(host).collect()
                }
            };
            self.into.task.config.set_list("extra_hosts", hosts);
        }
        // Services in one network reach each other's ports anyway.
        self.fields.take("expose");
        Ok(())
    }

    fn network_mode(&mut self, node: &Node) -> Result<()> {
        let mode = self.known(node, "network_mode")?;
        match mode.as_str() {
            "host" | "none" | "bridge" => self.into.task.config.set("network_mode", mode),
            _ => {
                let advice = "a task cannot be in another one's network; what has to share 127.0.0.1 would be one image, \
                              or tasks of the driver exec in one group with a bridge (docs/networks.md)";
                let what = format!("network_mode {}", quote(&mode));
                self.into.task.config.lost(node.line(), &what, advice);
            }
        }
        Ok(())
    }

    fn ports(&mut self) -> Result<()> {
        let Some(node) = self.fields.take("ports") else {
            return Ok(());
        };
        for item in node.list("ports")? {
            let publication = match &item.kind {
                Kind::Map(_) => self.long_port(item)?,
                _ => self.short_port(item)?,
            };
            let added = publication.add(&mut self.into);
            added.map_err(|message| item.mistake(message))?;
        }
        Ok(())
    }

    fn short_port(&mut self, item: &Node) -> Result<Publication> {
        let text = self.text(item, "a port")?;
        let (plain, mut names) = self.cx.variables.with_defaults(&text);
        let read = Publication::short(&plain, item.line());
        let mut publication = read.map_err(|message| item.mistake(message))?;
        // HOST:INSIDE or ADDRESS:HOST:INSIDE, of which HOST is a variable and nothing else.
        let parts = text.split(':');
        let host = parts
            .len()
            .checked_sub(2)
            .and_then(|at| parts.get(at))
            .and_then(Text::variable);
        if let Some(host) = host
            && parts.len() == plain.split(':').count()
            && self.cx.variables.as_port(host)
        {
            publication.host_expr = Some(format!("var.{host}"));
            names.retain(|name| name != host);
        }
        if !names.is_empty() {
            let words = default_words(&names);
            self.into
                .group
                .network
                .remark(item.line(), "a port", &words);
        }
        Ok(publication)
    }

    fn long_port(&mut self, item: &Node) -> Result<Publication> {
        let mut fields = item.fields("a port")?;
        let mut text = |service: &mut Self, name: &str| match fields.take(name) {
            Some(node) => service.known(node, name),
            None => Ok(String::new()),
        };
        let publication = Publication {
            address: text(self, "host_ip")?,
            host: text(self, "published")?,
            host_expr: None,
            inside: text(self, "target")?,
            protocol: match text(self, "protocol")?.to_ascii_lowercase() {
                none if none.is_empty() => "tcp".to_owned(),
                given => given,
            },
            line: item.line(),
        };
        for (key, _) in fields.rest() {
            let what = format!("{} of a port", key.name);
            self.into.group.network.lost(
                key.at.line,
                &what,
                "ports of a group have nothing like it",
            );
        }
        Ok(publication)
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
                    Some(("mode", value)) => mode = u64::from_str_radix(value, 8).ok(),
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

    fn rights(&mut self) -> Result<()> {
        for name in ["cap_add", "cap_drop"] {
            let Some(node) = self.fields.take(name) else {
                continue;
            };
            let mut names = Vec::new();
            for text in self.texts(node, name)? {
                names.push((self.cx.variables.with_defaults(&text).0, node.line()));
            }
            let list = capabilities::known(&names, name, &mut self.into.task.config);
            if name == "cap_add" && !list.is_empty() {
                let words =
                    "the agent allows more than the usual ones with allow_caps (docs/docker.md)";
                self.into.task.config.remark(node.line(), name, words);
            }
            self.into.task.config.set_list(name, list);
        }
        if let Some(node) = self.fields.take("devices") {
            for item in node.list("devices")? {
                self.device(item)?;
            }
        }
        for (from, to) in [
            ("pid", "pid_mode"),
            ("ipc", "ipc_mode"),
            ("uts", "uts_mode"),
            ("userns_mode", "userns_mode"),
            ("runtime", "runtime"),
        ] {
            if let Some(node) = self.fields.take(from) {
                let mode = self.known(node, from)?;
                if mode.starts_with("service:") || mode.starts_with("container:") {
                    let advice = "a task has nothing of another container";
                    self.into.task.config.lost(node.line(), from, advice);
                    continue;
                }
                let words = "the agent has to allow it (docs/docker.md, settings of the agent)";
                self.into.task.config.remark(node.line(), from, words);
                self.into.task.config.set(to, mode);
            }
        }
        Ok(())
    }

    fn device(&mut self, item: &Node) -> Result<()> {
        let text = match &item.kind {
            Kind::Map(_) => {
                let mut fields = item.fields("a device")?;
                let mut part = |name: &str| fields.take(name).and_then(Node::scalar);
                let parts = [part("source"), part("target"), part("permissions")];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                parts.join(":")
            }
            _ => self.known(item, "devices")?,
        };
        let mut parts = text.split(':');
        let host = parts.next().unwrap_or_default();
        if !host.starts_with('/') {
            let advice =
                "a device by a vendor's name is asked for with `resources { device \"NAME\" {} }`";
            self.into
                .task
                .config
                .lost(item.line(), &format!("device {}", quote(&text)), advice);
            return Ok(());
        }
        let mut body = Body::default();
        body.set("host_path", host);
        for part in parts {
            let is_path = part.starts_with('/');
            body.set(
                if is_path {
                    "container_path"
                } else {
                    "cgroup_permissions"
                },
                part,
            );
        }
        self.into.task.config.block("devices", body);
        Ok(())
    }

    fn limits(&mut self) -> Result<()> {
        if let Some(node) = self.fields.take("shm_size") {
            let bytes = self.bytes(node, "shm_size")?;
            self.into.task.config.set("shm_size", bytes);
        }
        if let Some(node) = self.fields.take("sysctls") {
            let pairs = self.pairs(node, "sysctls")?.into_iter();
            let pairs = pairs.map(|(name, value)| (name, value.unwrap_or_default()));
            self.into.task.config.map("sysctl", pairs.collect());
        }
        if let Some(node) = self.fields.take("ulimits") {
            let mut limits = Vec::new();
            for (key, value) in node.map("ulimits")? {
                let limit = match &value.kind {
                    Kind::Map(_) => {
                        let mut fields = value.fields("a limit")?;
                        let mut part = |name: &str| fields.take(name).and_then(Node::scalar);
                        let (soft, hard) = (part("soft"), part("hard"));
                        let other = || soft.clone().or(hard.clone()).unwrap_or_default();
                        format!(
                            "{}:{}",
                            soft.clone().unwrap_or_else(other),
                            hard.clone().unwrap_or_else(other)
                        )
                    }
                    _ => self.known(value, &key.name)?,
                };
                if !limit
                    .split(':')
                    .all(|it| it.parse::<i64>().is_ok_and(|it| it >= -1))
                {
                    return Err(value.mistake("a limit must be a number, or have soft and hard"));
                }
                limits.push((key.name.clone(), limit.into()));
            }
            self.into.task.config.map("ulimit", limits);
        }
        let Some(node) = self.fields.take("logging") else {
            return Ok(());
        };
        let mut fields = node.fields("logging")?;
        let mut body = Body::default();
        if let Some(driver) = fields.take("driver") {
            let driver = self.text(driver, "driver")?;
            body.set("type", driver);
        }
        if let Some(options) = fields.take("options") {
            let pairs = self.pairs(options, "options")?.into_iter();
            let pairs = pairs.map(|(name, value)| (name, value.unwrap_or_default()));
            body.map("config", pairs.collect());
        }
        self.into.task.config.block("logging", body);
        Ok(())
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

    fn health(&mut self) -> Result<()> {
        let mut check = None;
        if let Some(node) = self.fields.take("healthcheck") {
            match self.healthcheck(node)? {
                Asked::Image => {}
                Asked::By(_) if self.plan.is_first(self.name) => {
                    let advice =
                        "a task that runs before others is not checked: its end is waited for";
                    self.into
                        .task
                        .blocks
                        .lost(node.line(), "healthcheck", advice);
                }
                Asked::By(mut health) => {
                    if self.plan.is_to_be_healthy(self.name) && !health.fails_hard() {
                        let words = "exit code 1 would be a warning, which does not keep others waiting: the image's shell \
                                     makes 2 of it";
                        self.into.task.blocks.remark(node.line(), "test", words);
                    }
                    let words = "compose only marks a container that is unhealthy; check_restart restarts it. Without \
                                 that block it is only marked";
                    self.into
                        .task
                        .blocks
                        .remark(node.line(), "healthcheck", words);
                    check = Some(health.check(true));
                }
                Asked::Nobody => {
                    let mut body = Body::default();
                    body.set("disable", true);
                    self.into.task.config.block("healthchecks", body);
                }
            }
        }
        let port = self.into.group.ports.first().map(|port| port.label.clone());
        let is_wanted = check.is_some() || port.is_some() || self.plan.is_waited_for(self.name);
        let registered = self.cx.registered.get(self.name);
        if let Some(name) = registered.filter(|_| is_wanted && !self.plan.is_first(self.name)) {
            let service = container::service(name, port.as_deref(), check);
            self.into.task.blocks.block("service", service);
        }
        Ok(())
    }

    fn healthcheck(&mut self, node: &Node) -> Result<Asked> {
        let mut fields = node.fields("healthcheck")?;
        let disabled = fields
            .take("disable")
            .map_or(Ok(false), |it| it.flag("disable"))?;
        let test = match fields.take("test") {
            Some(test) => self.test(test)?,
            None => Asked::Image,
        };
        if disabled {
            return Ok(Asked::Nobody);
        }
        let Asked::By(mut health) = test else {
            // Only times were given, for the check of the image; or there is none at all.
            for (key, _) in fields.rest() {
                let what = format!("healthcheck.{}", key.name);
                self.into.task.config.lost(
                    key.at.line,
                    &what,
                    "the image's own check cannot be changed",
                );
            }
            return Ok(test);
        };
        for name in ["interval", "timeout", "start_period"] {
            let Some(node) = fields.take(name) else {
                continue;
            };
            let duration = self.duration(node, name)?;
            match name {
                "interval" => health.interval = duration,
                "timeout" => health.timeout = duration,
                _ => health.grace = duration,
            }
        }
        if let Some(node) = fields.take("retries") {
            let text = self.known(node, "retries")?;
            let number = text.parse::<u64>();
            health.retries = number.map_err(|_| node.mistake("retries must be a number"))?;
        }
        for (key, _) in fields.rest() {
            let what = format!("healthcheck.{}", key.name);
            self.into
                .task
                .blocks
                .lost(key.at.line, &what, "checks have nothing like it");
        }
        Ok(Asked::By(health))
    }

    fn test(&mut self, node: &Node) -> Result<Asked> {
        let Kind::List(list) = &node.kind else {
            return Ok(Asked::By(Health::shell(self.text(node, "test")?)));
        };
        let mut words = Vec::new();
        for item in list.iter().skip(1) {
            words.push(self.text(item, "test")?);
        }
        match list.first().and_then(Node::scalar).as_deref() {
            Some("NONE") => Ok(Asked::Nobody),
            Some("CMD") if !words.is_empty() => Ok(Asked::By(Health::of(words))),
            Some("CMD-SHELL") if !words.is_empty() => {
                let line = words.into_iter().next().unwrap_or_default();
                Ok(Asked::By(Health::shell(line)))
            }
            _ => Err(node.mistake("test must begin with NONE, CMD or CMD-SHELL, and a command")),
        }
    }
}

/// Who asks a container whether it works.
enum Asked {
    /// Whatever the image says.
    Image,
    Nobody,
    By(Health),
}

/// `NAME=ADDRESS` as the engine has it.
fn host(text: Text) -> Text {
    let mut parts = text.split('=').into_iter();
    match (parts.next(), parts.next()) {
        (Some(mut name), Some(address)) => {
            name.push(":");
            name.then(address)
        }
        _ => text,
    }
}
