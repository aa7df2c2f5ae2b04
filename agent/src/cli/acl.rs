//! `drover acl`: who may do what. The first token is made here; [`super::acl_policy`] and
//! [`super::acl_token`] have the rest.

use std::fs::File;
use std::io::Read;

use hyper::Method;
use serde_json::{Value, json};

use super::args::{AclBootstrapArgs, AclCommand};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::{acl_policy, acl_token, denied};

/// The most bytes that are read of a file or the standard input: more than any policy may have.
const MAX_READ: u64 = 1 << 20;

/// Runs one of the commands.
///
/// # Errors
/// What is asked for is not there or not allowed, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: AclCommand) -> Outcome {
    match command {
        AclCommand::Bootstrap(args) => bootstrap(cx, args).await,
        AclCommand::Policy(command) => acl_policy::run(cx, command).await,
        AclCommand::Token(command) => acl_token::run(cx, command).await,
    }
}

async fn bootstrap(cx: &mut Context, args: AclBootstrapArgs) -> Outcome {
    let secret = args.file.as_deref().map(secret).transpose()?;
    let body = secret.map_or_else(|| json!({}), |secret| json!({ "BootstrapSecret": secret }));
    let made = cx
        .client
        .change(Method::PUT, "/v1/acl/bootstrap", &[], Some(&body));
    let made: Value = made.await.map_err(done_already)?;
    acl_token::show_new(cx, &args.shape, made)
}

/// The secret in a file.
fn secret(file: &str) -> Result<String, Failure> {
    let text = read(file)?;
    match text.trim() {
        "" => Err(Failure::new(format!("{file} is empty: expected a UUID"))),
        secret => Ok(secret.to_owned()),
    }
}

/// Whoever has lost the first token is told how to get in.
fn done_already(failure: Failure) -> Failure {
    if !failure.message.contains("bootstrap already done") {
        return failure;
    }
    let hint = format!(
        "The first token is there. If it is lost, make another: drover acl token create -type management. {}",
        denied::WITHOUT_TOKEN
    );
    failure.or_try(Some(hint))
}

/// What is in a file, or what the standard input says.
///
/// # Errors
/// It cannot be read, is no text, or is larger than anything that makes sense.
pub(super) fn read(file: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin()
            .take(MAX_READ + 1)
            .read_to_string(&mut text),
        file => File::open(file).and_then(|file| file.take(MAX_READ + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| Failure::new(format!("cannot read {file}: {error}")))?;
    if text.len() as u64 > MAX_READ {
        let words = format!("{file} is larger than {MAX_READ} bytes");
        return Err(Failure::new(words));
    }
    Ok(text)
}
