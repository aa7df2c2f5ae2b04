//! `healthcheck`: a check of the service that a task registers.

use super::service::Service;
use crate::container;
use crate::container::health::Health;
use crate::error::Result;
use crate::hcl::Body;
use crate::measure::Duration;
use crate::yaml::{Kind, Node};

/// Who asks a container whether it works.
enum Asked {
    /// Whatever the image says.
    Image,
    Nobody,
    By(Health),
}

impl Service<'_, '_> {
    pub(super) fn health(&mut self) -> Result<()> {
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
                    // How long it takes to start is known only if that was said: a restart before would be for ever.
                    let restarts = health.grace > Duration(0);
                    if restarts {
                        let words = "compose only marks a container that is unhealthy; check_restart restarts it";
                        self.into
                            .task
                            .blocks
                            .remark(node.line(), "healthcheck", words);
                    }
                    check = Some(health.check(restarts));
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
