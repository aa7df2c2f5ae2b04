//! The hunt: planted bugs, each built into a copy of the tree and searched for.
//!
//! `hunt [NAMES] [--check] [--some N --by WORD] [--seconds N] [--json]`. A search that cannot find a known bug proves
//! nothing about unknown ones; and where no bug is planted (`none`), it must find none.

pub mod patch;
mod seek;
mod table;
mod tree;

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use drover_io_sim::StateHasher;
use patch::Patch;
use seek::{Found, Workshop};
use table::Row;
use tree::Tree;

/// The row of the tree as it is.
const NOTHING_PLANTED: &str = "none";

#[derive(Debug, Default)]
struct Wanted {
    names: Vec<String>,
    check: bool,
    json: bool,
    seconds: u64,
    /// So many of those that searching finds, and the word that chooses them.
    some: Option<usize>,
    by: String,
}

/// Does what the words of a command line ask for.
#[must_use]
pub fn command(words: impl Iterator<Item = String>) -> ExitCode {
    let hunted = wanted(words).and_then(|wanted| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let bugs = match wanted.some {
            Some(many) => some(patch::all(&root)?, many, &wanted.by),
            None => chosen(patch::all(&root)?, &wanted.names)?,
        };
        if wanted.check {
            return check(&root, &bugs).map(|()| true);
        }
        hunt(&root, &bugs, &wanted)
    });
    match hunted {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("hunt: {why}");
            ExitCode::FAILURE
        }
    }
}

fn wanted(mut words: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        seconds: 60,
        ..Wanted::default()
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => wanted.check = true,
            "--json" => wanted.json = true,
            "--seconds" => {
                let seconds = words.next().and_then(|word| word.parse().ok());
                wanted.seconds = seconds.ok_or("--seconds needs a number")?;
            }
            "--some" => {
                let many = words.next().and_then(|word| word.parse().ok());
                wanted.some = Some(many.ok_or("--some needs a number")?);
            }
            "--by" => wanted.by = words.next().ok_or("--by needs a word")?,
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            name => wanted.names.push(name.to_owned()),
        }
    }
    Ok(wanted)
}

/// The bugs of these names, all and no bug if there are none.
fn chosen(bugs: Vec<Patch>, names: &[String]) -> Result<Vec<Option<Patch>>, String> {
    if names.is_empty() {
        return Ok(core::iter::once(None)
            .chain(bugs.into_iter().map(Some))
            .collect());
    }
    let named = |name: &String| match bugs.iter().find(|bug| bug.name == *name) {
        Some(bug) => Ok(Some(bug.clone())),
        None if name == NOTHING_PLANTED => Ok(None),
        None => Err(format!("there is no sim-tests/bugs/{name}.patch")),
    };
    names.iter().map(named).collect()
}

/// So many of the bugs that are found by searching: the same ones for the same word, such as the hash of
/// a commit, and others for others.
fn some(bugs: Vec<Patch>, many: usize, by: &str) -> Vec<Option<Patch>> {
    let searched = |bug: &Patch| bug.scenario.is_none() && bug.test.is_none();
    let mut bugs: Vec<Patch> = bugs.into_iter().filter(searched).collect();
    bugs.sort_by_cached_key(|bug| {
        let mut hash = StateHasher::default();
        hash.write(by.as_bytes());
        hash.write(bug.name.as_bytes());
        hash.finish()
    });
    bugs.truncate(many);
    bugs.into_iter().map(Some).collect()
}

fn check(root: &Path, bugs: &[Option<Patch>]) -> Result<(), String> {
    let failures: Vec<String> = bugs
        .iter()
        .flatten()
        .filter_map(|bug| bug.applied(root).err())
        .collect();
    if failures.is_empty() {
        println!("{} planted bugs apply", bugs.iter().flatten().count());
        return Ok(());
    }
    Err(failures.join("\n"))
}

/// Returns whether every bug was found, and nothing where none is planted.
fn hunt(root: &Path, bugs: &[Option<Patch>], wanted: &Wanted) -> Result<bool, String> {
    let folder = folder(root);
    let tree = Tree::copy_of(root, &folder)?;
    let workshop = Workshop {
        root: tree.root().to_owned(),
        target: folder.join("built"),
    };
    let mut all_well = true;
    if !wanted.json {
        println!("{}", table::HEAD);
    }
    for bug in bugs {
        let name = bug.as_ref().map_or(NOTHING_PLANTED, |bug| &bug.name);
        let found = search_for(&tree, &workshop, bug.as_ref(), wanted.seconds);
        let found = found.unwrap_or_else(|why| {
            eprintln!("{name}: {why}");
            all_well = false;
            Found::default()
        });
        let row = Row { name, found };
        all_well &= row.is_well();
        println!("{}", if wanted.json { row.json() } else { row.line() });
    }
    Ok(all_well)
}

fn search_for(
    tree: &Tree,
    workshop: &Workshop,
    bug: Option<&Patch>,
    seconds: u64,
) -> Result<Found, String> {
    let _planted = bug.map(|bug| tree.plant(bug)).transpose()?;
    if let Some(test) = bug.and_then(|bug| bug.test.as_ref()) {
        return workshop.elsewhere(test);
    }
    workshop.build()?;
    let by_search = workshop.search(seconds)?;
    if by_search.found {
        return Ok(by_search);
    }
    let known = bug.and_then(|bug| bug.scenario.as_deref());
    let by_scenario = workshop.scenarios(known)?;
    Ok(if by_scenario.found {
        by_scenario
    } else {
        by_search
    })
}

/// Where the copy of the tree and its build results are kept, so that little is built again.
fn folder(root: &Path) -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    given.unwrap_or_else(|| root.join("target")).join("hunt")
}
