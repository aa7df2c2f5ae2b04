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
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use args::{
    AllocCommand, Cli, Command, ConfigCommand, DeploymentCommand, EvalCommand, JobCommand,
    NodeCommand, OperatorCommand, PeriodicCommand, PluginCommand, RootCommand, ScalingCommand,
    ServerCommand, SystemCommand,
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

/// Runs a command that is not an agent itself, and says what went wrong.
pub async fn run(cli: Cli) -> ExitCode {
    let command = match cli.command {
        Command::Rehearse(args) => {
            let mut screen = Screen::of_process(cli.connection.colour());
            return ExitCode::from(rehearse::run(&mut screen, &args));
        }
        other => other,
    };
    let mut screen = Screen::of_process(cli.connection.colour());
    if let Command::Replay(args) = &command {
        let code = replay::run(&mut screen, args).unwrap_or_else(|failure| {
            screen.complain(&failure.message);
            failure.code
        });
        return ExitCode::from(code);
    }
    let client = match Client::new(&cli.connection, |name| std::env::var(name).ok()) {
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
pub async fn dispatch(cx: &mut Context, command: Command) -> Outcome {
    match command {
        Command::Run(args) | Command::Job(JobCommand::Run(args)) => job_run::run(cx, args).await,
        Command::Validate(args) | Command::Job(JobCommand::Validate(args)) => {
            job_validate::run(cx, args).await
        }
        Command::Stop(args) | Command::Job(JobCommand::Stop(args)) => job_stop::run(cx, args).await,
        Command::Inspect(args) | Command::Job(JobCommand::Inspect(args)) => {
            job_inspect::run(cx, args).await
        }
        Command::Init(args) | Command::Job(JobCommand::Init(args)) => init::job(cx, &args).await,
        Command::Job(JobCommand::Import(args)) => job_import::run(cx, &args),
        Command::Fmt(args) => fmt::run(cx, &args),
        Command::Config(ConfigCommand::Validate(args)) => config_validate::run(cx, &args),
        Command::Status(args) => job_status::anything(cx, args).await,
        Command::Job(JobCommand::Status(args)) => job_status::run(cx, args).await,
        Command::Job(JobCommand::Dispatch(args)) => job_dispatch::run(cx, args).await,
        Command::Job(JobCommand::Periodic(PeriodicCommand::Force(args))) => {
            job_periodic::run(cx, args).await
        }
        Command::Plan(args) | Command::Job(JobCommand::Plan(args)) => job_plan::run(cx, args).await,
        Command::Job(JobCommand::Move(args)) => job_move::run(cx, args).await,
        Command::Action(args) | Command::Job(JobCommand::Action(args)) => {
            action::run(cx, args).await
        }
        Command::Job(JobCommand::Logs(args)) => job_logs::run(cx, args).await,
        Command::Job(JobCommand::Scale(args)) => job_scale::run(cx, args).await,
        Command::Job(JobCommand::ScalingEvents(args)) => job_scale::events(cx, args).await,
        Command::Scaling(ScalingCommand::Policy(command)) => scaling_policy::run(cx, command).await,
        Command::Job(JobCommand::Promote(args)) => deployment::promote_job(cx, args).await,
        Command::Job(JobCommand::History(args)) => job_history::run(cx, args).await,
        Command::Job(JobCommand::Revert(args)) => job_revert::run(cx, args).await,
        Command::Job(JobCommand::Tag(command)) => job_tag::run(cx, command).await,
        Command::Start(args) | Command::Job(JobCommand::Start(args)) => {
            job_start::run(cx, args).await
        }
        Command::Job(JobCommand::Eval(args)) => job_eval::run(cx, args).await,
        Command::Job(JobCommand::Allocs(args)) => job_lists::allocs(cx, args).await,
        Command::Job(JobCommand::Deployments(args)) => job_lists::deployments(cx, args).await,
        Command::Job(JobCommand::Restart(args)) => job_restart::run(cx, args).await,
        Command::Logs(args) | Command::Alloc(AllocCommand::Logs(args)) => {
            alloc_logs::run(cx, args).await
        }
        Command::AllocStatus(args) | Command::Alloc(AllocCommand::Status(args)) => {
            alloc_status::run(cx, args).await
        }
        Command::Alloc(AllocCommand::Stop(args)) => alloc_act::stop(cx, args).await,
        Command::Alloc(AllocCommand::Restart(args)) => alloc_act::restart(cx, args).await,
        Command::Alloc(AllocCommand::Signal(args)) => alloc_act::signal(cx, args).await,
        Command::Alloc(AllocCommand::Checks(args)) => alloc_checks::run(cx, args).await,
        Command::Alloc(AllocCommand::Gc(args)) => alloc_act::gc(cx, args).await,
        Command::Fs(args) | Command::Alloc(AllocCommand::Fs(args)) => alloc_fs::run(cx, args).await,
        Command::Alloc(AllocCommand::PortForward(args)) => port_forward::run(cx, args).await,
        Command::Alloc(AllocCommand::Cp(args)) => alloc_cp::run(cx, args).await,
        Command::Exec(args) | Command::Alloc(AllocCommand::Exec(args)) => exec::run(cx, args).await,
        Command::NodeStatus(args) | Command::Node(NodeCommand::Status(args)) => {
            node_status::run(cx, args).await
        }
        Command::NodeDrain(args) | Command::Node(NodeCommand::Drain(args)) => {
            node_drain::run(cx, args).await
        }
        Command::Node(NodeCommand::Eligibility(args)) => node_eligibility::run(cx, args).await,
        Command::Node(NodeCommand::Meta(command)) => node_meta::run(cx, command).await,
        Command::ClientConfig(args) | Command::Node(NodeCommand::Config(args)) => {
            node_config::run(cx, args).await
        }
        Command::Node(NodeCommand::Pool(command)) => node_pool::run(cx, command).await,
        Command::Plugin(PluginCommand::Status(args)) => plugin_status::run(cx, args).await,
        Command::Eval(EvalCommand::List(args)) => eval_list::run(cx, args).await,
        Command::EvalStatus(args) | Command::Eval(EvalCommand::Status(args)) => {
            eval_status::run(cx, args).await
        }
        Command::Deployment(DeploymentCommand::Status(args)) => {
            eval_status::deployment(cx, args).await
        }
        Command::Deployment(DeploymentCommand::List(args)) => deployment::list(cx, args).await,
        Command::Deployment(DeploymentCommand::Promote(args)) => {
            deployment::promote(cx, args).await
        }
        Command::Deployment(DeploymentCommand::Fail(args)) => deployment::fail(cx, args).await,
        Command::Deployment(DeploymentCommand::Pause(args)) => {
            deployment::pause(cx, args, true).await
        }
        Command::Deployment(DeploymentCommand::Resume(args)) => {
            deployment::pause(cx, args, false).await
        }
        Command::Deployment(DeploymentCommand::Unblock(args)) => {
            deployment::unblock(cx, args).await
        }
        Command::Service(command) => service::run(cx, command).await,
        Command::Var(command) => var::run(cx, command).await,
        Command::Namespace(command) => namespace::run(cx, command).await,
        Command::Acl(command) => acl::run(cx, command).await,
        Command::Volume(command) => volume::run(cx, command).await,
        Command::Explain(args) => explain::run(cx, args).await,
        Command::Top(args) => top::run(cx, args).await,
        Command::System(SystemCommand::Gc) => operator::collect(cx).await,
        Command::System(SystemCommand::Audit(args)) => system_audit::run(cx, args).await,
        Command::System(SystemCommand::Destroy(args)) => system_destroy::run(cx, args).await,
        Command::Completion(args) => completion::script(cx, args.shell),
        Command::Complete(args) => completion::complete(cx, &args.words).await,
        Command::Man(args) => man::run(cx, &args),
        Command::Monitor(args) => agent_monitor::run(cx, args).await,
        Command::ServerMembers(args) | Command::Server(ServerCommand::Members(args)) => {
            server_members::members(cx, args).await
        }
        Command::AgentInfo(args) => server_members::info(cx, args).await,
        Command::Operator(OperatorCommand::Metrics(args)) => operator::metrics(cx, args).await,
        Command::Operator(OperatorCommand::Root(RootCommand::Keyring(command))) => {
            keyring::run(cx, command).await
        }
        Command::Debug(args) | Command::Operator(OperatorCommand::Debug(args)) => {
            operator_debug::run(cx, args).await
        }
        Command::Operator(OperatorCommand::Snapshot(command)) => {
            operator_snapshot::run(cx, command).await
        }
        Command::Operator(OperatorCommand::Scheduler(command)) => {
            operator_scheduler::run(cx, command).await
        }
        Command::Operator(OperatorCommand::Api(args)) => operator::api(cx, args).await,
        Command::Version => {
            cx.screen
                .print_line(&format!("Drover v{}", crate::http::agent::VERSION))?;
            Ok(0)
        }
        Command::Up(_) | Command::Agent(_) | Command::Rehearse(_) | Command::Replay(_) => {
            Err(exit_code::Failure::new("this query does not exist"))
        }
    }
}
