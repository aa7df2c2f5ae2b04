//! A hostile task: it tries to get out, and says of each try how it ended.
//!
//! Each row is one try, with the number of an entry in `docs/escapes.md`. A line is `<row> refused <error>`,
//! `<row> harmless <why>` or `<row> GOT <what>`; the last means that something held that should not have. The
//! arguments are paths of the host that must not be there.

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
    let rows = [files::ROWS, identity::ROWS, calls::ROWS].concat();
    for (row, what, attempt) in rows {
        let verdict = match attempt() {
            Verdict::Refused(errno) => {
                format!("refused {}", std::io::Error::from_raw_os_error(errno))
            }
            Verdict::Harmless(why) => format!("harmless {why}"),
            Verdict::Got(got) => format!("GOT {got}"),
        };
        println!("{row} {what}: {verdict}");
    }
    for path in std::env::args().skip(1) {
        let verdict = match std::fs::symlink_metadata(&path) {
            Err(error) => format!("refused {error}"),
            Ok(_) => format!("GOT {path}"),
        };
        println!("7.12 a path of the host: {verdict}");
    }
    println!("done");
}
