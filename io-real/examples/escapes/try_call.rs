//! System calls by number, and their errors.

use crate::Verdict;

/// Makes a call with up to five arguments: refused if it fails.
pub(crate) fn call(number: libc::c_long, args: [usize; 5]) -> Verdict {
    let [a, b, c, d, e] = args;
    // SAFETY: the arguments are numbers that no call of these takes for memory to write to, or null.
    let done = unsafe { libc::syscall(number, a, b, c, d, e) };
    match done {
        -1 => Verdict::Refused(errno()),
        done => Verdict::Got(format!("call {number}: {done}")),
    }
}

/// The error of the last call.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The first that was not refused, or the error of the last.
pub(crate) fn all(tries: impl IntoIterator<Item = Verdict>) -> Verdict {
    let mut last = Verdict::Harmless("nothing to try".to_owned());
    for one in tries {
        match one {
            Verdict::Got(_) => return one,
            Verdict::Refused(_) | Verdict::Harmless(_) => last = one,
        }
    }
    last
}

/// Runs a try in a child, which may be killed for it.
pub(crate) fn in_child(attempt: fn() -> Verdict) -> Verdict {
    // SAFETY: there is one thread.
    match unsafe { libc::fork() } {
        -1 => Verdict::Refused(errno()),
        0 => {
            let code = match attempt() {
                Verdict::Refused(errno) => errno & 0x7f,
                Verdict::Harmless(_) => 200,
                Verdict::Got(_) => 201,
            };
            // SAFETY: ends this process and nothing else.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the status is ours.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            match (libc::WIFSIGNALED(status), libc::WEXITSTATUS(status)) {
                (true, _) => {
                    Verdict::Harmless(format!("killed by signal {}", libc::WTERMSIG(status)))
                }
                (false, 201) => Verdict::Got("it worked in a child".to_owned()),
                (false, 200) => Verdict::Harmless("it led nowhere".to_owned()),
                (false, errno) => Verdict::Refused(errno),
            }
        }
    }
}
