//! The versions of CNI plugins, which say them when they are run without being asked for anything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use super::super::run::output;

/// How many plugins are run, and how many at a time.
const MOST: usize = 64;
const AT_A_TIME: usize = 4;

/// How many names are looked at for them.
const NAMES: usize = 4096;

/// How long all of them together may take.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let plugins = plugins(context)?;
    let timeout = context.settings.plugin_timeout;
    let end = Instant::now() + TIMEOUT;
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Fingerprint::default());
    let work = || {
        while let Some((name, path)) = plugins.get(next.fetch_add(1, Ordering::Relaxed)) {
            let deadline = end.min(Instant::now() + timeout);
            match output(path, deadline) {
                Ok(reported) => {
                    let reported = String::from_utf8_lossy(&reported);
                    if let (Some(version), Ok(mut found)) = (version(&reported), found.lock()) {
                        put(&mut found, &format!("plugins.cni.version.{name}"), version);
                    }
                }
                // One bad plugin costs its own version and no other.
                Err(why) => {
                    tracing::warn!("no version of the CNI plugin {}: {why}", path.display())
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..AT_A_TIME.min(plugins.len()) {
            // Where there is no thread to be had, there are fewer at a time.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    found
        .into_inner()
        .map_err(|_| ProbeError::unreadable("CNI plugins", "inspecting one failed"))
}

/// The programs in the plugins' directories; of one name, that of the earlier directory.
fn plugins(context: &Context) -> Result<Vec<(String, PathBuf)>, ProbeError> {
    let mut plugins = BTreeMap::new();
    for dir in &context.settings.cni_path {
        let text = dir.display().to_string();
        for name in context.root.names(&text, NAMES)? {
            if !plugins.contains_key(&name)
                && context.root.has_program(&format!("{text}/{name}"))?
            {
                let path = context.root.outside(&dir.join(&name));
                plugins.insert(name, path);
            }
        }
    }
    Ok(plugins.into_iter().take(MOST).collect())
}

/// The version in a line such as `CNI bridge plugin v1.2.3`.
fn version(reported: &str) -> Option<&str> {
    let mut lines = reported.lines().filter(|line| line.starts_with("CNI "));
    lines.find_map(|line| {
        let words = line.split_ascii_whitespace();
        let mut words = words.skip_while(|word| *word != "plugin").skip(1);
        let word = words.next()?;
        let number = word.strip_prefix('v')?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".+-".contains(letter);
        let sane = number.starts_with(|first: char| first.is_ascii_digit());
        (sane && word.len() <= 64 && number.chars().all(plain)).then_some(word)
    })
}
