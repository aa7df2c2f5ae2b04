//! What is in a snapshot, in plain words, for who has the root key with which it was made.

use std::path::Path;

use drover_core::store::Key;
use serde_json::Value;

use super::snapshot::{Snapshot, SnapshotError};
use super::{codec, sealed};
use crate::keyring;
use crate::keyring::root::RootKey;

/// A record of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Readable {
    /// What kind of thing it is about, such as `job`.
    pub kind: String,
    /// Its name among those of its kind, such as `default/web`; empty where there is one of its kind.
    pub name: String,
    /// What it says. What variables hold is left out, and so are tokens.
    pub record: Value,
}

/// All records, by their names. The root key is `root`, or the one that lies in a data directory.
///
/// # Errors
/// There is no root key, it is another one, or a record cannot be read.
pub fn readable(
    snapshot: &Snapshot<'_>,
    data_dir: Option<&Path>,
    root: Option<&RootKey>,
) -> Result<Vec<Readable>, SnapshotError> {
    let keys = match (data_dir, root) {
        (Some(dir), root) => keyring::open_sealed(dir, root, &snapshot.keys)?,
        (None, Some(root)) => keyring::open_with(&[root], &snapshot.keys)?,
        (None, None) => return Err(SnapshotError::NoRoot),
    };
    let unreadable = |_| SnapshotError::Damaged("a record cannot be read");
    let mut all = Vec::new();
    for (name, stored) in snapshot.records(&keys)? {
        let key = codec::key(name).map_err(unreadable)?;
        let record = sealed::decode(&keys, &key, &stored).map_err(unreadable)?;
        let text = codec::encode(&record).map_err(unreadable)?;
        let mut record: Value =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        match (&key, record.as_object_mut()) {
            (Key::Variable(_), Some(fields)) => drop(fields.remove("items")),
            (Key::Server, Some(fields)) => drop(fields.remove("identity")),
            (Key::Disk(_), Some(fields)) => {
                let previous = fields
                    .get_mut("elsewhere")
                    .and_then(|it| it.get_mut("previous"));
                let previous = previous.and_then(Value::as_object_mut);
                drop(previous.map(|it| it.remove("token")));
            }
            _ => {}
        }
        let name = String::from_utf8_lossy(name).replace(codec::SEPARATOR, "/");
        let (kind, name) = name.split_once('/').unwrap_or((&name, ""));
        all.push(Readable {
            kind: kind.to_owned(),
            name: name.to_owned(),
            record,
        });
    }
    Ok(all)
}
