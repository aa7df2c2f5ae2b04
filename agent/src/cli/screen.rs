//! What the user sees: the two outputs, colours, and a line that rewrites itself.

use std::io::{self, IsTerminal, Write};

use super::exit_code::Failure;

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Where a terminal shows them, unless the environment says otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where output goes.
pub struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    colour: bool,
    /// Whether a line may rewrite itself.
    moving: bool,
    live: bool,
}

impl Screen {
    /// The process's own outputs.
    pub fn of_process(colour: Colour) -> Screen {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let plain = set("NO_COLOR") || set("NOMAD_CLI_NO_COLOR");
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let out = io::stdout();
        let terminal = out.is_terminal() && !dumb;
        Screen {
            colour: match colour {
                Colour::Never => false,
                Colour::Always => true,
                Colour::Auto => !plain && (terminal || set("NOMAD_CLI_FORCE_COLOR")),
            },
            moving: terminal && io::stderr().is_terminal(),
            out: Box::new(out),
            err: Box::new(io::stderr()),
            live: false,
        }
    }

    /// Any outputs, without colours and movement.
    pub fn plain(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Screen {
        Screen {
            out,
            err,
            colour: false,
            moving: false,
            live: false,
        }
    }

    /// Whether it is a terminal on which something can be drawn anew.
    pub fn is_moving(&self) -> bool {
        self.moving
    }

    /// Writes lines. What others said in them cannot move the cursor.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn print_line(&mut self, text: &str) -> Result<(), Failure> {
        self.clear_live();
        written(writeln!(self.out, "{}", clean(text)))
    }

    /// Writes a question, without an end of the line.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn ask(&mut self, text: &str) -> Result<(), Failure> {
        self.clear_live();
        written(write!(self.out, "{}", clean(text)).and_then(|()| self.out.flush()))
    }

    /// Writes the title of what follows.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn title(&mut self, text: &str) -> Result<(), Failure> {
        self.clear_live();
        let text = clean(text);
        written(match self.colour {
            true => writeln!(self.out, "\x1b[1m{text}\x1b[0m"),
            false => writeln!(self.out, "{text}"),
        })
    }

    /// A text in a colour, where there are colours. What others said in it cannot move the cursor.
    pub fn painted(&self, text: &str, colour: &str) -> String {
        let text = clean(text);
        match self.colour {
            true => format!("\x1b[{colour}m{text}\x1b[0m"),
            false => text,
        }
    }

    /// Writes an error.
    pub fn complain(&mut self, text: &str) {
        self.clear_live();
        let text = clean(text);
        // There is nobody left to tell.
        let _ = match self.colour {
            true => writeln!(self.err, "\x1b[31m{text}\x1b[0m"),
            false => writeln!(self.err, "{text}"),
        };
    }

    /// Writes what a task wrote, byte for byte.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        written(self.out.write_all(bytes).and_then(|()| self.out.flush()))
    }

    /// As [`Screen::bytes`], to the error output.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn error_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        written(self.err.write_all(bytes).and_then(|()| self.err.flush()))
    }

    /// Writes a line that tells streams apart, where both go to a terminal.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub fn label(&mut self, text: &str) -> Result<(), Failure> {
        if self.moving {
            self.title(text)
        } else {
            Ok(())
        }
    }

    /// Shows a line that the next output replaces; nothing where that cannot be.
    pub fn live(&mut self, text: &str) {
        if self.moving {
            let line: String = clean(text)
                .chars()
                .filter(|c| *c != '\n')
                .take(78)
                .collect();
            let _ = write!(self.err, "\r\x1b[K{line}").and_then(|()| self.err.flush());
            self.live = true;
        }
    }

    fn clear_live(&mut self) {
        if core::mem::take(&mut self.live) {
            let _ = write!(self.err, "\r\x1b[K").and_then(|()| self.err.flush());
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear_live();
        let _ = self.out.flush();
    }
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        // Whoever read had enough.
        io::ErrorKind::BrokenPipe => Failure::quiet(0),
        _ => Failure::new(format!("cannot write: {error}")),
    })
}

/// The text without what could move a terminal's cursor, change its title or reverse the order of
/// reading.
pub fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\t' => c,
        _ if c.is_control() => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        _ => c,
    };
    text.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_of_others_are_removed() {
        assert_eq!(
            clean("a\x1b[2Jb\r\u{9b}c\n\té"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\n\té"
        );
        assert_eq!(clean("\u{202e}gnp.exe"), "\u{fffd}gnp.exe");
    }
}
