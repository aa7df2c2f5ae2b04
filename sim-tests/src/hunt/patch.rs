//! Planting a bug: a unified diff, read and applied without any tool.
//!
//! Line numbers are only a hint. A hunk goes where its lines stand, so that a patch still applies
//! when the file grew elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

/// A bug to plant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The name of its file, without the ending.
    pub name: String,
    /// What the bug is, and where Nomad met it: the lines before the first diff.
    pub story: String,
    /// The scenario that is known to notice it, if its story ends with a line that says so.
    pub scenario: Option<String>,
    /// The test that notices it, of a part that the simulated world does not reach, if a line of its
    /// story names one.
    pub test: Option<Elsewhere>,
    files: Vec<FilePatch>,
}

/// A test of another package: `Test: PACKAGE TARGET NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The package.
    pub package: String,
    /// The file in its `tests/`, without the ending; `lib` for tests that stand beside the code.
    pub target: String,
    /// The test's name.
    pub name: String,
}

impl Elsewhere {
    fn parse(words: &str) -> Option<Elsewhere> {
        let mut words = words.split_whitespace().map(str::to_owned);
        let (package, target) = (words.next()?, words.next()?);
        let name = words.next()?;
        words.next().is_none().then_some(Elsewhere {
            package,
            target,
            name,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FilePatch {
    path: PathBuf,
    hunks: Vec<Hunk>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The line, from 0, at which it was cut out.
    at: usize,
    old: Vec<String>,
    new: Vec<String>,
}

impl Patch {
    /// Reads one.
    ///
    /// # Errors
    /// Names the line that is no diff, or says that there is no story or no change.
    pub fn parse(name: &str, text: &str) -> Result<Patch, String> {
        let mut patch = Patch {
            name: name.to_owned(),
            story: String::new(),
            scenario: None,
            test: None,
            files: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            let read = patch.take(line);
            read.map_err(|why| format!("{name}.patch, line {}: {why}", number + 1))?;
        }
        if patch.story.trim().is_empty() {
            return Err(format!("{name}.patch does not say what the bug is"));
        }
        let changes = |hunk: &Hunk| hunk.old != hunk.new;
        if !patch.files.iter().flat_map(|file| &file.hunks).any(changes) {
            return Err(format!("{name}.patch changes nothing"));
        }
        Ok(patch)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.strip_prefix("b/").unwrap_or(path);
            self.files.push(FilePatch {
                path: PathBuf::from(path),
                hunks: Vec::new(),
            });
            return Ok(());
        }
        let Some(file) = self.files.last_mut() else {
            if let Some(name) = line.strip_prefix("Scenario: ") {
                self.scenario = Some(name.trim().to_owned());
            } else if let Some(words) = line.strip_prefix("Test: ") {
                let test = Elsewhere::parse(words);
                self.test = Some(test.ok_or("a test is PACKAGE TARGET NAME")?);
            } else if !line.starts_with("--- ") {
                self.story.push_str(line);
                self.story.push('\n');
            }
            return Ok(());
        };
        if line.starts_with("--- ") {
            return Ok(());
        }
        if let Some(range) = line.strip_prefix("@@ -") {
            let at = first_number(range).ok_or("a hunk needs its line")?;
            file.hunks.push(Hunk {
                at: at.saturating_sub(1),
                ..Hunk::default()
            });
            return Ok(());
        }
        let hunk = file.hunks.last_mut().ok_or("a change outside of a hunk")?;
        hunk.take(line)
    }

    /// The changed files below `root`, with their new contents. Nothing is written.
    ///
    /// # Errors
    /// Names the file that cannot be read, or in which a hunk finds no place.
    pub fn applied(&self, root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
        let mut changed = Vec::new();
        for file in &self.files {
            let path = root.join(&file.path);
            let shown = file.path.display();
            let text = fs::read_to_string(&path).map_err(|why| format!("{shown}: {why}"))?;
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for (number, hunk) in file.hunks.iter().enumerate() {
                if !hunk.apply(&mut lines) {
                    let hunk = number + 1;
                    return Err(format!(
                        "{}.patch: hunk {hunk} finds no place in {shown}",
                        self.name
                    ));
                }
            }
            lines.push(String::new());
            changed.push((path, lines.join("\n")));
        }
        Ok(changed)
    }
}

impl Hunk {
    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(line) = line.strip_prefix('-') {
            self.old.push(line.to_owned());
        } else if let Some(line) = line.strip_prefix('+') {
            self.new.push(line.to_owned());
        } else if let Some(line) = line.strip_prefix(' ').or(line.is_empty().then_some("")) {
            self.old.push(line.to_owned());
            self.new.push(line.to_owned());
        } else {
            return Err(format!("not a line of a diff: {line}"));
        }
        Ok(())
    }

    /// Replaces its lines where they stand; of several places the nearest is meant.
    fn apply(&self, lines: &mut Vec<String>) -> bool {
        let last = lines.len().checked_sub(self.old.len());
        let fits = |at: &usize| lines.get(*at..*at + self.old.len()) == Some(self.old.as_slice());
        let found = last.and_then(|last| {
            let places = (0..=last).filter(fits);
            places.min_by_key(|at| at.abs_diff(self.at))
        });
        let Some(at) = found else { return false };
        lines.splice(at..at + self.old.len(), self.new.iter().cloned());
        true
    }
}

fn first_number(text: &str) -> Option<usize> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Every planted bug of the tree at `root`, by name.
///
/// # Errors
/// What cannot be read, or is no patch.
pub fn all(root: &Path) -> Result<Vec<Patch>, String> {
    let folder = root.join("sim-tests/bugs");
    let entries = fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut patches = Vec::new();
    for entry in entries {
        let path = entry.map_err(|why| why.to_string())?.path();
        if path.extension().is_none_or(|ending| ending != "patch") {
            continue;
        }
        let name = path.file_stem().map(|name| name.to_string_lossy());
        let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        patches.push(Patch::parse(&name.unwrap_or_default(), &text)?);
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}
