//! Arguments of `operator root`.

use clap::{Args, Subcommand};

use super::Shape;

/// What operators do with the root of all secrets.
#[derive(Debug, Subcommand)]
pub enum RootCommand {
    /// The keys with which variables are encrypted
    #[command(subcommand)]
    Keyring(KeyringCommand),
}

/// What is done with the keyring.
#[derive(Debug, Subcommand)]
pub enum KeyringCommand {
    /// List the keys
    List(KeyringListArgs),
    /// Make another key, with which variables are encrypted from then on
    Rotate(KeyringRotateArgs),
    /// Remove a key that no variable needs any more
    Remove(KeyringRemoveArgs),
}

/// `operator root keyring list`.
#[derive(Clone, Debug, Args)]
pub struct KeyringListArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `operator root keyring rotate`.
#[derive(Clone, Debug, Args)]
pub struct KeyringRotateArgs {
    /// Encrypt every variable anew too
    #[arg(long)]
    pub full: bool,
    /// Accepted for Nomad's scripts: a key is used as soon as it is made
    #[arg(long, hide = true)]
    pub now: bool,
    /// Show the whole id
    #[arg(long)]
    pub verbose: bool,
}

/// `operator root keyring remove`.
#[derive(Clone, Debug, Args)]
pub struct KeyringRemoveArgs {
    /// The whole id of the key
    pub key: String,
}
