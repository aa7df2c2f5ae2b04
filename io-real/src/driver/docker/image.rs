//! Images: which one a job means, that it is there, and who uses it.
//!
//! One download serves all tasks that wait for the same image; it is given up when nobody waits any more. An image
//! that the agent fetched is removed some time after its last task; what was there before, or came otherwise, is
//! other people's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::query_parameters::{
    CreateImageOptionsBuilder, ImportImageOptions, RemoveImageOptions,
};
use drover_core::ids::LaunchId;
use drover_core::op::Failure;
use futures::StreamExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::engine::{Engine, SOON};
use super::progress::Progress;
use super::records::Records;
use super::settings::Credentials;
use super::trouble::Trouble;

/// How often people hear how a download goes.
const NEWS: Duration = Duration::from_secs(10);

/// How much of an archive is read at a time.
const CHUNK: usize = 64 * 1024;

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

/// Whether a tag is moved all the time, so that what is there says nothing.
fn is_moving(reference: &str) -> bool {
    reference.ends_with(":latest")
}

/// The images that are fetched and used.
#[derive(Default)]
pub(super) struct Images {
    pulls: Mutex<BTreeMap<Wanted, Weak<Pull>>>,
    uses: Mutex<BTreeMap<String, BTreeSet<LaunchId>>>,
    /// Archives are loaded one after the other.
    loading: tokio::sync::Mutex<()>,
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
    Done(Result<(), Trouble>),
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
}

impl Images {
    fn uses(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<LaunchId>>> {
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
        let before = match id_of(engine, need.reference).await {
            Ok(id) if !need.force && !is_moving(need.reference) => return Ok(id),
            Ok(id) => Some(id),
            Err(Trouble::Unknown(_)) => None,
            Err(trouble) => return Err(trouble.failure(&what)),
        };
        let force = need.force;
        let reference = need.reference;
        match self.pulled(engine, need, &tell).await {
            Ok(()) => {}
            // It was made here, or its registry is away.
            Err(trouble) if !force && let Some(id) = &before => {
                tell(format!(
                    "{what} could not be fetched ({trouble}); the one that is there is used"
                ));
                return Ok(id.clone());
            }
            Err(trouble) => return Err(trouble.failure(&format!("cannot fetch {what}"))),
        }
        let id = id_of(engine, reference)
            .await
            .map_err(|trouble| trouble.failure(&what))?;
        if before.as_ref() != Some(&id)
            && let Err(error) = records.add_image(&id)
        {
            tracing::warn!(image = reference, %error, "cannot remember that an image was fetched");
        }
        Ok(id)
    }

    async fn pulled(
        &self,
        engine: &Engine,
        need: Need<'_>,
        tell: &impl Fn(String),
    ) -> Result<(), Trouble> {
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
        let (engine, credentials, silence) =
            (engine.clone(), need.credentials.clone(), need.silence);
        let reference = need.reference.to_owned();
        let work = tokio::spawn(async move {
            let done = pull(&engine, &reference, credentials, silence, &sender).await;
            sender.send_replace(News::Done(done));
        });
        let pull = Arc::new(Pull {
            news,
            work: work.abort_handle(),
        });
        pulls.insert(wanted, Arc::downgrade(&pull));
        pull
    }

    /// Gives the engine an archive with images, and sees whether the wanted one is there then.
    pub(super) async fn load(
        &self,
        engine: &Engine,
        reference: &str,
        archive: std::fs::File,
        limit: Duration,
    ) -> Result<String, Failure> {
        let _alone = self.loading.lock().await;
        let archive = tokio::fs::File::from_std(archive);
        let chunks = futures::stream::unfold(archive, |mut archive| async {
            use tokio::io::AsyncReadExt;
            let mut chunk = vec![0; CHUNK];
            match archive.read(&mut chunk).await {
                Ok(0) => None,
                Ok(read) => {
                    chunk.truncate(read);
                    Some((Ok(bytes::Bytes::from(chunk)), archive))
                }
                Err(error) => Some((Err(error), archive)),
            }
        });
        let loading = async {
            let mut answers =
                engine
                    .docker()
                    .import_image_stream(ImportImageOptions::default(), chunks, None);
            while let Some(answer) = answers.next().await {
                if let Some(error) = answer?.error_detail {
                    return Err(Trouble::Refused(error.message.unwrap_or_default()));
                }
            }
            Ok(())
        };
        let loaded = timeout(limit, loading).await;
        let loaded = loaded.unwrap_or_else(|_| Err(Trouble::Silent("it took too long".to_owned())));
        loaded.map_err(|trouble| trouble.failure("load"))?;
        let found = id_of(engine, reference).await;
        found.map_err(|trouble| {
            trouble.failure(&format!("load: the archive has no image {reference:?}"))
        })
    }

    /// Notes that a launch uses an image.
    pub(super) fn used(&self, image: &str, launch: LaunchId) {
        self.uses()
            .entry(image.to_owned())
            .or_default()
            .insert(launch);
    }

    /// Notes that a launch uses none any more. The image that nobody uses since then.
    pub(super) fn released(&self, launch: LaunchId) -> Option<String> {
        let mut uses = self.uses();
        let (image, _) = uses
            .iter()
            .find(|(_, launches)| launches.contains(&launch))?;
        let image = image.clone();
        let launches = uses.get_mut(&image)?;
        launches.remove(&launch);
        let unused = launches.is_empty();
        if unused {
            uses.remove(&image);
        }
        unused.then_some(image)
    }

    fn is_used(&self, image: &str) -> bool {
        self.uses().contains_key(image)
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
        let Some(engine) = engine().filter(|_| !self.is_used(image)) else {
            return;
        };
        let removed = engine
            .docker()
            .remove_image(image, None::<RemoveImageOptions>, None);
        match Engine::within(SOON, removed).await {
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

async fn id_of(engine: &Engine, reference: &str) -> Result<String, Trouble> {
    let image = Engine::within(SOON, engine.docker().inspect_image(reference)).await?;
    image
        .id
        .ok_or_else(|| Trouble::Failed("the engine does not say which image that is".to_owned()))
}

async fn pull(
    engine: &Engine,
    reference: &str,
    credentials: Credentials,
    silence: Duration,
    news: &watch::Sender<News>,
) -> Result<(), Trouble> {
    let options = CreateImageOptionsBuilder::new()
        .from_image(reference)
        .build();
    let mut answers = engine
        .docker()
        .create_image(Some(options), None, credentials);
    let mut progress = Progress::default();
    loop {
        let answer = match timeout(silence, answers.next()).await {
            Ok(Some(answer)) => answer?,
            Ok(None) => return Ok(()),
            Err(_) => {
                let silence = silence.as_secs();
                let why = format!("nothing came for {silence} s (pull_activity_timeout)");
                return Err(Trouble::Silent(why));
            }
        };
        if let Some(error) = answer.error_detail.as_ref() {
            return Err(refused(error.message.clone().unwrap_or_default()));
        }
        progress.note(&answer);
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
mod tests {
    use super::reference;

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
}
