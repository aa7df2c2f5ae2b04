//! `drover namespace`: namespaces that are made, described and deleted while the agent runs.

use std::io::Read;
use std::path::Path;

use drover_io_real::http_client::encoded;
use hyper::Method;
use serde_json::Value;

use super::args::{
    NamespaceApplyArgs, NamespaceCommand, NamespaceDeleteArgs, NamespaceInspectArgs,
    NamespaceListArgs, NamespaceStatusArgs,
};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, table};
use crate::http::dto::{CapabilitiesDto, NamespaceDto};
use crate::jobspec;
use crate::json::typed;

/// The most bytes of a file that describes a namespace.
const MAX_READ: u64 = 1 << 20;

/// Runs one of the commands.
///
/// # Errors
/// The file is wrong, the namespace is not there or something is in it, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: NamespaceCommand) -> Outcome {
    match command {
        NamespaceCommand::Apply(args) => apply(cx, args).await,
        NamespaceCommand::Delete(args) => delete(cx, args).await,
        NamespaceCommand::Inspect(args) => inspect(cx, args).await,
        NamespaceCommand::List(args) => list(cx, args).await,
        NamespaceCommand::Status(args) => status(cx, args).await,
    }
}

fn path(name: &str) -> String {
    format!("/v1/namespace/{}", encoded(name))
}

/// What is given on the command line goes before the file, and before what is there already.
async fn apply(cx: &mut Context, args: NamespaceApplyArgs) -> Outcome {
    let mut wanted = match described(&args.input)? {
        Some(wanted) => wanted,
        None => known(cx, &args.input).await?.unwrap_or(NamespaceDto {
            name: args.input.clone(),
            ..NamespaceDto::default()
        }),
    };
    if let Some(description) = args.description {
        wanted.description = description;
    }
    if let Some(quota) = args.quota {
        wanted.quota = quota;
    }
    let body = serde_json::to_vec(&wanted).map_err(|error| Failure::new(error.to_string()))?;
    let path = path(&wanted.name);
    cx.client
        .send(Method::PUT, &path, &[], Some(body.into()))
        .await?;
    let words = format!("Successfully applied namespace \"{}\"!", wanted.name);
    cx.screen.print_line(&words)?;
    Ok(0)
}

/// What a file says of a namespace; none if there is no such file.
fn described(input: &str) -> Result<Option<NamespaceDto>, Failure> {
    let mut text = String::new();
    let read = match input {
        "-" => std::io::stdin()
            .take(MAX_READ + 1)
            .read_to_string(&mut text),
        file if !Path::new(file).is_file() => return Ok(None),
        file => std::fs::File::open(file)
            .and_then(|file| file.take(MAX_READ + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| Failure::new(format!("cannot read {input}: {error}")))?;
    if text.len() as u64 > MAX_READ {
        let words = format!("{input} is larger than {MAX_READ} bytes");
        return Err(Failure::new(words));
    }
    // What "namespace inspect" shows can be applied again.
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(&text)
        && value.get("Name").is_some()
    {
        return read_json(&value, input).map(Some);
    }
    let spec = jobspec::parse_namespace(&text, input);
    let spec = spec.map_err(|errors| Failure::new(errors.to_string()))?;
    read_json(&spec, input).map(Some)
}

fn read_json(value: &Value, file: &str) -> Result<NamespaceDto, Failure> {
    typed(value).map_err(|error| Failure::new(format!("{file}: {error}")))
}

/// The namespace as it is now, if it is there.
async fn known(cx: &Context, name: &str) -> Result<Option<NamespaceDto>, Failure> {
    match cx.client.get::<NamespaceDto>(&path(name), &[]).await {
        Ok(known) => Ok(Some(known)),
        Err(failure) if failure.status == Some(404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn delete(cx: &mut Context, args: NamespaceDeleteArgs) -> Outcome {
    cx.client
        .send(Method::DELETE, &path(&args.name), &[], None)
        .await?;
    let words = format!("Successfully deleted namespace \"{}\"!", args.name);
    cx.screen.print_line(&words)?;
    Ok(0)
}

async fn inspect(cx: &mut Context, args: NamespaceInspectArgs) -> Outcome {
    let whole: Value = cx.client.get(&path(&args.name), &[]).await?;
    match args.shape.template {
        Some(_) => cx.show(&args.shape, &whole),
        None => cx.print_json(&whole),
    }
}

async fn list(cx: &mut Context, args: NamespaceListArgs) -> Outcome {
    if args.shape.is_asked() {
        let all: Value = cx.client.get("/v1/namespaces", &[]).await?;
        return cx.show(&args.shape, &all);
    }
    let all: Vec<NamespaceDto> = cx.client.get("/v1/namespaces", &[]).await?;
    let rows = all.into_iter().map(|it| [it.name, it.description]);
    cx.screen
        .print_line(&table(["Name", "Description"], rows))?;
    Ok(0)
}

async fn status(cx: &mut Context, args: NamespaceStatusArgs) -> Outcome {
    let query = [("prefix", args.name.as_str())];
    let all: Vec<NamespaceDto> = cx.client.get("/v1/namespaces", &query).await?;
    let exact = all.iter().find(|it| it.name == args.name);
    let found = match (exact, all.as_slice()) {
        (Some(exact), _) => exact,
        (None, [only]) => only,
        (None, []) => {
            let words = format!("Namespace \"{}\" matched no namespaces", args.name);
            return Err(Failure::new(words));
        }
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
            let words = format!(
                "Prefix \"{}\" matched several namespaces: {}",
                args.name,
                names.join(", ")
            );
            return Err(Failure::new(words));
        }
    };
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path(&found.name), &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let may = found.capabilities.clone().unwrap_or_default();
    cx.screen.print_line(&block(lines(found, &may)))?;
    if let Some(meta) = found.meta.as_ref().filter(|meta| !meta.is_empty()) {
        cx.screen.title("\nMetadata")?;
        let pairs = meta
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()));
        cx.screen.print_line(&block(pairs))?;
    }
    Ok(0)
}

fn lines(found: &NamespaceDto, may: &CapabilitiesDto) -> [(&'static str, String); 7] {
    let words = |list: &Option<Vec<String>>| list.as_deref().unwrap_or_default().join(",");
    let or_all = |list: &Option<Vec<String>>| match words(list) {
        none if none.is_empty() => "*".to_owned(),
        some => some,
    };
    [
        ("Name", found.name.clone()),
        ("Description", found.description.clone()),
        ("Quota", found.quota.clone()),
        ("Enabled Drivers", or_all(&may.enabled_task_drivers)),
        ("Disabled Drivers", words(&may.disabled_task_drivers)),
        ("Enabled Network Modes", or_all(&may.enabled_network_modes)),
        ("Disabled Network Modes", words(&may.disabled_network_modes)),
    ]
}
