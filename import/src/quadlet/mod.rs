//! Quadlets: containers that podman makes units of (`NAME.container`), as tasks of the driver `docker`.
//!
//! The sections `[Unit]`, `[Service]` and `[Install]` mean what they mean in units.

mod files;

use crate::container::capabilities;
use crate::container::health::Health;
use crate::container::ports::Publication;
use crate::container::{self, Container, USUAL_GRACE};
use crate::error::{Error, Mistake, Place, Result};
use crate::hcl::Body;
use crate::job::{Group, Job, name, service_name};
use crate::measure;
use crate::text::Text;
use crate::unit::common;
use crate::unit::read::{Entry, Specifiers, Unit, words};
use crate::unit::{advice_of, finish, short_value};
use crate::{Source, words as shell_words};

const SECTION: &str = "Container";
/// The most secrets and files of variables.
const MAX_FILES: usize = 100;
/// The most values of a kind, such as labels.
const MAX_PAIRS: usize = 2_000;

/// The job file of a quadlet.
pub(crate) fn import(
    file: &Source<'_>,
    timer: Option<&Source<'_>>,
) -> core::result::Result<String, Error> {
    let read = || -> Result<Job> {
        let mut unit = Unit::read(file.text)?;
        let is_batch = timer.is_some() || common::is_oneshot(&mut unit);
        let mut job = Job {
            name: name(&file.stem().replace('@', "-")),
            is_batch,
            ..Job::default()
        };
        common::about(&mut unit, &mut job);
        let mut quadlet = Quadlet {
            unit,
            specifiers: Specifiers::of(&format!("{}.service", file.stem())),
            job: job.name.clone(),
            directory: file.directory.trim_end_matches('/').to_owned(),
            into: Container::default(),
        };
        quadlet.container(is_batch)?;
        job.groups.push(quadlet.finish());
        Ok(job)
    };
    let job = read().map_err(|mistake| mistake.of(file.name))?;
    finish(job, file, timer)
}

struct Quadlet {
    unit: Unit,
    specifiers: Specifiers,
    job: String,
    directory: String,
    into: Container,
}

impl Quadlet {
    fn last(&mut self, key: &str) -> Option<Entry> {
        let mut entry = self.unit.last(SECTION, key)?;
        entry.value = self.specifiers.replace(&entry.value).0;
        Some(entry)
    }

    fn all(&mut self, key: &str) -> Vec<Entry> {
        let mut all = self.unit.all(SECTION, key);
        for entry in &mut all {
            entry.value = self.specifiers.replace(&entry.value).0;
        }
        all
    }

    /// The words of all values of a key.
    fn words(&mut self, key: &str) -> Result<Vec<(String, usize)>> {
        let mut list = Vec::new();
        for entry in self.all(key) {
            list.extend(words(&entry)?.into_iter().map(|word| (word, entry.line)));
        }
        Ok(list)
    }

    /// Words of the form `NAME=VALUE`.
    fn pairs(&mut self, key: &str) -> Result<Vec<(String, Text)>> {
        let mut pairs: Vec<(String, Text)> = Vec::new();
        for (word, line) in self.words(key)? {
            let (name, value) = word.split_once('=').unwrap_or((&word, ""));
            if pairs.len() > MAX_PAIRS {
                let message = format!("{key}: more than {MAX_PAIRS} values");
                return Err(Mistake::new(Place { line, column: 1 }, message));
            }
            if !name.is_empty() {
                pairs.retain(|(other, _)| other != name);
                pairs.push((name.to_owned(), value.into()));
            }
        }
        Ok(pairs)
    }

    fn container(&mut self, is_batch: bool) -> Result<()> {
        self.into.task.name.clone_from(&self.job);
        self.into.group.name.clone_from(&self.job);
        self.into.task.driver = "docker";
        self.image()?;
        self.program()?;
        self.network();
        self.ports()?;
        self.volumes()?;
        self.environment()?;
        self.secrets()?;
        self.rights()?;
        self.limits()?;
        self.health()?;
        self.ends();
        common::restart(&mut self.unit, &mut self.into.group.body, is_batch)?;
        common::longest(&mut self.unit, &mut self.into.group.body, is_batch);
        self.unit.last("Service", "Type");
        Ok(())
    }

    fn finish(mut self) -> Group {
        for entry in self.unit.rest() {
            let what = format!("{}={}", entry.key, short_value(&entry.value));
            let advice = advice_of(&entry.section, &entry.key);
            let body = match entry.section.as_str() {
                SECTION => &mut self.into.task.config,
                "Service" => &mut self.into.task.body,
                _ => &mut self.into.group.body,
            };
            body.lost(entry.line, &what, advice);
        }
        self.into.finish()
    }

    fn image(&mut self) -> Result<()> {
        let Some(entry) = self.last("Image").filter(|entry| {
            !entry
                .value
                .contains(|c: char| c.is_whitespace() || c.is_control())
        }) else {
            let message = "there is no Image in a section [Container]";
            return Err(Mistake::new(Place::default(), message));
        };
        let config = &mut self.into.task.config;
        if entry.value.ends_with(".image") || entry.value.ends_with(".build") {
            let advice = "that file is not read: write the name of the image here";
            config.lost(entry.line, &entry.value, advice);
        }
        config.set("image", entry.value);
        match self.last("Pull") {
            Some(entry) if matches!(entry.value.as_str(), "always" | "newer") => {
                self.into.task.config.set("force_pull", true);
            }
            Some(entry) if entry.value == "never" => {
                let advice = "an image that is not there is fetched";
                self.into.task.config.lost(entry.line, "Pull=never", advice);
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    fn program(&mut self) -> Result<()> {
        if let Some(entry) = self.last("Entrypoint") {
            // A list in JSON, or one word.
            let list = entry
                .value
                .trim_start_matches('[')
                .trim_end_matches(']')
                .replace(',', " ");
            let line = if entry.value.starts_with('[') {
                &list
            } else {
                &entry.value
            };
            let cut = shell_words::split(line);
            let cut = cut.ok_or_else(|| entry.mistake("Entrypoint: a quote has no end"))?;
            let list = cut.into_iter().map(Text::from).collect();
            self.into.task.config.set_list("entrypoint", list);
        }
        let args = self.words("Exec")?;
        let args = args.into_iter().map(|(word, _)| Text::from(word)).collect();
        self.into.task.config.set_list("args", args);
        for (from, to) in [("WorkingDir", "work_dir"), ("HostName", "hostname")] {
            let Some(entry) = self.last(from) else {
                continue;
            };
            match to == "work_dir" && !entry.value.starts_with('/') {
                true => self
                    .into
                    .task
                    .config
                    .lost(entry.line, from, "work_dir must be absolute"),
                false => self.into.task.config.set(to, entry.value),
            }
        }
        for (from, to) in [("RunInit", "init"), ("ReadOnly", "readonly_rootfs")] {
            if let Some(value) = self.unit.flag(SECTION, from)? {
                self.into.task.config.set(to, value);
            }
        }
        if let Some(entry) = self.last("User") {
            if entry.value.contains(char::is_control) {
                return Err(entry.mistake("User must not contain control characters"));
            }
            self.into.task.body.set("user", entry.value);
        }
        Ok(())
    }

    fn network(&mut self) {
        let mut aliases: Vec<Text> = Vec::new();
        for entry in self.all("NetworkAlias") {
            aliases.push(entry.value.into());
        }
        if let Some(entry) = self.last("ContainerName") {
            let words = "the engine gives containers other names here; it is known by this one in a network of the engine";
            self.into
                .task
                .config
                .remark(entry.line, "ContainerName", words);
            aliases.push(entry.value.into());
        }
        let mut joined = false;
        for (at, entry) in self.all("Network").into_iter().enumerate() {
            let (name, options) = entry.value.split_once(':').unwrap_or((&entry.value, ""));
            let config = &mut self.into.task.config;
            if at > 0
                || !options.is_empty()
                || matches!(name, "pasta" | "slirp4netns" | "container" | "private")
            {
                let what = format!("Network={}", short_value(&entry.value));
                config.lost(
                    entry.line,
                    &what,
                    "a task is in one network: host, none, bridge, or one of the engine",
                );
                continue;
            }
            let name = name.strip_suffix(".network").unwrap_or(name);
            if !matches!(name, "host" | "none" | "bridge") {
                joined = true;
                let words = format!("the network has to be there: `docker network create {name}`");
                config.remark(entry.line, "Network", &words);
            }
            config.set("network_mode", name);
        }
        if joined {
            self.into.task.config.set_list("network_aliases", aliases);
        }
        for (from, to) in [("IP", "ipv4_address"), ("IP6", "ipv6_address")] {
            if let Some(entry) = self.last(from) {
                self.into.task.config.set(to, entry.value);
            }
        }
        for (from, to) in [
            ("AddHost", "extra_hosts"),
            ("DNS", "dns_servers"),
            ("DNSSearch", "dns_search_domains"),
            ("DNSOption", "dns_options"),
            ("GroupAdd", "group_add"),
        ] {
            let list = self
                .all(from)
                .into_iter()
                .map(|entry| Text::from(entry.value));
            let list = list.collect();
            self.into.task.config.set_list(to, list);
        }
    }

    fn ports(&mut self) -> Result<()> {
        // Containers in one network reach each other's ports anyway.
        self.all("ExposeHostPort");
        for entry in self.all("PublishPort") {
            let read = Publication::short(&entry.value, entry.line);
            let added = read.and_then(|publication| publication.add(&mut self.into));
            added.map_err(|message| entry.mistake(message))?;
        }
        Ok(())
    }

    fn rights(&mut self) -> Result<()> {
        for (from, to) in [("AddCapability", "cap_add"), ("DropCapability", "cap_drop")] {
            let names = self.words(from)?;
            let list = capabilities::known(&names, from, &mut self.into.task.config);
            if from == "AddCapability" && !list.is_empty() {
                let words =
                    "The agent allows more than the usual ones with allow_caps (docs/docker.md).";
                self.into.task.config.comment(words);
            }
            self.into.task.config.set_list(to, list);
        }
        let mut options = Vec::new();
        if self.unit.flag(SECTION, "NoNewPrivileges")? == Some(true) {
            options.push(Text::from("no-new-privileges"));
        }
        if self.unit.flag(SECTION, "SecurityLabelDisable")? == Some(true) {
            options.push(Text::from("label=disable"));
        }
        self.into.task.config.set_list("security_opt", options);
        for entry in self.all("AddDevice") {
            // A dash means that it need not be there.
            let text = entry.value.trim_start_matches('-');
            let what = format!("AddDevice={}", short_value(text));
            self.into.device(text, &what, entry.line);
        }
        Ok(())
    }

    fn limits(&mut self) -> Result<()> {
        if let Some(entry) = self.last("ShmSize") {
            let bytes = measure::bytes(&entry.value);
            let bytes = bytes.ok_or_else(|| entry.mistake("ShmSize must be a size such as 64m"))?;
            self.into.task.config.set("shm_size", bytes);
        }
        if let Some(entry) = self.last("PidsLimit") {
            match entry.value.parse::<u64>().ok().filter(|it| *it <= 1 << 22) {
                Some(number) => self.into.task.config.set("pids_limit", number),
                None => {
                    self.into
                        .task
                        .config
                        .lost(entry.line, "PidsLimit", "it must be a number here")
                }
            }
        }
        let sysctls = self.pairs("Sysctl")?;
        self.into.task.config.map("sysctl", sysctls);
        let mut limits: Vec<(String, Text)> = Vec::new();
        for entry in self.all("Ulimit") {
            let (name, limit) = entry.value.split_once('=').unwrap_or((&entry.value, ""));
            if !limit
                .split(':')
                .all(|it| it.parse::<i64>().is_ok_and(|it| it >= -1))
            {
                let what = format!("Ulimit={}", short_value(&entry.value));
                self.into.task.config.lost(
                    entry.line,
                    &what,
                    "a number or two are needed: NAME=SOFT:HARD",
                );
                continue;
            }
            limits.retain(|(other, _)| other != name);
            limits.push((name.to_owned(), limit.into()));
        }
        self.into.task.config.map("ulimit", limits);
        let labels = self.pairs("Label")?;
        self.into.task.config.map("labels", labels);
        let options = self.pairs("LogOpt")?;
        if let Some(entry) = self.last("LogDriver") {
            let mut body = Body::default();
            body.set("type", entry.value);
            body.map("config", options);
            self.into.task.config.block("logging", body);
        }
        let mut limit = None;
        if let Some(entry) = self.last("Memory") {
            limit = measure::bytes(&entry.value);
            if limit.is_none() {
                let what = format!("Memory={}", short_value(&entry.value));
                let resources = &mut self.into.task.resources;
                resources.lost(entry.line, &what, "a size such as 512m is needed");
            }
        }
        match limit {
            Some(limit) => container::memory(&mut self.into.task.resources, None, Some(limit)),
            None => common::resources(&mut self.unit, &mut self.into.task.resources),
        }
        Ok(())
    }

    fn health(&mut self) -> Result<()> {
        let port = self.into.group.ports.first().map(|port| port.label.clone());
        let mut check = None;
        if let Some(entry) = self.last("HealthCmd") {
            if entry.value == "none" {
                let mut body = Body::default();
                body.set("disable", true);
                self.into.task.config.block("healthchecks", body);
            } else {
                let mut health = Health::shell(entry.value.as_str().into());
                for key in ["HealthInterval", "HealthTimeout", "HealthStartPeriod"] {
                    let Some(entry) = self.last(key) else {
                        continue;
                    };
                    let Some(duration) = measure::duration(&entry.value) else {
                        let what = format!("{key}={}", short_value(&entry.value));
                        self.into.task.blocks.lost(
                            entry.line,
                            &what,
                            "a duration such as 30s is needed",
                        );
                        continue;
                    };
                    match key {
                        "HealthInterval" => health.interval = duration,
                        "HealthTimeout" => health.timeout = duration,
                        _ => health.grace = duration,
                    }
                }
                if let Some(entry) = self.last("HealthRetries") {
                    let number = entry.value.parse::<u64>();
                    health.retries =
                        number.map_err(|_| entry.mistake("HealthRetries must be a number"))?;
                }
                let action = self.last("HealthOnFailure").map(|entry| entry.value);
                let restarts = matches!(action.as_deref(), Some("kill" | "restart" | "stop"));
                check = Some(health.check(restarts));
            }
        }
        if check.is_some() || port.is_some() {
            let name = service_name(&self.job);
            let service = container::service(&name, port.as_deref(), check);
            self.into.task.blocks.block("service", service);
        }
        Ok(())
    }

    fn ends(&mut self) {
        if let Some(entry) = self.last("StopSignal") {
            self.into.task.body.set("kill_signal", entry.value);
        }
        let mut asked = None;
        if let Some(entry) = self.last("StopTimeout") {
            asked = measure::duration(&entry.value);
            if asked.is_none() {
                let what = format!("StopTimeout={}", short_value(&entry.value));
                let body = &mut self.into.task.body;
                body.lost(entry.line, &what, "a number of seconds is needed");
            }
        }
        common::ends(
            &mut self.unit,
            &mut self.into.task.body,
            asked.unwrap_or(USUAL_GRACE),
        );
    }
}
