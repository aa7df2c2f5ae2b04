//! `drover alloc logs`: what a task writes, byte for byte.
//!
//! The bytes are the user's own and are not changed, not even on a terminal: a task that writes
//! colours shows colours.

use hyper::Method;

use super::alloc_act::check_task;
use super::args::LogsArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::frames::{Frames, Piece};
use super::lookup;

/// How many lines the end has unless told otherwise.
const TAIL_LINES: u64 = 10;
/// How long a line is taken to be when looking for the beginning of the end.
const LINE: u64 = 120;

/// How much is kept of a stream of which the end is wanted, in bytes.
const KEPT: usize = 16 << 20;

/// Runs the command.
///
/// # Errors
/// The allocation or task cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: LogsArgs) -> Outcome {
    let alloc = lookup::alloc_or_job(cx, &args.id, args.job, args.group.as_deref()).await?;
    let task = match args.task_name.clone().or(args.task.clone()) {
        Some(task) => task,
        None => lookup::only_task(cx, &alloc).await?,
    };
    check_task(&alloc, Some(&task))?;
    let both = args.stdout == args.stderr;
    let show = Show {
        path: format!("/v1/client/fs/logs/{}", alloc.id),
        task,
        args,
    };
    match (show.args.follow, both) {
        (true, true) => follow_both(cx, &show).await,
        (true, false) => follow_one(cx, &show).await,
        (false, _) => once(cx, &show, both && show.args.stderr).await,
    }
}

/// What is to be shown.
struct Show {
    path: String,
    task: String,
    args: LogsArgs,
}

impl Show {
    fn lines(&self) -> Option<u64> {
        let wanted = self.args.tail || self.args.lines.is_some();
        (wanted && self.args.bytes.is_none()).then(|| self.args.lines.unwrap_or(TAIL_LINES))
    }

    async fn open(&self, cx: &Context, stream: &str, follow: bool) -> Result<Frames, Failure> {
        let from_end = match (self.args.bytes, self.lines()) {
            (Some(bytes), _) => Some(bytes),
            (None, Some(lines)) => Some(lines.saturating_mul(LINE)),
            (None, None) => None,
        };
        let offset = from_end.unwrap_or(0).to_string();
        let origin = if from_end.is_some() { "end" } else { "start" };
        let follow = if follow { "true" } else { "false" };
        let query = [
            ("task", self.task.as_str()),
            ("type", stream),
            ("origin", origin),
            ("offset", &offset),
            ("follow", follow),
            ("until_end", follow),
        ];
        let sent = cx.client.send(Method::GET, &self.path, &query, None).await;
        let sent = sent.map_err(|failure| {
            failure.answered_within(&format!("Failed to read {stream} file: error reading file"))
        })?;
        Ok(Frames::new(sent.into_body()))
    }
}

/// Shows what is there now.
async fn once(cx: &mut Context, show: &Show, both: bool) -> Outcome {
    let streams: &[&str] = match (both, show.args.stderr) {
        (true, _) => &["stdout", "stderr"],
        (false, true) => &["stderr"],
        (false, false) => &["stdout"],
    };
    for stream in streams {
        let body = show.open(cx, stream, false).await?;
        match show.lines() {
            Some(lines) => {
                let bytes = whole(body).await?;
                write(cx, stream, last_lines(&bytes, lines))?;
            }
            None => copy(cx, show, stream, body).await?,
        }
    }
    Ok(0)
}

/// All of it; what is missing before the end that is wanted is not missed.
async fn whole(mut body: Frames) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    while let Some(piece) = body.next().await? {
        match piece {
            Piece::Bytes(bytes) => {
                all.extend(bytes);
                let select_for_gc = all.len().saturating_sub(KEPT);
                all.drain(..select_for_gc);
            }
            Piece::Gap => all.clear(),
        }
    }
    Ok(all)
}

/// The last lines of a text, of which the beginning may be missing.
fn last_lines(text: &[u8], lines: u64) -> &[u8] {
    let end = text.strip_suffix(b"\n").unwrap_or(text);
    let breaks = end
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n');
    let before = usize::try_from(lines)
        .ok()
        .and_then(|lines| lines.checked_sub(1));
    let start = match before {
        None => text.len(),
        Some(before) => breaks.map(|(at, _)| at + 1).nth(before).unwrap_or(0),
    };
    text.get(start..).unwrap_or_default()
}

async fn follow_one(cx: &mut Context, show: &Show) -> Outcome {
    let stream = if show.args.stderr { "stderr" } else { "stdout" };
    let body = show.open(cx, stream, true).await?;
    copy(cx, show, stream, body).await?;
    Ok(0)
}

async fn copy(
    cx: &mut Context,
    show: &Show,
    stream: &str,
    mut body: Frames,
) -> Result<(), Failure> {
    while let Some(piece) = body.next().await? {
        put(cx, show, stream, &piece)?;
    }
    Ok(())
}

fn put(cx: &mut Context, show: &Show, stream: &str, piece: &Piece) -> Result<(), Failure> {
    match piece {
        Piece::Bytes(bytes) => write(cx, stream, bytes),
        Piece::Gap => {
            let task = &show.task;
            cx.screen.complain(&format!(
                "==> {task} {stream}: lines are missing here, their file was rotated away <=="
            ));
            Ok(())
        }
    }
}

/// Shows both streams as they come. On a terminal, where they run together, a line says when the
/// stream changes.
async fn follow_both(cx: &mut Context, show: &Show) -> Outcome {
    let mut out = Some(show.open(cx, "stdout", true).await?);
    let mut err = Some(show.open(cx, "stderr", true).await?);
    let mut last = "stdout";
    while out.is_some() || err.is_some() {
        let (stream, piece) = tokio::select! {
            piece = next_of(&mut out), if out.is_some() => ("stdout", piece?),
            piece = next_of(&mut err), if err.is_some() => ("stderr", piece?),
        };
        let Some(piece) = piece else {
            let ended = if stream == "stdout" {
                &mut out
            } else {
                &mut err
            };
            *ended = None;
            continue;
        };
        if last != stream {
            cx.screen
                .label(&format!("==> {} {stream} <==", show.task))?;
            last = stream;
        }
        put(cx, show, stream, &piece)?;
    }
    Ok(0)
}

async fn next_of(body: &mut Option<Frames>) -> Result<Option<Piece>, Failure> {
    match body {
        Some(body) => body.next().await,
        None => Ok(None),
    }
}

fn write(cx: &mut Context, stream: &str, bytes: &[u8]) -> Result<(), Failure> {
    if stream == "stderr" {
        cx.screen.error_bytes(bytes)
    } else {
        cx.screen.bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_lines_are_counted() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(last_lines(b"a\nb\nc", 1), b"c");
        assert_eq!(last_lines(b"a\nb\n", 9), b"a\nb\n");
        assert_eq!(last_lines(b"a\n", 0), b"");
        assert_eq!(last_lines(b"", 3), b"");
    }
}
