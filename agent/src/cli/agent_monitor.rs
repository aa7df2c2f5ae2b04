//! `drover monitor`: the agent's log as it is written, until Ctrl-C.

use hyper::Method;

use super::args::MonitorArgs;
use super::context::{Context, Outcome};
use super::frames::{Frames, Piece};

/// Runs the command.
///
/// # Errors
/// The agent does not know the level, does not answer, or breaks off.
pub(super) async fn run(cx: &mut Context, args: MonitorArgs) -> Outcome {
    let json = if args.json { "true" } else { "false" };
    let query = [("log_level", args.log_level.as_str()), ("log_json", json)];
    let sent = (cx.client).send(Method::GET, "/v1/agent/monitor", &query, None);
    let mut frames = Frames::new(sent.await?.into_body());
    while let Some(piece) = frames.next().await? {
        match piece {
            Piece::Bytes(bytes) => cx.screen.bytes(&bytes)?,
            Piece::Gap => {}
        }
    }
    Ok(0)
}
