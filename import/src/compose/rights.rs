//! What a container may do and use beside processor and memory: capabilities, devices, namespaces, limits, logging.

use super::service::Service;
use crate::container::capabilities;
use crate::error::{Result, quote};
use crate::hcl::Body;
use crate::yaml::{Kind, Node};

impl Service<'_, '_> {
    pub(super) fn rights(&mut self) -> Result<()> {
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
                let mut parts = Vec::new();
                for name in ["source", "target", "permissions"] {
                    if let Some(node) = fields.take(name) {
                        parts.push(self.known(node, name)?);
                    }
                }
                parts.join(":")
            }
            _ => self.known(item, "devices")?,
        };
        let what = format!("device {}", quote(&text));
        self.into.device(&text, &what, item.line());
        Ok(())
    }

    pub(super) fn limits(&mut self) -> Result<()> {
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
                        let mut both = Vec::new();
                        for name in ["soft", "hard"] {
                            if let Some(node) = fields.take(name) {
                                both.push(self.known(node, name)?);
                            }
                        }
                        both.join(":")
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
        for (other, _) in fields.rest() {
            let what = format!("logging.{}", other.name);
            body.lost(other.at.line, &what, "the engine has nothing like it");
        }
        self.into.task.config.block("logging", body);
        Ok(())
    }
}
