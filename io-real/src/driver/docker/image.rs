//! Images: which one a job means, that it is there, and who uses it.
//!
//! An image that the agent brought is removed some time after its last task; what was there before, or came otherwise,
//! is other people's ([`super::brought`]). Downloads are in [`super::pull`], images out of archives in [`super::load`].

use std::sync::Arc;
use std::time::Duration;

use drover_core::ids::LaunchId;
use drover_core::op::Failure;
use tokio::sync::RwLock;
use tokio::time::sleep;

use super::brought::{self, Removal};
use super::engine::Engine;
use super::free_space::FreeSpace;
use super::load::{self, Loads, Present};
use super::pull::Pulls;
use super::records::Records;
use super::settings::Credentials;
use super::taken::Taken;
use super::trouble::Trouble;
use super::users::{Hold, Turn, Uses};

/// The image that a job means, with a tag or a digest.
pub(super) fn reference(image: &str) -> String {
    let image = image
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.contains([':', '@']) || image.contains('@') {
        true => image.to_owned(),
        false => format!("{image}:latest"),
    }
}

/// An image's name, as a part of the path of a request: what is no such name could lead to another one.
///
/// # Errors
/// It is no name.
pub(super) fn in_path(reference: &str) -> Result<&str, Trouble> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"._-+/:@[]".contains(&it);
    let leads_away = |part: &str| matches!(part, "" | "." | "..");
    match reference.bytes().all(is_plain) && !reference.split('/').any(leads_away) {
        true => Ok(reference),
        false => Err(Trouble::Refused(format!(
            "{reference:?} is no name of an image: invalid reference format"
        ))),
    }
}

/// Whether a tag is moved all the time, so that what is there says nothing.
fn is_moving(reference: &str) -> bool {
    reference.ends_with(":latest")
}

/// The images that are fetched and used.
#[derive(Default)]
pub(super) struct Images {
    pub(super) pulls: Pulls,
    pub(super) uses: Arc<Uses>,
    /// Held by who removes an image that nobody uses, and shared by those who begin to use one.
    collecting: RwLock<()>,
    pub(super) loads: Arc<Loads>,
}

/// An image that is there for who asked, and stays for as long as they keep this.
pub(super) struct Found {
    pub(super) id: String,
    _held: Vec<Arc<Hold>>,
}

/// How an image is to be there.
pub(super) struct Need<'a> {
    pub(super) reference: &'a str,
    pub(super) force: bool,
    pub(super) credentials: Credentials,
    pub(super) limit: Duration,
    pub(super) silence: Duration,
    /// The most bytes that it may be.
    pub(super) most: Option<u64>,
}

impl Found {
    pub(super) fn of(id: String, held: Vec<Arc<Hold>>) -> Found {
        Found { id, _held: held }
    }
}

impl Images {
    /// Sees to it that an image is there. `report_progress` gets what people may want to know.
    pub(super) async fn fetch(
        &self,
        engine: &Engine,
        records: &Records,
        need: Need<'_>,
        report_progress: impl Fn(String),
    ) -> Result<Found, Failure> {
        let what = format!("image {:?}", need.reference);
        let (force, reference) = (need.force, need.reference);
        let before = match self.loads.resolve(engine, reference).await {
            Ok(image) => Some(image),
            Err(Trouble::Unknown(_)) => None,
            Err(trouble) => return Err(trouble.failure(&what)),
        };
        let planted = planted(records, reference, before.as_ref())?;
        // What a tag means only because an archive of some task says so is nothing for others.
        let usable = before.filter(|_| planted.is_empty() && !force);
        let usable = usable.map(|image| Found::of(image.id, Vec::new()));
        if !is_moving(reference)
            && let Some(found) = usable
        {
            return Ok(found);
        }
        let sources = (&self.loads, &self.uses);
        let fetched = match self
            .pulls
            .fetch(engine, records, sources, need, &report_progress)
            .await
        {
            Ok(fetched) => fetched,
            // It was made here, or its registry is away.
            Err(trouble) if let Some(found) = usable => {
                report_progress(format!(
                    "{what} could not be fetched ({trouble}); the one that is there is used"
                ));
                return Ok(found);
            }
            Err(trouble) if planted.is_empty() => {
                return Err(trouble.failure(&format!("cannot fetch {what}")));
            }
            Err(trouble) => {
                return Err(trouble.failure(&format!(
                    "cannot fetch {what}, and an archive of a task brought the one that is there, \
                     which only tasks with `load` may use (give it another tag to use it elsewhere)"
                )));
            }
        };
        // What the registry says, too, is not an archive's word alone any more.
        let confirmed = |tag: &&String| load::familiar(tag) == load::familiar(reference);
        for tag in planted.iter().filter(confirmed) {
            if let Err(error) = records.remove_given(tag) {
                tracing::warn!(%tag, %error, "cannot forget that an archive gave a tag");
            }
        }
        Ok(Found::of(fetched.id, vec![fetched.held]))
    }

    /// Notes that a launch uses an image, which is no larger than that. None if it was removed meanwhile, because
    /// nobody did.
    pub(super) async fn take(
        &self,
        engine: &Engine,
        image: &str,
        launch: LaunchId,
        most: Option<u64>,
    ) -> Result<Option<Taken>, Trouble> {
        let _shared = self.collecting.read().await;
        match Taken::of(engine, image).await {
            Ok(taken) => {
                FreeSpace::of(engine, most).admit_size(taken.size)?;
                self.uses.used(image, launch);
                Ok(Some(taken))
            }
            Err(Trouble::Unknown(_)) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Removes what the agent brought of an image after a while, if nobody uses it then.
    pub(super) async fn collect(
        &self,
        engine: impl Fn() -> Option<Engine>,
        records: &Records,
        (image, turn): (&str, Turn),
        delay: Duration,
    ) {
        let is_ours = !matches!(records.brought(image), Ok(None));
        if is_ours {
            sleep(delay).await;
        }
        if is_ours && let Some(engine) = engine() {
            let is_wanted = || self.uses.is_last(image, &turn);
            match self.discard(&engine, records, image, is_wanted).await {
                Ok(removal) => tracing::debug!(image, ?removal, "nobody used an image"),
                Err(trouble) => tracing::warn!(image, %trouble, "cannot remove an image"),
            }
        }
        self.uses.waited(image, &turn);
    }

    /// Removes what the agent brought of an image that nobody uses, if that is wanted still.
    ///
    /// # Errors
    /// The engine does not answer, or fails. It is ours still.
    pub(super) async fn discard(
        &self,
        engine: &Engine,
        records: &Records,
        image: &str,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Removal, Trouble> {
        // What an archive brings anew may be there already.
        let _turn = self.loads.turn().await;
        let _alone = self.collecting.write().await;
        if self.uses.is_used(image) || !is_wanted() {
            return Ok(Removal::InUse);
        }
        brought::remove(engine, records, image).await
    }
}

/// The tags by which a reference means what is there only because an archive said so.
fn planted(
    records: &Records,
    reference: &str,
    image: Option<&Present>,
) -> Result<Vec<String>, Failure> {
    let planted = image.map(|image| image.planted(records, reference));
    planted
        .transpose()
        .map(Option::unwrap_or_default)
        .map_err(|error| {
            Failure::recoverable(format!(
                "image {reference:?}: cannot read whether an archive brought it: {error}"
            ))
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs::File;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, mpsc};

    use futures::FutureExt;

    use super::super::engine::SOON;
    use super::super::fake;
    use super::super::records::Brought;
    use super::*;

    fn ours() -> Brought {
        Brought {
            owns: true,
            names: Some([].into()),
            ..Brought::default()
        }
    }

    #[tokio::test]
    async fn image_is_removed_or_used_but_not_both() {
        let id = format!("sha256:{}", "0f".repeat(32));
        let image = format!(r#"{{"Id":"{id}"}}"#);
        let is_there = Arc::new(AtomicBool::new(true));
        let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let (go, may_go) = mpsc::channel::<()>();
        let (there, may_go) = (is_there.clone(), Mutex::new(may_go));
        let (engine, _dir) = fake::engine(move |request| {
            if request.contains("/containers/json") {
                return (200, "[]".to_owned());
            }
            if request.starts_with("DELETE") {
                begin.send(()).unwrap();
                may_go.lock().unwrap().recv().unwrap();
                there.store(false, Ordering::SeqCst);
                return (200, "[]".to_owned());
            }
            match there.load(Ordering::SeqCst) {
                true => (200, image.clone()),
                false => (404, r#"{"message":"No such image"}"#.to_owned()),
            }
        })
        .await;
        let records = tempfile::tempdir().unwrap();
        let records = Records::new(File::open(records.path()).unwrap().into()).unwrap();
        records.add_image(&id, ours()).unwrap();
        let images = Arc::new(Images::default());
        let collect = || {
            let (images, records, id) = (images.clone(), records.clone(), id.clone());
            let engine = engine.clone();
            let engine = move || Some(engine.clone());
            tokio::spawn(async move {
                let turn = images.uses.wait(&id);
                let image = (id.as_str(), turn);
                images
                    .collect(engine, &records, image, Duration::ZERO)
                    .await;
            })
        };
        let collected = collect();
        begun.recv().await.unwrap();
        // A start that found the image before is not told that it is there.
        let mut taken = pin!(images.take(&engine, &id, LaunchId(1), None));
        assert!(taken.as_mut().now_or_never().is_none());
        go.send(()).unwrap();
        assert_eq!(taken.await, Ok(None));
        collected.await.unwrap();
        // It is there again, and used: it stays.
        is_there.store(true, Ordering::SeqCst);
        records.add_image(&id, ours()).unwrap();
        let taken = images.take(&engine, &id, LaunchId(1), None).await;
        assert!(taken.unwrap().is_some());
        collect().await.unwrap();
        assert!(is_there.load(Ordering::SeqCst) && records.has_image(&id).unwrap());
        assert_eq!(images.uses.released(LaunchId(1)), Some(id.clone()));
    }

    #[tokio::test]
    async fn archive_tag_is_ignored_by_other_tasks() {
        let is_away = Arc::new(AtomicBool::new(true));
        let away = is_away.clone();
        let (engine, _dir) = fake::engine(move |request| {
            let image = r#"{"Id":"sha256:evil","RepoTags":["postgres:16","evil:1"]}"#;
            let error = r#"{"message":"the registry is away"}"#;
            if request.contains("/images/json") {
                return (200, "[]".to_owned());
            }
            match request.starts_with("POST") {
                true if away.load(Ordering::SeqCst) => (500, error.to_owned()),
                true => (200, String::new()),
                false => (200, image.to_owned()),
            }
        })
        .await;
        let records = tempfile::tempdir().unwrap();
        let records = Records::new(File::open(records.path()).unwrap().into()).unwrap();
        records.add_given("postgres:16", "sha256:evil").unwrap();
        let images = Images::default();
        let fetch = |reference| {
            let need = Need {
                reference,
                force: false,
                credentials: None,
                limit: SOON,
                silence: SOON,
                most: None,
            };
            images.fetch(&engine, &records, need, |_| {})
        };
        for reference in ["postgres:16", "docker.io/library/postgres:16"] {
            let why = fetch(reference).await.err().unwrap().message;
            let reported = why.contains("the registry is away") && why.contains("an archive");
            assert!(reported, "{why}");
        }
        let found = fetch("evil:1").await;
        let found = found.map(|found| found.id);
        assert_eq!(found.as_deref(), Ok("sha256:evil"), "that is no archive's");
        // The registry says the same, and from then on it is an image as others.
        is_away.store(false, Ordering::SeqCst);
        assert!(fetch("postgres:16").await.is_ok());
        is_away.store(true, Ordering::SeqCst);
        assert!(fetch("postgres:16").await.is_ok());
    }

    #[test]
    fn image_without_tag_is_latest() {
        for (image, expected) in [
            ("busybox", "busybox:latest"),
            ("https://reg:5000/a/b", "reg:5000/a/b:latest"),
            ("reg:5000/a/b:1", "reg:5000/a/b:1"),
            ("a@sha256:00", "a@sha256:00"),
        ] {
            assert_eq!(reference(image), expected);
        }
    }

    #[test]
    fn name_of_an_image_leads_to_no_other_request() {
        for name in [
            "a:1",
            "reg.example:5000/A_b/c-d:1@sha256:00",
            "[::1]:5000/a:1",
        ] {
            assert_eq!(in_path(name), Ok(name));
        }
        for name in [
            "",
            "/a",
            "a/",
            "a//b:1",
            "../containers/x",
            "a/../../info",
            "a/./b",
            "a:1?x=y",
            "a#b",
            "a%2e%2e",
            "a\\..\\b",
            "a b",
            "a\tb",
            "ä",
        ] {
            assert!(matches!(in_path(name), Err(Trouble::Refused(_))), "{name}");
        }
    }
}
