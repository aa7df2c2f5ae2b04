//! The handshake's bytes, as [`super::wire`] describes them.

use super::record::Id;
use super::spec::{Cgroup, Entrance, Isolation, LaunchSpec, Logs};
use super::wire;
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Encodes header and body of a start. Who is connected to it has a terminal or not.
pub(super) fn start(
    launch: &Id,
    spec: &LaunchSpec<'_>,
    connected: Option<bool>,
) -> io::Result<Vec<u8>> {
    let mut body = Body::new(launch, &spec.logs, &spec.cgroup)?;
    let groups = spec.user.groups.unwrap_or_default();
    let flag = |given: bool, flag: u32| if given { flag } else { 0 };
    body.u32(
        flag(spec.user.ids.is_some(), wire::HAS_USER)
            | flag(spec.user.groups.is_some(), wire::HAS_GROUPS)
            | flag(spec.oom_score_adj.is_some(), wire::HAS_OOM_SCORE)
            | flag(spec.umask.is_some(), wire::HAS_UMASK)
            | flag(spec.open_files.is_some(), wire::HAS_OPEN_FILES)
            | flag(connected == Some(true), wire::HAS_TTY)
            | flag(connected.is_some(), wire::HAS_LIFELINE)
            | flag(spec.isolation.is_some(), wire::HAS_ISOLATION),
    );
    let (uid, gid) = spec.user.ids.unwrap_or_default();
    body.u32(uid);
    body.u32(gid);
    body.bytes
        .extend(spec.oom_score_adj.unwrap_or_default().to_le_bytes());
    body.u32(spec.umask.unwrap_or_default());
    body.bytes
        .extend(spec.open_files.unwrap_or_default().to_le_bytes());
    for group in groups {
        body.u32(*group);
    }
    body.string(spec.work_dir.unwrap_or_default().to_bytes())?;
    for file in spec.cgroup.procs {
        body.path(Some(file))?;
    }
    for list in [spec.program, spec.args, spec.env] {
        body.strings(list)?;
    }
    if let Some(isolation) = &spec.isolation {
        body.isolation(isolation)?;
    }
    let counts = [
        spec.cgroup.procs.len(),
        spec.program.len(),
        spec.args.len(),
        spec.env.len(),
        groups.len(),
    ];
    body.finish(wire::START, counts)
}

/// Encodes header and body of an adoption.
pub(super) fn adopt(launch: &Id, logs: &Logs<'_>, cgroup: &Cgroup<'_>) -> io::Result<Vec<u8>> {
    Body::new(launch, logs, cgroup)?.finish(wire::ADOPT, [0; 5])
}

/// Encodes header and body of a collection.
pub(super) fn collect(launch: &Id, logs: &Logs<'_>) -> io::Result<Vec<u8>> {
    Body::new(launch, logs, &Cgroup::default())?.finish(wire::COLLECT, [0; 5])
}

/// Header and body in the making.
struct Body {
    bytes: Vec<u8>,
}

impl Body {
    fn new(launch: &Id, logs: &Logs<'_>, cgroup: &Cgroup<'_>) -> io::Result<Self> {
        let mut body = Self {
            bytes: vec![0; wire::HEADER],
        };
        body.bytes.extend(launch);
        body.u32(if logs.discarded {
            0
        } else {
            logs.max_files.max(1)
        });
        body.bytes.extend(logs.max_file_size.to_le_bytes());
        for base in [logs.stdout, logs.stderr] {
            // Room for the dot and a number of 18 digits.
            let fits = !base.is_empty() && base.len() <= 236 && !base.contains('/');
            if !fits {
                return Err(invalid(format!(
                    "log name {base:?}: must have 1 to 236 bytes and no slash"
                )));
            }
            body.string(base.as_bytes())?;
        }
        body.path(cgroup.kill)?;
        body.path(cgroup.oom)?;
        Ok(body)
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_le_bytes());
    }

    fn string(&mut self, text: &[u8]) -> io::Result<()> {
        if text.contains(&0) {
            let text = String::from_utf8_lossy(text);
            return Err(invalid(format!("{text:?}: holds a NUL byte, remove it")));
        }
        self.u32(u32::try_from(text.len() + 1).map_err(|_| too_large())?);
        self.bytes.extend(text);
        self.bytes.push(0);
        Ok(())
    }

    fn strings(&mut self, list: &[&CStr]) -> io::Result<()> {
        list.iter()
            .try_for_each(|text| self.string(text.to_bytes()))
    }

    fn isolation(&mut self, isolation: &Isolation<'_>) -> io::Result<()> {
        let flag = |given: bool, flag: u32| if given { flag } else { 0 };
        let enters = matches!(isolation.entrance, Entrance::Enter(_));
        self.u32(isolation.namespaces);
        self.u32(flag(enters, wire::ENTER) | flag(isolation.no_new_privileges, wire::NO_NEW_PRIVS));
        for set in [isolation.bounding, isolation.effective] {
            self.bytes.extend(set.to_le_bytes());
        }
        let count = |len: usize| u32::try_from(len).map_err(|_| too_large());
        self.u32(count(isolation.filters.len())?);
        for filter in isolation.filters {
            self.u32(count(filter.len())?);
            self.bytes.extend(filter);
        }
        let mounts = isolation.mounts();
        self.u32(count(mounts.len())?);
        for mount in mounts {
            self.u32(mount.what.number());
            self.string(mount.place.to_bytes())?;
        }
        match isolation.fds().len() {
            0..=wire::MORE_FDS => Ok(()),
            more => Err(invalid(format!(
                "{more} mounts: no more than {} are possible",
                wire::MORE_FDS
            ))),
        }
    }

    fn path(&mut self, path: Option<&Path>) -> io::Result<()> {
        match path {
            None => self.string(b""),
            Some(path) if path.is_absolute() => self.string(path.as_os_str().as_bytes()),
            Some(path) => Err(invalid(format!(
                "cgroup file {}: not absolute",
                path.display()
            ))),
        }
    }

    fn finish(mut self, mode: u16, counts: [usize; 5]) -> io::Result<Vec<u8>> {
        let len = self.bytes.len() - wire::HEADER;
        if len > wire::MAX_BODY {
            return Err(too_large());
        }
        let mut header = Vec::with_capacity(wire::HEADER);
        header.extend(wire::MAGIC.to_le_bytes());
        header.extend(wire::VERSION.to_le_bytes());
        header.extend(mode.to_le_bytes());
        for number in [len].into_iter().chain(counts) {
            header.extend(
                u32::try_from(number)
                    .map_err(|_| too_large())?
                    .to_le_bytes(),
            );
        }
        self.bytes.splice(..wire::HEADER, header);
        Ok(self.bytes)
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn too_large() -> io::Error {
    invalid(format!(
        "arguments and environment exceed {} MiB, which no program could be given",
        wire::MAX_BODY >> 20
    ))
}
