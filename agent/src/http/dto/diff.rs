//! What differs between two versions of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

/// Whether something is new, gone, or changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub enum DiffType {
    #[default]
    None,
    Added,
    Deleted,
    Edited,
}

/// What differs between two versions of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct JobDiff {
    #[serde(rename = "Type")]
    pub kind: DiffType,
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(serialize_with = "null_if_empty")]
    pub fields: Vec<FieldDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub objects: Vec<ObjectDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub task_groups: Vec<GroupDiff>,
}

/// What differs in a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct GroupDiff {
    #[serde(rename = "Type")]
    pub kind: DiffType,
    pub name: String,
    #[serde(serialize_with = "null_if_empty")]
    pub fields: Vec<FieldDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub objects: Vec<ObjectDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub tasks: Vec<TaskDiff>,
    /// How many copies are affected how; only in plans.
    #[serde(serialize_with = "null_if_no_keys")]
    pub updates: BTreeMap<String, u64>,
}

/// What differs in a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct TaskDiff {
    #[serde(rename = "Type")]
    pub kind: DiffType,
    pub name: String,
    #[serde(serialize_with = "null_if_empty")]
    pub fields: Vec<FieldDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub objects: Vec<ObjectDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub annotations: Vec<String>,
}

/// What differs in a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct ObjectDiff {
    #[serde(rename = "Type")]
    pub kind: DiffType,
    pub name: String,
    #[serde(serialize_with = "null_if_empty")]
    pub fields: Vec<FieldDiff>,
    #[serde(serialize_with = "null_if_empty")]
    pub objects: Vec<ObjectDiff>,
}

/// A value that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct FieldDiff {
    #[serde(rename = "Type")]
    pub kind: DiffType,
    pub name: String,
    pub old: String,
    pub new: String,
    #[serde(serialize_with = "null_if_empty")]
    pub annotations: Vec<String>,
}

fn null_if_empty<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    match list {
        [] => to.serialize_none(),
        list => list.serialize(to),
    }
}

fn null_if_no_keys<S: Serializer>(map: &BTreeMap<String, u64>, to: S) -> Result<S::Ok, S::Error> {
    match map.is_empty() {
        true => to.serialize_none(),
        false => map.serialize(to),
    }
}
