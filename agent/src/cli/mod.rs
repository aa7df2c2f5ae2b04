//! The command line: one file for each command. A command asks an agent over HTTP, wherever it
//! runs; only `agent` and `up` are one.

pub mod args;

mod acl;
mod acl_policy;
mod acl_token;
mod action;
mod agent_monitor;
mod alloc_act;
mod alloc_checks;
mod alloc_cp;
mod alloc_fs;
mod alloc_logs;
mod alloc_status;
mod cause;
pub mod client;
mod completion;
mod config_validate;
mod confirm;
pub mod context;
mod dashes;
mod denied;
mod deployment;
mod diff;
mod eval_list;
mod eval_status;
mod exec;
pub mod exit_code;
mod explain;
mod files;
mod fmt;
mod frames;
mod init;
mod job_dispatch;
mod job_eval;
mod job_history;
mod job_import;
mod job_inspect;
mod job_lists;
mod job_logs;
mod job_move;
mod job_periodic;
mod job_plan;
mod job_restart;
mod job_revert;
mod job_run;
mod job_scale;
mod job_start;
mod job_status;
mod job_stop;
mod job_tag;
mod job_validate;
pub mod jobfile;
mod keyring;
mod left_out;
mod lookup;
mod man;
mod monitor;
mod namespace;
mod node_config;
mod node_detail;
mod node_drain;
mod node_eligibility;
mod node_meta;
mod node_pool;
mod node_status;
mod node_usage;
mod not_ours;
mod operator;
mod operator_debug;
mod operator_scheduler;
mod operator_snapshot;
mod place;
mod plugin_status;
mod port_forward;
mod redact;
mod rehearse;
mod replay;
mod scaling_policy;
pub mod screen;
mod secure;
mod server_members;
mod service;
mod shape;
mod system_audit;
mod system_destroy;
pub mod table;
pub mod token;
mod top;
mod usage;
mod var;
mod var_spec;
mod volume;

#[cfg(test)]
mod acl_tests;
#[cfg(test)]
mod explain_tests;
#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod option_tests;
#[cfg(test)]
mod scripted_tests;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use args::{
    AllocCommand, Cli, ClientCommand, Command, ConfigCommand, Connection, DeploymentCommand,
    EvalCommand, JobCommand, NodeCommand, OperatorCommand, PeriodicCommand, PluginCommand,
    RehearseArgs, ReplayArgs, RootCommand, ScalingCommand, ServerCommand, SystemCommand,
};
use client::Client;
use context::{Context, Outcome};
use screen::{Colour, Screen};

use crate::times;

/// Reads the command line, the first word of which is the program's own name. What is wrong with it is told.
///
/// # Errors
/// There is nothing to run: with this the program ends.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let mut args = dashes::rewrite(&Cli::command(), args);
    let asks_version = |arg: &OsString| arg == "-v" || arg == "-version" || arg == "--version";
    if let Some(first) = args.get_mut(1).filter(|arg| asks_version(arg)) {
        *first = "version".into();
    }
    let rehearses = args.get(1).is_some_and(|arg| arg == "rehearse");
    let words: Vec<String> = (args.iter().skip(1))
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if let Some(advice) = not_ours::advice(&words) {
        Screen::of_process(Colour::Never).complain(&advice);
        return Err(ExitCode::FAILURE);
    }
    let cli = Cli::try_parse_from(args).map_err(|error| {
        match advice_about(&words, &error) {
            Some(advice) => Screen::of_process(Colour::Never).complain(&advice),
            // There is nobody left to tell if this fails.
            None => drop(error.print()),
        }
        let code = if rehearses { rehearse::ERROR } else { 1 };
        ExitCode::from(if error.use_stderr() { code } else { 0 })
    })?;
    match misplaced(&cli) {
        None => Ok(cli),
        Some(why) => {
            Screen::of_process(cli.connection.colour()).complain(why);
            Err(ExitCode::FAILURE)
        }
    }
}

/// What to say of an option of Nomad's that there is not, if that is the mistake.
fn advice_about(words: &[String], error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => not_ours::option_advice(words, option),
        Some(_) | None => None,
    }
}

/// Why the options make no sense for a command that is an agent.
fn misplaced(cli: &Cli) -> Option<&'static str> {
    let is_agent = matches!(cli.command, Command::Up(_) | Command::Agent(_));
    (is_agent && cli.connection.address.is_some()).then_some(
        "-address names the agent for a command; where an agent listens is set by \
         -http ADDR:PORT",
    )
}

/// Plays a recording again, and says what went wrong.
pub fn replay(connection: &Connection, args: &ReplayArgs) -> ExitCode {
    let mut screen = Screen::of_process(connection.colour());
    let code = replay::run(&mut screen, args).unwrap_or_else(|failure| {
        screen.complain(&failure.message);
        failure.code
    });
    ExitCode::from(code)
}

/// Tries a job under named troubles.
pub fn rehearse(connection: &Connection, args: &RehearseArgs) -> ExitCode {
    let mut screen = Screen::of_process(connection.colour());
    ExitCode::from(rehearse::run(&mut screen, args))
}

/// Runs a command that asks an agent, and says what went wrong.
pub async fn run(connection: &Connection, command: ClientCommand) -> ExitCode {
    let mut screen = Screen::of_process(connection.colour());
    let client = match Client::new(connection, |name| std::env::var(name).ok()) {
        Ok(client) => client,
        Err(failure) => {
            screen.complain(&failure.message);
            return ExitCode::from(failure.code);
        }
    };
    let mut cx = Context {
        client,
        screen,
        clock: times::now,
    };
    let code = match dispatch(&mut cx, command).await {
        Ok(code) => code,
        Err(failure) => {
            if !failure.message.is_empty() {
                cx.screen.complain(&failure.message);
            }
            if let Some(hint) = &failure.hint {
                cx.screen.complain(hint);
            }
            failure.code
        }
    };
    ExitCode::from(code)
}

/// Runs a command that asks an agent.
///
/// # Errors
/// Whatever goes wrong, for the user.
pub async fn dispatch(cx: &mut Context, command: ClientCommand) -> Outcome {
    match command {
        ClientCommand::Run(args) | ClientCommand::Job(JobCommand::Run(args)) => {
            job_run::run(cx, args).await
        }
        ClientCommand::Validate(args) | ClientCommand::Job(JobCommand::Validate(args)) => {
            job_validate::run(cx, args).await
        }
        ClientCommand::Stop(args) | ClientCommand::Job(JobCommand::Stop(args)) => {
            job_stop::run(cx, args).await
        }
        ClientCommand::Inspect(args) | ClientCommand::Job(JobCommand::Inspect(args)) => {
            job_inspect::run(cx, args).await
        }
        ClientCommand::Init(args) | ClientCommand::Job(JobCommand::Init(args)) => {
            init::job(cx, &args).await
        }
        ClientCommand::Job(JobCommand::Import(args)) => job_import::run(cx, &args),
        ClientCommand::Fmt(args) => fmt::run(cx, &args),
        ClientCommand::Config(ConfigCommand::Validate(args)) => config_validate::run(cx, &args),
        ClientCommand::Status(args) => job_status::anything(cx, args).await,
        ClientCommand::Job(JobCommand::Status(args)) => job_status::run(cx, args).await,
        ClientCommand::Job(JobCommand::Dispatch(args)) => job_dispatch::run(cx, args).await,
        ClientCommand::Job(JobCommand::Periodic(PeriodicCommand::Force(args))) => {
            job_periodic::run(cx, args).await
        }
        ClientCommand::Plan(args) | ClientCommand::Job(JobCommand::Plan(args)) => {
            job_plan::run(cx, args).await
        }
        ClientCommand::Job(JobCommand::Move(args)) => job_move::run(cx, args).await,
        ClientCommand::Action(args) | ClientCommand::Job(JobCommand::Action(args)) => {
            action::run(cx, args).await
        }
        ClientCommand::Job(JobCommand::Logs(args)) => job_logs::run(cx, args).await,
        ClientCommand::Job(JobCommand::Scale(args)) => job_scale::run(cx, args).await,
        ClientCommand::Job(JobCommand::ScalingEvents(args)) => job_scale::events(cx, args).await,
        ClientCommand::Scaling(ScalingCommand::Policy(command)) => {
            scaling_policy::run(cx, command).await
        }
        ClientCommand::Job(JobCommand::Promote(args)) => deployment::promote_job(cx, args).await,
        ClientCommand::Job(JobCommand::History(args)) => job_history::run(cx, args).await,
        ClientCommand::Job(JobCommand::Revert(args)) => job_revert::run(cx, args).await,
        ClientCommand::Job(JobCommand::Tag(command)) => job_tag::run(cx, command).await,
        ClientCommand::Start(args) | ClientCommand::Job(JobCommand::Start(args)) => {
            job_start::run(cx, args).await
        }
        ClientCommand::Job(JobCommand::Eval(args)) => job_eval::run(cx, args).await,
        ClientCommand::Job(JobCommand::Allocs(args)) => job_lists::allocs(cx, args).await,
        ClientCommand::Job(JobCommand::Deployments(args)) => job_lists::deployments(cx, args).await,
        ClientCommand::Job(JobCommand::Restart(args)) => job_restart::run(cx, args).await,
        ClientCommand::Logs(args) | ClientCommand::Alloc(AllocCommand::Logs(args)) => {
            alloc_logs::run(cx, args).await
        }
        ClientCommand::AllocStatus(args) | ClientCommand::Alloc(AllocCommand::Status(args)) => {
            alloc_status::run(cx, args).await
        }
        ClientCommand::Alloc(AllocCommand::Stop(args)) => alloc_act::stop(cx, args).await,
        ClientCommand::Alloc(AllocCommand::Restart(args)) => alloc_act::restart(cx, args).await,
        ClientCommand::Alloc(AllocCommand::Signal(args)) => alloc_act::signal(cx, args).await,
        ClientCommand::Alloc(AllocCommand::Checks(args)) => alloc_checks::run(cx, args).await,
        ClientCommand::Alloc(AllocCommand::Gc(args)) => alloc_act::gc(cx, args).await,
        ClientCommand::Fs(args) | ClientCommand::Alloc(AllocCommand::Fs(args)) => {
            alloc_fs::run(cx, args).await
        }
        ClientCommand::Alloc(AllocCommand::PortForward(args)) => port_forward::run(cx, args).await,
        ClientCommand::Alloc(AllocCommand::Cp(args)) => alloc_cp::run(cx, args).await,
        ClientCommand::Exec(args) | ClientCommand::Alloc(AllocCommand::Exec(args)) => {
            exec::run(cx, args).await
        }
        ClientCommand::NodeStatus(args) | ClientCommand::Node(NodeCommand::Status(args)) => {
            node_status::run(cx, args).await
        }
        ClientCommand::NodeDrain(args) | ClientCommand::Node(NodeCommand::Drain(args)) => {
            node_drain::run(cx, args).await
        }
        ClientCommand::Node(NodeCommand::Eligibility(args)) => {
            node_eligibility::run(cx, args).await
        }
        ClientCommand::Node(NodeCommand::Meta(command)) => node_meta::run(cx, command).await,
        ClientCommand::ClientConfig(args) | ClientCommand::Node(NodeCommand::Config(args)) => {
            node_config::run(cx, args).await
        }
        ClientCommand::Node(NodeCommand::Pool(command)) => node_pool::run(cx, command).await,
        ClientCommand::Plugin(PluginCommand::Status(args)) => plugin_status::run(cx, args).await,
        ClientCommand::Eval(EvalCommand::List(args)) => eval_list::run(cx, args).await,
        ClientCommand::EvalStatus(args) | ClientCommand::Eval(EvalCommand::Status(args)) => {
            eval_status::run(cx, args).await
        }
        ClientCommand::Deployment(DeploymentCommand::Status(args)) => {
            eval_status::deployment(cx, args).await
        }
        ClientCommand::Deployment(DeploymentCommand::List(args)) => {
            deployment::list(cx, args).await
        }
        ClientCommand::Deployment(DeploymentCommand::Promote(args)) => {
            deployment::promote(cx, args).await
        }
        ClientCommand::Deployment(DeploymentCommand::Fail(args)) => {
            deployment::fail(cx, args).await
        }
        ClientCommand::Deployment(DeploymentCommand::Pause(args)) => {
            deployment::pause(cx, args, true).await
        }
        ClientCommand::Deployment(DeploymentCommand::Resume(args)) => {
            deployment::pause(cx, args, false).await
        }
        ClientCommand::Deployment(DeploymentCommand::Unblock(args)) => {
            deployment::unblock(cx, args).await
        }
        ClientCommand::Service(command) => service::run(cx, command).await,
        ClientCommand::Var(command) => var::run(cx, command).await,
        ClientCommand::Namespace(command) => namespace::run(cx, command).await,
        ClientCommand::Acl(command) => acl::run(cx, command).await,
        ClientCommand::Volume(command) => volume::run(cx, command).await,
        ClientCommand::Explain(args) => explain::run(cx, args).await,
        ClientCommand::Top(args) => top::run(cx, args).await,
        ClientCommand::System(SystemCommand::Gc) => operator::collect(cx).await,
        ClientCommand::System(SystemCommand::Audit(args)) => system_audit::run(cx, args).await,
        ClientCommand::System(SystemCommand::Destroy(args)) => system_destroy::run(cx, args).await,
        ClientCommand::Completion(args) => completion::script(cx, args.shell),
        ClientCommand::Complete(args) => completion::complete(cx, &args.words).await,
        ClientCommand::Man(args) => man::run(cx, &args),
        ClientCommand::Monitor(args) => agent_monitor::run(cx, args).await,
        ClientCommand::ServerMembers(args)
        | ClientCommand::Server(ServerCommand::Members(args)) => {
            server_members::members(cx, args).await
        }
        ClientCommand::AgentInfo(args) => server_members::info(cx, args).await,
        ClientCommand::Operator(OperatorCommand::Metrics(args)) => {
            operator::metrics(cx, args).await
        }
        ClientCommand::Operator(OperatorCommand::Root(RootCommand::Keyring(command))) => {
            keyring::run(cx, command).await
        }
        ClientCommand::Debug(args) | ClientCommand::Operator(OperatorCommand::Debug(args)) => {
            operator_debug::run(cx, args).await
        }
        ClientCommand::Operator(OperatorCommand::Snapshot(command)) => {
            operator_snapshot::run(cx, command).await
        }
        ClientCommand::Operator(OperatorCommand::Scheduler(command)) => {
            operator_scheduler::run(cx, command).await
        }
        ClientCommand::Operator(OperatorCommand::Api(args)) => operator::api(cx, args).await,
        ClientCommand::Version => {
            cx.screen
                .print_line(&format!("Drover v{}", crate::http::agent::VERSION))?;
            Ok(0)
        }
    }
}
