//! The user's terminal while a session has it: raw, and as it was before on every way out.

use std::io::{self, stdin, stdout};

use drover_io_real::session::WindowSize;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal that is raw until this is dropped.
pub(super) struct Raw(Termios);

impl Raw {
    /// Makes the terminal of standard input raw; none if it is no terminal.
    pub(super) fn begin() -> io::Result<Option<Raw>> {
        if !is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // From here on, whatever happens, it is given back as it was.
        let given_back = Raw(before);
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Some(given_back))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

/// Whether standard input is a terminal.
pub(super) fn is_terminal() -> bool {
    isatty(stdin())
}

/// How large the terminal is.
pub(super) fn size() -> Option<WindowSize> {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stdin()));
    size.ok().map(|size| WindowSize {
        height: size.ws_row,
        width: size.ws_col,
    })
}
