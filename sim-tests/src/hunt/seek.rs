//! Looking for one planted bug: build, search, and where that finds nothing, the scenarios.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use drover_io_sim::Search;
use serde_json::Value;

use super::patch::Elsewhere;

/// How a bug was found, or that it was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// Whether anything was found.
    pub found: bool,
    /// The property that does not hold.
    pub property: String,
    /// By which search, or that it was a scenario.
    pub search: String,
    /// How many worlds were tried.
    pub runs: u64,
    /// How long that took.
    pub seconds: f64,
    /// The length of the shrunk schedule; unknown for scenarios.
    pub schedule_len: Option<u64>,
}

/// How the copy of the tree is built, see `Cargo.toml`.
const PROFILE: &str = "hunt";
/// A searching program hangs if it takes this much longer than it was told; making what it found
/// smaller takes some of it.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Tests that say that something differs, and not that it is wrong: which bugs are planted, and that
/// an agent does what an earlier one did.
const NO_JUDGES: &[&str] = &["planted_bugs-", "recordings-"];
/// Tests that try many worlds or every moment of one, and take longest: after the others.
const SLOW: &[&str] = &[
    "chaos-",
    "coverage-",
    "known_bugs_of_the_store-",
    "moments-",
];
/// The scenarios of one file take seconds; a planted bug may make one of them endless.
const SCENARIOS: Duration = Duration::from_secs(240);

/// Where things are built and run.
#[derive(Clone, Debug)]
pub(super) struct Workshop {
    /// The tree.
    pub root: PathBuf,
    /// Where the compiler puts its results; kept from bug to bug.
    pub target: PathBuf,
}

impl Workshop {
    fn cargo(&self, words: &[&str]) -> Command {
        self.cargo_of("drover-sim-tests", words)
    }

    fn cargo_of(&self, package: &str, words: &[&str]) -> Command {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = Command::new(cargo);
        command
            .args(words)
            .args(["--offline", "--profile", PROFILE])
            .args(["-p", package])
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            // Many turn this off for builds that begin with nothing. From bug to bug, what did not
            // change need not be built again.
            .env_remove("CARGO_INCREMENTAL");
        command
    }

    /// Builds the searching program.
    ///
    /// # Errors
    /// What the compiler says.
    pub(super) fn build(&self) -> Result<(), String> {
        let mut build = self.cargo(&["build", "--quiet"]);
        let output = build.output().map_err(|why| format!("cargo: {why}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs a test of another package.
    ///
    /// # Errors
    /// That it cannot be built or run.
    pub(super) fn elsewhere(&self, test: &Elsewhere) -> Result<Found, String> {
        let of = match test.target.as_str() {
            "lib" => vec!["--lib"],
            file => vec!["--test", file],
        };
        let words = [&["test", "--no-run", "--quiet"], &of[..]].concat();
        let built = self.cargo_of(&test.package, &words).output();
        let built = built.map_err(|why| format!("cargo: {why}"))?;
        if !built.status.success() {
            return Err(String::from_utf8_lossy(&built.stderr).into_owned());
        }
        let words = [&["test"], &of[..], &[test.name.as_str()]].concat();
        let tests = self.cargo_of(&test.package, &words);
        let began = Instant::now();
        let output = run(tests, SCENARIOS).map_err(|why| format!("cargo: {why}"))?;
        let seconds = began.elapsed().as_secs_f64();
        let failed = output
            .as_deref()
            .is_none_or(|text| text.lines().any(|line| failed_test(line).is_some()));
        Ok(match failed {
            true => Found {
                search: "test".to_owned(),
                ..scenario(&test.name, seconds)
            },
            false => Found::default(),
        })
    }

    /// Lets the program search for so many seconds. One that hangs has found something.
    ///
    /// # Errors
    /// That it cannot be run, or does not say what it found.
    pub(super) fn search(&self, seconds: u64) -> Result<Found, String> {
        let program = self.target.join(PROFILE).join("drover-sim-tests");
        let seconds_word = seconds.to_string();
        let mut search = Command::new(&program);
        search.args([
            "search",
            "--json",
            "--seconds",
            &seconds_word,
            "--threads",
            "1",
        ]);
        let limit = Duration::from_secs(seconds) + TIMEOUT;
        let began = Instant::now();
        let Some(output) = run(search, limit).map_err(|why| shown(&program, &why))? else {
            return Ok(Found {
                found: true,
                property: "no_livelock".to_owned(),
                search: "a run that never ends".to_owned(),
                seconds: began.elapsed().as_secs_f64(),
                ..Found::default()
            });
        };
        let line = output.lines().rfind(|line| line.starts_with('{'));
        let line = line.ok_or_else(|| format!("the search says nothing: {output}"))?;
        let message: Value = serde_json::from_str(line).map_err(|why| format!("{line}: {why}"))?;
        Ok(as_reported(&message))
    }

    /// Runs the scenarios, and names the first that fails: the one that is known to fail before all
    /// others, whose programs take longer to build than to run.
    ///
    /// # Errors
    /// That they cannot be built or run.
    pub(super) fn scenarios(&self, known: Option<&str>) -> Result<Found, String> {
        if let Some(known) = known {
            let file = self.file_of(known)?;
            let found = self.run_all(&["--test", &file], &["--exact", known])?;
            if found.found {
                return Ok(found);
            }
        }
        self.run_all(&["--tests"], &[])
    }

    /// The name of the file in which this scenario is.
    fn file_of(&self, scenario: &str) -> Result<String, String> {
        let entries = std::fs::read_dir(self.root.join("sim-tests/tests"));
        let paths = entries.into_iter().flatten().flatten();
        let head = format!("fn {scenario}(");
        let has_it = |path: &PathBuf| {
            let text = std::fs::read_to_string(path);
            text.is_ok_and(|text| text.contains(&head))
        };
        let path = paths.map(|entry| entry.path()).find(has_it);
        let name = path.and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
        name.ok_or_else(|| format!("there is no scenario {scenario}"))
    }

    /// Builds these programs of scenarios, and lets each run what the words ask for.
    fn run_all(&self, which: &[&str], words: &[&str]) -> Result<Found, String> {
        let programs = self.build_scenarios(which)?;
        let began = Instant::now();
        for program in programs {
            let mut tests = Command::new(&program);
            tests.args(words).current_dir(self.root.join("sim-tests"));
            // Another number of states, or other pairs that are reached, prove nothing: they are only
            // noted.
            tests.env("DROVER_BLESS", "1").env_remove("DROVER_SEED");
            let output = run(tests, SCENARIOS).map_err(|why| shown(&program, &why))?;
            let seconds = began.elapsed().as_secs_f64();
            let Some(output) = output else {
                return Ok(scenario("one that never ends", seconds));
            };
            if let Some(name) = output.lines().find_map(failed_test) {
                return Ok(scenario(name, seconds));
            }
        }
        Ok(Found::default())
    }

    /// Builds these scenarios. Returns their programs.
    fn build_scenarios(&self, which: &[&str]) -> Result<Vec<PathBuf>, String> {
        let words = [&["test", "--no-run", "--message-format=json"], which].concat();
        let mut build = self.cargo(&words);
        let output = build.output().map_err(|why| format!("cargo: {why}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let message = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let tests = message.filter(|message| message["profile"]["test"] == true);
        let programs =
            tests.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
        let is_of = |program: &Path, names: &[&str]| {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            names.iter().any(|other| name.starts_with(other))
        };
        let mut judges: Vec<PathBuf> = programs
            .filter(|program| !is_of(program, NO_JUDGES))
            .collect();
        judges.sort_by_key(|program| is_of(program, SLOW));
        Ok(judges)
    }
}

/// What the program's line of JSON says.
fn as_reported(message: &Value) -> Found {
    let search = serde_json::from_value(message["search"].clone()).ok();
    Found {
        found: message["found"] == true,
        property: message["property"].as_str().unwrap_or_default().to_owned(),
        search: search.map_or(String::new(), name_of),
        runs: message["runs"].as_u64().unwrap_or_default(),
        seconds: message["seconds"].as_f64().unwrap_or_default(),
        schedule_len: message["schedule_len"].as_u64(),
    }
}

fn name_of(search: Search) -> String {
    match search {
        Search::First => "first come".to_owned(),
        Search::Seeds => "seeds".to_owned(),
        Search::Pct { depth, .. } => format!("PCT, depth {depth}"),
    }
}

fn scenario(name: &str, seconds: f64) -> Found {
    Found {
        found: true,
        property: name.to_owned(),
        search: "scenario".to_owned(),
        seconds,
        ..Found::default()
    }
}

/// The name in a line such as `test some_name ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

fn shown(program: &Path, why: &std::io::Error) -> String {
    format!("{}: {why}", program.display())
}

/// What the program prints; nothing if it was ended because it took longer than `limit`.
fn run(mut command: Command, limit: Duration) -> std::io::Result<Option<String>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = pipe.map(|mut pipe| pipe.read_to_end(&mut text));
        read.transpose().map(|_| text)
    });
    if !ends_within(&mut child, limit)? {
        child.kill()?;
        child.wait()?;
        return Ok(None);
    }
    let text = reader.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn ends_within(child: &mut Child, limit: Duration) -> std::io::Result<bool> {
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > limit {
            return Ok(false);
        }
        sleep(Duration::from_millis(20));
    }
    Ok(true)
}
