//! Downloads of images. One serves all tasks that wait for the same image; it is given up when nobody waits any more.
//!
//! What a download brings is the agent's to remove, so that it was begun is remembered before it is. An engine gives up
//! a download whose agent dies, unless it has all of it: then it said so, which is remembered as well, and the next
//! agent finds out what came of it. What an engine has of whose end no agent heard is taken for others'.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::engine::{Engine, SOON};
use super::free_space::FreeSpace;
use super::image::{Need, in_path};
use super::load::{Loads, all_images, is_content};
use super::progress::Progress;
use super::records::{Brought, Pulling, Records};
use super::settings::Credentials;
use super::trouble::Trouble;
use super::users::{Hold, Uses};

/// How often people hear how a download goes.
const NEWS: Duration = Duration::from_secs(10);

/// What an engine says of the content that a download has.
const DIGEST: &str = "Digest: ";

/// The downloads of an agent.
#[derive(Default)]
pub(super) struct Pulls {
    running: Mutex<BTreeMap<Wanted, Weak<Pull>>>,
    /// What is remembered of those that are under way.
    noted: Arc<Mutex<BTreeSet<String>>>,
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
    _wanted: watch::Sender<()>,
}

#[derive(Clone)]
enum News {
    Going(String),
    Done(Result<Fetched, Trouble>),
}

/// What was fetched.
#[derive(Clone)]
pub(super) struct Fetched {
    pub(super) id: String,
    /// It is kept meanwhile.
    pub(super) held: Arc<Hold>,
}

/// What a download needs.
struct Work {
    engine: Engine,
    records: Records,
    loads: Arc<Loads>,
    uses: Arc<Uses>,
    noted: Arc<Mutex<BTreeSet<String>>>,
    reference: String,
    credentials: Credentials,
    silence: Duration,
    most: Option<u64>,
}

impl Pulls {
    /// Fetches an image, or waits for who does. `report_progress` gets what people may want to know.
    pub(super) async fn fetch(
        &self,
        engine: &Engine,
        records: &Records,
        (loads, uses): (&Arc<Loads>, &Arc<Uses>),
        need: Need<'_>,
        report_progress: &impl Fn(String),
    ) -> Result<Fetched, Trouble> {
        report_progress(format!("Downloading image {}", need.reference));
        let deadline = Instant::now() + need.limit;
        let work = Work {
            engine: engine.clone(),
            records: records.clone(),
            loads: loads.clone(),
            uses: uses.clone(),
            noted: self.noted.clone(),
            reference: need.reference.to_owned(),
            credentials: need.credentials,
            silence: need.silence,
            most: need.most,
        };
        let pull = self.join(work);
        let mut news = pull.news.clone();
        let mut next = Instant::now() + NEWS;
        loop {
            let changed = timeout_at(deadline.min(next), news.changed()).await;
            let now = news.borrow_and_update().clone();
            match (now, changed) {
                (News::Done(done), _) => return done,
                (News::Going(_), Ok(Err(_))) => return Err(given_up()),
                (News::Going(_), _) if Instant::now() >= deadline => {
                    let limit = need.limit.as_secs();
                    return Err(Trouble::Silent(format!(
                        "it took longer than {limit} s (image_pull_timeout)"
                    )));
                }
                (News::Going(how), _) if Instant::now() >= next => {
                    next = Instant::now() + NEWS;
                    report_progress(format!("Downloading image {}: {how}", need.reference));
                }
                (News::Going(_), _) => {}
            }
        }
    }

    /// The download of an image that is under way, or a new one.
    fn join(&self, work: Work) -> Arc<Pull> {
        let who = work.credentials.as_ref();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let wanted = Wanted {
            reference: work.reference.clone(),
            who: who.map(|who| {
                (
                    text(&who.username),
                    format!("{}{}", text(&who.password), text(&who.identitytoken)),
                )
            }),
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, pull| pull.strong_count() > 0);
        let same = running.get(&wanted).and_then(Weak::upgrade);
        let is_done = |pull: &Arc<Pull>| matches!(*pull.news.borrow(), News::Done(_));
        if let Some(same) = same.filter(|pull| !is_done(pull)) {
            return same;
        }
        let (sender, news) = watch::channel(News::Going(String::new()));
        let (is_wanted, wants) = watch::channel(());
        tokio::spawn(async move {
            let done = work.run(wants, &sender).await;
            sender.send_replace(News::Done(done));
        });
        let pull = Arc::new(Pull {
            news,
            _wanted: is_wanted,
        });
        running.insert(wanted, Arc::downgrade(&pull));
        pull
    }

    /// Finds out what came of downloads that nobody saw the end of.
    ///
    /// # Errors
    /// The engine does not answer.
    pub(super) async fn settle(&self, engine: &Engine, records: &Records) -> Result<(), Trouble> {
        let unread = |error: std::io::Error| Trouble::Failed(error.to_string());
        for name in records.pulls().map_err(unread)? {
            if locked(&self.noted).contains(&name) {
                continue;
            }
            match records.pull(&name) {
                Ok(Some(pulling)) if pulling.engine == engine.socket() => {
                    drop(came_of(engine, records, &pulling).await?);
                }
                // Another engine may never be asked again.
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "cannot read what was being fetched"),
            }
            forget(records, &name);
        }
        Ok(())
    }
}

impl Work {
    /// Fetches the image, and remembers it. Nobody may wait for it any more before its end.
    async fn run(
        &self,
        mut wants: watch::Receiver<()>,
        news: &watch::Sender<News>,
    ) -> Result<Fetched, Trouble> {
        let before = all_images(&self.engine).await?;
        let mut pulling = Pulling {
            reference: self.reference.clone(),
            before: before.meant(&self.reference),
            ids: Some(before.ids),
            engine: self.engine.socket().to_owned(),
            digest: None,
        };
        let unwritten = |error| Trouble::Failed(format!("it cannot be remembered: {error}"));
        let name = self.records.begin_pull(&pulling).map_err(unwritten)?;
        locked(&self.noted).insert(name.clone());
        let unwanted = async move { while wants.changed().await.is_ok() {} };
        let pulled = tokio::select! {
            pulled = self.pull((&name, &mut pulling), news) => pulled,
            () = unwanted => Err(given_up()),
        };
        let (fetched, is_known) = match pulled {
            Ok(()) => {
                let fetched = self.fetched(&pulling).await;
                let is_known = matches!(fetched, Ok(_) | Err(Trouble::Unknown(_)));
                (fetched, is_known)
            }
            // The engine may have had all of it.
            Err(trouble) => {
                let came = came_of(&self.engine, &self.records, &pulling).await;
                if let Ok(Some(id)) = &came {
                    // Nobody will use it.
                    drop(self.uses.hold(id));
                }
                (Err(trouble), came.is_ok())
            }
        };
        // Who does not answer is asked again, or the next one.
        if is_known || pulling.digest.is_none() {
            forget(&self.records, &name);
        }
        locked(&self.noted).remove(&name);
        fetched
    }

    /// Remembers what was fetched.
    async fn fetched(&self, pulling: &Pulling) -> Result<Fetched, Trouble> {
        let id = match by_content(&self.engine, pulling).await? {
            Some(id) => id,
            // Not every engine finds images by it.
            None => self.loads.resolve(&self.engine, &self.reference).await?.id,
        };
        let held = Arc::new(self.uses.hold(&id));
        self.loads.fetched(&self.reference, &id);
        remember(&self.records, pulling, &id);
        Ok(Fetched { id, held })
    }

    async fn pull(
        &self,
        (name, pulling): (&str, &mut Pulling),
        news: &watch::Sender<News>,
    ) -> Result<(), Trouble> {
        let engine = &self.engine;
        let options = CreateImageOptionsBuilder::new()
            .from_image(&self.reference)
            .build();
        let credentials = self.credentials.clone();
        let mut answers = engine
            .docker()
            .create_image(Some(options), None, credentials);
        let mut progress = Progress::default();
        loop {
            let answer = match timeout(self.silence, answers.next()).await {
                Ok(Some(answer)) => answer?,
                Ok(None) => return Ok(()),
                Err(_) => {
                    let silence = self.silence.as_secs();
                    let why = format!("nothing came for {silence} s (pull_activity_timeout)");
                    return Err(Trouble::Silent(why));
                }
            };
            if let Some(error) = answer.error_detail.as_ref() {
                return Err(refused(error.message.clone().unwrap_or_default()));
            }
            let status_text = answer.status.as_deref();
            if let Some(digest) = status_text.and_then(|it| it.strip_prefix(DIGEST)) {
                pulling.digest = Some(digest.trim().to_owned());
                if let Err(error) = self.records.write_pull(name, pulling) {
                    tracing::warn!(image = self.reference, %error, "cannot remember what is fetched");
                }
            }
            progress.note(&answer);
            FreeSpace::of(engine, self.most).admit(progress.bytes())?;
            news.send_replace(News::Going(progress.to_string()));
        }
    }
}

fn given_up() -> Trouble {
    Trouble::Failed("the download was given up".to_owned())
}

fn locked(noted: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    // Nothing that holds the lock can panic half way.
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers what a download brought whose end nobody saw, if it brought something.
async fn came_of(
    engine: &Engine,
    records: &Records,
    pulling: &Pulling,
) -> Result<Option<String>, Trouble> {
    let came = by_content(engine, pulling).await?;
    if let Some(id) = &came {
        remember(records, pulling, id);
    }
    Ok(came)
}

/// The image that a download has, by its content. None if that is not known, or is not there.
async fn by_content(engine: &Engine, pulling: &Pulling) -> Result<Option<String>, Trouble> {
    let Some(digest) = &pulling.digest else {
        return Ok(None);
    };
    match id_of(engine, &content(&pulling.reference, digest)).await {
        Ok(id) => Ok(Some(id)),
        Err(Trouble::Unknown(_) | Trouble::Refused(_)) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

fn remember(records: &Records, pulling: &Pulling, id: &str) {
    let ids = pulling.ids.as_ref();
    let owns = ids.is_some_and(|ids| !ids.contains(id));
    if !owns && (is_content(&pulling.reference) || pulling.before.as_deref() == Some(id)) {
        return;
    }
    let what = Brought {
        owns,
        names: Some([pulling.reference.clone()].into()),
        engine: pulling.engine.clone(),
    };
    if let Err(error) = records.add_image(id, what) {
        tracing::warn!(image = pulling.reference, %error, "cannot remember that an image was fetched");
    }
}

fn forget(records: &Records, name: &str) {
    if let Err(error) = records.remove_pull(name) {
        tracing::warn!(%error, "cannot forget a download");
    }
}

async fn id_of(engine: &Engine, reference: &str) -> Result<String, Trouble> {
    let reference = in_path(reference)?;
    let image = Engine::within(SOON, engine.docker().inspect_image(reference)).await?;
    image
        .id
        .ok_or_else(|| Trouble::Failed("the engine does not say which image that is".to_owned()))
}

/// What was fetched, by its content: what its tag means may change meanwhile.
fn content(reference: &str, digest: &str) -> String {
    let name = reference.split('@').next().unwrap_or(reference);
    let name = match name.rsplit_once(':') {
        // That is a port of the registry.
        Some((_, tag)) if tag.contains('/') => name,
        Some((name, _)) => name,
        None => name,
    };
    format!("{name}@{digest}")
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
    use super::*;

    #[test]
    fn fetched_image_is_known_by_its_content() {
        for (reference, expected) in [
            ("busybox:1", "busybox@sha256:01"),
            ("reg:5000/a/b:1", "reg:5000/a/b@sha256:01"),
            ("reg:5000/a/b", "reg:5000/a/b@sha256:01"),
            ("a:1@sha256:00", "a@sha256:01"),
        ] {
            assert_eq!(content(reference, "sha256:01"), expected);
        }
    }
}
