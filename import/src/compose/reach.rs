//! How a container is reached, and what it reaches: networks, names, ports.

use super::service::Service;
use crate::container::ports::{Publication, default_words};
use crate::error::{Result, quote};
use crate::text::Text;
use crate::yaml::{Kind, Node};

impl Service<'_, '_> {
    pub(super) fn networks(&mut self) -> Result<()> {
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

    pub(super) fn ports(&mut self) -> Result<()> {
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
