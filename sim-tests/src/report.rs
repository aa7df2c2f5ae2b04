//! A failure that a person can use: what broke, how to see it again, the smallest run that breaks it,
//! and its story as a picture.
//!
//! It has the fewest jobs, tasks, requests, kinds of fault and choices that still break the
//! property. `docs/testing.md` shows one.

use core::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use drover_io_sim::script::{Ran, Script, Shrunk, Watch, shrink};
use drover_io_sim::{Property, Violation, timeline};

use crate::soak::World;

/// More runs than this are not spent on making one failure smaller.
const SHRINKING_RUNS: u32 = 4000;

/// A failing run, made small.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The script that failed first.
    pub first: Script,
    /// What the smallest one violates.
    pub violation: Violation,
    /// The smallest one that violates the same.
    pub smallest: Script,
    /// How many runs it took to make it small.
    pub runs: u32,
    /// Where the smallest one lies, once it was written down.
    pub saved: Option<PathBuf>,
}

impl Failure {
    /// Makes the run of `script`, which violated `violation`, small.
    pub fn of(script: &Script, violation: &Violation) -> Failure {
        let shrunk = shrink(script, violation, SHRINKING_RUNS);
        let shrunk = shrunk.unwrap_or_else(|| Shrunk {
            script: script.clone(),
            violation: violation.clone(),
            runs: 0,
        });
        Failure {
            first: script.clone(),
            violation: shrunk.violation,
            smallest: shrunk.script,
            runs: shrunk.runs,
            saved: None,
        }
    }

    /// Writes the smallest script to a file of its own below `folder`, from which it is played again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let name = format!("{}-{}.json", self.violation.invariant, self.first.seed);
        let path = folder.join(name);
        fs::write(&path, serde_json::to_vec_pretty(&self.smallest)?)?;
        self.saved = Some(path);
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, detail } = &self.violation;
        let (before, after) = (self.first.acts.len(), self.smallest.acts.len());
        writeln!(f, "VIOLATED {invariant}")?;
        if let Some(sentence) = sentence_of(invariant) {
            writeln!(f, "what should hold: {sentence}")?;
        }
        writeln!(f, "what was found: {detail}")?;
        let (seed, replay) = (self.first.seed, "cargo run -p drover-sim-tests -- replay");
        match &self.saved {
            Some(path) => writeln!(f, "again: {replay} {}", path.display())?,
            None => writeln!(f, "again: {replay} {seed} --shrink")?,
        }
        writeln!(f, "as it was found first: {replay} {seed}")?;
        writeln!(
            f,
            "smallest, after {} runs: {after} of {before} acts, {} choices",
            self.runs,
            self.smallest.overrides.chosen.len()
        )?;
        for job in &self.smallest.jobs {
            for group in &job.task_groups {
                let tasks: Vec<&str> = group.tasks.iter().map(|task| task.name.as_str()).collect();
                let (id, count) = (&job.id, group.count.unwrap_or(1));
                let tasks = tasks.join(", ");
                writeln!(f, "  {:?} {id}: {count} of [{tasks}]", job.job_type)?;
            }
        }
        for act in &self.smallest.acts {
            writeln!(f, "  after {}: {:?}", act.pause, act.what)?;
        }
        for choice in &self.smallest.overrides.chosen {
            let (point, entity) = (&choice.point, &choice.entity);
            let (nth, value) = (choice.occurrence, choice.value);
            writeln!(f, "  choice {point} of {entity}, number {nth}: {value}")?;
        }
        writeln!(f)?;
        f.write_str(&story(&self.smallest).1)
    }
}

/// What was found in a world, for people. The smallest script is written below the folder, if one is named; a fleet is
/// played again as it is.
pub fn report(world: &World, violation: &Violation, folder: Option<&Path>) -> String {
    let seed = match world {
        World::Node(script) => {
            let mut failure = Failure::of(script, violation);
            let saved = folder.map_or(Ok(()), |folder| failure.save(folder));
            let why = saved
                .err()
                .map(|why| format!("could not be written down: {why}\n"));
            return format!("{}{failure}", why.unwrap_or_default());
        }
        World::Fleet(seed) => seed,
    };
    let Violation { invariant, detail } = violation;
    let sentence = sentence_of(invariant).map(|it| format!("what should hold: {it}\n"));
    let sentence = sentence.unwrap_or_default();
    let replay = "cargo run -p drover-sim-tests -- replay";
    format!(
        "VIOLATED {invariant}, in a fleet\n{sentence}what was found: {detail}\nagain: {replay} {seed}\n"
    )
}

/// What a property says, as one sentence.
fn sentence_of(invariant: &str) -> Option<&'static str> {
    let mut all = Property::ALL.iter();
    let property = all.find(|property| property.name() == invariant)?;
    Some(property.about().trim())
}

/// Plays a script and draws its story, and marks where in it something did not hold.
pub fn story(script: &Script) -> (Ran, String) {
    let ran = script.run(Watch {
        story: true,
        choices: false,
    });
    let mut picture = timeline::draw(ran.sim.world.scene.trace.events());
    if let Err(violation) = &ran.verdict {
        let (at, step) = (ran.sim.world.elapsed(), ran.sim.steps);
        let line = format!(
            "✗✗✗ here, after {at} in step {step}: {}\n",
            violation.invariant
        );
        picture.push_str(&line);
    }
    (ran, picture)
}
