//! A development agent of Nomad, which says whether a session is right.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{free_addr, request};

/// The agent; it ends with the session.
pub(crate) struct Dev {
    child: Child,
    pub(crate) addr: String,
}

/// What the sessions were written for.
const VERSION: &str = "Nomad v2.0.";

/// The program `nomad`, or why the sessions cannot be played.
pub(crate) fn nomad() -> Result<PathBuf, String> {
    let nomad = on_path("nomad").ok_or("there is no program nomad")?;
    let version = Command::new(&nomad).arg("version").env_clear().output();
    let version = version.map_err(|error| format!("{}: {error}", nomad.display()))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(VERSION) {
        let version = version.lines().next().unwrap_or_default();
        return Err(format!("the sessions are of {VERSION}x, not of {version}"));
    }
    // A job of theirs is a server.
    on_path("python3").ok_or("there is no program python3")?;
    Ok(nomad)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut programs = env::split_paths(&path).map(|dir| dir.join(name));
    programs.find(|program| program.is_file())
}

impl Dev {
    /// Starts an agent with these settings in this directory, and waits until its node is ready.
    pub(crate) fn start(program: &Path, dir: &Path, settings: &str) -> Dev {
        let [http, rpc, serf] = [free_addr(), free_addr(), free_addr()];
        let port = |addr: &str| addr.rsplit(':').next().unwrap().to_owned();
        let own = format!(
            "bind_addr = \"127.0.0.1\"\ndisable_update_check = true\n\
             ports {{\n http = {}\n rpc = {}\n serf = {}\n}}\n\
             plugin \"raw_exec\" {{\n config {{\n enabled = true\n }}\n}}\n",
            port(&http),
            port(&rpc),
            port(&serf),
        );
        let file = dir.join("dev.hcl");
        fs::write(&file, own + settings).unwrap();
        let log = || File::create(dir.join("dev.log")).unwrap();
        let child = Command::new(program)
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir)
            .args(["agent", "-dev", "-config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap();
        let dev = Dev { child, addr: http };
        let until = Instant::now() + Duration::from_secs(60);
        let ready = |(status, body): (u16, String)| status == 200 && body.contains("\"ready\"");
        while !request(&dev.addr, "GET", "/v1/nodes", None).is_ok_and(ready) {
            let log = || fs::read_to_string(dir.join("dev.log")).unwrap_or_default();
            assert!(Instant::now() < until, "no ready node:\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        dev
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // An agent for development stops its tasks when it is asked to end.
        let pid = self.child.id().to_string();
        drop(Command::new("kill").args(["-INT", &pid]).status());
        drop(self.child.wait());
    }
}
