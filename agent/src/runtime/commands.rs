//! The commands that are an agent: `drover agent` and `drover up`.

use drover_core::model::job::JobStatus;
use std::env;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drover_core::agent::requests::{Deregister, Register};
use drover_core::effect::{Refusal, Reply};
use drover_core::input::ShutdownMode;
use drover_core::model::job::Job;
use tokio::net::TcpListener;

use super::cluster;
use super::scratch::Scratch;
use super::terminal::Terminal;
use super::up::{Followed, Follower};
use super::{Recording, Running, Settings, flush_log, init_log, start};
use crate::admission::drivers::DriverRules;
use crate::admission::{Refused, check_pool};
use crate::cli::args::{AgentArgs, UpArgs};
use crate::cli::jobfile;
use crate::config::{self, FileConfig};
use crate::http::{self, AclSettings, Listeners, LocalSocket};
use crate::signals::{Asked, Signals};
use crate::tls::Tls;

/// `drover agent`: runs until a signal ends it. Tasks go on, and the next agent finds them again; unless it is only
/// to try things out.
pub async fn agent(mut args: AgentArgs) -> ExitCode {
    let file = match configuration(&args) {
        Ok(file) => file,
        Err(why) => {
            complain(&format!("Error: {why}"));
            return ExitCode::FAILURE;
        }
    };
    init_log(&level(&args, &file), args.log_json || file.agent.log_json);
    let ended = match Scratch::of(&mut args) {
        Ok(scratch) => without(scratch, run_agent(&args, file).await).await,
        Err(why) => Err(why),
    };
    flush_log();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain(&format!("Error: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// How an agent ended, when its data directory is removed that was only for it.
async fn without<T>(scratch: Option<Scratch>, ended: Result<T, String>) -> Result<T, String> {
    let Some(scratch) = scratch else {
        return ended;
    };
    let removed = scratch.remove().await;
    let ended = ended?;
    removed.map(|()| ended)
}

/// What the configuration file says, if there is one.
fn configuration(args: &AgentArgs) -> Result<FileConfig, String> {
    match &args.config {
        Some(path) => config::read(path),
        None => Ok(FileConfig::default()),
    }
}

/// How much is told: as the command line says, or the file.
fn level(args: &AgentArgs, file: &FileConfig) -> String {
    let given = args.log_level.clone().or(file.agent.log_level.clone());
    given.unwrap_or_else(|| "info".to_owned())
}

async fn run_agent(args: &AgentArgs, file: FileConfig) -> Result<(), String> {
    let mut signals = Signals::catch().map_err(|error| format!("cannot catch signals: {error}"))?;
    let mut serving = serve(args, file).await?;
    for remark in &serving.running.remarks {
        tracing::warn!("{remark}");
    }
    tracing::info!(
        http = serving.url,
        data_dir = %serving.running.data_dir.path().display(),
        "drover {} is ready",
        env!("CARGO_PKG_VERSION")
    );
    loop {
        tokio::select! {
            asked = signals.asked() => match asked {
                Asked::End => break,
                Asked::Reload => reload(args, &serving.tls),
            },
            _ = &mut serving.running.core => return Err("the agent's core ended".to_owned()),
        }
    }
    let (mode, words) = match args.dev {
        true => (
            ShutdownMode::StopTasks,
            "stopping all tasks, and removing the data directory",
        ),
        false => (ShutdownMode::KeepTasks, "stopping; tasks go on"),
    };
    tracing::info!("{words}");
    serving.begin_end(mode).await;
    // A disk that hangs must not keep the agent: a further signal leaves at once.
    serving.wait(&mut signals).await;
    Ok(())
}

/// Reads the certificates that the configuration names anew. All else of it has an effect at the next start.
fn reload(args: &AgentArgs, tls: &Tls) {
    match configuration(args).and_then(|file| tls.reload(&file.tls)) {
        Ok(()) => tracing::info!("certificates were read anew; connections that are open go on"),
        Err(error) => tracing::error!(%error, "nothing was read anew; all stays as it was"),
    }
}

/// Says why there is no agent. If nobody reads it any more, the exit code must do.
fn complain(why: &str) {
    let _ = writeln!(std::io::stderr(), "{why}");
}

/// `drover up`: an agent with one job in the foreground.
pub async fn up(mut args: UpArgs) -> ExitCode {
    let file = match configuration(&args.agent) {
        Ok(file) => file,
        Err(why) => {
            complain(&why);
            return ExitCode::FAILURE;
        }
    };
    let level = match std::io::stdout().is_terminal() {
        true => "error".to_owned(),
        false => level(&args.agent, &file),
    };
    init_log(&level, args.agent.log_json || file.agent.log_json);
    let ended = match Scratch::of(&mut args.agent) {
        Ok(scratch) => without(scratch, run_up(&args, file).await).await,
        Err(why) => Err(why),
    };
    flush_log();
    match ended {
        Ok(code) => code,
        Err(why) => {
            complain(&why);
            ExitCode::FAILURE
        }
    }
}

async fn run_up(args: &UpArgs, file: FileConfig) -> Result<ExitCode, String> {
    let mut terminal = Terminal::new();
    let mut signals = Signals::catch().map_err(|error| format!("cannot catch signals: {error}"))?;
    // The file first: a mistake in it costs no agent.
    let job = admit(args, &file, &terminal)?;
    let pool = file.client.node.pool.as_deref().unwrap_or("default");
    check_pool(&job, pool).map_err(|Refused(mistakes)| mistakes.join("\n"))?;
    let mut serving = serve(&args.agent, file).await?;
    let data_dir = serving.running.data_dir.path().display().to_string();
    terminal.print_line(&format!("Agent at {}, data in {data_dir}", serving.url));
    for remark in &serving.running.remarks {
        terminal.print_line(remark);
    }
    let key = job.key();
    let mut follower = Follower::new(
        &serving.running.agent_handle,
        serving.running.transfers.clone(),
        key.clone(),
    );
    follower.begin().await;
    if let Err(why) = register(&serving.running, job).await {
        serving.end(ShutdownMode::KeepTasks).await;
        return Err(why);
    }
    let end = follower.until_over(&mut signals, &mut terminal).await;
    if end == Followed::Interrupted {
        terminal.stopping(&key.id);
    }
    serving.begin_end(ShutdownMode::StopTasks).await;
    let ended =
        follower.rest(&mut signals, &mut terminal).await && serving.wait(&mut signals).await;
    terminal.finish();
    if !ended {
        terminal.print_line(&format!(
            "Left job \"{}\" before it was stopped: its running tasks go on",
            key.id
        ));
        return Ok(ExitCode::FAILURE);
    }
    let (words, code) = match end {
        Followed::Complete => ("is complete", ExitCode::SUCCESS),
        Followed::Interrupted => ("is stopped", ExitCode::SUCCESS),
        Followed::Failed => ("failed", ExitCode::FAILURE),
        Followed::Blocked => ("cannot be placed on this node", ExitCode::from(2)),
        Followed::AgentStopped => ("lost its agent", ExitCode::FAILURE),
    };
    terminal.print_line(&format!("Job \"{}\" {words}", key.id));
    Ok(code)
}

fn admit(args: &UpArgs, file: &FileConfig, terminal: &Terminal) -> Result<Job, String> {
    let read = jobfile::read(&args.file, &args.variables, false);
    let read = read.map_err(|failure| failure.to_string())?;
    let in_words = |Refused(mistakes): Refused| mistakes.join("\n\n");
    let admitted = read.admit().map_err(in_words)?;
    let denied = DriverRules::of(file).problems(&admitted.job);
    if !denied.is_empty() {
        return Err(in_words(read.refused(&denied)));
    }
    for warning in &admitted.warnings {
        terminal.print_line(&format!("Warning: {warning}"));
    }
    Ok(admitted.job)
}

/// Registers the job. One that is over from an earlier time runs again: who types `up` wants to
/// see it run.
async fn register(running: &Running, job: Job) -> Result<(), String> {
    let key = job.key();
    let asked = key.clone();
    let over = running
        .agent_handle
        .ask(move |view| view.job(&asked).is_some() && view.job_status(&asked) == JobStatus::Dead);
    if over.await.unwrap_or(false) {
        let deregister = Deregister {
            job: key,
            purge: false,
            no_shutdown_delay: false,
        };
        running
            .agent_handle
            .request(deregister)
            .await
            .map_err(|gone| gone.to_string())?;
    }
    let register = Register {
        job: Arc::new(job),
        expect_index: None,
        submission: None,
    };
    match running.agent_handle.request(register).await {
        Ok(Reply::Registered { .. }) => Ok(()),
        Ok(Reply::Refused(
            Refusal::NotFound(why)
            | Refusal::Conflict(why)
            | Refusal::Invalid(why)
            | Refusal::Forbidden(why),
        )) => Err(why),
        Ok(
            Reply::Dispatched { .. }
            | Reply::Stopping { .. }
            | Reply::HandedOver(_)
            | Reply::Variable(_)
            | Reply::AclToken(_)
            | Reply::Volume(_)
            | Reply::NodeChanged { .. }
            | Reply::Deployment { .. }
            | Reply::Done { .. },
        ) => Ok(()),
        Err(gone) => Err(gone.to_string()),
    }
}

/// An agent that serves its API.
struct Serving {
    running: Running,
    url: String,
    server: tokio::task::JoinHandle<()>,
    tls: Tls,
}

/// Listens there. What an agent was just starting when it was killed holds its socket until it
/// executes its program, so an address that is taken may be free in a moment.
async fn listen(addr: &str) -> std::io::Result<TcpListener> {
    const A_MOMENT: Duration = Duration::from_secs(1);
    let until = Instant::now() + A_MOMENT;
    loop {
        match TcpListener::bind(addr).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                tokio::time::sleep(A_MOMENT / 20).await;
            }
            bound => return bound,
        }
    }
}

async fn serve(args: &AgentArgs, mut file: FileConfig) -> Result<Serving, String> {
    let tls = Tls::load(&file.tls, &file.agent.region())?;
    let http = file.agent.http(args.http.as_deref());
    let listener = listen(&http).await.map_err(|error| {
        format!("cannot listen on {http}: {error}; choose another address with -http ADDR:PORT")
    })?;
    let listening = listener.local_addr().map_err(|error| error.to_string())?;
    let address = listening.to_string();
    let tls_asks = file.tls.http && file.tls.verify_https_client;
    let needs_tokens = file.acl.decide(listening, tls_asks)?;
    let data_dir = args.data_dir.clone().or(file.agent.data_dir.clone());
    let data_dir = data_dir.unwrap_or_else(default_data_dir);
    file.plugin_dir = args.plugin_dir.clone().or(file.plugin_dir);
    if !args.servers.is_empty() {
        file.client.node.servers = args.servers.clone();
    }
    let settings = Settings {
        data_dir,
        node_name: args.node_name.clone().or(file.agent.name.clone()),
        datacenter: (args.dc.clone())
            .or(file.agent.datacenter.clone())
            .unwrap_or_else(|| "dc1".to_owned()),
        http_addr: address.clone(),
        recording: Recording {
            size: args.recording_size,
            dir: args.recording_dir.clone(),
        },
        accept_state_loss: args.accept_state_loss,
        tls: tls.clone(),
        credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(Into::into),
        introduction: args.client_intro_token.clone().unwrap_or_default(),
        file,
    };
    let mut running = start(&settings).map_err(|error| error.to_string())?;
    if !settings.file.ignored.is_empty() {
        running.remarks.push(format!(
            "settings without effect: {}",
            settings.file.ignored.join(", ")
        ));
    }
    let only_here = listening.ip().to_canonical().is_loopback();
    if !only_here && !tls_asks && !needs_tokens {
        let words = "anyone who can reach it may run programs here: acl { enabled = false }";
        running.remarks.push(format!(
            "{address} is no address of this machine alone; {words}"
        ));
    }
    let local = LocalSocket::listen(running.data_dir.path());
    let local = local.map_err(|error| {
        let words = "there is no unix socket for the agent's own user";
        running.remarks.push(format!("{words}: {error}"));
    });
    let api = http::Settings {
        names: Vec::new(),
        http_addr: address.clone(),
        tls: tls.http().is_some(),
        version: http::agent::VERSION.to_owned(),
        nomad_version: http::agent::NOMAD_VERSION.to_owned(),
        data_dir: running.data_dir.path().display().to_string(),
        transfers: running.transfers.clone(),
        nodes: cluster::named_nodes(&settings),
        secret: running.secret.clone(),
        issuer: Some(running.issuer.clone()),
        keys: Some(running.keys.clone()),
        plugins: running.plugins.clone(),
        auditor: Some(running.auditor.clone()),
        drivers: DriverRules::of(&settings.file),
        client: settings.file.client,
        telemetry: settings.file.telemetry,
        events: running.events.clone(),
        notifier: running.notifier.clone(),
        forwarded: running.forwarders.counts(),
        log: super::log::followed(),
        acl: AclSettings {
            enabled: needs_tokens,
            expiration: (
                settings.file.acl.min_expiration,
                settings.file.acl.max_expiration,
            ),
            servers_tokens_last: settings.file.acl.servers_tokens_last,
        },
        token_servers: running.token_servers.clone(),
        status_servers: running.status_servers.clone(),
        for_servers: running.for_servers.clone(),
    };
    let listeners = Listeners {
        network: listener,
        tls: tls.http(),
        local: local.ok(),
    };
    let router = http::router(running.agent_handle.clone(), api, running.measures.clone());
    let limits = http::Limits::of_this_process(settings.file.limits);
    let server = tokio::spawn(http::serve(listeners, router, limits));
    Ok(Serving {
        running,
        url: match tls.http() {
            Some(_) => format!("https://{address}"),
            None => format!("http://{address}"),
        },
        server,
        tls,
    })
}

impl Serving {
    async fn begin_end(&self, mode: ShutdownMode) {
        // If it is gone already, that is what was wanted.
        let _ = self.running.agent_handle.shutdown(mode).await;
    }

    /// Waits for the end of the core, or for a signal that ends the waiting. Whether it came to
    /// its end.
    async fn wait(&mut self, signals: &mut Signals) -> bool {
        let ended = tokio::select! {
            biased;
            _ = &mut self.running.core => true,
            () = signals.next() => false,
        };
        self.server.abort();
        self.running.forwarders.end().await;
        self.running.plugins.end().await;
        ended
    }

    async fn end(mut self, mode: ShutdownMode) {
        self.begin_end(mode).await;
        // Whether it ended well or not, it ended.
        let _ = (&mut self.running.core).await;
        self.server.abort();
        self.running.forwarders.end().await;
        self.running.plugins.end().await;
    }
}

/// Where an agent keeps its data unless told otherwise: the system's place for root, the user's
/// own for others.
fn default_data_dir() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/drover");
    }
    let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let state = given("XDG_STATE_HOME").map(PathBuf::from);
    let home = || given("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state
        .or_else(home)
        .unwrap_or_else(|| PathBuf::from("."))
        .join("drover")
}
