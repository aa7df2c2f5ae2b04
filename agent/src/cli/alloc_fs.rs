//! `drover alloc fs`: the files of an allocation's directory.

use hyper::Method;

use super::args::FsArgs;
use super::context::{Context, Outcome};
use super::frames::{Frames, Piece};
use super::lookup;
use super::table::table;
use super::usage;
use crate::http::files::FileInfo;
use crate::times;

/// How long a line is taken to be when looking for the beginning of the end.
const LINE: u64 = 120;
/// How many lines the end has unless told otherwise.
const TAIL_LINES: u64 = 10;

/// Runs the command.
///
/// # Errors
/// The allocation or file cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: FsArgs) -> Outcome {
    let alloc = lookup::alloc_or_job(cx, &args.id, args.job, args.group.as_deref()).await?;
    let path = args.path.clone().unwrap_or_else(|| "/".to_owned());
    let of = |what: &str| format!("/v1/client/fs/{what}/{}", alloc.id);
    let query = [("path", path.as_str())];
    let info: FileInfo = cx.client.get(&of("stat"), &query).await?;
    if args.stat {
        return show_stat(cx, &args, &info);
    }
    if info.is_dir {
        let list: Vec<FileInfo> = cx.client.get(&of("ls"), &query).await?;
        let rows = list.iter().map(|file| row(cx, &args, file));
        let list = table(["Mode", "Size", "Modified Time", "Name"], rows);
        cx.screen.print_line(&list)?;
        return Ok(0);
    }
    let end = match (args.bytes, args.lines.or(args.tail.then_some(TAIL_LINES))) {
        (Some(bytes), _) => Some(bytes),
        (None, Some(lines)) => Some(lines.saturating_mul(LINE)),
        (None, None) => None,
    };
    let offset = end.unwrap_or(0).to_string();
    let query = [
        query[0],
        ("origin", if end.is_some() { "end" } else { "start" }),
        ("offset", &offset),
        ("follow", if args.follow { "true" } else { "false" }),
    ];
    let path_of_stream = of("stream");
    let sent = (cx.client.send(Method::GET, &path_of_stream, &query, None)).await?;
    let mut frames = Frames::new(sent.into_body());
    while let Some(piece) = frames.next().await? {
        match piece {
            Piece::Bytes(bytes) => cx.screen.bytes(&bytes)?,
            Piece::Gap => cx.screen.complain(&format!(
                "==> {path}: the file was truncated or deleted <=="
            )),
        }
    }
    Ok(0)
}

fn show_stat(cx: &mut Context, args: &FsArgs, info: &FileInfo) -> Outcome {
    let [mode, size, time, name] = row(cx, args, info);
    let titles = ["Mode", "Size", "Modified Time", "Content Type", "Name"];
    let kind = info.content_type.clone();
    let text = table(titles, [[mode, size, time, kind, name]]);
    cx.screen.print_line(&text)?;
    Ok(0)
}

/// A file as lists show it.
fn row(cx: &Context, args: &FsArgs, file: &FileInfo) -> [String; 4] {
    let size = match args.machine {
        true => file.size.to_string(),
        false => usage::bytes(u64::try_from(file.size).unwrap_or(0)),
    };
    let time = times::parse(&file.mod_time);
    let time = time.map_or_else(|| file.mod_time.clone(), |time| cx.time(time.0, true));
    let slash = if file.is_dir { "/" } else { "" };
    let name = format!("{}{slash}", file.name);
    [file.file_mode.clone(), size, time, name]
}
