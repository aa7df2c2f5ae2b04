//! What a copy of files leaves out, and why: reported at its end, so that nobody takes it for the whole.

use drover_core::text::quote;

use super::screen::Screen;

/// How many are named.
const NAMED: usize = 20;

/// Why something is not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is a symbolic link.
    Link,
    /// It is a pipe, a socket or a device.
    Special,
    /// It is a task's secret.
    Secret,
    /// It lies in too many directories.
    Deep,
    /// Its name cannot be said to an agent, or is none here.
    Name,
    /// Not all that the directory contains was listed.
    Rest,
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Why::Link => "a symbolic link",
            Why::Special => "neither a plain file nor a directory",
            Why::Secret => "the task's secret",
            Why::Deep => "it lies too deep",
            Why::Name => "its name is not plain text",
            Why::Rest => "it contains more than an agent lists; copy what is below it one by one",
        }
    }
}

/// All that a copy leaves out.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    count: usize,
    /// The first of them.
    named: Vec<(String, Why)>,
}

impl LeftOut {
    /// One more.
    pub(super) fn add(&mut self, path: &str, why: Why) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((path.to_owned(), why));
        }
    }

    /// Says it.
    pub(super) fn say(&self, screen: &mut Screen) {
        if self.count == 0 {
            return;
        }
        screen.complain(&format!("Left out {}:", self.count));
        for (path, why) in &self.named {
            screen.complain(&format!("  {}: {}", quote(path), why.words()));
        }
        let more = self.count - self.named.len();
        if more > 0 {
            screen.complain(&format!("  and {more} more"));
        }
    }
}
