//! Git repositories, by the machine's own git. It is told where to look for its configuration, so
//! that neither the machine's nor a user's counts, and which protocols it may speak.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{Got, Progress, too_large, weight};
use crate::artifact::url::Url;
use crate::artifact::wire::{HOME, Request, TREE};
use crate::unpack::Trouble;

/// What git is told before anything else. Ownership is no question: what it reads is meant to be
/// read, and what it runs is nothing.
const CONFIG: &str = "\
[core]\n\thooksPath = /dev/null\n\tfsmonitor = false\n\
[safe]\n\tdirectory = *\n\
[advice]\n\tdetachedHead = false\n\
[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
[http]\n\tlowSpeedLimit = 1\n\tlowSpeedTime = 120\n\tfollowRedirects = initial\n";

/// How often it is looked how far git is.
const EVERY: Duration = Duration::from_millis(100);

/// Fetches a repository into the tree, and checks out what is wanted of it.
///
/// # Errors
/// Git says no, is not there, or takes too long.
pub(super) fn clone(
    url: &Url,
    reference: Option<&str>,
    depth: Option<u32>,
    request: &Request,
    progress: &mut Progress,
) -> Result<Got, Trouble> {
    let mut git = Git::new(url, request)?;
    git.run(&["init", "--quiet", "--template=", TREE], progress)?;
    let address = url.request();
    git.run(
        &["-C", TREE, "remote", "add", "--", "origin", &address],
        progress,
    )?;
    let depth = depth.map(|depth| format!("--depth={depth}"));
    let mut fetch = vec!["-C", TREE, "fetch", "--quiet", "--no-recurse-submodules"];
    fetch.extend(depth.as_deref());
    match (reference, &depth) {
        // What a server calls by this name, or its usual branch.
        (None, _) | (Some(_), Some(_)) => {
            fetch.extend(["--", "origin", reference.unwrap_or("HEAD")]);
            git.run(&fetch, progress)?;
            check_out(&mut git, &["FETCH_HEAD"], progress)?;
        }
        // A commit has no name there, so all branches and tags are fetched.
        (Some(reference), None) => {
            fetch.extend([
                "--tags",
                "--",
                "origin",
                "+refs/heads/*:refs/remotes/origin/*",
            ]);
            git.run(&fetch, progress)?;
            let branch = format!("refs/remotes/origin/{reference}");
            let tag = format!("refs/tags/{reference}");
            check_out(&mut git, &[&branch, &tag, reference], progress)?;
        }
    }
    if Path::new(TREE).join(".gitmodules").is_file() {
        let parts = [
            "-C",
            TREE,
            "submodule",
            "--quiet",
            "update",
            "--init",
            "--recursive",
        ];
        git.run(&parts, progress)?;
    }
    Ok(Got::Tree)
}

/// Checks out the first of these that there is.
fn check_out(git: &mut Git<'_>, names: &[&str], progress: &mut Progress) -> Result<(), Trouble> {
    let mut last = None;
    for name in names {
        let commit = format!("{name}^{{commit}}");
        let known = [
            "-C",
            TREE,
            "rev-parse",
            "--quiet",
            "--verify",
            "--end-of-options",
            &commit,
        ];
        match git.run(&known, progress) {
            Ok(()) => {
                let check = [
                    "-C", TREE, "checkout", "--quiet", "--force", "--detach", name, "--",
                ];
                return git.run(&check, progress);
            }
            Err(trouble) => last = Some(trouble),
        }
    }
    let name = names.last().unwrap_or(&"");
    let unknown = || Trouble::passing(format!("there is no branch, tag or commit {name}"));
    Err(last
        .filter(|trouble| !trouble.again)
        .unwrap_or_else(unknown))
}

/// The machine's git, with everything decided that it would look up otherwise.
struct Git<'a> {
    request: &'a Request,
    variables: Vec<(String, String)>,
    until: Option<Instant>,
}

impl Git<'_> {
    fn new<'a>(url: &Url, request: &'a Request) -> Result<Git<'a>, Trouble> {
        fs::create_dir_all(HOME).map_err(Trouble::disk)?;
        let home = Path::new(HOME).canonicalize();
        let home = home.or_else(|_| std::env::current_dir().map(|at| at.join(HOME)));
        let home = home.map_err(Trouble::disk)?;
        let config = home.join("gitconfig");
        fs::write(&config, CONFIG).map_err(Trouble::disk)?;
        let mut variables: Vec<(String, String)> = [
            ("HOME", home.to_string_lossy().into_owned()),
            ("GIT_CONFIG_GLOBAL", config.to_string_lossy().into_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_SYSTEM", "/dev/null".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_ASKPASS", "/bin/false".to_owned()),
            ("GIT_ATTR_NOSYSTEM", "1".to_owned()),
            ("GIT_LFS_SKIP_SMUDGE", "1".to_owned()),
            ("GIT_ALLOW_PROTOCOL", protocols(url)),
            ("LC_ALL", "C".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        variables.extend(who_asks(url));
        if request.insecure {
            variables.push(("GIT_SSL_NO_VERIFY".to_owned(), "1".to_owned()));
        }
        let time = request.limits.git_time;
        Ok(Git {
            request,
            variables,
            until: (!time.is_zero()).then(|| Instant::now() + time),
        })
    }

    fn run(&mut self, args: &[&str], progress: &mut Progress) -> Result<(), Trouble> {
        let path = Path::new(HOME).join("said");
        let mut reported = File::options();
        let reported = reported
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(path);
        let mut reported = reported.map_err(Trouble::disk)?;
        let mut git = Command::new("git");
        git.args(args)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(reported.try_clone().map_err(Trouble::disk)?);
        let dies_with_us =
            || set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
        // SAFETY: between fork and exec there is one system call and nothing else: it allocates
        // nothing and takes no lock.
        unsafe { git.pre_exec(dies_with_us) };
        let mut child = git.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Trouble::lasting("there is no git on this node"),
            _ => Trouble::passing(format!("git cannot be run: {error}")),
        })?;
        let ended = self.wait(&mut child, progress);
        if ended.is_err() {
            // It may be over already.
            let _ = child.kill();
            let _ = child.wait();
        }
        match ended? {
            true => Ok(()),
            false => Err(Trouble::passing(format!(
                "git: {}",
                last_line(&mut reported)
            ))),
        }
    }

    /// Waits for git, and looks at the time and at what it writes meanwhile.
    fn wait(&self, child: &mut Child, progress: &mut Progress) -> Result<bool, Trouble> {
        let limit = self.request.limits.http_bytes;
        let mut polls = 0_u32;
        loop {
            if let Some(status) = child.try_wait().map_err(Trouble::disk)? {
                progress.is(weight(Path::new(TREE)));
                return Ok(status.success());
            }
            if self.until.is_some_and(|until| until <= Instant::now()) {
                return Err(Trouble::passing("git took longer than git_timeout"));
            }
            if polls.is_multiple_of(20) {
                progress.is(weight(Path::new(TREE)));
            }
            if limit > 0 && progress.bytes > limit {
                return Err(too_large(limit));
            }
            polls += 1;
            sleep(EVERY);
        }
    }
}

/// The protocols that git may speak, which submodules choose from too.
fn protocols(url: &Url) -> String {
    let all: &[&str] = match url.scheme() {
        "https" => &["https"],
        "http" => &["https", "http"],
        // Whether files may be read was asked before.
        _ => &["https", "http", "file"],
    };
    all.join(":")
}

/// A name and a password go to their server alone, and not into the repository's configuration.
fn who_asks(url: &Url) -> Vec<(String, String)> {
    let Some(authorization) = url.authorization() else {
        return Vec::new();
    };
    let server = format!("{}://{}/", url.scheme(), url.authority());
    let pairs = [
        ("GIT_CONFIG_COUNT", "2".to_owned()),
        ("GIT_CONFIG_KEY_0", format!("http.{server}.extraHeader")),
        (
            "GIT_CONFIG_VALUE_0",
            format!("Authorization: {authorization}"),
        ),
        ("GIT_CONFIG_KEY_1", "http.followRedirects".to_owned()),
        ("GIT_CONFIG_VALUE_1", "false".to_owned()),
    ];
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The last thing that git had to say.
fn last_line(reported: &mut File) -> String {
    let mut text = Vec::new();
    let length = reported.metadata().map_or(0, |meta| meta.len());
    let _ = reported.seek(SeekFrom::Start(length.saturating_sub(4_096)));
    let _ = reported.take(4_096).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("it failed without a message").to_owned()
}
