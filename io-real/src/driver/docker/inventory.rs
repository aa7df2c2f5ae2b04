//! Which containers of an engine may be ours, for who looks at this host, also while no agent runs.
//!
//! What a container bears proves nothing: people can copy labels and names, and images bring labels along. One is ours
//! if a record of ours says so ([`super::proof`]); only such a one is ever removed. Of others it is told what they say
//! of themselves, and how a person removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{ListContainersOptionsBuilder, StopContainerOptionsBuilder};
use drover_core::ids::{AllocId, LaunchId};
use futures::future::join_all;
use tokio::time::timeout;

use super::engine::Engine;
use super::proof::Claimed;
use super::records::{Ours, Record, Records};
use super::settings::DockerSettings;
use super::trouble::Trouble;
use super::{create, join};

/// How long all engines together may take to say what they have, to who only wants to know.
const LIMIT: Duration = Duration::from_secs(5);

/// And to who removes the records.
const PATIENCE: Duration = Duration::from_secs(30);

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

/// What engines say.
#[derive(Debug, Default)]
pub struct FoundContainers {
    /// The containers.
    pub containers: Vec<FoundContainer>,
    /// The engines that say nothing, by their sockets, with why.
    pub silent: BTreeMap<PathBuf, String>,
}

/// Looks for containers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Inventory {
    socket: PathBuf,
    records: Records,
    /// Whether containers that ended are kept for people.
    keeps_ended: bool,
    limit: Duration,
}

impl Inventory {
    pub(super) fn new(settings: &DockerSettings, records: &Records) -> Inventory {
        Inventory {
            socket: settings.socket.clone(),
            records: records.clone(),
            keeps_ended: !settings.collect_containers,
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
            limit: PATIENCE,
            ..Inventory::new(&settings, &records)
        }
    }

    /// Everything that says it is ours. An engine that was never there is not missed. Blocks, but not for long.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn find(&self) -> io::Result<FoundContainers> {
        let known = self.known()?.into_values();
        let mut engines: BTreeSet<PathBuf> = known.map(|it| self.engine_of(&it.engine)).collect();
        if self.socket.exists() {
            engines.insert(self.socket.clone());
        }
        let mut engines: Vec<PathBuf> = engines.into_iter().collect();
        let too_many = engines.split_off(engines.len().min(MOST));
        let asked = engines.iter().map(|engine| list(engine, self.limit));
        let asked = block_on(join_all(asked))?;
        // Only now: records are there before their containers.
        let known = self.known()?;
        let why = || format!("no more than {MOST} engines are asked");
        let mut found = FoundContainers {
            containers: Vec::new(),
            silent: too_many.into_iter().map(|it| (it, why())).collect(),
        };
        for (engine, said) in engines.into_iter().zip(asked) {
            match said {
                Ok(all) => {
                    let ours = all.into_iter().filter_map(|it| read(it, &engine, &known));
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

    /// The launches that may have a container of an engine that cannot be asked now, with why.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn out_of_reach(&self) -> io::Result<BTreeMap<LaunchId, String>> {
        self.unreached(&self.find()?)
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

    fn unreached(&self, found: &FoundContainers) -> io::Result<BTreeMap<LaunchId, String>> {
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

    fn why_unreached(
        &self,
        launch: LaunchId,
        ours: &Ours,
        found: &FoundContainers,
    ) -> Option<String> {
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

async fn list(socket: &Path, limit: Duration) -> Result<Vec<ContainerSummary>, String> {
    let socket: Arc<Path> = socket.into();
    let listed = timeout(limit, async {
        let engine = Engine::connect(&socket).await?;
        let options = ListContainersOptionsBuilder::new().all(true).build();
        Engine::within(limit, engine.docker().list_containers(Some(options))).await
    });
    match listed.await {
        Ok(all) => all.map_err(|trouble| trouble.to_string()),
        Err(_) => Err(format!("it says nothing for {} s", limit.as_secs())),
    }
}

/// A container that says that it is ours, by a label or by its name.
fn read(
    said: ContainerSummary,
    engine: &Path,
    known: &BTreeMap<LaunchId, Ours>,
) -> Option<FoundContainer> {
    let labels = said.labels.unwrap_or_default();
    let names = said.names.unwrap_or_default();
    let name = names.first()?.trim_start_matches('/').to_owned();
    let id = said.id?;
    let labelled = labels.get(create::LAUNCH_LABEL);
    let labelled = labelled.and_then(|it| it.parse().ok());
    let launches: [Option<LaunchId>; 2] = [labelled, launch_in(&name)];
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
        image: said.image.unwrap_or_default(),
        launch,
        mark: labels.get(create::AGENT_LABEL).cloned(),
        is_proved: proved.is_some(),
        runs: said.state == Some(ContainerSummaryStateEnum::RUNNING),
        id,
        engine: engine.to_owned(),
        name,
    })
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
