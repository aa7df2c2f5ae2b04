//! Images: which one a job means, that it is there, and who uses it.
//!
//! One download serves all tasks that wait for the same image; it is given up when nobody waits any more. An image
//! that the agent fetched is removed some time after its last task; what was there before, or came otherwise, is
//! other people's. Images out of archives are in [`super::load`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::query_parameters::{CreateImageOptionsBuilder, RemoveImageOptions};
use drover_core::ids::LaunchId;
use drover_core::op::Failure;
use futures::StreamExt;
use tokio::sync::{RwLock, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::engine::{Engine, SOON};
use super::load::{self, Loads, Present};
use super::progress::Progress;
use super::records::Records;
use super::room::Room;
use super::settings::Credentials;
use super::taken::Taken;
use super::trouble::Trouble;

/// How often people hear how a download goes.
const NEWS: Duration = Duration::from_secs(10);

/// What an engine says of the content that a download has.
const DIGEST: &str = "Digest: ";

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

/// What was fetched, by its content: what its tag means may change meanwhile.
fn fetched(reference: &str, digest: &str) -> String {
    let name = reference.split('@').next().unwrap_or(reference);
    let name = match name.rsplit_once(':') {
        // That is a port of the registry.
        Some((_, tag)) if tag.contains('/') => name,
        Some((name, _)) => name,
        None => name,
    };
    format!("{name}@{digest}")
}

/// Whether a tag is moved all the time, so that what is there says nothing.
fn is_moving(reference: &str) -> bool {
    reference.ends_with(":latest")
}

/// The images that are fetched and used.
#[derive(Default)]
pub(super) struct Images {
    pulls: Mutex<BTreeMap<Wanted, Weak<Pull>>>,
    /// The image that each launch uses.
    uses: Mutex<BTreeMap<LaunchId, String>>,
    /// Held by who removes an image that nobody uses, and shared by those who begin to use one.
    collecting: RwLock<()>,
    pub(super) loads: Arc<Loads>,
}

/// What is asked of whom, as whom.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    reference: String,
    who: Option<(String, String)>,
}

/// A download that somebody waits for. Dropped by all, it ends.
struct Pull {
    news: watch::Receiver<News>,
    work: AbortHandle,
}

#[derive(Clone)]
enum News {
    Going(String),
    /// The digest of what was fetched, if the engine says it.
    Done(Result<Option<String>, Trouble>),
}

impl Drop for Pull {
    fn drop(&mut self) {
        self.work.abort();
    }
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

impl Images {
    fn uses(&self) -> MutexGuard<'_, BTreeMap<LaunchId, String>> {
        // Nothing that holds the lock can panic half way.
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that an image is there. Its id. `tell` hears what people may want to know.
    pub(super) async fn fetch(
        &self,
        engine: &Engine,
        records: &Records,
        need: Need<'_>,
        tell: impl Fn(String),
    ) -> Result<String, Failure> {
        let what = format!("image {:?}", need.reference);
        let (force, reference) = (need.force, need.reference);
        let before = match self.loads.resolve(engine, reference).await {
            Ok(image) => Some(image),
            Err(Trouble::Unknown(_)) => None,
            Err(trouble) => return Err(trouble.failure(&what)),
        };
        let planted = planted(records, reference, before.as_ref())?;
        let before = before.map(|image| image.id);
        // What a tag means only because an archive of some task says so is nothing for others.
        let usable = before.clone().filter(|_| planted.is_empty() && !force);
        if !is_moving(reference)
            && let Some(id) = usable
        {
            return Ok(id);
        }
        let digest = match self.pulled(engine, need, &tell).await {
            Ok(digest) => digest,
            // It was made here, or its registry is away.
            Err(trouble) if let Some(id) = usable => {
                tell(format!(
                    "{what} could not be fetched ({trouble}); the one that is there is used"
                ));
                return Ok(id);
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
        let id = self.fetched_id(engine, reference, digest).await;
        let id = id.map_err(|trouble| trouble.failure(&what))?;
        self.loads.fetched(reference, &id);
        if before.as_ref() != Some(&id)
            && let Err(error) = records.add_image(&id)
        {
            tracing::warn!(image = reference, %error, "cannot remember that an image was fetched");
        }
        // What the registry says, too, is not an archive's word alone any more.
        let confirmed = |tag: &&String| load::familiar(tag) == load::familiar(reference);
        for tag in planted.iter().filter(confirmed) {
            if let Err(error) = records.remove_given(tag) {
                tracing::warn!(%tag, %error, "cannot forget that an archive gave a tag");
            }
        }
        Ok(id)
    }

    /// The id of what was fetched.
    async fn fetched_id(
        &self,
        engine: &Engine,
        reference: &str,
        digest: Option<String>,
    ) -> Result<String, Trouble> {
        if let Some(digest) = digest {
            match id_of(engine, &fetched(reference, &digest)).await {
                // Not every engine finds images by it.
                Err(Trouble::Unknown(_) | Trouble::Refused(_)) => {}
                found => return found,
            }
        }
        Ok(self.loads.resolve(engine, reference).await?.id)
    }

    async fn pulled(
        &self,
        engine: &Engine,
        need: Need<'_>,
        tell: &impl Fn(String),
    ) -> Result<Option<String>, Trouble> {
        tell(format!("Downloading image {}", need.reference));
        let deadline = Instant::now() + need.limit;
        let pull = self.join(engine, &need);
        let mut news = pull.news.clone();
        let mut next = Instant::now() + NEWS;
        loop {
            let changed = timeout_at(deadline.min(next), news.changed()).await;
            let now = news.borrow_and_update().clone();
            match (now, changed) {
                (News::Done(done), _) => return done,
                (News::Going(_), Ok(Err(_))) => {
                    return Err(Trouble::Failed("the download was given up".to_owned()));
                }
                (News::Going(_), _) if Instant::now() >= deadline => {
                    let limit = need.limit.as_secs();
                    return Err(Trouble::Silent(format!(
                        "it took longer than {limit} s (image_pull_timeout)"
                    )));
                }
                (News::Going(how), _) if Instant::now() >= next => {
                    next = Instant::now() + NEWS;
                    tell(format!("Downloading image {}: {how}", need.reference));
                }
                (News::Going(_), _) => {}
            }
        }
    }

    /// The download of an image that is under way, or a new one.
    fn join(&self, engine: &Engine, need: &Need<'_>) -> Arc<Pull> {
        let who = need.credentials.as_ref();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let wanted = Wanted {
            reference: need.reference.to_owned(),
            who: who.map(|who| {
                (
                    text(&who.username),
                    format!("{}{}", text(&who.password), text(&who.identitytoken)),
                )
            }),
        };
        let mut pulls = self.pulls.lock().unwrap_or_else(PoisonError::into_inner);
        pulls.retain(|_, pull| pull.strong_count() > 0);
        let running = pulls.get(&wanted).and_then(Weak::upgrade);
        let is_done = |pull: &Arc<Pull>| matches!(*pull.news.borrow(), News::Done(_));
        if let Some(running) = running.filter(|pull| !is_done(pull)) {
            return running;
        }
        let (sender, news) = watch::channel(News::Going(String::new()));
        let (engine, credentials) = (engine.clone(), need.credentials.clone());
        let (silence, most) = (need.silence, need.most);
        let reference = need.reference.to_owned();
        let work = tokio::spawn(async move {
            let limits = (silence, most);
            let done = pull(&engine, &reference, credentials, limits, &sender).await;
            sender.send_replace(News::Done(done));
        });
        let pull = Arc::new(Pull {
            news,
            work: work.abort_handle(),
        });
        pulls.insert(wanted, Arc::downgrade(&pull));
        pull
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
                Room::of(engine, most).admit_size(taken.size)?;
                self.used(image, launch);
                Ok(Some(taken))
            }
            Err(Trouble::Unknown(_)) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Notes that a launch uses an image, of which there is a container.
    pub(super) fn used(&self, image: &str, launch: LaunchId) {
        self.uses().insert(launch, image.to_owned());
    }

    /// The image that a launch uses, if it uses one.
    pub(super) fn used_by(&self, launch: LaunchId) -> Option<String> {
        self.uses().get(&launch).cloned()
    }

    /// Notes that a launch uses none any more. The image that nobody uses since then.
    pub(super) fn released(&self, launch: LaunchId) -> Option<String> {
        let image = self.uses().remove(&launch)?;
        (!self.is_used(&image)).then_some(image)
    }

    fn is_used(&self, image: &str) -> bool {
        self.uses().values().any(|used| used == image)
    }

    /// Removes an image after a while, if the agent fetched it and nobody uses it then.
    pub(super) async fn collect(
        &self,
        engine: impl Fn() -> Option<Engine>,
        records: &Records,
        image: &str,
        delay: Duration,
    ) {
        if !records.has_image(image).unwrap_or(false) {
            return;
        }
        sleep(delay).await;
        let Some(engine) = engine() else { return };
        let _alone = self.collecting.write().await;
        if self.is_used(image) {
            return;
        }
        let removed = engine
            .docker()
            .remove_image(image, None::<RemoveImageOptions>, None);
        match Engine::within(SOON, removed).await {
            // It is ours, and was found again only now.
            Err(Trouble::Conflict(_)) if self.is_used(image) => {}
            // Another's container uses it, or it has names that others gave it.
            Ok(_) | Err(Trouble::Unknown(_) | Trouble::Conflict(_)) => {
                if let Err(error) = records.remove_image(image) {
                    tracing::warn!(image, %error, "cannot forget an image");
                }
            }
            Err(trouble) => tracing::warn!(image, %trouble, "cannot remove an image"),
        }
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

async fn id_of(engine: &Engine, reference: &str) -> Result<String, Trouble> {
    let reference = in_path(reference)?;
    let image = Engine::within(SOON, engine.docker().inspect_image(reference)).await?;
    image
        .id
        .ok_or_else(|| Trouble::Failed("the engine does not say which image that is".to_owned()))
}

async fn pull(
    engine: &Engine,
    reference: &str,
    credentials: Credentials,
    (silence, most): (Duration, Option<u64>),
    news: &watch::Sender<News>,
) -> Result<Option<String>, Trouble> {
    let options = CreateImageOptionsBuilder::new()
        .from_image(reference)
        .build();
    let mut answers = engine
        .docker()
        .create_image(Some(options), None, credentials);
    let mut progress = Progress::default();
    let mut digest = None;
    loop {
        let answer = match timeout(silence, answers.next()).await {
            Ok(Some(answer)) => answer?,
            Ok(None) => return Ok(digest),
            Err(_) => {
                let silence = silence.as_secs();
                let why = format!("nothing came for {silence} s (pull_activity_timeout)");
                return Err(Trouble::Silent(why));
            }
        };
        if let Some(error) = answer.error_detail.as_ref() {
            return Err(refused(error.message.clone().unwrap_or_default()));
        }
        if let Some(said) = answer
            .status
            .as_deref()
            .and_then(|it| it.strip_prefix(DIGEST))
        {
            digest = Some(said.trim().to_owned());
        }
        progress.note(&answer);
        Room::of(engine, most).admit(progress.bytes())?;
        news.send_replace(News::Going(progress.to_string()));
    }
}

/// What a registry says in the middle of an answer has no number.
fn refused(message: String) -> Trouble {
    match message.contains("not found") || message.contains("manifest unknown") {
        true => Trouble::Unknown(message),
        false => Trouble::Failed(message),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs::File;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use futures::FutureExt;

    use super::super::fake;
    use super::*;

    #[tokio::test]
    async fn image_is_removed_or_used_but_not_both() {
        let id = format!("sha256:{}", "0f".repeat(32));
        let image = format!(r#"{{"Id":"{id}"}}"#);
        let is_there = Arc::new(AtomicBool::new(true));
        let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let (go, may_go) = mpsc::channel::<()>();
        let (there, may_go) = (is_there.clone(), Mutex::new(may_go));
        let (engine, _dir) = fake::engine(move |request| {
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
        records.add_image(&id).unwrap();
        let images = Arc::new(Images::default());
        let collect = || {
            let (images, records, id) = (images.clone(), records.clone(), id.clone());
            let engine = engine.clone();
            let engine = move || Some(engine.clone());
            tokio::spawn(async move {
                images.collect(engine, &records, &id, Duration::ZERO).await;
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
        records.add_image(&id).unwrap();
        let taken = images.take(&engine, &id, LaunchId(1), None).await;
        assert!(taken.unwrap().is_some());
        collect().await.unwrap();
        assert!(is_there.load(Ordering::SeqCst) && records.has_image(&id).unwrap());
        assert_eq!(images.released(LaunchId(1)), Some(id.clone()));
    }

    #[tokio::test]
    async fn word_of_an_archive_is_nothing_for_others() {
        let is_away = Arc::new(AtomicBool::new(true));
        let away = is_away.clone();
        let (engine, _dir) = fake::engine(move |request| {
            let image = r#"{"Id":"sha256:evil","RepoTags":["postgres:16","evil:1"]}"#;
            let error = r#"{"message":"the registry is away"}"#;
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
            let why = fetch(reference).await.unwrap_err().message;
            let told = why.contains("the registry is away") && why.contains("an archive");
            assert!(told, "{why}");
        }
        let found = fetch("evil:1").await;
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

    #[test]
    fn fetched_image_is_known_by_its_content() {
        for (reference, expected) in [
            ("busybox:1", "busybox@sha256:01"),
            ("reg:5000/a/b:1", "reg:5000/a/b@sha256:01"),
            ("reg:5000/a/b", "reg:5000/a/b@sha256:01"),
            ("a:1@sha256:00", "a@sha256:01"),
        ] {
            assert_eq!(fetched(reference, "sha256:01"), expected);
        }
    }
}
