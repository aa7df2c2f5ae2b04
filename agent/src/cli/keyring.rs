//! `drover operator root keyring`: the keys with which variables are encrypted.

use drover_core::time::Timestamp;
use hyper::Method;
use serde::Deserialize;
use serde_json::Value;

use super::args::{KeyringCommand, KeyringListArgs, KeyringRotateArgs};
use super::context::{Context, Outcome};
use super::table::{short, table};
use crate::times;

/// What the agent says of a key.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Key {
    #[serde(rename = "KeyID")]
    key_id: String,
    state: String,
    create_time: i64,
}

/// Runs the command.
///
/// # Errors
/// The agent does not answer, or refuses.
pub(super) async fn run(cx: &mut Context, command: KeyringCommand) -> Outcome {
    match command {
        KeyringCommand::List(args) => list(cx, args).await,
        KeyringCommand::Rotate(args) => rotate(cx, args).await,
        KeyringCommand::Remove(args) => {
            let path = format!("/v1/operator/keyring/key/{}", args.key);
            cx.client.send(Method::DELETE, &path, &[], None).await?;
            let words = format!("Removed encryption key {}", args.key);
            cx.screen.print_line(&words)?;
            Ok(0)
        }
    }
}

async fn list(cx: &mut Context, args: KeyringListArgs) -> Outcome {
    let path = "/v1/operator/keyring/keys";
    if args.shape.is_asked() {
        let keys: Value = cx.client.get(path, &[]).await?;
        return cx.show(&args.shape, &keys);
    }
    let keys: Vec<Key> = cx.client.get(path, &[]).await?;
    show(cx, &keys, args.verbose)
}

async fn rotate(cx: &mut Context, args: KeyringRotateArgs) -> Outcome {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Made {
        key: Key,
    }
    let query: &[(&str, &str)] = if args.full { &[("full", "true")] } else { &[] };
    let path = "/v1/operator/keyring/rotate";
    let made: Made = cx.client.change(Method::PUT, path, query, None).await?;
    show(cx, &[made.key], args.verbose)
}

fn show(cx: &mut Context, keys: &[Key], verbose: bool) -> Outcome {
    let row = |key: &Key| {
        [
            short(&key.key_id, verbose),
            key.state.clone(),
            times::to_seconds(Timestamp(key.create_time)),
        ]
    };
    let shown = table(["Key", "State", "Create Time"], keys.iter().map(row));
    cx.screen.print_line(&shown)?;
    Ok(0)
}
