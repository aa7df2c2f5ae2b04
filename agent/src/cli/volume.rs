//! `drover volume`: host volumes that are made and removed while the agent runs.

use std::io::Read;
use std::path::Path;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::{
    VolumeCommand, VolumeDeleteArgs, VolumeFileArgs, VolumeInitArgs, VolumeStatusArgs,
};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::table::{block, short, table};
use super::{files, job_status, lookup, usage};
use crate::http::dto::{VolumeDto, VolumeStub};
use crate::jobspec;

/// The most bytes of a file that describes a volume.
const MAX_READ: u64 = 1 << 20;

/// What `volume init` writes.
const EXAMPLE: &str = include_str!("volume_example.hcl");
const EXAMPLE_JSON: &str = include_str!("volume_example.json");

/// Runs one of the commands.
///
/// # Errors
/// The file is wrong, the volume is not there or in use, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, command: VolumeCommand) -> Outcome {
    match command {
        VolumeCommand::Init(args) => init(cx, &args),
        VolumeCommand::Create(args) => make(cx, args, "create").await,
        VolumeCommand::Register(args) => make(cx, args, "register").await,
        VolumeCommand::Status(args) => status(cx, args).await,
        VolumeCommand::Delete(args) => delete(cx, args).await,
    }
}

fn host_alone(kind: Option<&str>) -> Result<(), Failure> {
    match kind {
        None | Some("host") => Ok(()),
        Some(other) => Err(Failure::new(format!(
            "there are no volumes of type {other:?} here: the type is \"host\""
        ))),
    }
}

fn init(cx: &mut Context, args: &VolumeInitArgs) -> Outcome {
    host_alone(args.kind.as_deref())?;
    let (name, text) = match args.json {
        true => ("volume.json", EXAMPLE_JSON),
        false => ("volume.hcl", EXAMPLE),
    };
    let file = args.file.as_deref().unwrap_or(Path::new(name));
    files::create(file, text)?;
    let words = format!("Example volume specification written to {}", file.display());
    cx.screen.print_line(&words)?;
    Ok(0)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Made {
    volume: VolumeDto,
}

async fn make(cx: &mut Context, args: VolumeFileArgs, how: &str) -> Outcome {
    let text = read(&args.file)?;
    let volume = jobspec::parse_volume(&text, &args.file)
        .map_err(|errors| Failure::new(errors.to_string()))?;
    let path = format!("/v1/volume/host/{how}");
    let body = json!({ "Volume": volume });
    let made: Made = cx
        .client
        .change(Method::PUT, &path, &[], Some(&body))
        .await?;
    let stub = made.volume.stub;
    let done = match how {
        "create" => "Created",
        _ => "Registered",
    };
    let under_way = match stub.state.as_str() {
        "ready" => String::new(),
        state => format!(" ({state}: see \"drover volume status {}\")", stub.id),
    };
    let words = format!(
        "==> {done} host volume {} with ID {}{under_way}",
        stub.name, stub.id
    );
    cx.screen.print_line(&words)?;
    Ok(0)
}

fn read(name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match name {
        "-" => std::io::stdin()
            .take(MAX_READ + 1)
            .read_to_string(&mut text),
        name => std::fs::File::open(Path::new(name))
            .and_then(|file| file.take(MAX_READ + 1).read_to_string(&mut text)),
    };
    match read {
        Ok(_) if text.len() as u64 > MAX_READ => Err(Failure::new(format!(
            "{name} is larger than {MAX_READ} bytes"
        ))),
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::new(format!("cannot read {name}: {error}"))),
    }
}

/// The volume of this id or name, or whose id begins so.
async fn find(cx: &Context, asked: &str) -> Result<VolumeStub, Failure> {
    let all: Vec<VolumeStub> = cx.client.get("/v1/volumes", &[("type", "host")]).await?;
    let exact = |it: &&VolumeStub| it.id == asked || it.name == asked;
    if let Some(found) = all.iter().find(exact) {
        return Ok(found.clone());
    }
    let mut begin = all.iter().filter(|it| it.id.starts_with(asked));
    match (begin.next(), begin.next()) {
        (Some(found), None) => Ok(found.clone()),
        (Some(_), Some(_)) => Err(Failure::new(format!(
            "Prefix {asked:?} matched multiple volumes; \"drover volume status\" lists them"
        ))),
        (None, _) => Err(Failure::new(format!(
            "No volume(s) with prefix or ID {asked:?} found"
        ))),
    }
}

async fn status(cx: &mut Context, args: VolumeStatusArgs) -> Outcome {
    host_alone(args.kind.as_deref())?;
    let Some(asked) = &args.volume else {
        return list(cx, &args).await;
    };
    let id = find(cx, asked).await?.id;
    let path = format!("/v1/volume/host/{id}");
    if args.shape.is_asked() {
        let whole: Value = cx.client.get(&path, &[]).await?;
        return cx.show(&args.shape, &whole);
    }
    let volume: VolumeDto = cx.client.get(&path, &[]).await?;
    let stub = &volume.stub;
    let plugin = match stub.plugin_id.as_str() {
        "" => "<none>",
        plugin => plugin,
    };
    let capacity = usage::bytes(u64::try_from(stub.capacity_bytes).unwrap_or(0));
    let lines = [
        ("ID", stub.id.clone()),
        ("Name", stub.name.clone()),
        ("Namespace", stub.namespace.clone()),
        ("Plugin ID", plugin.to_owned()),
        ("Node ID", stub.node_id.clone()),
        ("Node Pool", stub.node_pool.clone()),
        ("Capacity", capacity),
        ("State", stub.state.clone()),
        ("Host Path", volume.host_path.clone()),
    ];
    cx.screen.print_line(&block(lines))?;
    if args.short {
        return Ok(0);
    }
    if !volume.requested_capabilities.is_empty() {
        cx.screen.title("\nCapabilities")?;
        let rows = volume.requested_capabilities.iter();
        let rows = rows.map(|it| [it.access_mode.clone(), it.attachment_mode.clone()]);
        cx.screen
            .print_line(&table(["Access Mode", "Attachment Mode"], rows))?;
    }
    cx.screen.title("\nAllocations")?;
    let shown = job_status::allocations(cx, &volume.allocations, args.verbose);
    cx.screen.print_line(&shown)?;
    Ok(0)
}

async fn list(cx: &mut Context, args: &VolumeStatusArgs) -> Outcome {
    let node = match &args.node {
        Some(prefix) => Some(lookup::node(&cx.client, prefix).await?.id),
        None => None,
    };
    let mut query = vec![("type", "host")];
    query.extend(node.as_deref().map(|node| ("node_id", node)));
    query.extend(args.node_pool.as_deref().map(|pool| ("node_pool", pool)));
    if args.shape.is_asked() {
        let all: Value = cx.client.get("/v1/volumes", &query).await?;
        return cx.show(&args.shape, &all);
    }
    let all: Vec<VolumeStub> = cx.client.get("/v1/volumes", &query).await?;
    if all.is_empty() {
        let words = "No dynamic host volumes; \"drover node status -self\" shows those of the configuration";
        cx.screen.print_line(words)?;
        return Ok(0);
    }
    cx.screen.title("Dynamic Host Volumes")?;
    let row = |it: &VolumeStub| {
        [
            short(&it.id, args.verbose),
            it.name.clone(),
            it.namespace.clone(),
            it.plugin_id.clone(),
            short(&it.node_id, args.verbose),
            it.node_pool.clone(),
            it.state.clone(),
        ]
    };
    let header = [
        "ID",
        "Name",
        "Namespace",
        "Plugin ID",
        "Node ID",
        "Node Pool",
        "State",
    ];
    cx.screen.print_line(&table(header, all.iter().map(row)))?;
    Ok(0)
}

async fn delete(cx: &mut Context, args: VolumeDeleteArgs) -> Outcome {
    host_alone(args.kind.as_deref())?;
    let volume = find(cx, &args.volume).await?;
    let path = format!("/v1/volume/host/{}", volume.id);
    let _: Value = cx.client.change(Method::DELETE, &path, &[], None).await?;
    let words = format!("Successfully deleted volume \"{}\"!", volume.id);
    cx.screen.print_line(&words)?;
    Ok(0)
}
