//! Plugins of the examples in a plugin directory of their own, and what tests ask of them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use drover_core::driver::spec::{Strictness, decode};
use drover_core::model::value::Value;
use drover_io_real::plugin::{
    DriverSettings, LaunchSpec, Limits, Plugin, PluginDir, PluginError, PluginKind, Program,
};
use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

/// What takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A plugin directory with one program in it.
pub struct Plugins {
    pub dir: TempDir,
    pub name: String,
    /// What plugins are given.
    pub limits: Limits,
}

impl Plugins {
    /// With this example.
    pub fn example(name: &str) -> Self {
        Self::of(name, &example(name))
    }

    /// With this program.
    pub fn of(name: &str, program: &Path) -> Self {
        let plugins = Self::empty(name);
        let to = plugins.dir.path().join(name);
        // A copy might be held open for writing by a process that another test starts just now.
        if fs::hard_link(program, &to).is_err() {
            fs::copy(program, &to).unwrap();
        }
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        plugins
    }

    /// With a script of this text.
    pub fn script(text: &str) -> Self {
        let plugins = Self::empty("script");
        let path = plugins.dir.path().join("script");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        plugins
    }

    fn empty(name: &str) -> Self {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(dir.path().join("run")).unwrap();
        let name = name.to_owned();
        let limits = Limits::default();
        Self { dir, name, limits }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn program(&self) -> Program {
        let dir = PluginDir::open(self.path()).unwrap();
        dir.program(&self.name).unwrap()
    }

    /// How the plugin is started: so that it does this wrong, and nobody waits long.
    pub fn spec(&self, mischief: &str) -> LaunchSpec {
        let env = [("EXAMPLE_PLUGIN_MISCHIEF".to_owned(), mischief.to_owned())];
        LaunchSpec {
            env: env.into(),
            socket_dir: Some(self.path().join("run")),
            start_timeout: Duration::from_secs(20),
            limits: self.limits,
            ..LaunchSpec::default()
        }
    }

    pub async fn launch(&self, mischief: &str) -> Result<Plugin, PluginError> {
        let spec = self.spec(mischief);
        soon(Plugin::launch(&self.program(), &spec)).await
    }

    /// The processes that were started from this directory and live.
    pub fn processes(&self) -> Vec<i32> {
        let all = fs::read_dir("/proc").unwrap();
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let program = self.path().join(&self.name);
        let program = program.to_str().unwrap().as_bytes();
        let ours = pids.filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(program) && lives(*pid)
        });
        ours.collect()
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> usize {
        fs::read_dir(self.path().join("run")).unwrap().count()
    }
}

impl Drop for Plugins {
    /// Plugins outlive their hosts, but not their tests.
    fn drop(&mut self) {
        self.processes().into_iter().for_each(kill);
    }
}

/// Kills a process, if it is there.
pub fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Where cargo puts the example of this name.
pub fn example(name: &str) -> PathBuf {
    // The tests are in `deps` below the directory that has `examples`.
    let test = std::env::current_exe().unwrap();
    let dir = test.parent().unwrap().parent().unwrap();
    dir.join("examples").join(name)
}

/// Gives a plugin its configuration, decoded by its own schema.
pub async fn configure(plugin: &Plugin, config: Value) -> Result<(), PluginError> {
    let schema = plugin.config_schema().await?.expect("a schema");
    let Value::Map(config) = config else {
        panic!("a configuration is a map");
    };
    let decoded = decode(&schema, &config, Strictness::Resolved).expect("a good configuration");
    let info = plugin.info().await?;
    // Drivers of Nomad rely on being told.
    let settings = DriverSettings {
        ports: (14_000, 14_512),
        ..DriverSettings::default()
    };
    let settings = (info.kind == PluginKind::Driver).then_some(&settings);
    plugin
        .configure(&decoded, &info.api_version, settings)
        .await
}

/// A map of these.
pub fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.map(|(name, value)| (name.to_owned(), value));
    Value::Map(BTreeMap::from(entries))
}

/// Waits, but not for ever.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, what).await.expect("it took too long")
}

/// Whether a process of this number is there, and is no zombie.
pub fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.ok().and_then(|stat| {
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.chars().next()
    });
    state.is_some_and(|state| state != 'Z')
}
