//! Arguments of commands of access control.

use clap::{Args, Subcommand, ValueEnum};
use drover_core::text::parse_duration;
use drover_core::time::Span;

use super::Shape;

/// Commands of access control.
#[derive(Debug, Subcommand)]
pub enum AclCommand {
    /// Make the first token, which may do everything
    Bootstrap(AclBootstrapArgs),
    /// Write, list, look at and delete policies
    #[command(subcommand)]
    Policy(AclPolicyCommand),
    /// Make, list, look at, change and delete tokens
    #[command(subcommand)]
    Token(AclTokenCommand),
}

/// `acl bootstrap`.
#[derive(Clone, Debug, Args)]
pub struct AclBootstrapArgs {
    /// A file with the secret that the token is to have, a UUID; `-` for the standard input. The agent makes
    /// one unless given
    #[arg(value_name = "FILE")]
    pub file: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `acl policy …`.
#[derive(Debug, Subcommand)]
pub enum AclPolicyCommand {
    /// Make a policy, or replace it
    Apply(AclPolicyApplyArgs),
    /// Delete a policy; tokens that name it lose its rights
    Delete(AclPolicyArgs),
    /// Show a policy with its rules
    Info(AclPolicyArgs),
    /// List policies
    List(AclPolicyListArgs),
}

/// `acl policy apply`.
#[derive(Clone, Debug, Args)]
pub struct AclPolicyApplyArgs {
    /// What the policy is for
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// The policy's name
    #[arg(value_name = "NAME")]
    pub policy: String,
    /// A file with its rules, in HCL or JSON; `-` for the standard input
    #[arg(value_name = "FILE")]
    pub file: String,
}

/// `acl policy info` and `acl policy delete`.
#[derive(Clone, Debug, Args)]
pub struct AclPolicyArgs {
    /// The policy's name
    #[arg(value_name = "NAME")]
    pub policy: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `acl policy list`.
#[derive(Clone, Debug, Args)]
pub struct AclPolicyListArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `acl token …`.
#[derive(Debug, Subcommand)]
pub enum AclTokenCommand {
    /// Make a token
    Create(AclTokenCreateArgs),
    /// Delete a token: whoever has it is refused from then on
    Delete(AclTokenArgs),
    /// Show a token, without its secret
    Info(AclTokenArgs),
    /// List tokens
    List(AclTokenListArgs),
    /// Show the token that this command shows to the agent
    #[command(name = "self")]
    Own(AclTokenListArgs),
    /// Give a token another name, type or other policies
    Update(AclTokenUpdateArgs),
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenKind {
    /// What its policies say
    Client,
    /// Everything
    Management,
}

impl TokenKind {
    /// The word of the API.
    pub fn name(self) -> &'static str {
        match self {
            TokenKind::Client => "client",
            TokenKind::Management => "management",
        }
    }
}

/// `acl token create`.
#[derive(Clone, Debug, Args)]
pub struct AclTokenCreateArgs {
    /// Whose token it is, or what for
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What it may do
    #[arg(long = "type", value_name = "TYPE", default_value = "client")]
    pub kind: TokenKind,
    /// A policy whose rights it has; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub policy: Vec<String>,
    /// How long it is valid, such as 1h; until it is deleted unless given
    #[arg(long, value_name = "DURATION", value_parser = ttl)]
    pub ttl: Option<Span>,
    /// Accepted for Nomad's scripts: there are no other regions
    #[arg(long, hide = true)]
    pub global: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `acl token update`.
#[derive(Clone, Debug, Args)]
pub struct AclTokenUpdateArgs {
    /// Whose token it is, or what for
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What it may do
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<TokenKind>,
    /// A policy whose rights it has, instead of those that it has now; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub policy: Vec<String>,
    /// Accepted for Nomad's scripts: there are no other regions
    #[arg(long, hide = true)]
    pub global: bool,
    /// The token's accessor id
    #[arg(value_name = "ACCESSOR")]
    pub accessor: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `acl token info` and `acl token delete`.
#[derive(Clone, Debug, Args)]
pub struct AclTokenArgs {
    /// The token's accessor id
    #[arg(value_name = "ACCESSOR")]
    pub accessor: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `acl token list` and `acl token self`.
#[derive(Clone, Debug, Args)]
pub struct AclTokenListArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

fn ttl(text: &str) -> Result<Span, String> {
    let span = parse_duration(text).ok().filter(|span| span.0 > 0);
    span.ok_or_else(|| "expected a duration, such as 30m or 8h".to_owned())
}
