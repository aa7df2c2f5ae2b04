//! `drover operator snapshot`: saves the state of an agent as one file, and puts one in its place.

use std::fs;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use drover_core::time::Timestamp;
use drover_io_real::data_dir::{DataDir, DataDirError};
use drover_io_real::keyring::root::RootKey;
use drover_io_real::store::{self, Snapshot, SnapshotError};
use hyper::Method;
use serde_json::{Map, Value, json};

use super::args::{
    Shape, SnapshotCommand, SnapshotInspectArgs, SnapshotRestoreArgs, SnapshotSaveArgs,
    SnapshotStateArgs,
};
use super::client::whole;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::files;
use super::table::{block, table};
use super::usage::bytes as size;
use crate::times;

const PATH: &str = "/v1/operator/snapshot";

/// Runs the command.
///
/// # Errors
/// The file is no snapshot or cannot be read or written, or the agent does not answer, or refuses.
pub(super) async fn run(cx: &mut Context, command: SnapshotCommand) -> Outcome {
    match command {
        SnapshotCommand::Save(args) => save(cx, &args).await,
        SnapshotCommand::Restore(args) => match &args.data_dir {
            Some(dir) => stage(cx, &args, dir),
            None => restore(cx, &args).await,
        },
        SnapshotCommand::Inspect(args) => inspect(cx, &args),
        SnapshotCommand::State(args) => state(cx, args),
    }
}

async fn save(cx: &mut Context, args: &SnapshotSaveArgs) -> Outcome {
    let shown = args.file.display();
    // Before the agent works for nothing. Others cannot read it.
    let mut file = files::open_new(&args.file, 0o600)?;
    let written = async {
        let answer = cx.client.send(Method::GET, PATH, &[], None).await?;
        let bytes = whole(answer).await?;
        let damaged = |error| Failure::new(format!("the agent's answer: {error}"));
        let records = Snapshot::read(&bytes).map_err(damaged)?.about.records;
        let done = file.write_all(&bytes).and_then(|()| file.sync_all());
        done.map_err(|error| Failure::new(format!("cannot write {shown}: {error}")))?;
        Ok((records, bytes.len()))
    };
    let (records, bytes) = match written.await {
        Ok(written) => written,
        Err(failure) => {
            let _ = fs::remove_file(&args.file);
            return Err(failure);
        }
    };
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let words = format!(
        "State file written to {shown}: {records} records, {}\nIt can be restored with the agent's root key \
         alone, which is not in it: keep that, too (drover-root-key, root_key_file or keyring/root)",
        size(bytes)
    );
    cx.screen.print_line(&words)?;
    Ok(0)
}

fn load(file: &Path) -> Result<Vec<u8>, Failure> {
    store::load(file).map_err(|error| about_file(file, &error))
}

fn about_file(file: &Path, error: &SnapshotError) -> Failure {
    Failure::new(format!("{}: {error}", file.display()))
}

async fn restore(cx: &mut Context, args: &SnapshotRestoreArgs) -> Outcome {
    let bytes = load(&args.file)?;
    Snapshot::read(&bytes).map_err(|error| about_file(&args.file, &error))?;
    let query: &[(&str, &str)] = if args.force {
        &[("force", "true")]
    } else {
        &[]
    };
    let sent = cx
        .client
        .send(Method::PUT, PATH, query, Some(Bytes::from(bytes)));
    sent.await?;
    cx.screen.print_line(
        "The snapshot is checked, and becomes the state when the agent starts next: restart it now. What \
         changes until then is lost.",
    )?;
    Ok(0)
}

/// Where no agent runs.
fn stage(cx: &mut Context, args: &SnapshotRestoreArgs, dir: &Path) -> Outcome {
    let bytes = load(&args.file)?;
    Snapshot::read(&bytes).map_err(|error| about_file(&args.file, &error))?;
    let held = DataDir::open(dir).map_err(|error| match error {
        DataDirError::Held(path) => Failure::new(format!(
            "an agent uses {}: leave -data-dir out and it restores the snapshot, or stop it",
            path.display()
        )),
        DataDirError::Io(..) => Failure::new(error.to_string()),
    })?;
    let staged = store::stage(&held, &bytes, args.force);
    staged.map_err(|error| about_file(&args.file, &error))?;
    cx.screen.print_line(
        "The snapshot becomes the state when the agent starts next, with the root key with which it was made.",
    )?;
    Ok(0)
}

fn inspect(cx: &mut Context, args: &SnapshotInspectArgs) -> Outcome {
    let bytes = load(&args.file)?;
    let snapshot = Snapshot::read(&bytes).map_err(|error| about_file(&args.file, &error))?;
    let about = &snapshot.about;
    let kinds = snapshot.kinds();
    if args.shape.is_asked() {
        let kinds: Vec<Value> = kinds
            .iter()
            .map(|(name, kind)| json!({ "Name": name, "Count": kind.count, "Size": kind.bytes }))
            .collect();
        let value = json!({
            "ID": snapshot.sum, "Size": bytes.len(), "CreateTime": about.created,
            "AgentVersion": about.agent_version, "Schema": about.schema, "Commit": about.commit,
            "KeyID": about.key, "Keys": about.keys, "Records": about.records, "Types": kinds,
        });
        return cx.show(&args.shape, &value);
    }
    let whole = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    cx.screen.print_line(&block([
        ("ID", snapshot.sum.clone()),
        ("Size", size(whole)),
        ("Created", times::to_seconds(Timestamp(about.created))),
        ("Agent Version", about.agent_version.clone()),
        ("Commit", about.commit.to_string()),
        ("Key", about.key.clone()),
        ("Keys", about.keys.to_string()),
    ]))?;
    let row = |(name, kind): (&String, &store::KindOf)| {
        let bytes = u64::try_from(kind.bytes).unwrap_or(u64::MAX);
        [name.clone(), kind.count.to_string(), size(bytes)]
    };
    let rows = table(["Type", "Count", "Size"], kinds.iter().map(row));
    cx.screen.print_line(&format!("\n{rows}"))?;
    Ok(0)
}

/// The records by their kinds and names.
fn state(cx: &mut Context, args: SnapshotStateArgs) -> Outcome {
    let bytes = load(&args.file)?;
    let about = |error| about_file(&args.file, &error);
    let snapshot = Snapshot::read(&bytes).map_err(about)?;
    if args.root_key_file.is_none() && args.data_dir.is_none() {
        return Err(Failure::new(
            "a snapshot is encrypted: -root-key-file FILE or -data-dir DIR says where the root key is with which it \
             was made",
        ));
    }
    let root = RootKey::find(args.root_key_file.as_deref(), None);
    let root = root.map_err(|error| Failure::new(error.to_string()))?;
    let records = store::readable(&snapshot, args.data_dir.as_deref(), root.as_ref());
    let mut kinds: Map<String, Value> = Map::new();
    for one in records.map_err(about)? {
        let of_kind = kinds.entry(one.kind).or_insert_with(|| json!({}));
        if let Some(of_kind) = of_kind.as_object_mut() {
            of_kind.insert(one.name, one.record);
        }
    }
    let shape = Shape {
        json: args.template.is_none(),
        template: args.template,
    };
    cx.show(&shape, &Value::Object(kinds))
}
