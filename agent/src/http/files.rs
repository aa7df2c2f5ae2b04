//! Files of an allocation's directory: list, stat, read.

use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path as FsPath;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use drover_core::agent::View;
use drover_core::ids::AllocId;
use drover_core::time::{SECOND, Timestamp};
use rustix::fs::{Dir, FileType};
use serde::{Deserialize, Serialize};

use super::Api;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;
use crate::agent_handle::AgentHandle;
use crate::times;
use drover_io_real::safe_open::{self, Found, Trouble};

/// The most entries of one listing.
pub(crate) const MOST_LISTED: usize = 10_000;
/// Why nothing is done with a file that is not named.
pub(super) const NO_PATH: &str = "must provide a file name";
/// How much of a file is read at a time.
pub(super) const CHUNK: usize = 64 * 1024;

/// A file or directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FileInfo {
    /// Its name, without those of the directories above.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Its size in bytes.
    pub size: i64,
    /// Its kind, its special bits and who may do what: `-rw-r--r--`, `dtrwxrwxrwx`.
    pub file_mode: String,
    /// When it was last changed.
    pub mod_time: String,
    /// What it seems to contain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content_type: String,
}

pub(super) async fn ls(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let path = params.get("path").unwrap_or_default();
    let list = list(&api.agent_handle, &id, path).await?;
    answer::json(&params, &list)
}

pub(super) async fn stat(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let path = params.get("path").unwrap_or_default();
    let info = info(&api.agent_handle, &id, path).await?;
    answer::json(&params, &info)
}

/// What is in a directory of an allocation; in its own where no path is given.
///
/// # Errors
/// There is no such allocation or directory.
pub(crate) async fn list(
    agent_handle: &AgentHandle,
    alloc: &str,
    path: &str,
) -> Result<Vec<FileInfo>, ApiError> {
    let dir = alloc_dir(agent_handle, alloc).await?;
    let path = if path.is_empty() { "/" } else { path }.to_owned();
    blocking(move || list_dir(&dir, &path)).await
}

/// What a file of an allocation is.
///
/// # Errors
/// There is no such allocation or file.
pub(crate) async fn info(
    agent_handle: &AgentHandle,
    alloc: &str,
    path: &str,
) -> Result<FileInfo, ApiError> {
    let dir = alloc_dir(agent_handle, alloc).await?;
    if path.is_empty() {
        return Err(ApiError::bad(NO_PATH));
    }
    let path = path.to_owned();
    blocking(move || {
        let found = Found::below(&dir, &path)?;
        let name = FsPath::new(&path)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let mut info = info_of(&found.stat, name.unwrap_or_else(|| "/".to_owned()));
        info.content_type = content_type(&found, &info.name);
        Ok(info)
    })
    .await
}

pub(super) async fn cat(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    raw(&api, &id, &params, 0, None).await
}

pub(super) async fn read_at(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let number = |name: &str| params.non_empty(name).map(str::parse::<i64>).transpose();
    let offset = number("offset").ok().flatten();
    let Some(offset) = offset.and_then(|offset| u64::try_from(offset).ok()) else {
        return Err(ApiError::bad("offset must be a number"));
    };
    let limit = number("limit").map_err(|_| ApiError::bad("limit must be a number"))?;
    let limit = limit
        .and_then(|limit| u64::try_from(limit).ok())
        .filter(|limit| *limit > 0);
    raw(&api, &id, &params, offset, limit).await
}

pub(super) fn wanted_path(params: &Params) -> Result<String, ApiError> {
    let path = params.non_empty("path").map(str::to_owned);
    path.ok_or_else(|| ApiError::bad(NO_PATH))
}

/// The directory of an allocation that the core knows.
pub(super) async fn alloc_dir(agent_handle: &AgentHandle, id: &str) -> Result<OwnedFd, ApiError> {
    let id: AllocId = id
        .parse()
        .map_err(|_| ApiError::bad("must provide a valid alloc id"))?;
    let known = move |view: View<'_>| {
        view.alloc(id)
            .is_none()
            .then(|| ApiError::no_alloc(view, id))
    };
    if let Some(error) = agent_handle.ask(known).await? {
        return Err(error);
    }
    let root = agent_handle.alloc_root();
    let dir = blocking(move || safe_open::alloc_dir(&root, id)).await;
    dir.map_err(|error| match error.status {
        axum::http::StatusCode::NOT_FOUND => {
            ApiError::not_found(format!("state for allocation {id} not found on client"))
        }
        _ => error,
    })
}

/// Runs what may block on a disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| ApiError::failed("reading files failed"))?;
    done.map_err(|trouble| match trouble {
        Trouble::Missing(path) => {
            ApiError::not_found(format!("open {path}: no such file or directory"))
        }
        Trouble::Escapes => ApiError::failed("Path escapes the alloc directory"),
        Trouble::Secret(path) => {
            ApiError::failed(format!("Reading secret file prohibited: {path}"))
        }
        Trouble::Kind(message) => ApiError::bad(message),
        Trouble::Io(message) => ApiError::failed(message),
    })
}

fn list_dir(dir: &OwnedFd, path: &str) -> Result<Vec<FileInfo>, Trouble> {
    let found = Found::below(dir, path)?;
    if found.kind() != FileType::Directory {
        return Err(Trouble::Kind(format!("{path} is no directory")));
    }
    let opened = found.open_dir()?;
    let entries = Dir::read_from(&opened).map_err(|errno| Trouble::Io(errno.to_string()))?;
    let mut list = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|errno| Trouble::Io(errno.to_string()))?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if list.len() == MOST_LISTED {
            break;
        }
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        // What vanished since is not listed.
        if let Ok(stat) = rustix::fs::statat(&opened, name, flags) {
            list.push(info_of(&stat, name.to_string_lossy().into_owned()));
        }
    }
    list.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(list)
}

fn info_of(stat: &rustix::fs::Stat, name: String) -> FileInfo {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let seconds = stat.st_mtime;
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    FileInfo {
        name,
        is_dir: kind == FileType::Directory,
        size: stat.st_size,
        file_mode: mode_text(kind, stat.st_mode),
        mod_time: times::to_nanos(Timestamp(
            seconds.saturating_mul(SECOND).saturating_add(nanos),
        )),
        content_type: String::new(),
    }
}

fn mode_text(kind: FileType, mode: u32) -> String {
    // In this order, and with what comes beside a kind.
    let signs = [
        (kind == FileType::Directory, 'd'),
        (kind == FileType::Symlink, 'L'),
        (
            matches!(kind, FileType::BlockDevice | FileType::CharacterDevice),
            'D',
        ),
        (kind == FileType::Fifo, 'p'),
        (kind == FileType::Socket, 'S'),
        (mode & 0o4000 != 0, 'u'),
        (mode & 0o2000 != 0, 'g'),
        (kind == FileType::CharacterDevice, 'c'),
        (mode & 0o1000 != 0, 't'),
    ];
    let signs = signs.into_iter().filter(|(has, _)| *has);
    let mut text: String = signs.map(|(_, sign)| sign).collect();
    if text.is_empty() {
        text.push('-');
    }
    for (bit, letter) in (0..9).rev().zip("rwxrwxrwx".chars()) {
        text.push(if mode & (1 << bit) == 0 { '-' } else { letter });
    }
    text
}

fn content_type(found: &Found, name: &str) -> String {
    let binary = "application/octet-stream";
    if name.ends_with(".json") {
        return "application/json".to_owned();
    }
    let mut head = Vec::new();
    let read = found
        .open()
        .map(|file| file.take(512).read_to_end(&mut head));
    let is_text = match core::str::from_utf8(&head) {
        Ok(text) => !text.contains('\0'),
        // Cut in the middle of a character.
        Err(error) => error.error_len().is_none(),
    };
    match read {
        Ok(Ok(_)) if is_text => "text/plain; charset=utf-8".to_owned(),
        Ok(_) | Err(_) => binary.to_owned(),
    }
}

/// A file's bytes, a chunk at a time, as fast as the client takes them.
async fn raw(api: &Api, id: &str, params: &Params, offset: u64, limit: Option<u64>) -> Answer {
    params.caller.stream()?;
    let dir = alloc_dir(&api.agent_handle, id).await?;
    let path = wanted_path(params)?;
    let (file, kind) = blocking(move || {
        let found = Found::below(&dir, &path)?;
        let kind = content_type(&found, &path);
        let mut file = found.open()?;
        file.seek(SeekFrom::Start(offset))
            .map_err(|error| Trouble::Io(error.to_string()))?;
        Ok((file.take(limit.unwrap_or(u64::MAX)), kind))
    })
    .await?;
    let chunks = futures::stream::try_unfold(file, |mut file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK];
            let count = file.read(&mut chunk)?;
            chunk.truncate(count);
            Ok::<_, std::io::Error>((chunk, file))
        });
        let (chunk, file) = read.await.map_err(std::io::Error::other)??;
        Ok::<_, std::io::Error>((!chunk.is_empty()).then_some((chunk, file)))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_str(&kind).ok();
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, kind);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(policy),
    );
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_mode_bits_precede_permissions() {
        for (kind, mode, expected) in [
            (FileType::RegularFile, 0o644, "-rw-r--r--"),
            (FileType::RegularFile, 0o4755, "urwxr-xr-x"),
            (FileType::Directory, 0o1777, "dtrwxrwxrwx"),
            (FileType::Directory, 0o2750, "dgrwxr-x---"),
            (FileType::CharacterDevice, 0o620, "Dcrw--w----"),
            (FileType::Symlink, 0o777, "Lrwxrwxrwx"),
        ] {
            assert_eq!(mode_text(kind, mode), expected);
        }
    }
}
