//! The words after a command: one plain word at most, options with a number, and flags.

use std::collections::BTreeMap;

/// What was said.
pub(crate) struct Args {
    words: Vec<String>,
    options: BTreeMap<String, Option<String>>,
}

const NUMBERS: &[&str] = &[
    "--seconds",
    "--from",
    "--seeds",
    "--threads",
    "--states",
    "--nodes",
];
const FLAGS: &[&str] = &["--shrink", "--check", "--json", "--verbose"];

impl Args {
    /// Takes the words apart.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args {
            words: Vec::new(),
            options: BTreeMap::new(),
        };
        let mut words = words;
        while let Some(word) = words.next() {
            if NUMBERS.contains(&word.as_str()) {
                let value = words.next().ok_or(format!("{word} needs a number"))?;
                args.options.insert(word, Some(value));
            } else if FLAGS.contains(&word.as_str()) {
                args.options.insert(word, None);
            } else if word.starts_with("--") {
                return Err(format!("there is no option {word}"));
            } else {
                args.words.push(word);
            }
        }
        Ok(args)
    }

    /// The first plain word.
    pub(crate) fn word(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }

    /// Whether a flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.options.contains_key(flag)
    }

    /// The number after an option.
    pub(crate) fn number(&self, option: &str, default: u64) -> Result<u64, String> {
        match self.options.get(option).and_then(Option::as_ref) {
            None => Ok(default),
            Some(text) => (text.parse()).map_err(|_| format!("{option} {text}: not a number")),
        }
    }
}
