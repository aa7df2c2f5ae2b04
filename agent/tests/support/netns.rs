//! A network of a test's own, so that nothing of the machine's changes.

use std::process::Command;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Puts this thread, and what it starts, into a network of its own with a loopback; none, and a line that says so,
/// where that cannot be.
pub fn leave_network() -> Option<()> {
    // SAFETY: it is this thread's network alone; no descriptors become unshared.
    if let Err(error) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
        eprintln!("skipped: no network namespace can be made: {error}");
        return None;
    }
    set_up(&["link", "set", "lo", "up"])
}

/// Has `ip` do this; none, and a line that says so, where it does not work.
pub fn set_up(words: &[&str]) -> Option<()> {
    let done = Command::new("ip").args(words).status();
    let done = done.is_ok_and(|it| it.success());
    if !done {
        eprintln!("skipped: ip {} does not work here", words.join(" "));
    }
    done.then_some(())
}

/// All links there are, as `ip -o link` prints them.
pub fn links() -> String {
    let links = Command::new("ip").args(["-o", "link"]).output();
    String::from_utf8_lossy(&links.unwrap().stdout).into_owned()
}

/// Whether one of these links is an agent's end of a group's network.
pub fn has_port_link(links: &str) -> bool {
    let names = links.lines().filter_map(|line| line.split(": ").nth(1));
    let mut names = names.map(|name| name.split('@').next().unwrap_or_default());
    names.any(|name| name.len() == 15 && name.starts_with("dr"))
}
