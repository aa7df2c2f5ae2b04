//! `drover rehearse`: runs a job in a simulated world under named troubles, and says what is bad.

mod data;
mod many;
mod text;

use drover_core::text::nearest;
use drover_io_sim::rehearse::{Block, Rehearsal, Trouble};
use drover_io_sim::timeline;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use super::args::RehearseArgs;
use super::context::Outcome;
use super::exit_code::Failure;
use super::jobfile;
use super::screen::Screen;
use super::table::table;
use crate::admission::{Read, Refused};

/// How often each trouble is tried unless said otherwise.
const RUNS: usize = 200;
/// Jobs of more tasks than this are tried less often.
const FEW_TASKS: usize = 10;

/// The exit code for jobs with something bad.
const BAD: u8 = 1;
/// The exit code for what cannot be rehearsed.
pub(super) const ERROR: u8 = 2;

/// Runs the command. Returns the exit code.
pub(super) fn run(screen: &mut Screen, args: &RehearseArgs) -> u8 {
    match rehearse(screen, args) {
        Ok(code) => code,
        // Whoever read had enough.
        Err(failure) if failure.message.is_empty() => failure.code,
        Err(failure) => {
            screen.complain(&failure.message);
            ERROR
        }
    }
}

fn rehearse(screen: &mut Screen, args: &RehearseArgs) -> Outcome {
    if args.list {
        return list(screen);
    }
    let only = args.trouble.as_deref().map(trouble).transpose()?;
    let Some(file) = &args.file else {
        return Err(Failure::new("a job file is needed"));
    };
    let read = jobfile::read(file, &args.variables, false)?;
    let admitted = read.admit();
    let admitted = admitted.map_err(|Refused(mistakes)| Failure::new(mistakes.join("\n\n")))?;
    for warning in &admitted.warnings {
        screen.complain(&format!("Warning: {warning}"));
    }
    let rehearsal = Rehearsal::new(&admitted.job);
    let report = Report {
        read: &read,
        args,
        rehearsal: &rehearsal,
    };
    match only.filter(|_| args.timeline) {
        Some(trouble) => report.story(screen, trouble),
        None => report.all(screen, only),
    }
}

fn list(screen: &mut Screen) -> Outcome {
    let rows = Trouble::ALL.iter().map(|trouble| {
        let (name, sentence) = (trouble.name(), trouble.sentence());
        [name.to_owned(), sentence.to_owned()]
    });
    screen.print_line(&table(["Trouble", "What happens"], rows))?;
    Ok(0)
}

fn trouble(name: &str) -> Result<Trouble, Failure> {
    Trouble::named(name).ok_or_else(|| {
        let known = Trouble::ALL.iter().map(|trouble| trouble.name());
        let meant = nearest(name, known).map(|near| format!(" (did you mean {near:?}?)"));
        let meant = meant.unwrap_or_default();
        Failure::new(format!(
            "there is no trouble {name:?}{meant}; -list shows all"
        ))
    })
}

/// What is needed to tell of a rehearsal.
struct Report<'a> {
    read: &'a Read,
    args: &'a RehearseArgs,
    rehearsal: &'a Rehearsal,
}

impl Report<'_> {
    /// Each trouble, or the only one, many times.
    fn all(&self, screen: &mut Screen, only: Option<Trouble>) -> Outcome {
        let less = RUNS * FEW_TASKS / self.rehearsal.tasks().max(FEW_TASKS);
        let runs = self.args.runs.and_then(|runs| usize::try_from(runs).ok());
        let runs = runs.unwrap_or(less).max(1);
        let troubles: Vec<Trouble> = match only {
            Some(only) => vec![only],
            None => Trouble::ALL.to_vec(),
        };
        let blocks = many::rehearse(self.rehearsal, &troubles, self.args.seed, runs);
        if self.args.json {
            self.print_json(screen, &blocks, runs)?;
        } else {
            for note in self.left_out() {
                screen.print_line(&note)?;
            }
            for block in &blocks {
                self.print_block(screen, block)?;
            }
            self.print_help(screen, &blocks)?;
            screen.print_line(&text::summary(&blocks))?;
        }
        Ok(exit_code(&blocks))
    }

    /// One run, told from beginning to end.
    fn story(&self, screen: &mut Screen, trouble: Trouble) -> Outcome {
        if let Some(why) = trouble.not_for(self.rehearsal.job()) {
            return Err(Failure::new(format!("{}: {why}", trouble.name())));
        }
        let mut outcome = self.rehearsal.run(trouble, self.args.seed, true);
        let story = core::mem::take(&mut outcome.story);
        screen.print_line(timeline::draw(&story).trim_end())?;
        screen.print_line("")?;
        let block = Block::of(self.rehearsal, trouble, &[outcome]);
        self.print_block(screen, &block)?;
        let blocks = [block];
        self.print_help(screen, &blocks)?;
        Ok(exit_code(&blocks))
    }

    fn print_block(&self, screen: &mut Screen, block: &Block) -> Result<(), Failure> {
        screen.title(&text::title(block))?;
        screen.print_line(&text::body(self, block))?;
        Ok(())
    }

    fn print_help(&self, screen: &mut Screen, blocks: &[Block]) -> Result<(), Failure> {
        let help = text::help(self, blocks);
        if help.is_empty() {
            return Ok(());
        }
        screen.title("What might help")?;
        screen.print_line(&help)
    }

    fn print_json(
        &self,
        screen: &mut Screen,
        blocks: &[Block],
        runs: usize,
    ) -> Result<(), Failure> {
        let value = data::report(self, blocks, runs);
        let mut text = Vec::new();
        let format = PrettyFormatter::with_indent(b"    ");
        let mut to = serde_json::Serializer::with_formatter(&mut text, format);
        let encoded = value.serialize(&mut to);
        encoded.map_err(|error| Failure::new(format!("cannot show the report: {error}")))?;
        screen.print_line(&String::from_utf8_lossy(&text))
    }

    fn left_out(&self) -> impl Iterator<Item = String> {
        let groups = self.rehearsal.left_out();
        groups.map(|(group, less, whole)| {
            format!("Group {group:?} is rehearsed with {less} copies instead of {whole}.")
        })
    }

    /// The command that tells the story of a run.
    fn again(&self, trouble: Trouble, seed: u64) -> String {
        let mut words = vec![
            "drover rehearse -seed".to_owned(),
            seed.to_string(),
            "-trouble".to_owned(),
            trouble.name().to_owned(),
            "-timeline".to_owned(),
        ];
        for var in &self.args.variables.vars {
            words.push(format!("-var {}", for_shell(var)));
        }
        for file in &self.args.variables.var_files {
            words.push(format!("-var-file {}", for_shell(&file.to_string_lossy())));
        }
        if let Some(file) = &self.args.file {
            words.push(for_shell(&file.to_string_lossy()));
        }
        words.join(" ")
    }

    /// The file's name and line of the first of these parts that is written.
    fn position_of(&self, paths: &[String]) -> Option<(String, usize)> {
        let line = paths.iter().find_map(|path| self.read.line_of(path))?;
        let file = self.args.file.as_ref()?;
        Some((file.display().to_string(), line))
    }
}

fn exit_code(blocks: &[Block]) -> u8 {
    if blocks.iter().any(Block::is_bad) {
        BAD
    } else {
        0
    }
}

/// A word as a shell takes it.
fn for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(for_shell("a/b.hcl"), "a/b.hcl");
        assert_eq!(for_shell("x=it's $1"), "'x=it'\\''s $1'");
    }

    #[test]
    fn misspelt_trouble_suggests_nearest_name() {
        let failure = trouble("rebot").unwrap_err();
        assert!(failure.message.contains("did you mean \"reboot\"?"));
    }
}
