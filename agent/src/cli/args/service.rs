//! Arguments of commands of services.

use clap::{Args, Subcommand};

use super::{Page, Shape};

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
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `service info`.
#[derive(Clone, Debug, Args)]
pub struct ServiceInfoArgs {
    /// The service's name
    pub service: String,
    /// Which part of the list is shown.
    #[command(flatten)]
    pub page: Page,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}
