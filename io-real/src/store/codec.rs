//! Records as bytes: JSON with named fields, so that the version before and the version after this
//! one read them.

use std::sync::Arc;

use drover_core::ids::{JobKey, Slot};
use drover_core::model::eval::Evaluation;
use drover_core::model::placement::PlacementFailure;
use drover_core::model::variable::VariableKey;
use drover_core::store::{Key, Record};
use serde::Deserialize;
use serde_json::Value;

/// The separator of a key's parts: no namespace, job id, task name or path has it.
pub(super) const SEPARATOR: char = '\0';

/// The name of a record.
pub(super) fn key_text(key: &Key) -> String {
    match key {
        Key::Meta => "meta".to_owned(),
        Key::Job(job) => format!("job/{}{SEPARATOR}{}", job.namespace, job.id),
        Key::Eval(id) => format!("eval/{id}"),
        Key::Deployment(id) => format!("deployment/{id}"),
        Key::Alloc(id) => format!("alloc/{id}"),
        Key::Task(alloc, task) => format!("task/{alloc}{SEPARATOR}{task}"),
        Key::Collected(id) => format!("collected/{id}"),
        Key::Disk(Slot {
            job,
            group,
            index,
            lane,
            alloc,
        }) => {
            let (namespace, id) = (&job.namespace, &job.id);
            let first =
                format!("disk/{namespace}{SEPARATOR}{id}{SEPARATOR}{group}{SEPARATOR}{index}");
            match (lane, alloc) {
                (0, None) => first,
                (lane, None) => format!("{first}{SEPARATOR}{lane}"),
                (lane, Some(alloc)) => format!("{first}{SEPARATOR}{lane}{SEPARATOR}{alloc}"),
            }
        }
        Key::Submission(JobKey { namespace, id }, version) => {
            format!("submission/{namespace}{SEPARATOR}{id}{SEPARATOR}{version}")
        }
        Key::Node => "node".to_owned(),
        Key::Server => "server".to_owned(),
        Key::Placed(id) => format!("placed/{id}"),
        Key::Reported(id) => format!("reported/{id}"),
        Key::Announced(id) => format!("announced/{id}"),
        Key::Volume(id) => format!("volume/{id}"),
        Key::Namespace(name) => format!("namespace/{name}"),
        Key::AclPolicy(name) => format!("acl-policy/{name}"),
        Key::AclToken(id) => format!("acl-token/{id}"),
        Key::AclBootstrap => "acl-bootstrap".to_owned(),
        Key::Periodic(job) => format!("periodic/{}{SEPARATOR}{}", job.namespace, job.id),
        Key::Variable(key) => format!("variable/{}{SEPARATOR}{}", key.namespace, key.path),
    }
}

/// A record's bytes.
pub(super) fn encode(record: &Record) -> Result<Vec<u8>, String> {
    let encoded = match record {
        Record::Meta(record) => serde_json::to_vec(record),
        Record::Job(record) => serde_json::to_vec(record),
        Record::Eval(record) => serde_json::to_vec(record),
        Record::Deployment(record) => serde_json::to_vec(record),
        Record::Alloc(record) => serde_json::to_vec(record),
        Record::Task(record) => serde_json::to_vec(record),
        Record::Variable(record) => serde_json::to_vec(record),
        Record::Collected(record) => serde_json::to_vec(record),
        Record::Disk(record) => serde_json::to_vec(record),
        Record::Submission(record) => serde_json::to_vec(record),
        Record::Periodic(record) => serde_json::to_vec(record),
        Record::Node(record) => serde_json::to_vec(record),
        Record::Server(record) => serde_json::to_vec(record),
        Record::Placed(record) => serde_json::to_vec(record),
        Record::Reported(record) => serde_json::to_vec(record),
        Record::Announced(record) => serde_json::to_vec(record),
        Record::Volume(record) => serde_json::to_vec(record),
        Record::Namespace(record) => serde_json::to_vec(record),
        Record::AclPolicy(record) => serde_json::to_vec(record),
        Record::AclToken(record) => serde_json::to_vec(record),
        Record::AclBootstrap(record) => serde_json::to_vec(record),
    };
    encoded.map_err(|error| format!("cannot encode a record: {error}"))
}

/// Reads the name of a record.
pub(super) fn key(text: &[u8]) -> Result<Key, String> {
    let key = std::str::from_utf8(text).map_err(|_| "its key is no text".to_owned())?;
    let (kind, rest) = key.split_once('/').unwrap_or((key, ""));
    let parts = rest.split_once(SEPARATOR);
    let id_error = |_| "its key has no id".to_owned();
    Ok(match (kind, parts) {
        ("meta", None) => Key::Meta,
        ("node", None) => Key::Node,
        ("server", None) => Key::Server,
        ("placed", None) => Key::Placed(rest.parse().map_err(id_error)?),
        ("reported", None) => Key::Reported(rest.parse().map_err(id_error)?),
        ("announced", None) => Key::Announced(rest.parse().map_err(id_error)?),
        ("namespace", None) => Key::Namespace(rest.into()),
        ("acl-policy", None) => Key::AclPolicy(rest.into()),
        ("acl-token", None) => Key::AclToken(rest.parse().map_err(id_error)?),
        ("acl-bootstrap", None) => Key::AclBootstrap,
        ("volume", None) => Key::Volume(rest.parse().map_err(id_error)?),
        ("job", Some((namespace, id))) => Key::Job(JobKey {
            namespace: namespace.into(),
            id: id.into(),
        }),
        ("eval", None) => Key::Eval(rest.parse().map_err(id_error)?),
        ("deployment", None) => Key::Deployment(rest.parse().map_err(id_error)?),
        ("alloc", None) => Key::Alloc(rest.parse().map_err(id_error)?),
        ("collected", None) => Key::Collected(rest.parse().map_err(id_error)?),
        ("disk", Some(_)) => Key::Disk(slot(rest)?),
        ("submission", Some((namespace, rest))) => {
            let (id, version) = rest
                .rsplit_once(SEPARATOR)
                .ok_or("its key has no version")?;
            let job = JobKey {
                namespace: namespace.into(),
                id: id.into(),
            };
            let version = version.parse().map_err(|_| "its key has no version")?;
            Key::Submission(job, version)
        }
        ("periodic", Some((namespace, id))) => Key::Periodic(JobKey {
            namespace: namespace.into(),
            id: id.into(),
        }),
        ("variable", Some((namespace, path))) => Key::Variable(VariableKey {
            namespace: namespace.into(),
            path: path.into(),
        }),
        ("task", Some((alloc, task))) => Key::Task(alloc.parse().map_err(id_error)?, task.into()),
        _ => return Err("this version does not know its kind".to_owned()),
    })
}

fn slot(text: &str) -> Result<Slot, String> {
    let mut parts = text.split(SEPARATOR);
    let mut part = || parts.next().ok_or("its key names no slot".to_owned());
    let (namespace, id, group, index) = (part()?, part()?, part()?, part()?);
    Ok(Slot {
        job: JobKey {
            namespace: namespace.into(),
            id: id.into(),
        },
        group: group.into(),
        index: index
            .parse()
            .map_err(|_| "its key has no index".to_owned())?,
        lane: match parts.next() {
            None => 0,
            Some(lane) => lane.parse().map_err(|_| "its key has no lane".to_owned())?,
        },
        alloc: match parts.next() {
            None => None,
            Some(id) => Some(id.parse().map_err(|_| "its key has no id".to_owned())?),
        },
    })
}

/// Reads what stands under a name.
pub(super) fn decode(key: &Key, value: &[u8]) -> Result<Record, String> {
    Ok(match key {
        Key::Meta => Record::Meta(json(value)?),
        Key::Job(_) => Record::Job(json(value)?),
        Key::Eval(_) => Record::Eval(evaluation(value)?),
        Key::Deployment(_) => Record::Deployment(json(value)?),
        Key::Alloc(_) => Record::Alloc(json(value)?),
        Key::Task(..) => Record::Task(json(value)?),
        Key::Variable(_) => Record::Variable(json(value)?),
        Key::Collected(_) => Record::Collected(json(value)?),
        Key::Disk(_) => Record::Disk(json(value)?),
        Key::Submission(..) => Record::Submission(json(value)?),
        Key::Periodic(_) => Record::Periodic(json(value)?),
        Key::Node => Record::Node(json(value)?),
        Key::Server => Record::Server(json(value)?),
        Key::Placed(_) => Record::Placed(json(value)?),
        Key::Reported(_) => Record::Reported(json(value)?),
        Key::Announced(_) => Record::Announced(json(value)?),
        Key::Volume(_) => Record::Volume(json(value)?),
        Key::Namespace(_) => Record::Namespace(json(value)?),
        Key::AclPolicy(_) => Record::AclPolicy(json(value)?),
        Key::AclToken(_) => Record::AclToken(json(value)?),
        Key::AclBootstrap => Record::AclBootstrap(json(value)?),
    })
}

/// An evaluation. Where an earlier version saved why its groups are not placed as words alone, those are kept.
fn evaluation(value: &[u8]) -> Result<Arc<Evaluation>, String> {
    json(value).or_else(|why| {
        let mut whole: Value = json(value)?;
        let groups = whole.get_mut("failed_groups").and_then(Value::as_array_mut);
        for reason in groups
            .into_iter()
            .flatten()
            .filter_map(|group| group.get_mut(1))
        {
            if PlacementFailure::deserialize(&*reason).is_err() && reason.is_string() {
                let words = reason.take();
                *reason = serde_json::json!({ "words": words });
            }
        }
        let whole = serde_json::to_vec(&whole).unwrap_or_default();
        json(&whole).map_err(|_| why)
    })
}

fn json<T: serde::de::DeserializeOwned>(value: &[u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use drover_core::ids::{AllocId, EvalId};
    use drover_core::model::placement::DeviceLack;
    use drover_core::store::Saved;
    use drover_core::store::disk::Disk;
    use drover_core::time::Timestamp;

    use super::*;

    fn failures(why: &str) -> Result<Vec<(String, PlacementFailure)>, String> {
        let text = format!(
            r#"{{"id":"00000000-0000-0000-0000-000000000001","job":{{"namespace":"default","id":"web"}},
            "trigger":"job-register","time":0,"deployment":null,"status":"blocked",
            "failed_groups":[["g",{why}]],"create_index":1,"modify_index":1}}"#
        );
        match decode(&Key::Eval(EvalId(1)), text.as_bytes())? {
            Record::Eval(eval) => Ok(eval.failed_groups.clone()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn evaluation_saved_with_words_keeps_them() {
        let words = "memory: needs 800 MB, 100 of 1000 are free";
        let read = failures(&format!("{words:?}")).unwrap();
        assert_eq!(read[0].1, PlacementFailure::Words(words.to_owned()));
    }

    #[test]
    fn reasons_of_placement_failures_are_read_as_they_were_saved() {
        for why in [
            PlacementFailure::NoSuchGroup,
            PlacementFailure::Constraint("${attr.kernel.name} = beos".to_owned()),
            PlacementFailure::Devices {
                count: 2,
                device: "gpu".to_owned(),
                task: "t".to_owned(),
                why: DeviceLack::Taken,
            },
            PlacementFailure::Words("as an older agent said it".to_owned()),
        ] {
            let saved = serde_json::to_string(&why).unwrap();
            assert_eq!(failures(&saved).unwrap()[0].1, why, "{saved}");
        }
    }

    /// The records of a job's two copies as a version saved them that kept disks in those of allocations and jobs.
    fn saved_earlier() -> Saved {
        let previous = |id: u32| {
            format!(
                r#"{{"alloc":"00000000-0000-0000-0000-00000000000{id}","address":"http://far:4646","token":"t"}}"#
            )
        };
        let alloc = |id: u32, index: u32, more: &str| {
            let id = format!("00000000-0000-0000-0000-00000000000{id}");
            let text = format!(
                r#"{{"id":"{id}","job":{{"namespace":"default","id":"db"}},"group":"g","index":{index},
                "create_index":{}{more}}}"#,
                &id[35..]
            );
            let key = Key::Alloc(id.parse().unwrap());
            let record = decode(&key, text.as_bytes()).unwrap();
            (key, record)
        };
        let job = format!(
            r#"{{"job":{{"ID":"db","TaskGroups":[{{"Name":"g","EphemeralDisk":{{"Sticky":true,"Migrate":true,"SizeMB":1}}}}]}},
            "versions":[],"purge":false,"deployment":null,"done":[],
            "handed":[{{"group":"g","index":2,"from":{}}}]}}"#,
            previous(9)
        );
        let key = Key::Job(JobKey::local("db"));
        let job = decode(&key, job.as_bytes()).unwrap();
        let first = r#""00000000-0000-0000-0000-000000000001""#;
        Saved::from_records([
            (key, job),
            alloc(1, 0, ""),
            alloc(2, 0, &format!(r#","inherits":[{first}],"promised":77"#)),
            alloc(3, 1, &format!(r#","remote":{}"#, previous(8))),
        ])
    }

    #[test]
    fn disk_fields_of_earlier_version_are_migrated() {
        let mut saved = saved_earlier();
        let changed = saved.migrate();
        let disk = |index: u32| {
            let slot = Slot {
                job: JobKey::local("db"),
                group: "g".into(),
                index,
                lane: 0,
                alloc: None,
            };
            Disk::clone(&saved.disks[&slot])
        };
        let first = disk(0);
        assert_eq!(first.holder, Some(AllocId(2)));
        assert_eq!(first.sources, [AllocId(1)]);
        let lease = first.lease.unwrap();
        assert_eq!(lease.allocs, [AllocId(2), AllocId(1)]);
        assert_eq!(lease.until, Timestamp(77));
        let second = disk(1).elsewhere.unwrap();
        assert_eq!(second.previous.alloc, AllocId(8));
        assert_eq!(second.fetchers, [AllocId(3)]);
        let third = disk(2);
        assert_eq!(third.elsewhere.unwrap().previous.alloc, AllocId(9));
        assert_eq!(third.holder, None);
        // What is written for it is read again, and changes nothing any more.
        let written = changed.into_iter().map(|(key, record)| {
            let key = super::key(key_text(&key).as_bytes()).unwrap();
            let record = decode(&key, &encode(&record).unwrap()).unwrap();
            (key, record)
        });
        let mut again = Saved::from_records(written);
        assert_eq!(again.disks, saved.disks);
        assert_eq!(again.migrate(), []);
    }

    #[test]
    fn disk_keys_tell_lanes_apart() {
        let key = |lane, alloc| {
            Key::Disk(Slot {
                job: JobKey::local("db"),
                group: "g".into(),
                index: 3,
                lane,
                alloc,
            })
        };
        let all = [key(0, None), key(1, None), key(0, Some(AllocId(7)))];
        let texts: Vec<String> = all.iter().map(key_text).collect();
        for (nth, (key, text)) in all.iter().zip(&texts).enumerate() {
            assert_eq!(super::key(text.as_bytes()).as_ref(), Ok(key));
            assert!(!texts[..nth].contains(text), "{text:?}");
        }
    }
}
