//! What the rules of the bridge let pass of what comes from behind it. Each test is in a network namespace that it makes.
//! Without root these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "common/network_world.rs"]
mod network_world;

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use drover_core::effect::TaskNetwork;
use drover_core::ids::AllocId;
use drover_io_real::network::{Bridge, Networks};
use network_world::{TIMEOUT, World, networks_in, says, until};

/// How long to try what is not to succeed.
const VAINLY: Duration = Duration::from_millis(500);

/// Which of these addresses the allocation's packets for a port reach: all of them are this thread's own, and the last
/// is reached for sure.
fn reached(
    networks: &Networks,
    alloc: AllocId,
    addresses: &[Ipv4Addr],
    port: u16,
) -> BTreeSet<Ipv4Addr> {
    let own = TaskNetwork {
        own: true,
        ..TaskNetwork::default()
    };
    let entrance = networks.entrance(alloc, Some(&own)).unwrap().unwrap();
    let here = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    let timeout = Some(Duration::from_millis(100));
    here.set_read_timeout(timeout).unwrap();
    let port = here.local_addr().unwrap().port();
    let start = Instant::now();
    let mut reached = BTreeSet::new();
    while !reached.contains(addresses.last().unwrap()) {
        let send = || {
            let from = UdpSocket::bind("0.0.0.0:0")?;
            for address in addresses {
                from.send_to(&address.octets(), (*address, port))?;
            }
            Ok(())
        };
        entrance.run(send).unwrap();
        let mut seen = [0; 4];
        // Two processors may have passed each other's packets.
        while here.recv(&mut seen).is_ok() {
            reached.insert(Ipv4Addr::from(seen));
        }
        // The link may have to come up.
        assert!(start.elapsed() < TIMEOUT, "nothing arrives");
    }
    reached
}

/// Whether the allocation connects to an address of this thread's own, as is expected.
fn connects(networks: &Networks, alloc: AllocId, to: SocketAddrV4, expected: bool) -> bool {
    let own = TaskNetwork {
        own: true,
        ..TaskNetwork::default()
    };
    let entrance = networks.entrance(alloc, Some(&own)).unwrap().unwrap();
    let _here = TcpListener::bind(to).unwrap();
    let within = match expected {
        true => TIMEOUT,
        false => VAINLY,
    };
    let connect = || TcpStream::connect_timeout(&to.into(), within);
    entrance.run(connect).is_ok()
}

#[test]
fn metadata_of_cloud_is_reached_from_behind_bridge_only_if_that_is_allowed() {
    let Some(world) = World::new() else { return };
    if says(&["ip", "addr", "add", "169.254.169.254/32", "dev", "lo"]).is_none() {
        eprintln!("skipped: there is no ip");
        return;
    }
    let (alloc, work) = world.wanted(1);
    let both = [
        Ipv4Addr::new(169, 254, 169, 254),
        Ipv4Addr::from(world.bridge.subnet.gateway().0),
    ];
    // The same agent, started again with another configuration.
    for allow_metadata in [false, true, false] {
        let bridge = Bridge {
            allow_metadata,
            ..world.bridge.clone()
        };
        let networks = networks_in(world.dir.path(), &bridge);
        let known = [(alloc, work.address.unwrap(), work.ports.clone())];
        until(|| networks.resume(known.clone()).is_ok());
        networks.build(alloc, &work).unwrap();
        // From here on the link is up.
        reached(&networks, alloc, &both[1..], 0);
        let reached = |port| reached(&networks, alloc, &both, port).contains(&both[0]);
        assert_eq!(reached(0), allow_metadata);
        // Where it is a name server too, names are asked there all the same.
        assert!(reached(53));
        for (port, expected) in [(53, true), (80, allow_metadata)] {
            let to = SocketAddrV4::new(both[0], port);
            assert_eq!(connects(&networks, alloc, to, expected), expected, "{to}");
        }
    }
    world.networks.remove(alloc, None).unwrap();
}

#[test]
fn packets_with_unknown_source_address_do_not_reach_the_host() {
    let Some(world) = World::new() else { return };
    if says(&["ip", "-Version"]).is_none() {
        eprintln!("skipped: there is no ip");
        return;
    }
    // The kernel's own look at addresses is off: it is not everywhere on.
    for interfaces in ["all", "default"] {
        fs::write(
            format!("/proc/sys/net/ipv4/conf/{interfaces}/rp_filter"),
            "0",
        )
        .unwrap();
    }
    let (alloc, work) = world.wanted(1);
    until(|| world.networks.resume([]).is_ok());
    world.networks.build(alloc, &work).unwrap();
    let own = TaskNetwork {
        own: true,
        ..TaskNetwork::default()
    };
    let entrance = world.networks.entrance(alloc, Some(&own)).unwrap().unwrap();
    let here = UdpSocket::bind("0.0.0.0:0").unwrap();
    here.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let to = SocketAddrV4::new(
        Ipv4Addr::from(world.bridge.subnet.gateway().0),
        here.local_addr().unwrap().port(),
    );
    let foreign = Ipv4Addr::new(10, 99, 0, 1);
    let take = || says(&["ip", "addr", "add", "10.99.0.1/32", "dev", "lo"]).is_some();
    assert!(entrance.run(|| Ok(take())).unwrap());
    let send = || {
        for (from, word) in [(foreign, "foreign"), (Ipv4Addr::UNSPECIFIED, "own")] {
            UdpSocket::bind((from, 0))?.send_to(word.as_bytes(), to)?;
        }
        Ok(())
    };
    let mut reported = BTreeSet::new();
    until(|| {
        entrance.run(send).unwrap();
        let mut seen = [0; 16];
        while let Ok(length) = here.recv(&mut seen) {
            reported.insert(String::from_utf8_lossy(&seen[..length]).into_owned());
        }
        reported.contains("own")
    });
    assert_eq!(reported, BTreeSet::from(["own".to_owned()]));
    world.networks.remove(alloc, None).unwrap();
}

#[test]
fn allocation_has_so_many_connections_and_no_more() {
    let Some(world) = World::new() else { return };
    let (alloc, work) = world.wanted(1);
    // An agent that allows so many, with the network of the allocation.
    let bounded = |most| {
        let bridge = Bridge {
            most_connections: Some(most),
            ..world.bridge.clone()
        };
        let networks = networks_in(world.dir.path(), &bridge);
        until(|| {
            networks
                .resume([(alloc, work.address.unwrap(), work.ports.clone())])
                .is_ok()
        });
        networks.build(alloc, &work).unwrap();
        networks
    };
    let networks = bounded(3);
    let own = TaskNetwork {
        own: true,
        ..TaskNetwork::default()
    };
    let gateway = Ipv4Addr::from(world.bridge.subnet.gateway().0);
    let here = TcpListener::bind((gateway, 0)).unwrap();
    let to = here.local_addr().unwrap();
    let connect = |timeout| TcpStream::connect_timeout(&to, timeout);
    let entrance = networks.entrance(alloc, Some(&own)).unwrap().unwrap();
    // What comes from the host counts for nobody, so that is how to wait for the way.
    let inside = entrance.run(|| TcpListener::bind(("0.0.0.0", 80))).unwrap();
    let inside_at = Ipv4Addr::from(work.address.unwrap().0);
    until(|| TcpStream::connect((inside_at, 80)).is_ok());
    drop(inside);
    let timeout = [TIMEOUT, TIMEOUT, TIMEOUT, VAINLY, VAINLY];
    let made = entrance.run(|| Ok(timeout.map(connect))).unwrap();
    assert_eq!(
        made.each_ref().map(Result::is_ok),
        [true, true, true, false, false]
    );
    // The same agent, started again: the rules are as they should be for either of them.
    assert_eq!(networks.wrong_rules().unwrap(), []);
    drop(networks);
    let networks = bounded(0);
    let entrance = networks.entrance(alloc, Some(&own)).unwrap().unwrap();
    assert!(
        entrance
            .run(|| Ok((0..5).all(|_| connect(TIMEOUT).is_ok())))
            .unwrap()
    );
    world.networks.remove(alloc, None).unwrap();
}
