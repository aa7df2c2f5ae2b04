//! Files that are copied into an allocation's directory, over websockets. Drover's own route.
//!
//! The bytes come as binary messages; the text message `{"close":true}` says that they were all. The file
//! appears whole, under its name, when they have come, and belongs to whom the directory belongs; nothing is
//! left of one that breaks off. The agent closes the websocket with 1000 when the file is there, else with
//! the reason.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use drover_io_real::facts;
use futures::StreamExt;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::Api;
use super::answer::Answer;
use super::errors::ApiError;
use super::exec::may_enter;
use super::files::{alloc_dir, blocking, wanted_path};
use super::params::Params;
use super::websocket::{self, Closing};
use drover_io_real::safe_open::{Place, Trouble};

/// What may be set of a file's mode.
const MODE: u32 = 0o777;

pub(super) async fn put(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let none = |_| ApiError::failed("websocket connection not found in context");
    let upgrade = websocket::bounded(upgrade.map_err(none)?);
    let mode = params.non_empty("mode").unwrap_or("0644");
    let mode = u32::from_str_radix(mode, 8)
        .ok()
        .filter(|mode| *mode <= MODE);
    let mode = mode.ok_or_else(|| ApiError::bad("mode must be octal, 0777 at most"))?;
    let is_dir = params.get("kind") == Some("dir");
    let path = wanted_path(&params)?;
    // What a task on the host reads or runs can be replaced so.
    let alloc = id.parse().ok();
    may_enter(&api.agent_handle, &params.principal, alloc, None).await?;
    let dir = alloc_dir(&api.agent_handle, &id).await?;
    let place = blocking(move || {
        let place = Place::below(&dir, &path)?;
        if is_dir {
            make_dir(&place, mode)?;
        }
        Ok(place)
    });
    let place = place.await?;
    let upgraded = params.caller.upgrade()?;
    let principal = params.principal.clone();
    Ok(upgrade.on_upgrade(async move |mut socket| {
        let closing = match is_dir {
            true => Closing::done(),
            false => tokio::select! {
                closing = receive(&mut socket, place, mode) => closing,
                () = principal.revoked(&api) => Closing::refused(ApiError::denied().message),
            },
        };
        // Who is gone need not hear it.
        let _ = socket.send(closing.message()).await;
        drop(upgraded);
    }))
}

/// A file that is being written under another name. It is removed when this is dropped, unless it is finished.
struct Part {
    place: Place,
    name: String,
    file: File,
    finished: bool,
}

impl Part {
    fn create(place: Place) -> Result<Part, Trouble> {
        let name = format!(".{}.{:032x}", place.name, facts::random());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&place.dir, &name, flags | OFlags::CLOEXEC, Mode::RUSR);
        let file = file.map_err(|errno| failed(&place, errno))?.into();
        Ok(Part {
            place,
            name,
            file,
            finished: false,
        })
    }

    /// Gives it its owner, mode and name.
    fn finish(mut self, mode: u32) -> Result<(), Trouble> {
        let done = own(&self.place, &self.file, mode).and_then(|()| {
            rustix::fs::renameat(
                &self.place.dir,
                &self.name,
                &self.place.dir,
                &self.place.name,
            )
        });
        self.finished = done.is_ok();
        done.map_err(|errno| failed(&self.place, errno))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.finished {
            let _ = rustix::fs::unlinkat(&self.place.dir, &self.name, AtFlags::empty());
        }
    }
}

fn failed(place: &Place, errno: Errno) -> Trouble {
    Trouble::Io(format!("cannot write {}: {errno}", place.name))
}

/// What lies in a directory belongs to whom that belongs.
fn own(place: &Place, file: &File, mode: u32) -> Result<(), Errno> {
    if geteuid().is_root() {
        let owner = rustix::fs::fstat(&place.dir)?;
        let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        rustix::fs::fchown(file, Some(user), Some(group))?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
}

fn make_dir(place: &Place, mode: u32) -> Result<(), Trouble> {
    let made = rustix::fs::mkdirat(&place.dir, &place.name, Mode::RWXU);
    if made == Err(Errno::EXIST) {
        return Ok(());
    }
    let made = made.and_then(|()| {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())?;
        own(place, &File::from(dir), mode)
    });
    made.map_err(|errno| failed(place, errno))
}

async fn receive(socket: &mut WebSocket, place: Place, mode: u32) -> Closing {
    let part = match blocking(move || Part::create(place)).await {
        Ok(part) => part,
        Err(error) => return Closing::failed(error.message),
    };
    let part = Arc::new(part);
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(bytes) => {
                let own = part.clone();
                let written = blocking(move || {
                    let written = (&own.file).write_all(&bytes);
                    written.map_err(|error| Trouble::Io(format!("cannot write: {error}")))
                });
                if let Err(error) = written.await {
                    return Closing::failed(error.message);
                }
            }
            Message::Text(_) => {
                let finished = blocking(move || match Arc::try_unwrap(part) {
                    Ok(part) => part.finish(mode),
                    Err(_) => Err(Trouble::Io("the file is still being written".to_owned())),
                });
                return match finished.await {
                    Ok(()) => Closing::done(),
                    Err(error) => Closing::failed(error.message),
                };
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => break,
        }
    }
    Closing::failed("the file broke off")
}
