//! What servers say of tokens, those before `ACL.WhoAmI` among them, and by whose they sign those
//! of tasks: model servers on connections in memory.

use std::sync::Arc;

use drover_core::cluster::{Call, Credentials};
use drover_core::effect::ServerEffect;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::acl::TokenType;
use drover_core::model::secret::Secret;
use drover_core::op::Op;
use drover_io_real::cluster::{CallServers, ServeTasks};
use drover_io_real::connect::{Connect, Connecting, Connection};
use drover_io_real::driver::Inbox;
use drover_rpc::msgpack::Value;
use drover_rpc::types::identity::{
    AclToken, ResolvedToken, SignedIdentities, SignedWorkloadIdentity,
};
use tokio::sync::mpsc;

use super::network_tests::cluster_by;
use super::network_tests::wire::peer::Peer;
use super::network_tests::wire::server::{Does, answer};
use crate::http::{ServersToken, TokenServers, Unresolved};

const ACCESSOR: &str = "00000000-0000-4000-8000-00000000000a";

/// Servers that do this with a call.
#[derive(Debug)]
struct Model(fn(&str, &Value) -> Does);

impl Connect for Model {
    fn connect<'a>(&'a self, _: &'a str) -> Connecting<'a> {
        let does = self.0;
        Box::pin(async move {
            let (here, there) = tokio::io::duplex(1 << 16);
            let (_, incoming, _) = Peer::start(there);
            tokio::spawn(answer(incoming, move |method, body| does(method, &body)));
            Ok(Box::new(here) as Box<dyn Connection>)
        })
    }
}

/// Whose token has this secret, by servers of which only the token itself can be asked.
async fn token_of_old(
    secret: &str,
    resolves: fn(&str, &Value) -> Does,
) -> Result<ServersToken, Unresolved> {
    let dir = tempfile::tempdir().unwrap();
    let (to, _inputs) = mpsc::unbounded_channel();
    let cluster = cluster_by(Arc::new(Model(resolves)), dir.path(), 0, 1, to);
    TokenServers::token(&cluster, &Secret::from(secret)).await
}

fn resolves(method: &str, body: &Value) -> Does {
    let Value::Map(fields) = body else {
        panic!("{body:?}")
    };
    match (method, fields.get("SecretID")) {
        ("ACL.ResolveToken", Some(Value::Text(secret))) => {
            let token = AclToken {
                accessor_id: ACCESSOR.to_owned(),
                r#type: "management".to_owned(),
                ..AclToken::default()
            };
            Does::reply(&ResolvedToken {
                token: (secret == "known").then_some(token),
                ..ResolvedToken::default()
            })
        }
        _ => Does::Error("rpc: can't find method"),
    }
}

#[tokio::test]
async fn older_servers_are_asked_for_the_token_itself() {
    let found = token_of_old("known", resolves).await.unwrap();
    assert_eq!(found.accessor.to_string(), ACCESSOR);
    assert_eq!(found.token_type, TokenType::Management);
    let unknown = token_of_old("other", resolves).await;
    assert!(
        matches!(unknown, Err(Unresolved::Unknown)),
        "{:?}",
        unknown.err()
    );
}

#[tokio::test]
async fn older_servers_without_access_control_know_no_token() {
    let off = |method: &str, _: &Value| match method {
        "ACL.ResolveToken" => Does::Error("ACL support disabled"),
        _ => Does::Error("rpc: can't find method"),
    };
    let unknown = token_of_old("known", off).await;
    assert!(
        matches!(unknown, Err(Unresolved::Unknown)),
        "{:?}",
        unknown.err()
    );
}

/// Signs each identity with whatever token the node showed.
fn signs(method: &str, body: &Value) -> Does {
    let Value::Map(fields) = body else {
        panic!("{body:?}")
    };
    match (method, fields.get("AuthToken")) {
        ("Alloc.SignIdentities", Some(Value::Text(token))) => Does::reply(&SignedIdentities {
            signed_identities: vec![SignedWorkloadIdentity {
                identity_name: "vault".to_owned(),
                jwt: token.as_str().into(),
                ..SignedWorkloadIdentity::default()
            }],
            ..SignedIdentities::default()
        }),
        _ => Does::empty(),
    }
}

/// Servers refuse an identity that is over, so the one that they renewed takes its place.
#[tokio::test]
async fn identities_of_tasks_are_asked_for_by_the_latest_identity_of_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let (to, _inputs) = mpsc::unbounded_channel();
    let cluster = cluster_by(Arc::new(Model(signs)), dir.path(), 0, 1, to.clone());
    let task = TaskKey {
        alloc: AllocId(7),
        task: "t".into(),
    };
    let names = ["vault".to_owned()];
    assert!(cluster.sign(&task, &names).await.is_err(), "not known yet");
    for (op, identity) in ["first", "renewed", "renewed again"]
        .into_iter()
        .enumerate()
    {
        let heartbeat = ServerEffect::Call {
            op: Op(op as u64),
            credentials: Credentials::Identity(identity.into()),
            call: Call::Heartbeat {
                renew_identity: false,
            },
        };
        cluster.carry_out(heartbeat, &Inbox::new(to.clone()));
        let signed = cluster.sign(&task, &names).await.unwrap();
        assert_eq!(signed["vault"].expose(), identity);
    }
}
