//! `drover acl token`: who has which rights. The agent knows only what proves that a secret is the right one,
//! so a secret is shown by the command that made it, and by no other.

use drover_core::time::Timestamp;
use drover_io_real::http_client::encoded;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{
    AclTokenArgs, AclTokenCommand, AclTokenCreateArgs, AclTokenListArgs, AclTokenUpdateArgs, Shape,
    TokenKind,
};
use super::client::decoded;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, table};
use crate::times;

/// What the agent says of a token.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TokenDto {
    #[serde(rename = "AccessorID")]
    accessor: String,
    #[serde(rename = "SecretID", default)]
    secret: String,
    #[serde(default)]
    name: String,
    #[serde(rename = "Type", default)]
    kind: String,
    #[serde(default)]
    policies: Option<Vec<String>>,
    #[serde(default)]
    global: bool,
    #[serde(default)]
    create_time: String,
    #[serde(default)]
    expiration_time: Option<String>,
    #[serde(default)]
    create_index: u64,
    #[serde(default)]
    modify_index: u64,
}

/// Runs one of the commands.
///
/// # Errors
/// The token is not there, what it is to be makes no sense, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: AclTokenCommand) -> Outcome {
    match command {
        AclTokenCommand::Create(args) => create(cx, args).await,
        AclTokenCommand::Delete(args) => delete(cx, args).await,
        AclTokenCommand::Info(args) => info(cx, &args.shape, &path(&args.accessor)).await,
        AclTokenCommand::List(args) => list(cx, args).await,
        AclTokenCommand::Own(args) => info(cx, &args.shape, &path("self")).await,
        AclTokenCommand::Update(args) => update(cx, args).await,
    }
}

fn path(accessor: &str) -> String {
    format!("/v1/acl/token/{}", encoded(accessor))
}

async fn create(cx: &mut Context, args: AclTokenCreateArgs) -> Outcome {
    match (args.kind, args.policy.is_empty()) {
        (TokenKind::Client, false) | (TokenKind::Management, true) => {}
        (TokenKind::Client, true) => {
            let words = "name a policy with -policy (\"drover acl policy list\" shows them), or let the token do \
                         everything with -type management";
            return Err(Failure::new(words));
        }
        (TokenKind::Management, false) => {
            let words =
                "a management token may do everything: leave out -policy, or -type management";
            return Err(Failure::new(words));
        }
    }
    let mut body = json!({
        "Name": args.name.unwrap_or_default(),
        "Type": args.kind.name(),
        "Policies": args.policy,
    });
    if let Some(ttl) = args.ttl {
        body["ExpirationTTL"] = ttl.0.into();
    }
    let made = cx
        .client
        .change(Method::PUT, "/v1/acl/token", &[], Some(&body));
    let made = made.await?;
    show_new(cx, &args.shape, made)
}

/// Shows a token that was just made, with its secret.
///
/// # Errors
/// The answer is strange, or nobody reads any more.
pub(super) fn show_new(cx: &mut Context, shape: &Shape, made: Value) -> Outcome {
    if shape.is_asked() {
        return cx.show(shape, &made);
    }
    let token = decoded(&made)?;
    cx.screen.print_line(&block(lines(&token)))?;
    let words =
        "\nThe Secret ID is the token: put it into NOMAD_TOKEN. Keep it: it is not shown again.";
    cx.screen.print_line(words)?;
    Ok(0)
}

async fn delete(cx: &mut Context, args: AclTokenArgs) -> Outcome {
    cx.client
        .send(Method::DELETE, &path(&args.accessor), &[], None)
        .await?;
    let words = format!("Token {} successfully deleted", args.accessor);
    cx.screen.print_line(&words)?;
    Ok(0)
}

async fn info(cx: &mut Context, shape: &Shape, path: &str) -> Outcome {
    let token: Value = cx.client.get(path, &[]).await?;
    show(cx, shape, token)
}

fn show(cx: &mut Context, shape: &Shape, token: Value) -> Outcome {
    if shape.is_asked() {
        return cx.show(shape, &token);
    }
    cx.screen.print_line(&block(lines(&decoded(&token)?)))?;
    Ok(0)
}

/// What is not named stays as it is.
async fn update(cx: &mut Context, args: AclTokenUpdateArgs) -> Outcome {
    let path = path(&args.accessor);
    let mut token: Map<String, Value> = cx.client.get(&path, &[]).await?;
    if let Some(name) = args.name {
        token.insert("Name".to_owned(), name.into());
    }
    if let Some(kind) = args.kind {
        token.insert("Type".to_owned(), kind.name().into());
        // A token that may do everything has no policies.
        if kind == TokenKind::Management {
            token.remove("Policies");
        }
    }
    if !args.policy.is_empty() {
        token.insert("Policies".to_owned(), args.policy.into());
    }
    let body = Value::Object(token);
    let changed = cx.client.change(Method::PUT, &path, &[], Some(&body));
    let changed = changed.await?;
    show(cx, &args.shape, changed)
}

async fn list(cx: &mut Context, args: AclTokenListArgs) -> Outcome {
    let path = "/v1/acl/tokens";
    if args.shape.is_asked() {
        let all: Value = cx.client.get(path, &[]).await?;
        return cx.show(&args.shape, &all);
    }
    let all: Vec<TokenDto> = cx.client.get(path, &[]).await?;
    if all.is_empty() {
        cx.screen.print_line("No tokens found")?;
        return Ok(0);
    }
    let now = (cx.clock)();
    let row = |token: TokenDto| {
        let expired = token.expires().is_some_and(|time| time <= now);
        [
            token.name,
            token.kind,
            token.global.to_string(),
            token.accessor,
            expired.to_string(),
        ]
    };
    let header = ["Name", "Type", "Global", "Accessor ID", "Expired"];
    let shown = table(header, all.into_iter().map(row));
    cx.screen.print_line(&shown)?;
    Ok(0)
}

impl TokenDto {
    fn expires(&self) -> Option<Timestamp> {
        times::parse(self.expiration_time.as_deref()?)
    }
}

fn lines(token: &TokenDto) -> Vec<(&'static str, String)> {
    let time = |text: &str| times::parse(text).map_or_else(|| text.to_owned(), times::to_seconds);
    let policies = match token.kind.as_str() {
        "management" => "n/a".to_owned(),
        _ => format!(
            "[{}]",
            token.policies.as_deref().unwrap_or_default().join(" ")
        ),
    };
    let expires = match token.expires() {
        Some(expires) => times::to_seconds(expires),
        None => "<never>".to_owned(),
    };
    let mut lines = vec![("Accessor ID", token.accessor.clone())];
    if !token.secret.is_empty() {
        lines.push(("Secret ID", token.secret.clone()));
    }
    lines.extend([
        ("Name", token.name.clone()),
        ("Type", token.kind.clone()),
        ("Global", token.global.to_string()),
        ("Create Time", time(&token.create_time)),
        ("Expiry Time", expires),
        ("Create Index", token.create_index.to_string()),
        ("Modify Index", token.modify_index.to_string()),
        ("Policies", policies),
    ]);
    lines
}
