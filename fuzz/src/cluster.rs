//! What servers of a cluster send: messages, allocations, and the bytes of a connection.

use std::sync::Arc;
use std::time::Duration;

use drover::cluster_untrusted::placed_alloc as placed;
use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Limits, Output, open};
use drover_rpc::msgpack::{Malformed, Scanner, Value, decode, encode, end_of};
use drover_rpc::types::identity::{AclPolicies, SignedIdentities, WhoAmI};
use drover_rpc::types::inbound::{AllocationsRestart, HostVolumeCreate, NodeMetaApply};
use drover_rpc::types::query::{Allocations, Empty, NodeClientAllocs, OneAllocation, OneNode};
use drover_rpc::types::registration::NodeUpdateReply;
use drover_rpc::types::service::{ListedServices, ServiceInstances};
use drover_rpc::types::status::ServerMembers;
use drover_rpc::types::stream::{AgentMonitor, AllocationsExec, ExecInput, FileSystemLogs};
use drover_rpc::types::variable::{ListedVariables, Variable};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A message, of whatever type: first where it ends, then what it says.
///
/// # Panics
/// Something does not hold.
pub fn rpc_message(bytes: &[u8]) {
    let whole = end_of(bytes);
    ends_alike_in_pieces(bytes, whole.as_ref().ok().copied());
    if let Ok(end) = whole {
        is_read_as_written(&bytes[..end]);
    }
    let types: [fn(&[u8]); 19] = [
        read::<AclPolicies>,
        read::<AgentMonitor>,
        read::<Allocations>,
        read::<AllocationsExec>,
        read::<AllocationsRestart>,
        read::<ExecInput>,
        read::<FileSystemLogs>,
        read::<HostVolumeCreate>,
        read::<ListedServices>,
        read::<ListedVariables>,
        read::<NodeClientAllocs>,
        read::<NodeMetaApply>,
        read::<NodeUpdateReply>,
        read::<OneNode>,
        read::<ServerMembers>,
        read::<ServiceInstances>,
        read::<SignedIdentities>,
        read::<Variable>,
        read::<WhoAmI>,
    ];
    types.iter().for_each(|read| read(bytes));
}

/// However the bytes are split, the message ends at the same one.
fn ends_alike_in_pieces(bytes: &[u8], end: Option<usize>) {
    let mut scanner = Scanner::new(bytes.len());
    for arrived in 0..=bytes.len() {
        match scanner.scan(&bytes[..arrived]) {
            Ok(None) => {}
            Ok(found) => {
                assert_eq!(found, end);
                return assert_eq!(end, Some(arrived));
            }
            Err(_) => return assert_eq!(end, None),
        }
    }
    assert_eq!(end, None);
}

/// What was read once is written and read again as it is; before that, empty things become nothing.
fn is_read_as_written(message: &[u8]) {
    let Ok(value) = decode::<Value>(message) else {
        return;
    };
    let first = again(&value);
    let second = first.as_ref().and_then(again);
    if let (Some(first), Some(second)) = (&first, &second) {
        // A number that is none is not the same as itself.
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
    }
}

/// The same, written and read again. It may have become so short that it is not worth its memory any more.
fn again(value: &Value) -> Option<Value> {
    let bytes = encode(value);
    assert!(bytes.is_ok(), "{value:?}: {bytes:?}");
    let read = decode::<Value>(&bytes.ok()?);
    let may_be = matches!(read, Ok(_) | Err(Malformed::OverBudget));
    assert!(may_be, "{value:?}: {read:?}");
    read.ok()
}

fn read<T: DeserializeOwned>(message: &[u8]) {
    if let Err(why) = decode::<T>(message) {
        assert!(!why.to_string().is_empty());
    }
}

/// An allocation that servers placed, with its job.
///
/// # Panics
/// Something does not hold.
pub fn placed_alloc(bytes: &[u8]) {
    let Ok(OneAllocation {
        alloc: Some(alloc), ..
    }) = decode::<OneAllocation>(bytes)
    else {
        return;
    };
    let Some(placed) = placed(&alloc) else {
        return assert!(alloc.id.parse::<drover_core::ids::AllocId>().is_err());
    };
    assert_eq!(placed.id.to_string(), alloc.id.to_ascii_lowercase());
    match placed.job {
        Ok(job) => {
            assert!(!job.id.is_empty() && !job.task_groups.is_empty());
            assert!(job.task_groups.iter().all(|group| !group.tasks.is_empty()));
        }
        // It goes into an event: it is for people.
        Err(why) => assert!(!why.is_empty()),
    }
}

/// All that a server ever sends on a connection.
///
/// # Panics
/// Something does not hold.
pub fn rpc_connection(bytes: &[u8]) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    // An hour of waiting takes no time.
    let runtime = runtime.enable_time().start_paused(true).build();
    let sent = runtime.map(|runtime| runtime.block_on(converse(bytes)));
    let most = 4096 + 64 * bytes.len();
    assert!(
        sent.as_ref().is_ok_and(|sent| *sent <= most),
        "{sent:?} of {most}"
    );
}

/// Sends this to a node, and ends. Returns how much the node sent until it had enough.
async fn converse(bytes: &[u8]) -> usize {
    let (here, mut there) = tokio::io::duplex(64 << 10);
    let (connection, work) = open(here, "server", Arc::new(Node), Limits::default());
    let work = tokio::spawn(work);
    let mut sent = 0;
    let talk = async {
        let (mut reader, mut writer) = tokio::io::split(&mut there);
        let reading = async {
            let mut taken = vec![0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut taken).await {
                sent += count;
            }
        };
        let writing = async {
            // Whoever has enough takes no more.
            let _ = writer.write_all(bytes).await;
            let _ = writer.shutdown().await;
        };
        tokio::join!(reading, writing);
    };
    let done = async { tokio::join!(talk, connection.closed()) };
    let limit = Duration::from_secs(3600);
    let ended = tokio::time::timeout(limit, done).await;
    assert!(ended.is_ok(), "the node keeps a connection that has ended");
    let _ = work.await;
    sent
}

/// A node that answers calls whose requests make sense.
struct Node;

impl Handler for Node {
    async fn call(&self, call: InboundCall) -> Answer {
        let read = match call.method.as_str() {
            "Allocations.Restart" => call.request::<AllocationsRestart>().map(drop),
            "NodeMeta.Apply" => call.request::<NodeMetaApply>().map(drop),
            "HostVolume.Create" => call.request::<HostVolumeCreate>().map(drop),
            _ => return Answer::UnknownMethod,
        };
        match read {
            Ok(()) => Answer::reply(&Empty {}),
            Err(answer) => answer,
        }
    }

    fn has_stream(&self, method: &str) -> bool {
        !method.is_empty()
    }

    async fn stream(&self, call: InboundCall, input: &mut Input, output: &mut Output) {
        if let Err(why) = call.decode::<FileSystemLogs>() {
            return drop(output.fail(400, why.to_string()).await);
        }
        let _ = output.send(b"line\n".to_vec()).await;
        while input.next::<Value>().await.is_ok() {}
    }
}
