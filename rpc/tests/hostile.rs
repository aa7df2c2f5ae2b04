//! Servers that send anything: what they send costs their own connection, in bounded memory.

#![allow(clippy::expect_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::frames::{ACK, DATA, FIN, Frame, GO_AWAY, PING, RST, SYN, WINDOW};
use common::handler::Node;
use common::server::CallHeader;
use common::{Dice, recording};
use drover_rpc::connection::{Connection, Limits, open};
use drover_rpc::error::Error;
use drover_rpc::msgpack::encode;
use drover_rpc::types::query::{AllocGetAllocs, StatusPing};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

/// Counts what is allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator; the numbers beside it are only read.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;

/// One test at a time: they share the count.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn connected(limits: Limits) -> (Connection, DuplexStream) {
    let (here, there) = tokio::io::duplex(64 << 10);
    let (node, work) = open(here, "server", Arc::new(Node), limits);
    tokio::spawn(work);
    (node, there)
}

/// Sends bytes for as long as the node takes them, and takes whatever it sends.
fn flood(
    there: DuplexStream,
    bytes: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> JoinHandle<()> {
    let (mut reader, mut writer) = tokio::io::split(there);
    tokio::spawn(async move {
        let reading = async {
            let mut taken = vec![0; 64 << 10];
            while reader.read(&mut taken).await.is_ok_and(|count| count > 0) {}
        };
        let writing = async {
            for bytes in bytes {
                if writer.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            // Time for the node to make of it what it will.
            tokio::time::sleep(Duration::from_secs(5)).await;
        };
        tokio::join!(async {
            tokio::select! {
                () = reading => {}
                () = writing => {}
            }
        });
    })
}

/// A server that answers.
async fn works(node: &Connection) -> bool {
    node.call(&StatusPing::default(), Duration::from_secs(5))
        .await
        .is_ok()
}

/// What memory went up by while this happened.
async fn peak(what: impl Future<Output = ()>) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    what.await;
    MOST.load(Ordering::Relaxed).saturating_sub(before)
}

fn call_of(method: &str) -> Vec<u8> {
    let header = CallHeader {
        seq: 1,
        service_method: method.to_owned(),
    };
    let mut bytes = vec![1];
    bytes.extend(encode(&header).expect("it can be written"));
    bytes
}

/// Streams beyond count, each with all that its window takes, and none of them read.
#[tokio::test(start_paused = true)]
async fn streams_full_of_data_are_bounded() {
    let _alone = ALONE.lock().await;
    let limits = Limits::default();
    let chunk = vec![0xc0; 32 << 10];
    let frames = (0..1000_u32).flat_map(move |number| {
        let stream = 2 + 2 * number;
        let mut frames = vec![Frame::new(WINDOW, SYN, stream, 0).bytes()];
        frames.push(Frame::data(stream, &call_of("Node.Anything")).bytes());
        // The body never ends.
        frames.push(Frame::data(stream, b"\xdb\x00\x03\xf0\x00").bytes());
        frames.extend((0..7).map(|_| Frame::data(stream, &chunk).bytes()));
        frames
    });
    let most = peak(async {
        let (_node, there) = connected(limits);
        flood(there, frames).await.expect("the flood");
    })
    .await;
    assert!(most < 96 * MIB, "{} MiB", most / MIB);
    assert!(
        most > 16 * MIB,
        "only {} KiB: it was refused too early",
        most >> 10
    );
}

/// Replies whose bytes stand for far more than they are.
#[tokio::test(start_paused = true)]
async fn small_reply_that_decodes_to_much_is_bounded() {
    let _alone = ALONE.lock().await;
    let limits = Limits {
        reply_bytes: 8 * MIB,
        ..Limits::default()
    };
    // A list of allocations that are nil; one of a node's attributes, each in a map of its own.
    let nils = (
        &b"\x81\xa6Allocs\xdd\x00\x7f\x00\x00"[..],
        &[0xc0; 3 << 14][..],
    );
    let maps = b"\x82\xa2ID\xa0\xaaTaskStates\x81\xa0\x80".repeat(2048);
    let maps = (&b"\x81\xa6Allocs\xdd\x00\x05\x00\x00"[..], &maps[..]);
    for (head, items) in [nils, maps] {
        let most = peak(async {
            let (node, mut there) = connected(limits);
            let call = tokio::spawn(async move {
                node.call(&AllocGetAllocs::default(), Duration::from_secs(60))
                    .await
            });
            there.read_exact(&mut [0]).await.expect("a preamble");
            let mut reply = b"\x83\xa5Error\xa0\xa3Seq\x01\xadServiceMethod\xa1x".to_vec();
            reply.extend(head);
            let first = Frame {
                flags: ACK,
                ..Frame::data(1, &reply)
            };
            let items = Frame::data(1, items).bytes();
            let frames =
                std::iter::once(first.bytes()).chain((0..4000).map(move |_| items.clone()));
            let flooding = flood(there, frames);
            let error = call.await.expect("the task").expect_err("no reply");
            assert!(matches!(error, Error::InvalidReply { .. }), "{error:?}");
            flooding.abort();
        })
        .await;
        // The bytes, while the buffer grows, and what they become until they are refused.
        let bound = 12 * limits.reply_bytes;
        assert!(most < bound, "{} of {} MiB", most / MIB, bound / MIB);
        assert!(
            most > limits.reply_bytes / 2,
            "only {} KiB: it was refused too early",
            most >> 10
        );
    }
}

/// Pings and frames for nobody, without end.
#[tokio::test(start_paused = true)]
async fn pings_and_frames_for_unknown_streams_are_bounded() {
    let _alone = ALONE.lock().await;
    let most = peak(async {
        let (_node, there) = connected(Limits::default());
        let frames = (0..200_000_u32).map(|number| match number % 4 {
            0 => Frame::new(PING, SYN, 0, number).bytes(),
            1 => Frame::data(2 * number, b"for nobody").bytes(),
            2 => Frame::new(WINDOW, RST, 2 * number, 0).bytes(),
            _ => Frame::new(WINDOW, SYN | FIN, 2 * number, 0).bytes(),
        });
        flood(there, frames).await.expect("the flood");
    })
    .await;
    assert!(most < 4 * MIB, "{} MiB", most / MIB);
}

/// Changed, shuffled and made-up frames: nothing panics, and a connection beside it goes on.
#[tokio::test(start_paused = true)]
async fn any_frames_cost_their_own_connection() {
    let _alone = ALONE.lock().await;
    let (beside, peer) = {
        let (here, there) = tokio::io::duplex(64 << 10);
        let (peer, incoming, _) = common::peer::Peer::start(there);
        tokio::spawn(common::server::answer(incoming, |_, _| {
            common::server::Does::empty()
        }));
        let (node, work) = open(here, "beside", Arc::new(Node), Limits::default());
        tokio::spawn(work);
        (node, peer)
    };
    let recorded: Vec<Frame> = ["connection-start", "logs-stream", "exec-stream"]
        .into_iter()
        .flat_map(|name| Frame::all(&recording(&format!("{name}.to-node.bin"))))
        .collect();
    let most = peak(async {
        for seed in 0..400 {
            let mut dice = Dice(seed);
            let mut bytes = Vec::new();
            for _ in 0..dice.below(200) {
                let mut frame = recorded[dice.below(recorded.len())].clone();
                match dice.below(6) {
                    0 => frame.stream = dice.below(80) as u32,
                    1 => frame.flags = dice.next() as u16,
                    2 => frame.kind = [DATA, WINDOW, PING, GO_AWAY][dice.below(40) % 4],
                    3 if !frame.body.is_empty() => {
                        let at = dice.below(frame.body.len());
                        frame.body[at] = dice.next() as u8;
                    }
                    _ => {}
                }
                if frame.kind != DATA {
                    frame.body.clear();
                }
                bytes.extend(frame.bytes());
            }
            // Now and then a byte that no frame has.
            for _ in 0..dice.below(3) {
                if !bytes.is_empty() {
                    let at = dice.below(bytes.len());
                    bytes[at] = dice.next() as u8;
                }
            }
            let (node, there) = connected(Limits::default());
            let calling = tokio::spawn(async move { works(&node).await });
            let chunks: Vec<Vec<u8>> = bytes
                .chunks(1 + dice.below(100))
                .map(<[u8]>::to_vec)
                .collect();
            flood(there, chunks.into_iter()).await.expect("the flood");
            calling.await.expect("no panic");
        }
    })
    .await;
    assert!(most < 16 * MIB, "{} MiB", most / MIB);
    assert!(works(&beside).await);
    drop(peer);
}
