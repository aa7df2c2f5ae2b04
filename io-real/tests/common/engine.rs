//! A docker engine of the tests' own, and an image made of this machine's busybox.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The image that tests use; no registry has it.
pub const IMAGE: &str = "drover-test:1";

/// What the image can do.
const APPLETS: [&str; 16] = [
    "sh", "sleep", "echo", "cat", "ls", "id", "true", "tail", "dd", "seq", "touch", "kill",
    "mount", "env", "httpd", "hostname",
];

/// How long an engine may take to answer: only one that hangs takes so long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The engine; ended when dropped, with all that it started.
pub struct Engine {
    dir: TempDir,
    child: Option<Child>,
    live_restore: bool,
    /// It has a bridge, and rules of its own in the packet filter of the network that it is in.
    has_rules: bool,
}

impl Engine {
    /// An engine, if one is installed and may be started here; else says why not.
    pub fn start(live_restore: bool) -> Option<Engine> {
        Engine::start_as(live_restore, false, None)
    }

    /// The same, whose disk has no more than so many bytes.
    #[allow(dead_code, reason = "tests of full disks use it")]
    pub fn start_on(bytes: u64) -> Option<Engine> {
        Engine::start_as(false, false, Some(bytes))
    }

    /// The same, as it is installed: with rules of its own in the packet filter. For a network of the test's own.
    #[allow(dead_code, reason = "tests of networks use it")]
    pub fn start_with_rules() -> Option<Engine> {
        Engine::start_as(false, true, None)
    }

    fn start_as(live_restore: bool, has_rules: bool, disk: Option<u64>) -> Option<Engine> {
        let missing = ["dockerd", "docker", "busybox"]
            .iter()
            .find(|name| !is_there(name));
        if let Some(name) = missing {
            eprintln!("skipped: {name} is not installed");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: not root");
            return None;
        }
        let mut engine = Engine {
            dir: TempDir::new().unwrap(),
            child: None,
            live_restore,
            has_rules,
        };
        if let Some(bytes) = disk {
            small_disk(&engine.data(), bytes);
        }
        let made = engine.try_begin().map(|()| engine.import());
        if let Err(why) = made.and_then(|()| engine.runs_containers()) {
            eprintln!("skipped: no engine can run here: {why}");
            return None;
        }
        Some(engine)
    }

    /// Starts the engine again.
    pub fn begin(&mut self) {
        self.try_begin().unwrap();
    }

    /// Whether this machine lets an engine run containers at all: not every one that has it installed does.
    fn runs_containers(&self) -> Result<(), String> {
        static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
        let try_one = || {
            let run = ["run", "--rm", "--network", "none", IMAGE, "/bin/true"];
            let output = self.docker(&run);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            output.status.success().then_some(()).ok_or(error)
        };
        FOUND.get_or_init(try_one).clone()
    }

    fn try_begin(&mut self) -> Result<(), String> {
        let path = |name: &str| self.dir.path().join(name).to_string_lossy().into_owned();
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(path("log"))
            .unwrap();
        let mut command = Command::new("dockerd");
        command
            .args([
                "--data-root",
                &path("data"),
                "--exec-root",
                &path("exec"),
                "-p",
                &path("pid"),
            ])
            .args([
                "-H",
                &format!("unix://{}", path("sock")),
                "--config-file",
                &path("none.json"),
            ])
            .args(["--ip6tables=false", "--storage-driver=vfs"])
            .args(["--shutdown-timeout", "2"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        if !self.has_rules {
            command.args(["--bridge=none", "--iptables=false", "--ip-forward=false"]);
        }
        if self.live_restore {
            command.arg("--live-restore");
        }
        fs::write(path("none.json"), "{}").unwrap();
        let _ = fs::remove_file(path("pid"));
        let until = Instant::now() + TIMEOUT;
        self.child = Some(command.spawn().unwrap());
        while !self.docker(&["version"]).status.success() {
            // One that was killed may leave a containerd that hangs a while, as services are started again.
            if self.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                let _ = fs::remove_file(path("pid"));
                self.child = Some(command.spawn().unwrap());
            }
            if Instant::now() >= until {
                return Err(fs::read_to_string(path("log")).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Ends the engine as a crash would; its containers' own processes stay.
    pub fn kill_9(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Its containerd ends with it, a little later. The next engine would wait for it, as long as its number is there.
        let file = self.dir.path().join("exec/containerd/containerd.pid");
        let number = fs::read_to_string(&file).unwrap_or_default();
        let until = Instant::now() + TIMEOUT;
        while is_alive(number.trim()) && Instant::now() < until {
            std::thread::yield_now();
        }
        let _ = fs::remove_file(file);
    }

    /// Ends the engine, and all that it started, as a machine does that loses its power: what lies in memory is gone.
    #[allow(dead_code, reason = "tests of restarts use it")]
    pub fn lose_power(&mut self) {
        self.kill_9();
        end_below(self.dir.path());
        self.remove_groups();
        let _ = fs::remove_dir_all(self.dir.path().join("exec"));
    }

    /// Removes the control groups of its containers, of which nothing runs any more. One that was killed leaves them.
    fn remove_groups(&self) {
        let containers = fs::read_dir(self.data().join("containers"));
        let containers = containers.into_iter().flatten().flatten();
        let groups = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
        let groups: Vec<PathBuf> = groups.flatten().map(|it| it.path()).collect();
        for id in containers.map(|it| it.file_name()) {
            for group in &groups {
                remove_group(&group.join("docker").join(&id));
                remove_group(&group.join(&id));
            }
        }
    }

    /// Where it keeps images and containers.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("sock")
    }

    /// Runs `docker` against it.
    pub fn docker(&self, args: &[&str]) -> std::process::Output {
        let host = format!("unix://{}", self.socket().display());
        let output = Command::new("docker")
            .env_remove("DOCKER_HOST")
            .args(["-H", &host])
            .args(args)
            .output();
        output.unwrap()
    }

    /// The same, which must succeed: what it prints.
    pub fn says(&self, args: &[&str]) -> String {
        let output = self.docker(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {args:?}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The names of all containers.
    pub fn containers(&self) -> Vec<String> {
        let names = self.says(&["ps", "-a", "--format", "{{.Names}}"]);
        names.lines().map(str::to_owned).collect()
    }

    fn import(&self) {
        let root = self.dir.path().join("image");
        for dir in ["bin", "tmp", "etc"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
        for applet in APPLETS {
            symlink("busybox", root.join("bin").join(applet)).unwrap();
        }
        fs::write(
            root.join("etc/passwd"),
            "root:x:0:0::/:/bin/sh\nweb:x:70:70::/:/bin/sh\n",
        )
        .unwrap();
        let tar = self.dir.path().join("image.tar");
        let made = Command::new("tar")
            .arg("-C")
            .arg(&root)
            .arg("-cf")
            .arg(&tar)
            .arg(".")
            .status();
        assert!(made.unwrap().success());
        self.says(&["import", &tar.to_string_lossy(), IMAGE]);
    }

    /// The only layer of the image, as a tar archive.
    #[allow(dead_code, reason = "tests with a registry use it")]
    pub fn layer(&self) -> Vec<u8> {
        fs::read(self.dir.path().join("image.tar")).unwrap()
    }

    /// The same image, with a line of a Dockerfile.
    pub fn image_with(&self, name: &str, line: &str) {
        let tar = self.dir.path().join("image.tar");
        self.says(&["import", "--change", line, &tar.to_string_lossy(), name]);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            for name in self
                .docker(&["ps", "-aq"])
                .stdout
                .split(|byte| *byte == b'\n')
            {
                let name = String::from_utf8_lossy(name).into_owned();
                if !name.is_empty() {
                    self.docker(&["rm", "-f", &name]);
                }
            }
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let until = Instant::now() + Duration::from_secs(20);
            while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
                std::thread::yield_now();
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        end_processes_below(self.dir.path());
        self.remove_groups();
        unmount_below(self.dir.path());
    }
}

/// Whether a process of this number runs, and is more than a memory of its parent's.
fn is_alive(number: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !number.is_empty() && !state.is_empty() && !state.starts_with('Z')
}

/// Puts a file system of so many bytes there. It goes with what is mounted below the engine's directory.
fn small_disk(at: &Path, bytes: u64) {
    use rustix::mount::{MountFlags, mount};
    fs::create_dir_all(at).unwrap();
    let size = std::ffi::CString::new(format!("size={bytes}")).unwrap();
    mount("none", at, "tmpfs", MountFlags::empty(), size.as_c_str()).unwrap();
}

/// Removes a control group, once nothing is in it any more; nothing if there is none.
fn remove_group(dir: &Path) {
    let until = Instant::now() + TIMEOUT;
    while dir.is_dir() && fs::remove_dir(dir).is_err() && Instant::now() < until {
        std::thread::yield_now();
    }
}

/// Ends whatever an engine left whose arguments name its directory, with all that it started, and what is mounted
/// there.
fn end_below(dir: &Path) {
    end_processes_below(dir);
    unmount_below(dir);
}

fn end_processes_below(dir: &Path) {
    let dir = dir.to_string_lossy().into_owned();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if name.parse::<u32>().is_ok() && String::from_utf8_lossy(&words).contains(&dir) {
            end_with_children(&name);
        }
    }
}

fn unmount_below(dir: &Path) {
    let dir = dir.to_string_lossy().into_owned();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for point in points.filter(|point| point.starts_with(&dir)) {
        let _ = rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH);
    }
}

fn end_with_children(number: &str) {
    let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
    if let Some(pid) = number.parse().ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let children = children.unwrap_or_default();
    children.split_whitespace().for_each(end_with_children);
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
