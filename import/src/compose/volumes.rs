//! `volumes` of a service, short and long, and of the file.

use std::collections::BTreeMap;

use super::interpolate::Variables;
use super::service::Service;
use crate::container::mounts::{self, Mount, Origin};
use crate::error::{Result, quote};
use crate::hcl::Body;
use crate::text::Text;
use crate::yaml::{Kind, Node};

/// A volume of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Definition {
    /// Its name outside of the file.
    name: Option<String>,
}

/// The volumes of the file.
pub(super) fn definitions(
    node: Option<&Node>,
    variables: &mut Variables,
    notes: &mut Body,
) -> Result<BTreeMap<String, Definition>> {
    let mut all = BTreeMap::new();
    for (key, node) in node.map_or(Ok(&[][..]), |it| it.map("volumes"))? {
        let mut fields = node.fields("a volume")?;
        let mut name = match fields.take("name") {
            Some(node) => Some(variables.resolved(node, "name")?.0),
            None => None,
        };
        if let Some(external) = fields.take("external")
            && !matches!(external.kind, Kind::Bool(false))
        {
            name.get_or_insert_with(|| key.name.clone());
        }
        match fields.take("driver") {
            Some(driver) if driver.scalar().as_deref() != Some("local") => {
                let what = format!("volumes.{}.driver", key.name);
                let advice =
                    "a host volume is a directory of the node: mount there what the driver mounted";
                notes.lost(driver.line(), &what, advice);
            }
            Some(_) | None => {}
        }
        for (other, _) in fields.rest() {
            let what = format!("volumes.{}.{}", key.name, other.name);
            let advice = match other.name.as_str() {
                "driver_opts" => {
                    "a host volume is a directory of the node: mount there what the options mounted"
                }
                _ => "host volumes have nothing like it",
            };
            notes.lost(other.at.line, &what, advice);
        }
        all.insert(key.name.clone(), Definition { name });
    }
    Ok(all)
}

/// One of a service.
pub(super) fn read(service: &mut Service<'_, '_>, item: &Node) -> Result<()> {
    match &item.kind {
        Kind::Map(_) => long(service, item),
        _ => short(service, item),
    }
}

fn short(service: &mut Service<'_, '_>, item: &Node) -> Result<()> {
    let line = item.line();
    let text = service.text(item, "a volume")?;
    let mut parts = text.split(':');
    let (mode, target, source) = match (parts.pop(), parts.pop(), parts.pop(), parts.pop()) {
        (Some(target), None, ..) => (None, target, None),
        (Some(target), Some(source), None, _) => (None, target, Some(source)),
        (Some(mode), Some(target), Some(source), None) => (Some(mode), target, Some(source)),
        _ => {
            let advice = "a volume is SOURCE:TARGET or SOURCE:TARGET:MODE";
            let what = quote(&item.scalar().unwrap_or_default());
            service.into.mounts.lost(line, &what, advice);
            return Ok(());
        }
    };
    let target = service.target(target);
    let mode = mode
        .map(|it| service.cx.variables.with_defaults(&it).0)
        .unwrap_or_default();
    let (read_only, label, others) = mounts::modes(&mode);
    for other in others {
        let what = format!("mode {} of a volume", quote(&other));
        service
            .into
            .mounts
            .lost(line, &what, "ro, rw, z and Z are carried over");
    }
    let origin = match source {
        Some(source) => origin(service, source, line),
        None => Origin::Nameless,
    };
    Mount {
        origin,
        target,
        read_only,
        label,
        line,
    }
    .add(&mut service.into);
    Ok(())
}

/// Whether a source is a path or a name.
fn origin(service: &mut Service<'_, '_>, source: Text, line: usize) -> Origin {
    let (plain, names) = service.cx.variables.with_defaults(&source);
    if plain.starts_with('/') {
        return Origin::Host(source);
    }
    if plain.starts_with(['.', '~']) {
        if !names.is_empty() {
            let words = crate::container::ports::default_words(&names);
            service
                .into
                .task
                .body
                .remark(line, "a path of the host", &words);
        }
        return Origin::Host(service.cx.path(&plain));
    }
    if !names.is_empty() {
        let words = crate::container::ports::default_words(&names);
        service
            .into
            .task
            .body
            .remark(line, "a volume's name", &words);
    }
    named(service, &plain)
}

fn named(service: &Service<'_, '_>, name: &str) -> Origin {
    if name.is_empty() {
        return Origin::Nameless;
    }
    let outside = service
        .cx
        .volumes
        .get(name)
        .and_then(|it| it.name.as_deref());
    let source = match outside {
        Some(outside) => crate::job::name(outside),
        None => mounts::source(&service.cx.project, name),
    };
    Origin::Named {
        name: name.to_owned(),
        source,
    }
}

fn long(service: &mut Service<'_, '_>, item: &Node) -> Result<()> {
    let line = item.line();
    let mut fields = item.fields("a volume")?;
    let Some(target) = fields.take("target") else {
        return Err(item.mistake("a volume needs a target"));
    };
    let target = service.text(target, "target")?;
    let target = service.target(target);
    let kind = fields
        .take("type")
        .and_then(Node::scalar)
        .unwrap_or_else(|| "volume".to_owned());
    let read_only = fields
        .take("read_only")
        .map_or(Ok(false), |it| it.flag("read_only"))?;
    let source = match fields.take("source") {
        Some(node) => Some(service.text(node, "source")?),
        None => None,
    };
    match (kind.as_str(), source) {
        ("bind", Some(source)) => {
            let (plain, _) = service.cx.variables.with_defaults(&source);
            let origin = match plain.starts_with('/') {
                true => Origin::Host(source),
                false => Origin::Host(service.cx.path(&plain)),
            };
            let label = label(service, &mut fields)?;
            Mount {
                origin,
                target,
                read_only,
                label,
                line,
            }
            .add(&mut service.into);
        }
        ("volume", source) => {
            let origin = match source {
                Some(source) => {
                    let (plain, _) = service.cx.variables.with_defaults(&source);
                    named(service, &plain)
                }
                None => Origin::Nameless,
            };
            let label = String::new();
            Mount {
                origin,
                target,
                read_only,
                label,
                line,
            }
            .add(&mut service.into);
        }
        ("tmpfs", _) => {
            let (size, mode) = tmpfs(service, fields.take("tmpfs"))?;
            service.into.tmpfs(target, size, mode, line);
        }
        (other, _) => {
            let what = format!("a volume of type {}", quote(other));
            let advice = "bind (with a source), volume and tmpfs are carried over";
            service.into.mounts.lost(line, &what, advice);
        }
    }
    rest(service, &fields, "");
    Ok(())
}

/// Size and permissions of a file system in memory.
fn tmpfs(service: &mut Service<'_, '_>, node: Option<&Node>) -> Result<(Option<u64>, Option<u64>)> {
    let (mut size, mut mode) = (None, None);
    let Some(node) = node else {
        return Ok((size, mode));
    };
    let mut fields = node.fields("tmpfs")?;
    if let Some(node) = fields.take("size") {
        size = Some(service.bytes(node, "size")?);
    }
    if let Some(node) = fields.take("mode") {
        let text = service.known(node, "mode")?;
        mode = text.parse::<u64>().ok().filter(|mode| *mode <= 0o7777);
        if mode.is_none() {
            return Err(node.mistake(format!("mode: {} are no permissions", quote(&text))));
        }
    }
    rest(service, &fields, "tmpfs.");
    Ok((size, mode))
}

/// `bind { selinux }`.
fn label(service: &mut Service<'_, '_>, fields: &mut crate::yaml::Fields<'_>) -> Result<String> {
    let Some(node) = fields.take("bind") else {
        return Ok(String::new());
    };
    let mut bind = node.fields("bind")?;
    // The directory is never made here: a task whose directory is missing fails, and says so.
    bind.take("create_host_path");
    let mut label = String::new();
    if let Some(node) = bind.take("selinux") {
        label = service.known(node, "selinux")?;
        if !matches!(label.as_str(), "z" | "Z") {
            return Err(node.mistake("selinux must be z or Z"));
        }
    }
    rest(service, &bind, "bind.");
    Ok(label)
}

fn rest(service: &mut Service<'_, '_>, fields: &crate::yaml::Fields<'_>, above: &str) {
    for (key, _) in fields.rest() {
        let what = format!("{above}{} of a volume", key.name);
        let advice = match key.name.as_str() {
            "volume" | "propagation" => "see the mount block of the driver (docs/docker.md)",
            _ => "nothing here is like it",
        };
        service.into.mounts.lost(key.at.line, &what, advice);
    }
}
