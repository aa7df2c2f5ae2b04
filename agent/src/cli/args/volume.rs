//! Arguments of commands of host volumes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Shape;

/// Commands of host volumes.
#[derive(Debug, Subcommand)]
pub enum VolumeCommand {
    /// Write an example of a file that describes a volume
    Init(VolumeInitArgs),
    /// Make a volume of a file, with a directory of its own
    Create(VolumeFileArgs),
    /// Let jobs use a directory that is there as a volume
    Register(VolumeFileArgs),
    /// List volumes, or show one
    Status(VolumeStatusArgs),
    /// Delete a volume that nobody uses, with all that is in it
    Delete(VolumeDeleteArgs),
}

/// `volume init`.
#[derive(Clone, Debug, Args)]
pub struct VolumeInitArgs {
    /// The file to write; volume.hcl or volume.json unless given
    pub file: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// The type of volume: `host`
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
}

/// `volume create` and `volume register`.
#[derive(Clone, Debug, Args)]
pub struct VolumeFileArgs {
    /// The file that describes the volume, in HCL or JSON; `-` for the standard input
    pub file: String,
    /// Of no effect: the answer comes when the volume is there
    #[arg(long)]
    pub detach: bool,
    /// Accepted for Nomad's scripts; there are no policies to override
    #[arg(long, hide = true)]
    pub policy_override: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `volume status`.
#[derive(Clone, Debug, Args)]
pub struct VolumeStatusArgs {
    /// The volume's id or the beginning of it, or its name
    pub volume: Option<String>,
    /// The type of volumes: `host`
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Of a list, only those of this node
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Of a list, only those of this pool
    #[arg(long, value_name = "POOL")]
    pub node_pool: Option<String>,
    /// Of one volume, show less
    #[arg(long)]
    pub short: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `volume delete`.
#[derive(Clone, Debug, Args)]
pub struct VolumeDeleteArgs {
    /// The volume's id
    pub volume: String,
    /// The type of volume: `host`
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
}
