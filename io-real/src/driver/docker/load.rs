//! Archives with images: what one brings changes nothing of what the tags of others mean.
//!
//! An engine gives an image of an archive the tags that the archive says, and takes them from whatever had them. So
//! what each tag means is noted before, and put back afterwards, unless an archive gave it that, too. The task runs the
//! image that its reference meant right after loading, by its id. What an archive makes a new tag mean is remembered:
//! only tasks that load one take its word for what a tag means.
//!
//! What is noted is also written down, so that the next agent puts back what a killed one did not. Which images an
//! archive brings is written down before the engine has its end ([`bringing`]), so that they can be removed.
//!
//! While an archive is loaded, tags may mean anything. Whoever asks for one waits if it is not what it was before, and
//! only then: an archive that takes long is a matter of its own task.

mod bringing;
mod images;
mod measure;
mod mentions;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bollard::query_parameters::{ImportImageOptions, TagImageOptionsBuilder};
use bytes::Bytes;
use drover_core::op::Failure;
use futures::{Stream, StreamExt};
use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

use self::bringing::Bringing;
use self::images::Images;
pub(super) use self::images::{Present, all_images, familiar, inspect, is_content};
pub(super) use self::measure::Limit;
use self::measure::Part;
use super::engine::{Engine, SOON};
use super::image::Found;
use super::records::Records;
use super::trouble::Trouble;
use super::users::Uses;

/// How many pieces of an archive wait for the engine.
const PIECES: usize = 4;

/// How long an engine may take for an archive that it has as a whole. It cannot be stopped any more.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long somebody waits for a tag that an archive may have taken.
const TAG_TIME: Duration = Duration::from_secs(60);

/// The pauses before tags are put back again when the engine was gone: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What an engine says of each tag that it gives. What follows is the tag.
const LOADED: &str = "Loaded image: ";

/// The archives that are loaded.
#[derive(Default)]
pub(super) struct Loads {
    /// One after the other.
    turn: Arc<Mutex<()>>,
    /// What was there before the one that is being loaded, and what was fetched since.
    before: watch::Sender<Option<Arc<Images>>>,
    /// Whether the tags were put back that an earlier agent did not.
    settled: OnceCell<()>,
}

impl Loads {
    /// Waits until no archive is being loaded; none is until this is dropped.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// The image that a reference means.
    ///
    /// # Errors
    /// There is none; or it may be one that an archive gave this name, and that archive is not loaded yet.
    pub(super) async fn resolve(
        &self,
        engine: &Engine,
        reference: &str,
    ) -> Result<Present, Trouble> {
        let mut loading = self.before.subscribe();
        let until = Instant::now() + TAG_TIME;
        loop {
            let before = loading.borrow_and_update().clone();
            let image = inspect(engine, reference).await?;
            // An archive may have come between the two.
            let is_same = loading.has_changed().is_ok_and(|changed| !changed);
            let is_known = before.is_none_or(|before| before.knows(reference, &image));
            if is_same && is_known {
                return Ok(image);
            }
            let changed = timeout_at(until, loading.changed()).await;
            if changed.is_err() {
                let why = "it may be that of an archive, which is still being loaded";
                return Err(Trouble::Conflict(why.to_owned()));
            }
        }
    }

    /// Notes what was fetched: what an archive does that is being loaded counts for nothing against it.
    pub(super) fn fetched(&self, reference: &str, id: &str) {
        self.before.send_if_modified(|before| {
            let Some(before) = before else { return false };
            let before = Arc::make_mut(before);
            before.ids.insert(id.to_owned());
            if !is_content(reference) {
                before.call(reference, id);
            }
            true
        });
    }

    /// Puts the tags back that an archive took of which an earlier agent did not hear the end. For the first start.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn settle(&self, engine: &Engine, records: &Records) -> Result<(), Failure> {
        let settled = self.settled.get_or_try_init(|| async {
            let tags = match records.noted_tags() {
                Ok(Some(tags)) => tags,
                Ok(None) => return Ok(()),
                Err(error) => {
                    tracing::error!(%error, "cannot read which tags an archive may have taken");
                    return Ok(());
                }
            };
            let before = Images {
                ids: tags.values().cloned().collect(),
                tags,
            };
            match put_back(engine, records, &before, &BTreeSet::new()).await {
                Ok(_) => forget_noted(records),
                Err(trouble @ Trouble::Silent(_)) => return Err(trouble.failure("load")),
                Err(trouble) => {
                    tracing::error!(%trouble, "cannot see which tags an archive took");
                }
            }
            Ok(())
        });
        settled.await.copied()
    }

    /// Gives the engine an archive with images. The wanted one.
    ///
    /// # Errors
    /// It is no archive, it becomes too large, it has no such image, or it takes too long.
    pub(super) async fn load(
        self: &Arc<Self>,
        engine: &Engine,
        (records, uses): (&Records, &Arc<Uses>),
        reference: &str,
        (archive, most): (File, Limit),
        limit: Duration,
    ) -> Result<Found, Failure> {
        let until = Instant::now() + limit;
        let late = |_| Trouble::Failed("it took too long (image_pull_timeout)".to_owned());
        let failed = |trouble: Trouble| trouble.failure("load");
        let turn = timeout_at(until, self.turn()).await;
        let turn = turn.map_err(late).map_err(failed)?;
        // Dropped when nobody waits any more. Tags are put back all the same.
        let (_wanted, is_wanted) = watch::channel(());
        let (sender, receiver) = oneshot::channel();
        let (loads, engine, records) = (self.clone(), engine.clone(), records.clone());
        let (reference, uses) = (reference.to_owned(), uses.clone());
        tokio::spawn(async move {
            let before = loads.before.subscribe();
            let bringing = Bringing::new(&engine, &records, uses, before);
            let source = Source::new(archive, most, is_wanted, bringing);
            let loaded = loads.bring(&engine, &records, &reference, source).await;
            drop(turn);
            // Nobody may wait any more.
            let _ = sender.send(loaded);
        });
        let lost = |_| Failure::recoverable("load: the answer was lost inside the agent");
        match timeout_at(until, receiver).await.map_err(late) {
            Ok(received) => received.map_err(lost)?,
            Err(trouble) => Err(failed(trouble)),
        }
    }

    async fn bring(
        &self,
        engine: &Engine,
        records: &Records,
        reference: &str,
        source: Source,
    ) -> Result<Found, Failure> {
        // What is fetched while the others are listed counts, too.
        self.before.send_replace(Some(Arc::default()));
        let bringing = source.bringing.clone();
        let id = match self.note(engine, records).await {
            Ok(()) => self.hand_over(engine, records, reference, source).await,
            Err(failure) => Err(failure),
        };
        self.before.send_replace(None);
        Ok(Found::of(id?, bringing.held()))
    }

    /// Notes what is there before an archive is.
    async fn note(&self, engine: &Engine, records: &Records) -> Result<(), Failure> {
        let found = Images::of(engine).await;
        let mut found = found.map_err(|trouble| trouble.failure("load"))?;
        self.before.send_modify(|before| {
            for fetched in before.iter() {
                found.ids.extend(fetched.ids.iter().cloned());
                for (tag, id) in &fetched.tags {
                    found.call(tag, id);
                }
            }
            *before = Some(Arc::new(found));
        });
        let noted = self.noted();
        records.note_tags(&noted.tags).map_err(|error| {
            Failure::recoverable(format!("load: cannot write down what tags mean: {error}"))
        })
    }

    fn noted(&self) -> Arc<Images> {
        self.before.borrow().clone().unwrap_or_default()
    }

    async fn hand_over(
        &self,
        engine: &Engine,
        records: &Records,
        reference: &str,
        source: Source,
    ) -> Result<String, Failure> {
        let mut named = BTreeSet::new();
        let bringing = source.bringing.clone();
        let fed = feed(engine, source, &mut named).await;
        let id = match &fed {
            Ok(()) => inspect(engine, reference).await.map(|image| image.id),
            Err(trouble) => Err(trouble.clone()),
        };
        let id = id.map_err(|trouble| match (&fed, trouble) {
            (Ok(()), Trouble::Unknown(why)) => Failure::fatal(format!(
                "load: the archive has no image {reference:?}: {why}"
            )),
            (_, trouble) => trouble.failure("load"),
        });
        // What failed may have come far enough to give tags.
        let mut pause = PAUSES.0;
        loop {
            match put_back(engine, records, &self.noted(), &named).await {
                Ok(after) => {
                    bringing.came(&after, &named);
                    forget_noted(records);
                    break;
                }
                Err(Trouble::Silent(_)) => {
                    sleep(pause).await;
                    pause = pause.saturating_mul(2).min(PAUSES.1);
                }
                Err(trouble) => {
                    tracing::error!(%trouble, "cannot see which tags an archive took");
                    break;
                }
            }
        }
        id
    }
}

fn forget_noted(records: &Records) {
    if let Err(error) = records.remove_noted_tags() {
        tracing::warn!(%error, "cannot forget what tags meant before an archive");
    }
}

/// An archive that is read as long as somebody wants it.
struct Source {
    archive: File,
    most: Limit,
    is_wanted: watch::Receiver<()>,
    bringing: Arc<Bringing>,
    /// Whether all of it was read.
    is_read: Arc<AtomicBool>,
    /// Why the engine does not get all of it, if it does not.
    broke: Arc<OnceLock<Trouble>>,
}

impl Source {
    fn new(
        archive: File,
        most: Limit,
        is_wanted: watch::Receiver<()>,
        bringing: Arc<Bringing>,
    ) -> Source {
        Source {
            archive,
            most,
            is_wanted,
            bringing,
            is_read: Arc::default(),
            broke: Arc::default(),
        }
    }

    fn chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let (into, pieces) = mpsc::channel(PIECES);
        let (archive, most) = (self.archive, self.most);
        let bringing = self.bringing;
        tokio::task::spawn_blocking(move || {
            measure::pass_on(archive, &most, &into, |images| bringing.note(images));
        });
        let rest = (pieces, self.is_read, self.broke);
        futures::stream::unfold(Some(rest), |rest| async move {
            let (mut pieces, is_read, broke) = rest?;
            let lost = || io::Error::other("it was not read to its end: the agent failed");
            match pieces.recv().await.unwrap_or_else(|| Err(lost())) {
                Ok(Part::Piece(piece)) => Some((Ok(piece), Some((pieces, is_read, broke)))),
                Ok(Part::End) => {
                    is_read.store(true, Ordering::Relaxed);
                    None
                }
                Err(error) => {
                    let _ = broke.set(trouble_of(&error));
                    Some((Err(error), None))
                }
            }
        })
    }
}

/// Gives an archive to the engine. `named` are the tags that it says it gave, also if it fails then.
async fn feed(
    engine: &Engine,
    source: Source,
    named: &mut BTreeSet<String>,
) -> Result<(), Trouble> {
    let broke = source.broke.clone();
    let fed = feed_all(engine, source, named).await;
    // What the engine says of an archive without its end is not why it has none.
    match broke.get() {
        Some(why) => Err(why.clone()),
        None => fed,
    }
}

/// What an error of an archive means: a disk that is full may have room another time, and the archive stays as it is.
fn trouble_of(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::StorageFull => Trouble::Failed(error.to_string()),
        _ => Trouble::Refused(error.to_string()),
    }
}

async fn feed_all(
    engine: &Engine,
    source: Source,
    named: &mut BTreeSet<String>,
) -> Result<(), Trouble> {
    let (mut is_wanted, is_read) = (source.is_wanted.clone(), source.is_read.clone());
    let docker = engine.docker();
    let chunks = source.chunks();
    let mut answers =
        std::pin::pin!(docker.import_image_stream(ImportImageOptions::default(), chunks, None));
    let until = Instant::now() + LONGEST;
    // It cannot be told more than that nobody wants it.
    let mut unwanted = std::pin::pin!(async move { while is_wanted.changed().await.is_ok() {} });
    let mut may_be_unwanted = true;
    loop {
        let answer = tokio::select! {
            answer = timeout_at(until, answers.next()) => answer,
            () = &mut unwanted, if may_be_unwanted => {
                // An engine that lacks the end of an archive gives up; one that has all of it goes on, whoever listens.
                if !is_read.load(Ordering::Relaxed) {
                    return Err(Trouble::Failed("it was given up".to_owned()));
                }
                may_be_unwanted = false;
                continue;
            }
        };
        let answer = match answer {
            Ok(Some(answer)) => answer?,
            Ok(None) => return Ok(()),
            Err(_) => return Err(Trouble::Silent("it took too long".to_owned())),
        };
        if let Some(error) = answer.error_detail {
            return Err(Trouble::Refused(error.message.unwrap_or_default()));
        }
        let status = answer.stream.unwrap_or_default();
        let tags = status.lines().filter_map(|line| line.strip_prefix(LOADED));
        named.extend(tags.map(|tag| tag.trim().to_owned()));
    }
}

/// Gives the tags that an archive took back to the images that had them, and remembers those that it gave. `named` are
/// the tags that the engine says it gave. If it names none, those count whose image is new, and was not fetched. What
/// is there after the archive.
async fn put_back(
    engine: &Engine,
    records: &Records,
    before: &Images,
    named: &BTreeSet<String>,
) -> Result<Images, Trouble> {
    let after = Images::of(engine).await?;
    for (tag, now) in &after.tags {
        let had = before.tags.get(tag);
        let had = had.or_else(|| before.tags.get(familiar(tag)));
        let is_given = match named.is_empty() {
            true => !before.ids.contains(now) && !records.has_image(now).unwrap_or(false),
            false => named.contains(tag),
        };
        if had == Some(now) || !is_given {
            continue;
        }
        // What an archive gave may go to the next one.
        let theirs = had.filter(|had| !records.was_given(tag, had).unwrap_or(false));
        match theirs {
            Some(id) if is_back(engine, tag, id).await? => {}
            Some(_) | None => {
                if let Err(error) = records.add_given(tag, now) {
                    tracing::warn!(%tag, %error, "cannot remember that an archive gave a tag");
                }
            }
        }
    }
    if let Err(error) = forget_gone(records, &after) {
        tracing::warn!(%error, "cannot forget tags that archives gave");
    }
    Ok(after)
}

/// Gives a tag back to the image that had it. False if that cannot be done.
async fn is_back(engine: &Engine, tag: &str, id: &str) -> Result<bool, Trouble> {
    match give(engine, tag, id).await {
        Ok(()) => {
            tracing::warn!(%tag, image = %id, "an archive took a tag: it was put back");
            Ok(true)
        }
        Err(Trouble::Silent(why)) => Err(Trouble::Silent(why)),
        Err(trouble) => {
            tracing::error!(%tag, image = %id, %trouble, "an archive took a tag, which cannot be put back");
            Ok(false)
        }
    }
}

async fn give(engine: &Engine, tag: &str, id: &str) -> Result<(), Trouble> {
    let (repo, name) = tag.rsplit_once(':').unwrap_or((tag, "latest"));
    let options = TagImageOptionsBuilder::new().repo(repo).tag(name).build();
    Engine::within(SOON, engine.docker().tag_image(id, Some(options))).await
}

/// Forgets tags that mean something else by now, or nothing.
fn forget_gone(records: &Records, after: &Images) -> io::Result<()> {
    for (tag, id) in records.given()? {
        let now = after.tags.get(&tag);
        if now != Some(&id) {
            records.remove_given(&tag)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
