//! Exec sessions over websockets, as Nomad's programs open them.
//!
//! What fails is reported after the connection has become a websocket, by the frame that closes it: code 1008
//! for what makes no sense, 1011 for everything else. There is no limit to a session's time. It ends with its
//! program; with its task, whose end closes it; and with its client. A client that vanishes without a word is
//! found out by pings.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use drover_core::agent::View;
use drover_core::agent::requests::SessionCommand;
use drover_core::driver::isolation::isolates;
use drover_core::effect::Reply;
use drover_core::ids::{AllocId, TaskName};
use drover_io_real::session::{SessionClient, SessionInput, SessionOutput};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Api;
use super::access::need::{Asked, Need};
use super::access::{self, Principal};
use super::answer::Answer;
use super::errors::ApiError;
use super::params::Params;
use super::websocket::{self, Closing};
use crate::acl::Capability;
use crate::agent_handle::AgentHandle;

/// How often a client is asked whether it still exists.
const PING: Duration = Duration::from_secs(10);
/// How long the first message may take, where the client says that it sends one.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What a client wants to run.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The namespace in which nothing was found, if that is known.
    pub(super) namespace: Option<String>,
    pub(super) alloc: Result<AllocId, Closing>,
    pub(super) task: TaskName,
    pub(super) run: Result<SessionCommand, Closing>,
    pub(super) tty: bool,
    /// Whether its first message is a greeting.
    pub(super) greets: bool,
}

/// The greeting of a client, which may bring its token: pages cannot set headers of a websocket.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Greeting {
    version: i64,
    auth_token: String,
}

/// What a request for a session needs before the connection becomes a websocket: nothing where the token may come
/// after that. Who may open it is asked again then, when the task is known.
pub(super) fn need(asked: &Asked<'_>, otherwise: Need) -> Need {
    match asked.query("ws_handshake") {
        Some(_) => Need::InHandler,
        None => otherwise,
    }
}

pub(super) async fn exec(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let wanted = Wanted {
        namespace: None,
        alloc: alloc_id(&id),
        task: TaskName::from(params.get("task").unwrap_or_default()),
        run: command(params.get("command").unwrap_or_default()),
        tty: params.flag("tty"),
        greets: params.flag("ws_handshake"),
    };
    open(api, &params, upgrade, wanted)
}

/// Makes the connection a websocket, over which the session is opened.
pub(super) fn open(
    api: Api,
    params: &Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    wanted: Wanted,
) -> Answer {
    let none = |_| ApiError::failed("websocket connection not found in context");
    let upgrade = websocket::bounded(upgrade.map_err(none)?);
    let upgraded = params.caller.upgrade()?;
    let principal = params.principal.clone();
    Ok(upgrade.on_upgrade(async move |socket| {
        serve(&api, socket, wanted, principal).await;
        drop(upgraded);
    }))
}

pub(super) fn alloc_id(id: &str) -> Result<AllocId, Closing> {
    let words = "alloc lookup failed: index error: UUID must be 36 characters";
    id.parse().map_err(|_| Closing::failed(words))
}

/// The command, which is a list of words in JSON.
fn command(text: &str) -> Result<SessionCommand, Closing> {
    let words: Result<Vec<String>, _> = match text {
        "" => Ok(Vec::new()),
        text => serde_json::from_str(text),
    };
    match words {
        Ok(words) => Ok(SessionCommand::Command(words)),
        Err(error) => Err(Closing::refused(format!("invalid command: {error}"))),
    }
}

type Sink = SplitSink<WebSocket, Message>;
type Stream = SplitStream<WebSocket>;

async fn serve(api: &Api, socket: WebSocket, wanted: Wanted, principal: Principal) {
    let (mut sink, mut stream) = socket.split();
    let closing = match begin(api, &mut stream, wanted, principal).await {
        Ok((client, principal)) => tokio::select! {
            closing = converse(&mut sink, &mut stream, client) => closing,
            () = principal.revoked(api) => Some(Closing::refused(ApiError::denied().message)),
        },
        Err(closing) => Some(closing),
    };
    if let Some(closing) = closing {
        // Who is gone need not hear it.
        let _ = sink.send(closing.message()).await;
    }
}

/// Opens the session, and says whose it is.
async fn begin(
    api: &Api,
    stream: &mut Stream,
    wanted: Wanted,
    mut principal: Principal,
) -> Result<(SessionClient, Principal), Closing> {
    if wanted.greets {
        let token = greeting(stream).await?;
        if !token.is_empty() {
            principal = api.sender_of(&principal, &token).await.map_err(closing)?;
        }
    }
    let (alloc, task) = (wanted.alloc, Some(wanted.task.clone()));
    // Only those who may open sessions are told what is wrong with theirs.
    let may = may_enter(
        &api.agent_handle,
        &principal,
        alloc.as_ref().ok().copied(),
        task,
    );
    may.await.map_err(closing)?;
    if let (Err(_), Some(namespace)) = (&alloc, &wanted.namespace) {
        let may = principal.require(namespace, Capability::AllocExec);
        may.map_err(closing)?;
    }
    let session = Session {
        alloc: alloc?,
        task: wanted.task,
        run: wanted.run?,
        tty: wanted.tty,
    };
    let opened = open_session(&api.agent_handle, session).await;
    Ok((opened.map_err(closing)?, principal))
}

fn closing(error: ApiError) -> Closing {
    match error.status.is_client_error() {
        true => Closing::refused(error.message),
        false => Closing::failed(error.message),
    }
}

/// Whether somebody may enter a task, or all of them where none is named. Whoever enters one that sees the file system
/// of the host can do there what the task can, and needs a capability more.
///
/// # Errors
/// They may not.
pub(crate) async fn may_enter(
    agent_handle: &AgentHandle,
    principal: &Principal,
    alloc: Option<AllocId>,
    task: Option<TaskName>,
) -> Result<(), ApiError> {
    if principal.rights().is_management() {
        return Ok(());
    }
    let question = move |view: View<'_>| {
        let record = view.alloc(alloc?)?;
        let tasks = record.tasks().iter().map(|task| task.spec());
        let mut tasks = tasks.filter(|it| task.as_ref().is_none_or(|name| *name == it.key.task));
        let on_host = tasks.any(|it| !isolates(&it.driver));
        Some((record.record().job.namespace.to_string(), on_host))
    };
    let found = agent_handle.ask(question).await?;
    let (namespace, on_host) = found.unwrap_or_else(|| ("*".to_owned(), false));
    let may = |capability| principal.may_one_of(&namespace, &[capability]);
    access::require(may(Capability::AllocExec) && (!on_host || may(Capability::AllocNodeExec)))
}

/// A program that is to run beside a task.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) alloc: AllocId,
    pub(crate) task: TaskName,
    pub(crate) run: SessionCommand,
    pub(crate) tty: bool,
}

/// Runs it. It ends when what is given back is dropped.
///
/// # Errors
/// It cannot be run.
pub(crate) async fn open_session(
    agent_handle: &AgentHandle,
    session: Session,
) -> Result<SessionClient, ApiError> {
    let Session {
        alloc,
        task,
        run,
        tty,
    } = session;
    match agent_handle.open_session(alloc, task, run, tty).await? {
        (Reply::Done { .. }, client) => Ok(client),
        (other, _) => Err(ApiError::unexpected(other)),
    }
}

/// The token that a client greets with; empty if none.
async fn greeting(stream: &mut Stream) -> Result<String, Closing> {
    let first = timeout(HANDSHAKE, stream.next()).await;
    let message = first.ok().flatten().and_then(Result::ok);
    let text = message.map(Message::into_data).unwrap_or_default();
    let greeting: Greeting = serde_json::from_slice(&text)
        .map_err(|_| Closing::refused("the first message must be a handshake"))?;
    match greeting.version {
        1 => Ok(greeting.auth_token),
        other => Err(Closing::refused(format!(
            "unexpected handshake value: {other}"
        ))),
    }
}

/// Passes on what the two say, until one of them ends. The program ends with what is dropped then.
async fn converse(sink: &mut Sink, stream: &mut Stream, client: SessionClient) -> Option<Closing> {
    let SessionClient { input, output } = client;
    tokio::select! {
        closing = listen(stream, input) => closing,
        closing = speak(sink, output) => closing,
    }
}

/// Passes on what a client says, as fast as the program reads it.
async fn listen(stream: &mut Stream, to: mpsc::Sender<SessionInput>) -> Option<Closing> {
    while let Some(Ok(message)) = stream.next().await {
        let text = match message {
            Message::Text(_) | Message::Binary(_) => message.into_data(),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return None,
        };
        match websocket::read_input(&text) {
            Ok(inputs) => {
                for input in inputs {
                    // The program's end is told by what comes from it.
                    let _ = to.send(input).await;
                }
            }
            Err(why) => return Some(Closing::refused(why)),
        }
    }
    None
}

/// Passes on what a program says, as fast as the client reads it.
async fn speak(sink: &mut Sink, mut from: mpsc::Receiver<SessionOutput>) -> Option<Closing> {
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (text, last) = tokio::select! {
            output = from.recv() => match output {
                Some(SessionOutput::Data(which, bytes)) => {
                    (websocket::write_data(which, &bytes), None)
                }
                Some(SessionOutput::Closed(which)) => (websocket::write_closed(which), None),
                Some(SessionOutput::Exited(result)) => {
                    (websocket::write_exit(&result), Some(Closing::done()))
                }
                Some(SessionOutput::Failed(why)) => return Some(Closing::failed(why)),
                None => return Some(Closing::failed("the task ended")),
            },
            _ = pings.tick() => {
                sink.send(Message::Ping(bytes::Bytes::new())).await.ok()?;
                continue;
            }
        };
        sink.send(Message::Text(text.into())).await.ok()?;
        if last.is_some() {
            return last;
        }
    }
}
