//! Which containers and images of an engine may be ours, for who looks at this host, also while no agent runs.
//!
//! What a container bears proves nothing: people can copy labels and names, and images bring labels along. One is ours
//! if a record of ours says so ([`super::proof`]); only such a one is ever removed. Of others it is told what they say
//! of themselves, and how a person removes them. Of images only those are told of that a record of ours names, and
//! nobody else has to do with ([`super::brought`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum, ImageSummary};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, StopContainerOptionsBuilder,
};
use drover_core::ids::{AllocId, LaunchId};
use futures::future::join_all;
use tokio::time::timeout;

use super::brought::{self, Removal, Share};
use super::engine::Engine;
use super::image::Images;
use super::proof::Claimed;
use super::records::{Brought, Ours, Record, Records};
use super::settings::DockerSettings;
use super::trouble::Trouble;
use super::users::Use;
use super::{create, join};

/// How long all engines together may take to say what they have, to who only wants to know.
const LIMIT: Duration = Duration::from_secs(5);

/// And to who removes the records.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a container has to end by itself, in seconds, and what the engine may take beside that.
const GRACE: i32 = 10;
const END: Duration = Duration::from_secs(30);

/// More engines than this are not asked, but told of.
const MOST: usize = 8;

/// A container that says that it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundContainer {
    /// Its name.
    pub name: String,
    /// The image of which it was made.
    pub image: String,
    /// The launch that it says it belongs to.
    pub launch: LaunchId,
    /// Which agent it says made it, by that agent's mark.
    pub mark: Option<String>,
    /// Whether a record of ours says that it is ours.
    pub is_proved: bool,
    /// Whether it runs.
    pub runs: bool,
    id: String,
    engine: PathBuf,
}

impl FoundContainer {
    /// What its engine calls it, whoever has its name.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// How a person removes it.
    pub fn removal(&self) -> String {
        format!(
            "docker -H unix://{} rm -f -v {}",
            self.engine.display(),
            self.name
        )
    }
}

/// What becomes of an image that the agent brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A launch uses it.
    Used(LaunchId),
    /// It was just brought, or will be removed by itself.
    Awaited,
    /// It stays, since the configuration says so.
    Kept,
    /// Nothing uses it, and nobody thinks of it.
    Left,
}

/// An image, or names of one, that the agent brought, and with which nobody else has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundImage {
    /// What it is called because of the agent.
    pub names: Vec<String>,
    /// Whether it is the whole image: else it is others', and only these names are ours.
    pub is_whole: bool,
    /// What becomes of it.
    pub fate: Fate,
    id: String,
    engine: PathBuf,
}

impl FoundImage {
    /// What its engine calls it, or the name if only that is ours.
    pub fn name(&self) -> &str {
        match (self.is_whole, self.names.first()) {
            (false, Some(name)) => name,
            (true, _) | (false, None) => &self.id,
        }
    }

    /// How a person removes it.
    pub fn removal(&self) -> String {
        let what = match self.names.is_empty() {
            true => self.id.clone(),
            false => self.names.join(" "),
        };
        format!("docker -H unix://{} rmi {what}", self.engine.display())
    }
}

/// What engines say.
#[derive(Debug, Default)]
pub struct Found {
    /// The containers.
    pub containers: Vec<FoundContainer>,
    /// The images.
    pub images: Vec<FoundImage>,
    /// The engines that say nothing, by their sockets, with why.
    pub silent: BTreeMap<PathBuf, String>,
}

/// Looks for containers and images. Cheap to clone.
#[derive(Clone)]
pub struct Inventory {
    socket: PathBuf,
    records: Records,
    /// Whether containers that ended are kept for people.
    keeps_ended: bool,
    /// Whether images are kept that nobody uses.
    keeps_images: bool,
    /// Who uses which image, while an agent runs.
    images: Option<Arc<Images>>,
    limit: Duration,
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inventory").field(&self.socket).finish()
    }
}

impl Inventory {
    pub(super) fn new(
        settings: &DockerSettings,
        records: &Records,
        images: Option<Arc<Images>>,
    ) -> Inventory {
        Inventory {
            socket: settings.socket.clone(),
            records: records.clone(),
            keeps_ended: !settings.collect_containers,
            keeps_images: !settings.collect_images,
            images,
            limit: LIMIT,
        }
    }

    /// For who has the records alone, and removes them: those say which engines there are. Records of earlier agents
    /// do not; theirs is at `engine`, or where one usually is.
    pub fn of_records(records: Records, engine: Option<PathBuf>) -> Inventory {
        let usual = DockerSettings::default();
        let settings = DockerSettings {
            socket: engine.unwrap_or(usual.socket),
            ..DockerSettings::default()
        };
        Inventory {
            limit: ENGINE_TIMEOUT,
            ..Inventory::new(&settings, &records, None)
        }
    }

    /// Everything that says it is ours. An engine that was never there is not missed. Blocks, but not for long.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn find(&self) -> io::Result<Found> {
        let known = self.known()?.into_values();
        let mut engines: BTreeSet<PathBuf> = known.map(|it| self.engine_of(&it.engine)).collect();
        let brought = self.brought()?;
        engines.extend(brought.iter().map(|(_, it)| self.engine_of(&it.engine)));
        if self.socket.exists() {
            engines.insert(self.socket.clone());
        }
        let mut engines: Vec<PathBuf> = engines.into_iter().collect();
        let too_many = engines.split_off(engines.len().min(MOST));
        let with_images = !brought.is_empty();
        let asked = engines
            .iter()
            .map(|engine| list(engine, self.limit, with_images));
        let asked = block_on(join_all(asked))?;
        // Only now: records are there before their containers and images.
        let (known, brought) = (self.known()?, self.brought()?);
        let why = || format!("no more than {MOST} engines are asked");
        let mut found = Found {
            containers: Vec::new(),
            images: Vec::new(),
            silent: too_many.into_iter().map(|it| (it, why())).collect(),
        };
        for (engine, listing) in engines.into_iter().zip(asked) {
            match listing {
                Ok(listing) => {
                    let ourselves = Ourselves {
                        launches: &known,
                        brought: &brought,
                    };
                    found
                        .images
                        .extend(self.images(&engine, &listing, &ourselves));
                    let all = listing.containers.into_iter();
                    let ours = all.filter_map(|it| read(it, &engine, &known));
                    found.containers.extend(ours.filter(|it| !self.is_kept(it)));
                }
                Err(why) => drop(found.silent.insert(engine, why)),
            }
        }
        // An engine may be reached in two ways: what it has is there once, preferably where its record says.
        let is_home = |it: &FoundContainer| {
            let ours = known.get(&it.launch).filter(|_| it.is_proved);
            ours.is_some_and(|ours| self.engine_of(&ours.engine) == it.engine)
        };
        found.containers.sort_by_key(|it| !is_home(it));
        let mut seen = BTreeSet::new();
        found.containers.retain(|it| seen.insert(it.id.clone()));
        Ok(found)
    }

    /// What is remembered of containers. What cannot be read proves nothing.
    fn known(&self) -> io::Result<BTreeMap<LaunchId, Ours>> {
        let launches = self.records.launches()?.into_iter();
        let ours = |launch| match self.records.read(launch) {
            Ok(Some(record)) => Some((launch, record.ours().clone())),
            Ok(None) | Err(_) => None,
        };
        Ok(launches.filter_map(ours).collect())
    }

    /// What is remembered of images. Of what cannot be read nothing is told.
    fn brought(&self) -> io::Result<Vec<(String, Brought)>> {
        let ids = self.records.images()?.into_iter();
        let known = |id: String| {
            let brought = self.records.brought(&id).ok().flatten()?;
            Some((id, brought))
        };
        Ok(ids.filter_map(known).collect())
    }

    /// The images of an engine that are ours, and nobody else's.
    fn images(
        &self,
        engine: &Path,
        listing: &EngineListing,
        known: &Ourselves<'_>,
    ) -> Vec<FoundImage> {
        let mut found = Vec::new();
        for (id, brought) in known.brought {
            let image = listing.images.iter().find(|image| image.id == *id);
            let Some(image) = image.filter(|_| self.engine_of(&brought.engine) == engine) else {
                continue;
            };
            let tags = image.repo_tags.iter();
            let tags = tags.filter(|tag| !tag.starts_with("<none>")).cloned();
            let (names, is_whole) = match brought::share(brought, &tags.collect::<Vec<_>>()) {
                Share::All(names) => (names, true),
                Share::Names(names) => (names, false),
                Share::Nothing => continue,
            };
            let of_it = listing
                .containers
                .iter()
                .filter(|it| brought::is_of(it, id));
            let of_it: Vec<Option<FoundContainer>> = of_it
                .map(|it| read(it.clone(), engine, known.launches))
                .collect();
            if of_it
                .iter()
                .any(|it| !it.as_ref().is_some_and(|it| it.is_proved))
            {
                continue;
            }
            let launch = of_it.iter().flatten().next().map(|it| it.launch);
            found.push(FoundImage {
                names,
                is_whole,
                fate: launch.map_or_else(|| self.fate(id), Fate::Used),
                id: id.clone(),
                engine: engine.to_owned(),
            });
        }
        found
    }

    /// What becomes of an image of which there is no container.
    fn fate(&self, id: &str) -> Fate {
        let used = self.images.as_ref().map(|images| images.uses.of(id));
        match used.unwrap_or(Use::None) {
            Use::By(launch) => Fate::Used(launch),
            Use::Soon => Fate::Awaited,
            Use::None if self.keeps_images => Fate::Kept,
            Use::None => Fate::Left,
        }
    }

    /// Removes what of an image is ours, and forgets it; says what was done. Blocks.
    ///
    /// # Errors
    /// Something uses it again, or the engine does not do it.
    pub fn remove_image(&self, found: &FoundImage) -> io::Result<&'static str> {
        let work = async {
            let engine = Engine::connect(&found.engine.as_path().into()).await?;
            let (records, id) = (&self.records, found.id.as_str());
            match &self.images {
                Some(images) => {
                    let is_left = || images.uses.of(id) == Use::None;
                    images.discard(&engine, records, id, is_left).await
                }
                None => brought::remove(&engine, records, id).await,
            }
        };
        let removed = block_on(async {
            let removed = timeout(END, work).await;
            removed.unwrap_or_else(|_| Err(Trouble::Silent("it took too long".to_owned())))
        })?;
        match removed.map_err(|trouble| io::Error::other(trouble.to_string()))? {
            Removal::Gone | Removal::Awaited => Ok("removed"),
            Removal::Untagged => Ok("untagged"),
            Removal::Theirs => Ok("left to others, who have to do with it"),
            Removal::InUse => Err(io::Error::other("something uses it")),
            Removal::Elsewhere => Err(io::Error::other("it is another engine's")),
        }
    }

    /// The launches that may have a container of an engine that cannot be asked now, with why.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn out_of_reach(&self) -> io::Result<BTreeMap<LaunchId, String>> {
        self.unreached(&self.find()?)
    }

    /// The engines that may have images that were brought, and that cannot be asked now, with why.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn images_out_of_reach(&self) -> io::Result<Vec<String>> {
        let silent = self.find()?.silent;
        let brought = self.brought()?;
        let is_missed = |engine: &PathBuf| {
            let mut all = brought.iter();
            all.any(|(_, it)| self.engine_of(&it.engine) == *engine)
        };
        let silent = silent.into_iter().filter(|(engine, _)| is_missed(engine));
        let warning = |(engine, why): (PathBuf, String)| {
            format!("unix://{}: {}", engine.display(), why.trim())
        };
        Ok(silent.map(warning).collect())
    }

    /// The launches that have a container still, or that may have one of an engine that cannot be asked now, with
    /// why. For who is about to remove the records.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn left(&self) -> io::Result<BTreeMap<LaunchId, String>> {
        let found = self.find()?;
        let mut left = self.unreached(&found)?;
        let ours = found.containers.iter().filter(|it| it.is_proved);
        left.extend(ours.map(|it| (it.launch, format!("container {} is there", it.name))));
        Ok(left)
    }

    fn unreached(&self, found: &Found) -> io::Result<BTreeMap<LaunchId, String>> {
        let mut launches = BTreeMap::new();
        for launch in self.records.launches()? {
            let why = match self.records.read(launch) {
                Ok(Some(Record::Asked(ours))) => self.why_unreached(launch, &ours, found),
                Ok(_) => None,
                Err(error) => Some(format!("its record cannot be read: {error}")),
            };
            launches.extend(why.map(|why| (launch, why)));
        }
        Ok(launches)
    }

    fn why_unreached(&self, launch: LaunchId, ours: &Ours, found: &Found) -> Option<String> {
        let engine = self.engine_of(&ours.engine);
        if let Some(why) = found.silent.get(&engine) {
            return Some(format!("{}: {why}", engine.display()));
        }
        let is_it = |it: &FoundContainer| it.is_proved && it.launch == launch;
        let is_found = found.containers.iter().any(is_it);
        let is_guessed = ours.engine.as_os_str().is_empty();
        (is_guessed && !is_found).then(|| {
            let engine = engine.display();
            format!(
                "an earlier agent did not note which engine has it, and that at {engine} has not"
            )
        })
    }

    /// Ends and removes a container that is ours, and forgets its launch. Blocks.
    ///
    /// # Errors
    /// It is not proved to be ours, or the engine does not do it.
    pub fn remove(&self, found: &FoundContainer) -> io::Result<()> {
        let record = self.records.read(found.launch)?;
        let Some(record) = record.filter(|_| found.is_proved) else {
            return Err(io::Error::other(format!(
                "labels may be copied, and no record says that it is ours; if nobody needs it: {}",
                found.removal()
            )));
        };
        let ours = record.ours();
        let engine = self.engine_of(&ours.engine);
        block_on(async {
            let removed = timeout(END, end(&found.engine, &found.id, ours)).await;
            removed.unwrap_or_else(|_| Err(Trouble::Silent("it took too long".to_owned())))
        })?
        .map_err(|trouble| io::Error::other(trouble.to_string()))?;
        // Another engine than its own may have one that looks like it, and the way into a network is not the task.
        match engine == found.engine && found.name != join::name(ours) {
            true => self.records.remove(found.launch),
            false => Ok(()),
        }
    }

    fn engine_of(&self, named: &Path) -> PathBuf {
        match named.as_os_str().is_empty() {
            true => self.socket.clone(),
            false => named.to_owned(),
        }
    }

    /// Whether it is there for people, since the configuration says so.
    fn is_kept(&self, found: &FoundContainer) -> bool {
        self.keeps_ended && !found.runs && !found.is_proved
    }
}

/// Runs what asks engines, wherever this is called.
fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().build()?.block_on(work))
}

/// The containers and images that an engine lists.
struct EngineListing {
    containers: Vec<ContainerSummary>,
    images: Vec<ImageSummary>,
}

/// What is remembered.
struct Ourselves<'a> {
    launches: &'a BTreeMap<LaunchId, Ours>,
    brought: &'a [(String, Brought)],
}

async fn list(socket: &Path, limit: Duration, with_images: bool) -> Result<EngineListing, String> {
    let socket: Arc<Path> = socket.into();
    let listed = timeout(limit, async {
        let engine = Engine::connect(&socket).await?;
        let images = match with_images {
            true => {
                let options = ListImagesOptionsBuilder::new().build();
                Engine::within(limit, engine.docker().list_images(Some(options))).await?
            }
            false => Vec::new(),
        };
        // After the images: one that is used was there before.
        let options = ListContainersOptionsBuilder::new().all(true).build();
        let containers =
            Engine::within(limit, engine.docker().list_containers(Some(options))).await;
        Ok::<_, Trouble>(EngineListing {
            containers: containers?,
            images,
        })
    });
    match listed.await {
        Ok(all) => all.map_err(|trouble| trouble.to_string()),
        Err(_) => Err(format!("it says nothing for {} s", limit.as_secs())),
    }
}

/// A container that says that it is ours, by a label or by its name.
fn read(
    listing: ContainerSummary,
    engine: &Path,
    known: &BTreeMap<LaunchId, Ours>,
) -> Option<FoundContainer> {
    let labels = listing.labels.unwrap_or_default();
    let names = listing.names.unwrap_or_default();
    let name = names.first()?.trim_start_matches('/').to_owned();
    let id = listing.id?;
    let launches = launches_of(Some(&labels), &name);
    let claimed = Claimed {
        id: &id,
        name: &name,
        labels: Some(&labels),
    };
    let is_of = |launch: &LaunchId| known.get(launch).is_some_and(|ours| claimed.is_of(ours));
    // What an image says goes no further than what a record does.
    let proved = launches.into_iter().flatten().find(is_of);
    let launch = proved.or_else(|| launches.into_iter().flatten().next())?;
    Some(FoundContainer {
        image: listing.image.unwrap_or_default(),
        launch,
        mark: labels.get(create::AGENT_LABEL).cloned(),
        is_proved: proved.is_some(),
        runs: listing.state == Some(ContainerSummaryStateEnum::RUNNING),
        id,
        engine: engine.to_owned(),
        name,
    })
}

/// The launches that a container says it belongs to, by a label and by its name.
pub(super) fn launches_of(
    labels: Option<&HashMap<String, String>>,
    name: &str,
) -> [Option<LaunchId>; 2] {
    let labelled = labels.and_then(|labels| labels.get(create::LAUNCH_LABEL));
    [labelled.and_then(|it| it.parse().ok()), launch_in(name)]
}

/// The launch in a name such as those that we give: `TASK-ALLOCATION-LAUNCH`.
fn launch_in(name: &str) -> Option<LaunchId> {
    const ID: usize = 36;
    let name = name.strip_suffix("-network").unwrap_or(name);
    let (rest, launch) = name.split_at_checked(name.len().checked_sub(ID)?)?;
    let rest = rest.strip_suffix('-')?;
    let (task, alloc) = rest.split_at_checked(rest.len().checked_sub(ID)?)?;
    alloc.parse::<AllocId>().ok()?;
    task.strip_suffix('-').filter(|task| !task.is_empty())?;
    launch.parse().ok()
}

/// Ends a container that is of this record, and removes it.
async fn end(socket: &Path, id: &str, ours: &Ours) -> Result<(), Trouble> {
    let engine = Engine::connect(&socket.into()).await?;
    let found = match engine.inspect(id).await {
        Err(Trouble::Unknown(_)) => return Ok(()),
        found => found?,
    };
    let claimed = Claimed {
        id,
        name: found.name.as_deref().unwrap_or_default(),
        labels: found.config.as_ref().and_then(|it| it.labels.as_ref()),
    };
    if !claimed.is_of(ours) {
        return Err(Trouble::Failed(
            "it is not the container that it was".to_owned(),
        ));
    }
    let options = StopContainerOptionsBuilder::new().t(GRACE).build();
    let stopped = engine.docker().stop_container(id, Some(options));
    match Engine::within(END, stopped).await {
        // It ended, or is gone, or is ended by force now.
        Ok(()) | Err(Trouble::Unknown(_) | Trouble::Conflict(_) | Trouble::Failed(_)) => {}
        Err(trouble) => return Err(trouble),
    }
    match engine.remove(id).await {
        // The engine is about to.
        Err(Trouble::Conflict(_)) => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;
