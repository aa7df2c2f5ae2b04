//! Single keys from a terminal, and its size.
//!
//! Whether a terminal waits for whole lines is set by the program `stty`, which every system has;
//! where there is none, keys work with Enter.

use std::io::Read;
use std::process::{Command, Stdio};

use tokio::sync::mpsc;

use super::rows::Order;

/// The lines of a terminal of unknown size.
const LINES: usize = 24;

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Sort(Order),
    Other,
}

impl Key {
    fn of(byte: u8) -> Key {
        match byte {
            b'q' | b'Q' => Key::Quit,
            b'c' => Key::Sort(Order::Cpu),
            b'm' => Key::Sort(Order::Memory),
            b'd' => Key::Sort(Order::Devices),
            b'r' => Key::Sort(Order::Restarts),
            b'n' => Key::Sort(Order::Name),
            _ => Key::Other,
        }
    }
}

/// The keys that are pressed. The terminal is as it was before when this is dropped.
#[derive(Debug)]
pub(super) struct Keys {
    pressed: mpsc::Receiver<u8>,
    /// How the terminal was.
    before: Option<String>,
}

impl Keys {
    pub(super) fn begin() -> Keys {
        let before = stty(&["-g"]);
        if before.is_some() {
            // Whether it worked or not: keys come.
            let _ = stty(&["-icanon", "-echo", "min", "1"]);
        }
        let (sender, pressed) = mpsc::channel(16);
        // It waits for a key until the program ends.
        std::thread::spawn(move || {
            for byte in std::io::stdin().lock().bytes().map_while(Result::ok) {
                if sender.blocking_send(byte).is_err() {
                    return;
                }
            }
        });
        Keys { pressed, before }
    }

    /// The next key. Where nobody can press any more, none comes.
    pub(super) async fn next(&mut self) -> Key {
        match self.pressed.recv().await {
            Some(byte) => Key::of(byte),
            None => std::future::pending().await,
        }
    }

    /// How many lines there are.
    pub(super) fn height(&self) -> usize {
        let size = stty(&["size"]);
        let lines = size.and_then(|size| size.split(' ').next()?.parse().ok());
        lines.filter(|lines| *lines > 0).unwrap_or(LINES)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // There is nothing else that could be tried.
            let _ = stty(&[before]);
        }
    }
}

/// What `stty` says of the terminal at the standard input.
fn stty(words: &[&str]) -> Option<String> {
    let mut command = Command::new("stty");
    command
        .args(words)
        .stdin(Stdio::inherit())
        .stderr(Stdio::null());
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
