//! Secrets, configs and files of variables: templates of the task.
//!
//! What secrets hold is not in the file, and does not belong into a job file: it becomes an item of the job's own
//! variable, which is stored encrypted and read by the job alone. The task waits until it is there.

use std::collections::BTreeMap;

use super::service::Service;
use crate::container::{self, key};
use crate::error::{Result, quote};
use crate::hcl::{Body, Expr};
use crate::text::Text;
use crate::yaml::{Kind, Node};

/// The most files of one service.
const MAX_FILES: usize = 100;

/// A secret or a config of the file.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    origin: Origin,
    line: usize,
}

#[derive(Clone, Debug)]
enum Origin {
    File(Node),
    Environment(Node),
    Content(Node),
    Elsewhere,
}

/// `secrets` or `configs` of the file.
pub(super) fn definitions(
    node: Option<&Node>,
    kind: &str,
    notes: &mut Body,
) -> Result<BTreeMap<String, Definition>> {
    let mut all = BTreeMap::new();
    for (name, node) in node.map_or(Ok(&[][..]), |it| it.map(kind))? {
        let mut fields = node.fields(kind)?;
        let found = [
            fields.take("file"),
            fields.take("environment"),
            fields.take("content"),
        ];
        let origin = match found {
            [Some(node), ..] => Origin::File(node.clone()),
            [_, Some(node), _] => Origin::Environment(node.clone()),
            [.., Some(node)] => Origin::Content(node.clone()),
            [None, None, None] => Origin::Elsewhere,
        };
        fields.take("external");
        fields.take("name");
        for (other, _) in fields.rest() {
            let what = format!("{kind}.{}.{}", name.name, other.name);
            notes.lost(other.at.line, &what, "templates have nothing like it");
        }
        let line = name.at.line;
        all.insert(name.name.clone(), Definition { origin, line });
    }
    Ok(all)
}

/// One that a service uses.
pub(super) fn read(service: &mut Service<'_, '_>, kind: &str, item: &Node) -> Result<()> {
    let (mut source, mut target) = (item.scalar(), None);
    if let Kind::Map(_) = item.kind {
        let mut fields = item.fields(kind)?;
        source = fields.take("source").and_then(Node::scalar);
        if let Some(node) = fields.take("target") {
            target = Some(service.known(node, "target")?);
        }
        for (other, _) in fields.rest() {
            let what = format!("{} of {kind}", other.name);
            let advice = "say perms, uid and gid in the template";
            service.into.task.blocks.lost(other.at.line, &what, advice);
        }
    }
    let Some(source) = source else {
        return Err(item.mistake(format!("{kind} must name what the file defines")));
    };
    let is_secret = kind == "secrets";
    let definitions = if is_secret {
        &service.cx.secrets
    } else {
        &service.cx.configs
    };
    let Some(definition) = definitions.get(&source).cloned() else {
        let message = format!("{kind} has no {}", quote(&source));
        return Err(item.mistake(message));
    };
    let target = match target {
        Some(target) if target.starts_with('/') => target,
        Some(target) if is_secret => format!("/run/secrets/{target}"),
        None if is_secret => format!("/run/secrets/{source}"),
        Some(target) => format!("/{target}"),
        None => format!("/{source}"),
    };
    if target.contains([':', '\0']) || service.into.binds.len() >= MAX_FILES {
        return Err(item.mistake(format!(
            "{kind}: {} cannot be put into the container",
            quote(&target)
        )));
    }
    let folder = if is_secret { "secrets" } else { "local" };
    let number = service.into.binds.len();
    let file = format!("{folder}/{}-{number}", key(&source));
    let template = template(service, &source, &definition, is_secret, &file)?;
    service.into.task.blocks.block("template", template);
    service
        .into
        .binds
        .push(format!("{file}:{target}:ro").into());
    Ok(())
}

fn template(
    service: &mut Service<'_, '_>,
    name: &str,
    definition: &Definition,
    is_secret: bool,
    file: &str,
) -> Result<Body> {
    let variable = format!("nomad/jobs/{}", service.cx.project);
    let item = key(name);
    let notes = &mut service.into.task.blocks;
    let line = definition.line;
    let command = match &definition.origin {
        Origin::Content(node) => {
            let text = service.cx.variables.text(node, "content")?;
            return Ok(container::verbatim(text.into(), file));
        }
        Origin::File(node) if !is_secret => {
            let data = content(service, node)?;
            return Ok(container::verbatim(data, file));
        }
        Origin::File(node) => {
            let path = node.scalar().unwrap_or_default();
            format!("drover var put {variable} {item}=@{path}")
        }
        Origin::Environment(node) => {
            let name = node.scalar().unwrap_or_default();
            format!("drover var put {variable} {item}=\"${name}\"")
        }
        Origin::Elsewhere => format!("drover var put {variable} {item}=-"),
    };
    notes.comment(format!(
        "{name} (line {line}): the task waits until its value is there. Several items of a job are given in one command.\n  {command}"
    ));
    Ok(container::secret(&variable, &item, file))
}

/// What is in a file beside the compose file, when the job is submitted.
fn content(service: &mut Service<'_, '_>, node: &Node) -> Result<Expr> {
    let path = service.known(node, "file")?;
    let path = service.cx.path(&path).quoted();
    Ok(Expr::Raw(format!("file({path})")))
}

/// `env_file`: one, or a list of them.
pub(super) fn environment(service: &mut Service<'_, '_>, node: &Node) -> Result<()> {
    let one = core::slice::from_ref(node);
    let list = match &node.kind {
        Kind::List(list) => list.as_slice(),
        _ => one,
    };
    if list.len() > MAX_FILES {
        return Err(node.mistake(format!("more than {MAX_FILES} files of variables")));
    }
    let has_own = !service.into.task.env.is_empty();
    for (at, item) in list.iter().enumerate() {
        let mut required = true;
        let mut path = item;
        if let Kind::Map(_) = item.kind {
            let mut fields = item.fields("env_file")?;
            path = fields
                .take("path")
                .ok_or_else(|| item.mistake("env_file needs a path"))?;
            required = fields
                .take("required")
                .map_or(Ok(true), |it| it.flag("required"))?;
            for (other, _) in fields.rest() {
                let what = format!("{} of env_file", other.name);
                service
                    .into
                    .task
                    .blocks
                    .lost(other.at.line, &what, "lines are read as NAME=VALUE");
            }
        }
        let line = item.line();
        let text: Text = {
            let plain = service.known(path, "env_file")?;
            service.cx.path(&plain)
        };
        let path = text.quoted();
        let data = match required {
            true => format!("file({path})"),
            false => format!("fileexists({path}) ? file({path}) : \"# not there\\n\""),
        };
        let mut words = format!(
            "The file of variables of line {line}, as it is when the job is submitted. It becomes a part of the job; for \
             secrets see `drover var put`."
        );
        if has_own {
            words.push_str(
                " What it says goes before env, which with compose is the other way round.",
            );
        }
        service.into.task.blocks.comment(words);
        let mut template =
            container::verbatim(Expr::Raw(data), &format!("secrets/variables-{at}.env"));
        template.set("env", true);
        service.into.task.blocks.block("template", template);
    }
    Ok(())
}
