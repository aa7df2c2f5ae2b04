//! A server's requests over the wire, answered by the node: connections are in memory, and the
//! program of a session is the test.

use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::requests::Request;
use drover_core::effect::Reply;
use drover_core::ids::AllocId;
use drover_io_real::cluster::KnowAllocs;
use drover_io_real::connect::{Connect, Connecting, Connection};
use drover_io_real::driver::Inbox;
use drover_io_real::session::{SessionInput, SessionServer, Sessions};
use drover_rpc::msgpack::Raw;
use drover_rpc::types::stream::{AllocationsExec, ExecData, ExecInput, StreamAck, StreamHeader};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::Cluster;
use super::super::network_tests::cluster_answering;
use super::super::network_tests::wire::peer::{Peer, PeerStream};
use super::super::network_tests::wire::server::{Does, answer};
use super::{EXEC, Inbound};
use crate::agent_handle::{AgentHandle, Message, RequestInbox};
use crate::agent_log::AgentLog;
use crate::http::{Api, ForServers, Settings};
use crate::testing::nothing_measured;

/// How much input the node reads that the program does not take.
const READ_AHEAD: usize = 256 << 10;

/// Servers that answer everything with nothing. Their ends of connections come by this.
#[derive(Debug)]
struct Servers(mpsc::UnboundedSender<Peer>);

impl Connect for Servers {
    fn connect<'a>(&'a self, _: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let (here, there) = tokio::io::duplex(1 << 16);
            let (peer, incoming, _) = Peer::start(there);
            tokio::spawn(answer(incoming, |_, _| Does::empty()));
            self.0.send(peer).unwrap();
            Ok(Box::new(here) as Box<dyn Connection>)
        })
    }
}

/// A node whose sessions the test opens.
struct Node {
    _dir: tempfile::TempDir,
    _cluster: Cluster,
    server: Peer,
    requests: RequestInbox,
    sessions: Sessions,
}

impl Node {
    async fn connected() -> Node {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::File::open(dir.path()).unwrap();
        let sessions = Sessions::default();
        let (agent_handle, requests) = AgentHandle::new(Arc::new(root.into()));
        let agent_handle = agent_handle.with_sessions(sessions.clone());
        let access = ForServers::default();
        let settings = Settings {
            for_servers: access.clone(),
            ..Settings::default()
        };
        // Whose a token is, the API says.
        Api::new(agent_handle.clone(), settings, nothing_measured(dir.path()));
        let inbound = Inbound {
            agent_handle,
            access,
            measures: nothing_measured(dir.path()),
            log: AgentLog::default(),
            data_dir: dir.path().display().to_string(),
            inbox: Inbox::new(mpsc::unbounded_channel().0),
        };
        let (to, mut servers) = mpsc::unbounded_channel();
        let cluster = cluster_answering(Arc::new(Servers(to)), inbound, 0, 1);
        // The node connects when it has something to ask.
        cluster.runs(AllocId(1), 0).await.unwrap();
        Node {
            server: servers.recv().await.unwrap(),
            _dir: dir,
            _cluster: cluster,
            requests,
            sessions,
        }
    }

    /// A session: the server's end, and the program's.
    async fn session(&mut self) -> (PeerStream, SessionServer) {
        let mut stream = self.server.open();
        stream.send(&[5]).await;
        let method = EXEC.to_owned();
        stream.object(&StreamHeader { method }).await;
        let acknowledged: StreamAck = stream.next().await.unwrap();
        assert_eq!(acknowledged.error, "");
        let request = AllocationsExec {
            alloc_id: AllocId(7).to_string(),
            task: "t".to_owned(),
            cmd: vec!["cat".to_owned()],
            ..AllocationsExec::default()
        };
        stream.object(&request).await;
        let Some(Message::Request(Request::OpenSession(asked), reply)) =
            self.requests.messages.recv().await
        else {
            panic!("no session was asked for")
        };
        let program = self.sessions.take(asked.session).unwrap();
        reply.send(Reply::Done { index: 1 }).unwrap();
        (stream, program)
    }
}

/// What waits is bounded with the place that each piece takes, which is far more than a key press.
#[tokio::test(start_paused = true)]
async fn session_takes_any_number_of_small_pieces_of_input() {
    let mut node = Node::connected().await;
    let (mut stream, mut program) = node.session().await;
    let pieces = 2 * READ_AHEAD / size_of::<SessionInput>();
    let key = ExecInput {
        stdin: Some(ExecData {
            close: false,
            data: Raw(b"x".to_vec()),
        }),
        ..ExecInput::default()
    };
    let typed = async {
        for _ in 0..pieces {
            stream.object(&key).await;
        }
    };
    let read = async {
        let mut count = 0;
        while count < pieces {
            let input = timeout(Duration::from_secs(60), program.input.recv()).await;
            let input = input.unwrap_or_else(|_| panic!("no input after {count} of {pieces}"));
            assert_eq!(input, Some(SessionInput::Stdin("x".into())));
            count += 1;
        }
    };
    tokio::join!(typed, read);
}
