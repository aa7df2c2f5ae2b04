//! A hostile task: it tries to get out, and says of each try how it ended.
//!
//! Each row is one try, with the number of an entry in `docs/escapes.md`. A line is `<row> refused <error>`,
//! `<row> harmless <why>` or `<row> GOT <what>`; the last means that something held that should not have.
//!
//!     escapes [ROW...] [/PATH...] [PID...]
//!
//! tries these rows, or all, and what it can do to these paths and processes of the host.

#![allow(missing_docs, clippy::print_stdout, reason = "a program of tests")]

mod calls;
mod files;
mod identity;
mod try_call;

/// How a try ended.
pub(crate) enum Verdict {
    /// The kernel or our filter said no.
    Refused(i32),
    /// It worked, and is of no use.
    Harmless(String),
    /// It worked.
    Got(String),
}

/// One try: its row, what it is, and how it is done.
pub(crate) type Row = (&'static str, &'static str, fn() -> Verdict);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (paths, others): (Vec<_>, Vec<_>) = args.iter().partition(|it| it.starts_with('/'));
    let is_number = |it: &&String| it.bytes().all(|byte| byte.is_ascii_digit());
    let (pids, wanted): (Vec<_>, Vec<_>) = others.into_iter().partition(is_number);
    let rows = [files::ROWS, identity::ROWS, calls::ROWS].concat();
    for (row, what, attempt) in rows {
        if wanted.is_empty() || wanted.iter().any(|it| *it == row) {
            say(row, what, &attempt());
        }
    }
    for path in paths {
        say("7.12", "a path of the host", &files::of_host(path));
    }
    for pid in pids {
        say("7.03", "a process of the host", &identity::kill(pid));
    }
    println!("done");
}

fn say(row: &str, what: &str, verdict: &Verdict) {
    let verdict = match verdict {
        Verdict::Refused(errno) => {
            format!("refused {}", std::io::Error::from_raw_os_error(*errno))
        }
        Verdict::Harmless(why) => format!("harmless {why}"),
        Verdict::Got(got) => format!("GOT {got}"),
    };
    println!("{row} {what}: {verdict}");
}
