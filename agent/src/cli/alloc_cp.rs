//! `drover alloc cp`: files from an allocation to here, and from here to an allocation.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use futures::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::args::CpArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::left_out::{LeftOut, Why};
use super::lookup;
use crate::http::dto::AllocStub;
use crate::http::files::{FileInfo, MOST_LISTED};
use crate::http::port_forward::END;

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// The most bytes of a message that an agent sends.
const MAX_MESSAGE: usize = 1 << 20;
/// How deep directories may lie in each other.
const DEEPEST: usize = 64;

/// Runs the command.
///
/// # Errors
/// Not exactly one of both is in an allocation; something cannot be found, read or written.
pub(super) async fn run(cx: &mut Context, args: CpArgs) -> Outcome {
    let mut left_out = LeftOut::default();
    let copied = copy(cx, args, &mut left_out).await;
    left_out.say(&mut cx.screen);
    copied.map(|()| 0)
}

async fn copy(cx: &mut Context, args: CpArgs, left_out: &mut LeftOut) -> Result<(), Failure> {
    match (remote(&args.from), remote(&args.to)) {
        (Some((alloc, path)), None) => {
            let alloc = lookup::alloc_or_job(cx, alloc, args.job, args.group.as_deref()).await?;
            let to = PathBuf::from(&args.to);
            let name = Path::new(path).file_name();
            let to = match (to.is_dir(), name) {
                (true, Some(name)) => to.join(name),
                _ => to,
            };
            download(cx, &alloc, path.to_owned(), to, left_out).await
        }
        (None, Some((alloc, path))) => {
            let alloc = lookup::alloc_or_job(cx, alloc, args.job, args.group.as_deref()).await?;
            let from = PathBuf::from(&args.from);
            let name = from
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let to = match (path.ends_with('/'), name) {
                (true, Some(name)) => format!("{path}{name}"),
                _ => path.to_owned(),
            };
            upload(cx, &alloc, from, to, left_out).await
        }
        (None, None) | (Some(_), Some(_)) => Err(Failure::new(
            "one of both has to be in an allocation, as ALLOC:PATH, and the other one here",
        )),
    }
}

/// The allocation and path of a place that is not here.
fn remote(place: &str) -> Option<(&str, &str)> {
    let (alloc, path) = place.split_once(':')?;
    let is_here = alloc.is_empty() || alloc.contains('/') || alloc == ".";
    (!is_here).then_some((alloc, path))
}

/// Why a file of an allocation is not copied, by its mode.
fn not_copied(mode: &str) -> Option<Why> {
    match mode.chars().next() {
        Some('L') => Some(Why::Link),
        Some('D' | 'p' | 'S') => Some(Why::Special),
        Some(_) | None => None,
    }
}

/// Why a file here is not copied.
fn not_sent(kind: fs::FileType) -> Option<Why> {
    match kind.is_symlink() {
        true => Some(Why::Link),
        false => (!kind.is_dir() && !kind.is_file()).then_some(Why::Special),
    }
}

async fn download(
    cx: &mut Context,
    alloc: &AllocStub,
    from: String,
    to: PathBuf,
    left_out: &mut LeftOut,
) -> Result<(), Failure> {
    let mut open = vec![(from, to, 0)];
    while let Some((from, to, depth)) = open.pop() {
        let query = [("path", from.as_str())];
        let of = |what: &str| format!("/v1/client/fs/{what}/{}", alloc.id);
        let info: FileInfo = match cx.client.get(&of("stat"), &query).await {
            Ok(info) => info,
            // A task's secrets lie among its files, and are its own.
            Err(failure) if depth > 0 && failure.message.contains("prohibited") => {
                left_out.add(&from, Why::Secret);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if info.is_dir && depth >= DEEPEST {
            left_out.add(&from, Why::Deep);
            continue;
        }
        if !info.is_dir {
            fetch(cx, alloc, &from, &to, info.file_mode.contains('x')).await?;
            continue;
        }
        fs::create_dir_all(&to).map_err(|error| here(&to, &error))?;
        let list: Vec<FileInfo> = cx.client.get(&of("ls"), &query).await?;
        if list.len() >= MOST_LISTED {
            left_out.add(&from, Why::Rest);
        }
        for file in list {
            let path = format!("{}/{}", from.trim_end_matches('/'), file.name);
            // A name with a slash is no name, and would lead elsewhere here; one that is no text comes with marks.
            let is_name = !file.name.contains(['/', char::REPLACEMENT_CHARACTER])
                && !matches!(&*file.name, "" | "." | "..");
            let why = not_copied(&file.file_mode).or((!is_name).then_some(Why::Name));
            match why {
                Some(why) => left_out.add(&path, why),
                None => open.push((path, to.join(&file.name), depth + 1)),
            }
        }
    }
    Ok(())
}

/// Fetches a file, which is here when it is whole.
async fn fetch(
    cx: &Context,
    alloc: &AllocStub,
    from: &str,
    to: &Path,
    runs: bool,
) -> Result<(), Failure> {
    let path = format!("/v1/client/fs/cat/{}", alloc.id);
    let query = [("path", from)];
    let sent = cx.client.send(Method::GET, &path, &query, None).await?;
    // Nothing that is copied beside it has this name.
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let part = to.with_file_name(format!(".{name}.drover-{}", std::process::id()));
    let file = File::create_new(&part).map_err(|error| here(&part, &error))?;
    let mut written = write(sent.into_body(), file, from, &part).await;
    if written.is_ok() && runs {
        let mode = fs::Permissions::from_mode(0o755);
        written = fs::set_permissions(&part, mode).map_err(|error| here(&part, &error));
    }
    if written.is_ok() {
        written = fs::rename(&part, to).map_err(|error| here(to, &error));
    }
    if written.is_err() {
        // What went wrong is the news.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Writes what comes.
async fn write(mut body: Incoming, mut file: File, from: &str, part: &Path) -> Result<(), Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::new(format!("{from}: {error}")))?;
        if let Ok(data) = frame.into_data() {
            file.write_all(&data).map_err(|error| here(part, &error))?;
        }
    }
    Ok(())
}

async fn upload(
    cx: &mut Context,
    alloc: &AllocStub,
    from: PathBuf,
    to: String,
    left_out: &mut LeftOut,
) -> Result<(), Failure> {
    let mut open = vec![(from, to)];
    while let Some((from, to)) = open.pop() {
        // What is named may be a link; what lies below it may not.
        let about = fs::metadata(&from).map_err(|error| here(&from, &error))?;
        let mode = format!("{:o}", about.permissions().mode() & 0o777);
        if let Some(why) = not_sent(about.file_type()) {
            left_out.add(&from.to_string_lossy(), why);
            continue;
        }
        if !about.is_dir() {
            let file = File::open(&from).map_err(|error| here(&from, &error))?;
            put(cx, alloc, &to, &mode, Some(file)).await?;
            continue;
        }
        put(cx, alloc, &to, &mode, None).await?;
        let entries = fs::read_dir(&from).map_err(|error| here(&from, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| here(&from, &error))?;
            let kind = entry.file_type().map_err(|error| here(&from, &error))?;
            let path = entry.path();
            match (not_sent(kind), entry.file_name().to_str()) {
                (None, Some(name)) => {
                    let to = format!("{}/{name}", to.trim_end_matches('/'));
                    open.push((path, to));
                }
                (why, _) => left_out.add(&path.to_string_lossy(), why.unwrap_or(Why::Name)),
            }
        }
    }
    Ok(())
}

/// Sends a file, or makes a directory.
async fn put(
    cx: &Context,
    alloc: &AllocStub,
    to: &str,
    mode: &str,
    file: Option<File>,
) -> Result<(), Failure> {
    let kind = if file.is_some() { "file" } else { "dir" };
    let query = [("path", to), ("mode", mode), ("kind", kind)];
    let path = format!("/v1/client/fs/put/{}", alloc.id);
    let mut socket = cx.client.websocket(&path, &query, MAX_MESSAGE).await?;
    if let Some(mut file) = file {
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = file
                .read(&mut chunk)
                .map_err(|error| Failure::new(error.to_string()))?;
            let message = match chunk.get(..count).filter(|bytes| !bytes.is_empty()) {
                Some(bytes) => Message::Binary(Bytes::copy_from_slice(bytes)),
                None => Message::Text(END.into()),
            };
            // If the agent has closed it, what it said last tells why.
            if socket.send(message).await.is_err() || count == 0 {
                break;
            }
        }
    }
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Close(Some(frame)) = message {
            return match u16::from(frame.code) {
                1000 => Ok(()),
                _ => Err(Failure::new(format!("{to}: {}", frame.reason))),
            };
        }
    }
    Err(Failure::new(format!(
        "{to}: the connection to the agent broke"
    )))
}

fn here(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_in_an_allocation_has_its_id_in_front() {
        assert_eq!(remote("9e3f:alloc/x"), Some(("9e3f", "alloc/x")));
        for here in ["x", "./a:b", "/a:b", ":x"] {
            assert_eq!(remote(here), None, "{here}");
        }
    }
}
