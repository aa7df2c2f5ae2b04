//! The resolver at the bridge's address, asked from behind the bridge. Each test is in a network namespace and has a view
//! of the host's files that it makes. Without root these tests say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/network_world.rs"]
mod network_world;

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use drover_core::effect::TaskNetwork;
use drover_io_real::agent_handle::AgentHandle;
use drover_io_real::network::resolver::resolver;
use network_world::{TIMEOUT, World, says};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// What a server answers: that there is nothing of this name, or that it failed.
const FINE: u8 = 0;
const FAILED: u8 = 2;

/// A question for the address of `a.example`.
const QUESTION: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01";

/// Has this thread, and what it starts, see a file in place of the host's servers of names.
fn see_servers(file: &Path) -> io::Result<()> {
    let place = fs::canonicalize("/etc/resolv.conf")?;
    // SAFETY: it is this thread's view of files alone; no descriptors become unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    Ok(mount_bind(file, place)?)
}

/// A server of names that answers everything with this code.
async fn serve(at: &'static str, code: u8) {
    says(&["ip", "address", "add", at, "dev", "lo"]).unwrap();
    let socket = UdpSocket::bind((at, 53)).await.unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut packet).await {
            (packet[2], packet[3]) = (packet[2] | 0x80, code);
            let _ = socket.send_to(&packet[..length], from).await;
        }
    });
}

#[tokio::test]
async fn next_server_of_host_is_asked_after_one_that_fails() {
    let Some(world) = World::new() else { return };
    let file = world.dir.path().join("resolv.conf");
    fs::write(&file, "nameserver 10.9.0.1\nnameserver 10.9.0.2\n").unwrap();
    if let Err(error) = see_servers(&file) {
        return eprintln!("skipped: the host's file cannot be covered: {error}");
    }
    if says(&["ip", "link", "set", "lo", "up"]).is_none() {
        return eprintln!("skipped: there is no ip");
    }
    serve("10.9.0.1", FAILED).await;
    serve("10.9.0.2", FINE).await;
    let (listener, resolver) = resolver();
    let networks = world.another("agent").with_resolver(listener);
    let dir = File::open(world.dir.path()).unwrap();
    // Of names of elsewhere the agent is asked nothing.
    let (handle, _requests) = AgentHandle::new(Arc::new(dir.into()));
    tokio::spawn(resolver.answer(handle));
    let (alloc, work) = world.wanted(1);
    networks.build(alloc, &work).unwrap();
    let own = TaskNetwork {
        own: true,
        ..TaskNetwork::default()
    };
    let entrance = networks.entrance(alloc, Some(&own)).unwrap().unwrap();
    let socket = entrance.run(|| std::net::UdpSocket::bind("0.0.0.0:0"));
    let socket = socket.unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = UdpSocket::from_std(socket).unwrap();
    let gateway = Ipv4Addr::from(world.bridge.subnet.gateway().0);
    socket.send_to(QUESTION, (gateway, 53)).await.unwrap();
    let mut answer = [0; 2048];
    let answered = timeout(TIMEOUT, socket.recv(&mut answer)).await;
    let length = answered.expect("no answer").unwrap();
    assert_eq!((length, answer[3] & 0x0f), (QUESTION.len(), FINE));
}
