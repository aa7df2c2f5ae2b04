//! Arguments of commands of services.

use clap::{Args, Subcommand};

/// Commands of services.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// List services
    List(ServiceListArgs),
    /// Show the instances of a service
    Info(ServiceInfoArgs),
}

/// `service list`.
#[derive(Clone, Debug, Args)]
pub struct ServiceListArgs {
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// `service info`.
#[derive(Clone, Debug, Args)]
pub struct ServiceInfoArgs {
    /// The service's name
    pub service: String,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}
