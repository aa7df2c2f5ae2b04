//! The control socket: one short request at a time, and nobody can make the shim wait.

use crate::record::Record;
use crate::wire;
use core::mem::MaybeUninit;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with,
    recv, send, sendmsg,
};
use rustix::process::geteuid;

/// What a client asks for.
pub enum Request {
    /// The record and the pipes.
    Hello,
    /// A signal for the main process.
    Signal(i32),
    /// The end of everything.
    Kill,
}

/// The socket and the one client.
pub struct Control {
    /// Where clients come in.
    pub listener: OwnedFd,
    /// The client whose request is awaited.
    pub client: Option<OwnedFd>,
}

impl Control {
    /// Lets the next client in. It takes the place of one that has been silent so far.
    pub fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let Ok(client) = accept_with(&self.listener, flags) else {
            return;
        };
        let Ok(peer) = socket_peercred(&client) else {
            return;
        };
        if peer.uid.is_root() || peer.uid == geteuid() {
            self.client = Some(client);
        }
    }

    /// Reads the client's request; the client is shown out if there is none.
    pub fn request(&mut self) -> Option<Request> {
        let client = self.client.as_ref()?;
        let mut bytes = [0; wire::REQUEST];
        let flags = RecvFlags::DONTWAIT;
        match recv(client, bytes.as_mut_slice(), flags) {
            Ok((wire::REQUEST, _)) => {}
            Err(Errno::AGAIN | Errno::INTR) => return None,
            _ => {
                self.client = None;
                return None;
            }
        }
        let ([operation, argument], _) = bytes.as_chunks::<4>() else {
            return None;
        };
        match u32::from_le_bytes(*operation) {
            wire::HELLO => Some(Request::Hello),
            wire::SIGNAL => Some(Request::Signal(i32::from_le_bytes(*argument))),
            wire::KILL => Some(Request::Kill),
            _ => {
                self.client = None;
                None
            }
        }
    }

    /// Answers with an error number, 0 = done, and closes.
    pub fn answer(&mut self, errno: i32) {
        if let Some(client) = self.client.take() {
            let _ = send(
                &client,
                &errno.to_le_bytes(),
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            );
        }
    }

    /// Answers with the record and the pipes, and closes.
    pub fn introduce(&mut self, record: &Record, pipes: Option<[BorrowedFd<'_>; 2]>) {
        let Some(client) = self.client.take() else {
            return;
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(pipes) = &pipes {
            control.push(SendAncillaryMessage::ScmRights(pipes));
        }
        let bytes = record.encode();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = sendmsg(&client, &[IoSlice::new(&bytes)], &mut control, flags);
    }
}
