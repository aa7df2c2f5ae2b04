//! Files of a quadlet's container: volumes, mounts, variables in files, secrets.

use super::{MAX_FILES, Quadlet};
use crate::container::mounts::{self, Mount, Origin};
use crate::container::{self, key};
use crate::error::{Result, quote};
use crate::job::name;
use crate::measure;
use crate::unit::environment_file;
use crate::unit::read::{Entry, Specifiers, at_most};

impl Quadlet {
    pub(super) fn volumes(&mut self) -> Result<()> {
        for entry in self.all("Volume") {
            let mut parts = entry.value.split(':');
            let (first, second, mode) =
                (parts.next().unwrap_or_default(), parts.next(), parts.next());
            let (source, target) = match second {
                Some(target) => (Some(first), target),
                None => (None, first),
            };
            let (read_only, label, others) = mounts::modes(mode.unwrap_or_default());
            for other in others {
                let what = format!("mode {} of a volume", quote(&other));
                self.into
                    .mounts
                    .lost(entry.line, &what, "ro, rw, z and Z are carried over");
            }
            let origin = match source {
                Some(source) => self.origin(source),
                None => Origin::Nameless,
            };
            let mount = Mount {
                origin,
                target: target.into(),
                read_only,
                label,
                line: entry.line,
            };
            mount.add(&mut self.into);
        }
        for entry in self.all("Mount") {
            self.mount(&entry);
        }
        for entry in self.all("Tmpfs") {
            let (target, options) = entry.value.split_once(':').unwrap_or((&entry.value, ""));
            let size = options
                .split(',')
                .find_map(|it| it.strip_prefix("size="))
                .and_then(measure::bytes);
            let others = options
                .split(',')
                .any(|it| !it.is_empty() && !it.starts_with("size="));
            if others {
                self.into.mounts.lost(
                    entry.line,
                    "options of Tmpfs",
                    "the driver knows size and mode",
                );
            }
            self.into.tmpfs(target.into(), size, None, entry.line);
        }
        Ok(())
    }

    fn origin(&self, source: &str) -> Origin {
        match source.chars().next() {
            None => Origin::Nameless,
            Some('/') => Origin::Host(source.into()),
            Some('.') => {
                let path = source.trim_start_matches("./").trim_start_matches('.');
                Origin::Host(format!("{}/{path}", self.directory).into())
            }
            Some(_) => {
                let volume = source.strip_suffix(".volume").unwrap_or(source);
                Origin::Named {
                    name: volume.to_owned(),
                    source: name(volume),
                }
            }
        }
    }

    /// `type=bind,source=…,target=…`.
    fn mount(&mut self, entry: &Entry) {
        let mut found = std::collections::BTreeMap::new();
        for option in entry.value.split(',') {
            let (name, value) = option.split_once('=').unwrap_or((option, "true"));
            let name = match name {
                "src" => "source",
                "dst" | "destination" => "target",
                "ro" | "readonly" => "read_only",
                "tmpfs-size" => "size",
                other => other,
            };
            found.insert(name, value);
        }
        let mut take = |name: &str| found.remove(name).unwrap_or_default().to_owned();
        let (kind, source, target) = (take("type"), take("source"), take("target"));
        let read_only = take("read_only") == "true";
        let size = measure::bytes(&take("size"));
        let line = entry.line;
        let origin = match kind.as_str() {
            "tmpfs" => {
                self.into.tmpfs(target.as_str().into(), size, None, line);
                None
            }
            "bind" | "volume" => Some(self.origin(&source)),
            _ => {
                let what = format!("a mount of type {}", quote(&kind));
                self.into
                    .mounts
                    .lost(line, &what, "bind, volume and tmpfs are carried over");
                return;
            }
        };
        if let Some(origin) = origin {
            let label = String::new();
            Mount {
                origin,
                target: target.into(),
                read_only,
                label,
                line,
            }
            .add(&mut self.into);
        }
        if !found.is_empty() {
            let names: Vec<&str> = found.into_keys().collect();
            let what = format!("{} of a mount", names.join(", "));
            self.into
                .mounts
                .lost(line, &what, "see mount of docs/docker.md");
        }
    }

    pub(super) fn environment(&mut self) -> Result<()> {
        let mut env = self.pairs("Environment")?;
        if let Some(entry) = self.last("Timezone") {
            match entry.value.as_str() {
                "local" => {
                    let words = "the image's own time zone is used";
                    self.into
                        .task
                        .env_notes
                        .lost(entry.line, "Timezone=local", words);
                }
                zone => env.push(("TZ".to_owned(), zone.into())),
            }
        }
        self.into.task.env = env;
        for entry in at_most(MAX_FILES, self.all("EnvironmentFile"))? {
            let path = match entry.value.starts_with(['/', '-']) {
                true => entry.value,
                false => format!(
                    "{}/{}",
                    self.directory,
                    entry.value.trim_start_matches("./")
                ),
            };
            let blocks = &mut self.into.task.blocks;
            environment_file(blocks, &path, entry.line, &Specifiers::default());
        }
        Ok(())
    }

    /// `NAME[,type=mount|env][,target=…]`.
    pub(super) fn secrets(&mut self) -> Result<()> {
        for (at, entry) in at_most(MAX_FILES, self.all("Secret"))?
            .into_iter()
            .enumerate()
        {
            let mut options = entry.value.split(',');
            let secret = options.next().unwrap_or_default();
            let (mut is_env, mut target) = (false, None);
            for option in options {
                match option.split_once('=') {
                    Some(("type", kind)) => is_env = kind == "env",
                    Some(("target", path)) => target = Some(path),
                    _ => {
                        let what = format!("option {option} of a secret");
                        let advice = "say perms, uid and gid in the template";
                        self.into.task.blocks.lost(entry.line, &what, advice);
                    }
                }
            }
            let variable = format!("nomad/jobs/{}", self.job);
            let item = key(secret);
            self.into.task.blocks.comment(format!(
                "{secret} (line {}): the task waits until its value is there. Several items of a job are given in one command.\n  \
                 drover var put {variable} {item}=-",
                entry.line
            ));
            let file = format!("secrets/{item}-{at}");
            let mut template = container::secret(&variable, &item, &file);
            if is_env {
                let name = key(target.unwrap_or(secret));
                let data = format!(
                    "{name}={{{{ with nomadVar \"{variable}\" }}}}{{{{ .{item} | toJSON }}}}{{{{ end }}}}"
                );
                template.set("data", data);
                template.set("env", true);
            } else {
                let target = target.unwrap_or(secret);
                let target = match target.starts_with('/') {
                    true => target.to_owned(),
                    false => format!("/run/secrets/{target}"),
                };
                if target.contains(':') {
                    return Err(entry.mistake("the path of a secret has no colon"));
                }
                self.into.binds.push(format!("{file}:{target}:ro").into());
            }
            self.into.task.blocks.block("template", template);
        }
        Ok(())
    }
}
