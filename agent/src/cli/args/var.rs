//! Arguments of commands of variables.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Page;

/// Commands of variables.
#[derive(Debug, Subcommand)]
pub enum VarCommand {
    /// Write a file with a variable to begin with
    Init(VarInitArgs),
    /// Make a variable or change it
    Put(VarPutArgs),
    /// Show a variable
    Get(VarGetArgs),
    /// List variables
    List(VarListArgs),
    /// Delete a variable
    Purge(VarPurgeArgs),
}

/// `var init`.
#[derive(Clone, Debug, Args)]
pub struct VarInitArgs {
    /// The file; spec.nsv.hcl or spec.nsv.json unless given
    pub file: Option<PathBuf>,
    /// Its format: `hcl` or `json`
    #[arg(long, value_name = "FORMAT", default_value = "hcl")]
    pub out: String,
    /// Do not say what was written
    #[arg(long)]
    pub quiet: bool,
}

/// `var put`.
#[derive(Clone, Debug, Args)]
pub struct VarPutArgs {
    /// The path; or, instead of it or after it, a variable in JSON or HCL: `@FILE`, or `-` for the
    /// standard input
    pub path: String,
    /// What it holds: `KEY=VALUE`, `KEY=@FILE`, or `KEY=-` for the standard input
    #[arg(value_name = "ITEM")]
    pub items: Vec<String>,
    /// Whatever is there, replace it
    #[arg(long)]
    pub force: bool,
    /// Replace what was changed at this index, and nothing else; 0 if there is nothing
    #[arg(long, value_name = "INDEX", conflicts_with = "force")]
    pub check_index: Option<u64>,
    /// The format of a variable that is read: `json` or `hcl`; as the file's name ends, or JSON
    #[arg(long = "in", value_name = "FORMAT")]
    pub format: Option<String>,
    /// Accepted for Nomad's scripts
    #[arg(long, hide = true)]
    pub verbose: bool,
    /// What to show: `table`, `json`, `none` or `go-template`
    #[arg(long, value_name = "FORMAT")]
    pub out: Option<String>,
    /// Show what this template of Go's makes of the answer, whose fields are those of JSON
    #[arg(short = 't', long, value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub template: Option<String>,
}

/// `var get`.
#[derive(Clone, Debug, Args)]
pub struct VarGetArgs {
    /// The path
    pub path: String,
    /// Show the value of this key alone, as it is
    #[arg(long, value_name = "KEY")]
    pub item: Option<String>,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// What to show: `table`, `json`, `none` or `go-template`
    #[arg(long, value_name = "FORMAT")]
    pub out: Option<String>,
    /// Show what this template of Go's makes of the answer, whose fields are those of JSON
    #[arg(short = 't', long, value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub template: Option<String>,
}

/// `var list`.
#[derive(Clone, Debug, Args)]
pub struct VarListArgs {
    /// What paths begin with
    pub prefix: Option<String>,
    /// Which part of the list is shown.
    #[command(flatten)]
    pub page: Page,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// What to show: `table`, `json`, `terse`, `none` or `go-template`
    #[arg(long, value_name = "FORMAT")]
    pub out: Option<String>,
    /// Show what this template of Go's makes of the answer, whose fields are those of JSON
    #[arg(short = 't', long, value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub template: Option<String>,
}

/// `var purge`.
#[derive(Clone, Debug, Args)]
pub struct VarPurgeArgs {
    /// The path
    pub path: String,
    /// Delete what was changed at this index, and nothing else
    #[arg(long, value_name = "INDEX")]
    pub check_index: Option<u64>,
}
