//! `drover alloc exec`: a program runs beside a task, connected to this terminal.

mod escape;
mod session;
mod terminal;

use super::alloc_act::check_task;
use super::args::ExecArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::lookup;
use session::Ends;

/// The most bytes of a message that an agent sends.
const MAX_MESSAGE: usize = 8 << 20;

/// How a session is connected to this terminal.
#[derive(Clone, Debug)]
pub(super) struct Interaction {
    /// Whether standard input goes to the program; it does unless told otherwise.
    pub(super) input: Option<bool>,
    /// Whether the program has a terminal; it has if this one is one.
    pub(super) tty: Option<bool>,
    /// What ends the session at the beginning of a line.
    pub(super) escape: String,
}

/// Runs the command.
///
/// # Errors
/// The allocation or task cannot be found, the program cannot be run, or the connection breaks.
pub(super) async fn run(cx: &mut Context, args: ExecArgs) -> Outcome {
    let alloc = lookup::alloc_or_job(cx, &args.id, args.job, args.group.as_deref()).await?;
    let task = match args.task {
        Some(task) => task,
        None => lookup::only_task(cx, &alloc).await?,
    };
    check_task(&alloc, Some(&task))?;
    let path = format!("/v1/client/allocation/{}/exec", alloc.id);
    let command = serde_json::Value::from(args.command).to_string();
    let query = [("task", task.as_str()), ("command", &command)];
    let how = Interaction {
        input: args.input,
        tty: args.tty,
        escape: args.escape,
    };
    open(cx, &path, &query, &how).await
}

/// Opens a session and stays with it to its end. The exit code of its program.
///
/// # Errors
/// The program cannot be run, or the connection breaks.
pub(super) async fn open(
    cx: &Context,
    path: &str,
    query: &[(&str, &str)],
    how: &Interaction,
) -> Outcome {
    let input = how.input.unwrap_or(true);
    let tty = how.tty.unwrap_or(input && terminal::is_terminal());
    if tty && !input {
        return Err(Failure::new(
            "-t cannot be used with -i=false: a terminal is read from",
        ));
    }
    let escape = match how.escape.as_bytes() {
        b"none" => None,
        [one] => Some(*one),
        _ => return Err(Failure::new("-e takes one character, or none")),
    };
    let ends = Ends {
        input,
        tty,
        escape: escape.filter(|_| tty),
    };
    let tty = if tty { "true" } else { "false" };
    let mut query = query.to_vec();
    query.push(("tty", tty));
    let socket = cx.client.websocket(path, &query, MAX_MESSAGE).await?;
    session::attend(socket, &ends).await
}
