//! A disk of an allocation that servers of a cluster placed: they say where it was.

use std::sync::Arc;

use drover_core::ids::AllocId;
use drover_core::input::HookOutput;
use drover_core::model::remote::Remote;
use drover_io_real::cluster::{Answering, KnowAllocs, Place};

use crate::giver::{Giver, PORT, TOKEN, content};
use crate::hosts::Network;
use crate::taker::Taker;

/// Servers that know this.
struct Servers {
    place: Place,
}

impl KnowAllocs for Servers {
    fn runs(&self, _: AllocId, after: u64) -> Answering<'_, Remote> {
        let answer = match after {
            0 => Remote::Runs { index: 7 },
            _ => Remote::Ended,
        };
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn place_of(&self, _: AllocId) -> Answering<'_, Place> {
        Box::pin(std::future::ready(Ok(self.place.clone())))
    }
}

/// What is taken over from there, and what is said of it.
fn taken(place: Place, token: &'static str) -> (Option<Vec<u8>>, HookOutput) {
    taken_of(Giver::ends_at(0), place, token)
}

fn taken_of(giver: Giver, place: Place, token: &'static str) -> (Option<Vec<u8>>, HookOutput) {
    let network = Network::new(21).host("giver", move || giver.clone().serve());
    network.run(&[], move || {
        let servers = Arc::new(Servers {
            place: place.clone(),
        });
        async move {
            let mut taker = Taker::new().in_cluster(servers, token);
            let output = taker.fetch_saying().await.expect("an answer");
            (taker.taken(), output)
        }
    })
}

#[test]
fn disk_comes_from_where_servers_say() {
    let place = Place::At(format!("http://giver:{PORT}"));
    let (disk, output) = taken(place, TOKEN);
    assert_eq!(disk, Some(content()));
    assert_eq!(output.remote, None);
    assert!(output.message.contains("at http://giver"), "{output:?}");
}

#[test]
fn node_without_the_disk_names_its_holder() {
    let mut giver = Giver::ends_at(0);
    giver.lies_with = Some((AllocId(0xb), "another token"));
    let place = Place::At(format!("http://giver:{PORT}"));
    let (disk, output) = taken_of(giver, place, TOKEN);
    assert_eq!((disk, output.remote), (None, Some(Remote::Unknown)));
    let further = output.lies_with.expect("another allocation");
    assert_eq!(further.alloc, AllocId(0xb));
    assert_eq!(further.token.expose(), "another token");
    assert!(further.of_servers && !further.ended);
}

#[test]
fn failed_disk_transfer_is_reported_with_reason() {
    let (disk, output) = taken(Place::Nowhere("its node is down"), TOKEN);
    assert_eq!((disk, output.remote), (None, Some(Remote::Unknown)));
    assert_eq!(output.message, "its node is down");
    let encrypted = Place::At("https://giver:4646".to_owned());
    let (disk, output) = taken(encrypted, TOKEN);
    assert_eq!((disk, output.remote), (None, Some(Remote::Unknown)));
    assert!(output.message.contains("ca_file"), "{output:?}");
    let (disk, output) = taken(Place::At(format!("http://giver:{PORT}")), "");
    assert_eq!((disk, output.remote), (None, Some(Remote::Unknown)));
    assert!(output.message.contains("no token"), "{output:?}");
}

#[test]
fn servers_are_asked_whether_their_allocation_is_over() {
    let network = Network::new(22);
    network.run(&[], || async {
        let place = Place::Nowhere("nobody asks");
        let mut taker = Taker::new().in_cluster(Arc::new(Servers { place }), "");
        assert_eq!(taker.ask(0).await, Ok(Remote::Runs { index: 7 }));
        assert_eq!(taker.ask(7).await, Ok(Remote::Ended));
    });
}
