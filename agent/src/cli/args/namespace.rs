//! Arguments of commands of namespaces.

use clap::{Args, Subcommand};

use super::Shape;

/// Commands of namespaces.
#[derive(Debug, Subcommand)]
pub enum NamespaceCommand {
    /// Make a namespace, or describe it anew
    Apply(NamespaceApplyArgs),
    /// Delete a namespace that nothing is in
    Delete(NamespaceDeleteArgs),
    /// Show a namespace as JSON
    Inspect(NamespaceInspectArgs),
    /// List namespaces
    List(NamespaceListArgs),
    /// Show a namespace
    Status(NamespaceStatusArgs),
}

/// `namespace apply`.
#[derive(Clone, Debug, Args)]
pub struct NamespaceApplyArgs {
    /// The namespace's name, or a file that describes it, in HCL or JSON; `-` for the standard input
    #[arg(value_name = "NAME|FILE")]
    pub input: String,
    /// What the namespace is for
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Not supported: quotas are of Nomad's enterprise edition
    #[arg(long, value_name = "NAME")]
    pub quota: Option<String>,
    /// The file is JSON; of no effect, that is seen by itself
    #[arg(long)]
    pub json: bool,
}

/// `namespace delete`.
#[derive(Clone, Debug, Args)]
pub struct NamespaceDeleteArgs {
    /// The namespace's name
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `namespace inspect`.
#[derive(Clone, Debug, Args)]
pub struct NamespaceInspectArgs {
    /// The namespace's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `namespace list`.
#[derive(Clone, Debug, Args)]
pub struct NamespaceListArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `namespace status`.
#[derive(Clone, Debug, Args)]
pub struct NamespaceStatusArgs {
    /// The namespace's name, or the beginning of it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}
