//! What of an engine's images is there because of the agent, and its removal: of that alone.
//!
//! An image that the agent brought is its own to remove as long as nobody else has to do with it: it has no name that
//! others gave it, and nobody else made a container of it. Otherwise only those of its names go that the agent brought;
//! and none of them if it would be left without a name, or others' containers may have been made by that name. What is
//! others' by then is forgotten, and stays so.

use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveImageOptions, RemoveImageOptionsBuilder,
};

use super::engine::{Engine, SOON};
use super::inventory::launches_of;
use super::load::{Present, familiar, inspect};
use super::proof::Claimed;
use super::records::{Brought, Records};
use super::trouble::Trouble;

/// What became of an image that the agent brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone, or was already.
    Gone,
    /// What the agent brought of it is gone; the rest is others'.
    Untagged,
    /// It is others' by now.
    Theirs,
    /// A container of ours has it, so it is ours still.
    InUse,
    /// It is another engine's.
    Elsewhere,
    /// It is not there, and may come still: an engine that has all of an archive goes on.
    Awaited,
}

/// Who has containers of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    Nobody,
    Ours,
    Others,
}

/// What may be removed of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it, with these names.
    All(Vec<String>),
    /// These names.
    Names(Vec<String>),
    Nothing,
}

/// What of an image with these names is the agent's to remove.
pub(super) fn share(brought: &Brought, tags: &[String]) -> Share {
    let Some(names) = &brought.names else {
        // An earlier agent's: one of several names is somebody's.
        return match tags.len() {
            0 | 1 => Share::All(tags.to_vec()),
            _ => Share::Nothing,
        };
    };
    let is_ours = |tag: &&String| names.iter().any(|name| familiar(name) == familiar(tag));
    let (ours, others): (Vec<&String>, Vec<&String>) = tags.iter().partition(is_ours);
    let ours = ours.into_iter().cloned().collect::<Vec<_>>();
    match (brought.owns, others.is_empty(), ours.is_empty()) {
        (true, true, _) => Share::All(ours),
        (_, false, false) => Share::Names(ours),
        (false, true, _) | (_, false, true) => Share::Nothing,
    }
}

/// Removes what the agent brought of an image that none of its launches uses.
///
/// # Errors
/// The engine does not answer, or fails; or what is remembered cannot be read.
pub(super) async fn remove(
    engine: &Engine,
    records: &Records,
    id: &str,
) -> Result<Removal, Trouble> {
    let read = |error: std::io::Error| Trouble::Failed(format!("cannot read its record: {error}"));
    let Some(brought) = records.brought(id).map_err(read)? else {
        return Ok(Removal::Theirs);
    };
    if !brought.engine.as_os_str().is_empty() && brought.engine != engine.socket() {
        return Ok(Removal::Elsewhere);
    }
    let removal = match inspect(engine, id).await {
        Ok(image) => take_away(engine, records, &brought, &image).await?,
        Err(Trouble::Unknown(_)) if records.may_come(id).unwrap_or(true) => Removal::Awaited,
        Err(Trouble::Unknown(_)) => Removal::Gone,
        Err(trouble) => return Err(trouble),
    };
    if !matches!(removal, Removal::InUse | Removal::Awaited)
        && let Err(error) = records.remove_image(id)
    {
        tracing::warn!(image = id, %error, "cannot forget an image");
    }
    Ok(removal)
}

async fn take_away(
    engine: &Engine,
    records: &Records,
    brought: &Brought,
    image: &Present,
) -> Result<Removal, Trouble> {
    match users(engine, records, &image.id).await? {
        Users::Ours => return Ok(Removal::InUse),
        Users::Others => return Ok(Removal::Theirs),
        Users::Nobody => {}
    }
    let (names, is_whole) = match share(brought, &image.tags) {
        Share::All(names) => (names, true),
        Share::Names(names) => (names, false),
        Share::Nothing => return Ok(Removal::Theirs),
    };
    // The last one goes with the image, by its id: whatever its name means by then.
    let by_name = match is_whole {
        true => names.len().saturating_sub(1),
        false => names.len(),
    };
    for name in names.iter().take(by_name) {
        if !untag(engine, records, name, &image.id).await? {
            return Ok(Removal::Theirs);
        }
    }
    if !is_whole {
        return Ok(Removal::Untagged);
    }
    match delete(engine, &image.id).await {
        Ok(()) | Err(Trouble::Unknown(_)) => {
            names.iter().for_each(|name| forget_given(records, name));
            Ok(Removal::Gone)
        }
        // Somebody made a container of it meanwhile, or gave it a name.
        Err(Trouble::Conflict(_)) => match users(engine, records, &image.id).await? {
            Users::Ours => Ok(Removal::InUse),
            Users::Others | Users::Nobody => Ok(Removal::Theirs),
        },
        Err(trouble) => Err(trouble),
    }
}

/// Takes a name from an image that has another one. False if that is not so any more.
async fn untag(engine: &Engine, records: &Records, name: &str, id: &str) -> Result<bool, Trouble> {
    let now = match inspect(engine, name).await {
        Err(Trouble::Unknown(_)) => None,
        now => Some(now?),
    };
    // It may mean something else by now.
    if let Some(now) = now.filter(|now| now.id == id) {
        if now.tags.len() < 2 {
            return Ok(false);
        }
        match delete(engine, name).await {
            Ok(()) | Err(Trouble::Unknown(_)) => {}
            Err(Trouble::Conflict(_)) => return Ok(false),
            Err(trouble) => return Err(trouble),
        }
    }
    forget_given(records, name);
    Ok(true)
}

fn forget_given(records: &Records, name: &str) {
    if let Err(error) = records.remove_given(name) {
        tracing::warn!(tag = name, %error, "cannot forget that an archive gave a tag");
    }
}

/// Removes an image or a name. What it was built on stays: an archive says what that is.
async fn delete(engine: &Engine, name: &str) -> Result<(), Trouble> {
    let options: RemoveImageOptions = RemoveImageOptionsBuilder::new().noprune(true).build();
    let removed = engine.docker().remove_image(name, Some(options), None);
    Engine::within(SOON, removed).await.map(|_| ())
}

/// Who has containers of an image.
async fn users(engine: &Engine, records: &Records, id: &str) -> Result<Users, Trouble> {
    let options = ListContainersOptionsBuilder::new().all(true).build();
    let all = Engine::within(SOON, engine.docker().list_containers(Some(options))).await?;
    let of_it: Vec<ContainerSummary> = all.into_iter().filter(|it| is_of(it, id)).collect();
    Ok(
        match (
            of_it.is_empty(),
            of_it.iter().all(|it| is_ours(it, records)),
        ) {
            (true, _) => Users::Nobody,
            (false, true) => Users::Ours,
            (false, false) => Users::Others,
        },
    )
}

/// Whether a container is of an image, by its id.
pub(super) fn is_of(container: &ContainerSummary, id: &str) -> bool {
    container.image_id.as_deref() == Some(id)
}

/// Whether a container is proved to be ours.
fn is_ours(container: &ContainerSummary, records: &Records) -> bool {
    let Some(id) = &container.id else {
        return false;
    };
    let names = container.names.iter().flatten();
    let mut names = names.map(|name| name.trim_start_matches('/'));
    let name = names.next().unwrap_or_default();
    let labels = container.labels.as_ref();
    let claimed = Claimed { id, name, labels };
    let launches = launches_of(labels, name).into_iter().flatten();
    let mut ours = launches.filter_map(|launch| records.read(launch).ok().flatten());
    ours.any(|record| claimed.is_of(record.ours()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use drover_core::ids::LaunchId;
    use serde_json::json;

    use super::super::fake;
    use super::super::records::Shown;
    use super::*;

    const LAUNCH: LaunchId = LaunchId(7);

    #[tokio::test]
    async fn image_is_ours_until_others_use_it_or_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(std::fs::File::open(dir.path()).unwrap().into()).unwrap();
        let id = format!("sha256:{}", "0f".repeat(32));
        let ours = records.begin(LAUNCH, "web".to_owned(), Shown::default(), Path::new(""));
        let labels =
            json!({ "drover.launch": LAUNCH.to_string(), "drover.token": ours.unwrap().token });
        let ours = json!({ "Id": "1", "Names": ["/web"], "Labels": labels, "ImageID": id });
        let other = json!({ "Id": "2", "Names": ["/other"], "ImageID": "sha256:other" });
        let theirs = json!({ "Id": "3", "Names": ["/theirs"], "ImageID": id });
        let deletes = (500, r#"{"message":"it is tired"}"#);
        let gone = (200, "[]");
        for (containers, deleted, expected, is_left) in [
            (json!([ours]), gone, Ok(Removal::InUse), true),
            (json!([other]), deletes, Err("it is tired"), true),
            (json!([ours, theirs]), gone, Ok(Removal::Theirs), false),
            (json!([other]), gone, Ok(Removal::Gone), false),
        ] {
            let image = json!({ "Id": id, "RepoTags": ["web:1"] }).to_string();
            let asked = std::sync::Arc::new(Mutex::new(Vec::new()));
            let noted = asked.clone();
            let (engine, _place) = fake::engine(move |request| {
                if request.starts_with("DELETE") {
                    noted.lock().unwrap().push(request.to_owned());
                    return (deleted.0, deleted.1.to_owned());
                }
                match request.contains("/containers/json") {
                    true => (200, containers.to_string()),
                    false => (200, image.clone()),
                }
            })
            .await;
            let what = Brought {
                owns: true,
                names: Some(["web:1".to_owned()].into()),
                engine: engine.socket().to_owned(),
            };
            records.remove_image(&id).unwrap();
            records.add_image(&id, what).unwrap();
            let removed = remove(&engine, &records, &id).await;
            let outcome = removed.as_ref().map_err(Trouble::message);
            assert_eq!(outcome.copied(), expected);
            assert_eq!(
                records.brought(&id).unwrap().is_some(),
                is_left,
                "{expected:?}"
            );
            let asked = asked.lock().unwrap();
            let is_kept = matches!(expected, Ok(Removal::InUse | Removal::Theirs));
            assert_eq!(asked.is_empty(), is_kept, "{asked:?}");
            assert!(
                asked.iter().all(|it| it.contains("noprune=true")),
                "{asked:?}"
            );
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn share_of_an_image_is_what_others_have_not() {
        for (owns, brought, tags, expected) in [
            (
                true,
                &["web:1"][..],
                &["web:1"][..],
                Share::All(names(&["web:1"])),
            ),
            (
                true,
                &["docker.io/library/web:1"],
                &["web:1"],
                Share::All(names(&["web:1"])),
            ),
            // It was moved away, or fetched by its content.
            (true, &["web:1"], &[], Share::All(Vec::new())),
            (
                true,
                &["web:1"],
                &["web:1", "mine:1"],
                Share::Names(names(&["web:1"])),
            ),
            // Somebody gave it another name, and took the first one away.
            (true, &["web:1"], &["mine:1"], Share::Nothing),
            (
                false,
                &["app:1"],
                &["app:1", "mine:1"],
                Share::Names(names(&["app:1"])),
            ),
            // Without it, their image would have no name, and go.
            (false, &["app:1"], &["app:1"], Share::Nothing),
            (false, &["app:1"], &[], Share::Nothing),
        ] {
            let what = Brought {
                owns,
                names: Some(names(brought).into_iter().collect()),
                ..Brought::default()
            };
            assert_eq!(
                share(&what, &names(tags)),
                expected,
                "{owns} {brought:?} {tags:?}"
            );
        }
    }
}
