//! The text of a session. A line at the margin is a command; the lines below it say what must come of it:
//!
//! ```text
//! nomad job run -detach web.nomad.hcl
//!   has Job registration successful      what it writes contains this
//!   take eval Evaluation ID: (\S+)       later lines have this as $eval
//!   lacks rror                           ... does not contain this
//!   like ^Status = (running|pending)     ... matches this expression, where ^ and $ are ends of lines
//!   exit 1                               the exit code, which is 0 otherwise
//!   until                                it is tried again until all that holds
//!   interrupt                            ... it goes on until all that holds, and is interrupted then
//!   input FILE                           this file is its standard input
//!   otherwise REASON                     Drover does it otherwise on purpose
//! ```
//!
//! Spaces that follow each other count as one, in what is written as in what is expected. `#` begins a comment.

use regex::Regex;

/// A command, and what must come of it.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) args: Vec<String>,
    pub(crate) code: i32,
    pub(crate) checks: Vec<Check>,
    pub(crate) until: bool,
    pub(crate) interrupt: bool,
    pub(crate) input: Option<String>,
    pub(crate) otherwise: bool,
}

/// Something that must be so of what a command writes. Expressions are text until variables are known.
pub(crate) enum Check {
    Has(String),
    Lacks(String),
    Like(String),
    Take { name: String, expression: String },
}

/// Reads a session, or says which line is wrong.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}: {line}", index + 1);
        let command = line.trim();
        if command.is_empty() || command.starts_with('#') {
            continue;
        }
        if !line.starts_with(' ') {
            let args = command
                .strip_prefix("nomad ")
                .ok_or_else(|| wrong("no command"))?;
            let args = words(args).ok_or_else(|| wrong("an open quote"))?;
            let line = index + 1;
            steps.push(Step {
                line,
                args,
                ..Step::default()
            });
            continue;
        }
        let step = steps.last_mut().ok_or_else(|| wrong("no command above"))?;
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        let rest = rest.trim();
        match word {
            "has" => step.checks.push(Check::Has(rest.to_owned())),
            "lacks" => step.checks.push(Check::Lacks(rest.to_owned())),
            "like" => {
                Regex::new(rest).map_err(|_| wrong("no expression"))?;
                step.checks.push(Check::Like(rest.to_owned()));
            }
            "take" => {
                let (name, expression) = rest.split_once(' ').ok_or_else(|| wrong("no name"))?;
                let [name, expression] = [name, expression].map(str::to_owned);
                step.checks.push(Check::Take { name, expression });
            }
            "exit" => step.code = rest.parse().map_err(|_| wrong("no exit code"))?,
            "until" => step.until = true,
            "interrupt" => step.interrupt = true,
            "input" => step.input = Some(rest.to_owned()),
            "otherwise" if !rest.is_empty() => step.otherwise = true,
            _ => return Err(wrong("unknown")),
        }
    }
    Ok(steps)
}

/// Splits a command as a shell would that knows only quotes.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
