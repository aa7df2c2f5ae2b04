//! Arguments of commands that read and write files, without an agent.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

/// `fmt`.
#[derive(Clone, Debug, Args)]
pub struct FmtArgs {
    /// Files, or directories with files that end with .hcl or .nomad; `-` for the standard input; the
    /// current directory unless given
    #[arg(value_name = "FILE|DIR")]
    pub paths: Vec<PathBuf>,
    /// Change nothing; exit with 1 if a file would change
    #[arg(long)]
    pub check: bool,
    /// Whether the names of files that change are printed
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub list: bool,
    /// Whether files are written; with neither `-write` nor `-list`, the text is printed
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub write: bool,
    /// Also files of directories in directories
    #[arg(long)]
    pub recursive: bool,
}

/// Commands of the agent's configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check configuration files
    Validate(ConfigValidateArgs),
}

/// `config validate`.
#[derive(Clone, Debug, Args)]
pub struct ConfigValidateArgs {
    /// Files, or directories with files that end with .hcl
    #[arg(value_name = "FILE|DIR", required = true)]
    pub paths: Vec<PathBuf>,
}

/// `job init`.
#[derive(Clone, Debug, Args)]
pub struct JobInitArgs {
    /// The file; example.nomad.hcl unless given
    pub file: Option<PathBuf>,
    /// Write no comments
    #[arg(long)]
    pub short: bool,
    /// Write what the variable nomad/job-templates/NAME has as its item `template`
    #[arg(long, value_name = "NAME", conflicts_with = "short")]
    pub template: Option<String>,
    /// Show the names that -template takes
    #[arg(long, conflicts_with_all = ["template", "short", "file"])]
    pub list_templates: bool,
}
