//! Cores: a container has those that its job reserved, or shares those that nobody did.
//!
//! The engine keeps it to them. What a job reserved stands in a control group as well, where it is seen by whoever
//! shares cores out among tasks of the other drivers. Containers that share are moved when what is shared changes.

use std::io;
use std::sync::Weak;

use bollard::models::ContainerCreateBody;
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::op::Failure;
use futures::StreamExt;

use super::World;
use super::engine::Engine;
use super::trouble::Trouble;
use crate::cgroup::Shared;

/// Which cores a container may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    /// Those that its job reserved.
    Own(String),
    /// Those that nobody reserved.
    Shared(Shared),
    /// Nobody keeps cores apart here: those that its job names, if any.
    Any(Option<String>),
}

impl Cores {
    /// The engine's set for a container that is made now; none for no bounds.
    pub(super) fn set(&self) -> Option<String> {
        match self {
            Cores::Own(cores) => Some(cores.clone()),
            Cores::Shared(shared) => Some(shared.cores.clone()).filter(|_| !shared.is_all),
            Cores::Any(named) => named.clone(),
        }
    }

    /// What the container's label says of them.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Cores::Shared(_) => SHARED,
            Cores::Own(_) | Cores::Any(_) => "own",
        }
    }
}

/// The label of containers says whether they share their cores.
pub(super) const LABEL: &str = "drover.cores";

/// That they do.
pub(super) const SHARED: &str = "shared";

/// How many containers are moved at once.
const MOVED_AT_ONCE: usize = 8;

/// What engines say of a set with cores that they do not have.
const NOT_THERE: &str = "CPUs are not available";

/// Whether a container that is kept to this set is where it shall be.
fn is_there(set: &str, shared: &Shared) -> bool {
    set == shared.cores || (set.is_empty() && shared.is_all)
}

/// What a container shares that is about to start; nothing where cores are not kept apart. One that needs no cores of
/// its own starts also if that cannot be seen, and is moved at the next change.
fn shared_or_all(seen: io::Result<Option<Shared>>, launch: LaunchId) -> Option<Shared> {
    match seen {
        Ok(shared) => shared.filter(|shared| !shared.cores.is_empty()),
        Err(error) => {
            tracing::warn!(%launch, %error, "cannot see which cores a container shares: it begins on all");
            Some(Shared {
                cores: String::new(),
                is_all: true,
            })
        }
    }
}

impl World {
    /// The cores of a launch that is about to start. Its own are nobody else's from here on, until they are given
    /// back.
    pub(super) async fn take_cores(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        config: &TaskConfig,
        named: Option<&str>,
    ) -> Result<Cores, Failure> {
        let (groups, own) = (self.groups.clone(), config.cores.clone());
        let list = config.container.as_ref().map(|it| it.cores.clone());
        let list = list.filter(|list| !list.is_empty() && !own.is_empty());
        let is_own = list.is_some();
        let taken = self.blocking(move || match (groups, is_own) {
            (None, _) => Ok(None),
            (Some(groups), true) => groups.set_aside(&launch.to_string(), &own).map(|()| None),
            (Some(groups), false) => Ok(shared_or_all(groups.shared_cores(), launch)),
        });
        let shared = taken.await?;
        Ok(match (list, shared) {
            (Some(list), _) => Cores::Own(list),
            (None, Some(shared)) => {
                if named.is_some() {
                    self.emit_event(task, launch, NAMED.to_owned());
                }
                Cores::Shared(shared)
            }
            (None, None) => Cores::Any(named.map(str::to_owned)),
        })
    }

    /// Lets others have the cores of a launch that is over.
    pub(super) async fn give_cores_back(&self, launch: LaunchId) {
        let Some(groups) = self.groups.clone() else {
            return;
        };
        let given = self.blocking(move || groups.give_back(&launch.to_string()));
        if let Err(failure) = given.await {
            let error = failure.message;
            tracing::warn!(%launch, error, "cannot give the cores of a container back");
        }
    }

    /// Moves all containers that share cores to those that are shared now.
    pub(super) async fn move_to_shared_cores(&self) {
        let Some(groups) = self.groups.clone() else {
            return;
        };
        if self.containers.sharing().is_empty() {
            return;
        }
        // One after the other: who knows what was shared before comes first.
        let _moving = self.moving.lock().await;
        let shared = self.blocking(move || groups.shared_cores());
        let shared = match shared.await {
            Ok(Some(shared)) if !shared.cores.is_empty() => shared,
            Ok(_) => return,
            Err(failure) => {
                let error = failure.message;
                return tracing::warn!(error, "cannot see which cores containers share");
            }
        };
        // The next engine hears of it when it is there.
        let Ok(engine) = self.engine() else { return };
        let sharing = self.containers.sharing().into_iter();
        let astray = sharing.filter(|(_, _, set)| !is_there(set, &shared));
        let (engine, shared) = (&engine, &shared);
        futures::stream::iter(astray)
            .for_each_concurrent(MOVED_AT_ONCE, |(launch, id, _)| async move {
                self.move_one(engine, launch, &id, shared).await;
            })
            .await;
    }

    async fn move_one(&self, engine: &Engine, launch: LaunchId, id: &str, shared: &Shared) {
        match engine.keep_to_cores(id, &shared.cores).await {
            Ok(()) => self.containers.note_cores(launch, &shared.cores),
            // It is gone.
            Err(Trouble::Unknown(_)) => {}
            Err(trouble) => {
                let cores = &shared.cores;
                tracing::warn!(%launch, cores, %trouble, "cannot move a container to the cores that are shared");
            }
        }
    }
}

/// Makes a container. Its id. One that shares its cores has no set of its own if the engine refuses that: it may have
/// fewer cores than the agent.
pub(super) async fn create(
    engine: &Engine,
    name: &str,
    body: ContainerCreateBody,
    shares: bool,
) -> Result<String, Trouble> {
    let set = |body: &mut ContainerCreateBody| body.host_config.as_mut()?.cpuset_cpus.take();
    let mut without = body.clone();
    let Some(cores) = set(&mut without).filter(|_| shares) else {
        return engine.create(name, body).await;
    };
    match engine.create(name, body).await {
        Err(Trouble::Refused(why)) if why.contains(NOT_THERE) => {
            tracing::warn!(
                container = name,
                cores,
                why,
                "a container is made without a set of cores"
            );
            engine.create(name, without).await
        }
        created => created,
    }
}

/// What people are told of a job that names cores which it did not reserve.
const NAMED: &str = "cpuset_cpus is left out: the container shares the cores that no task reserved; reserve some with \
                     cores in resources";

/// Moves containers whenever cores are reserved, or given back.
pub(super) async fn follow(world: Weak<World>) {
    let changes = world
        .upgrade()
        .and_then(|world| world.groups.as_ref()?.shared_cores_changes());
    let Some(mut changes) = changes else { return };
    while changes.changed().await.is_ok() {
        let Some(world) = world.upgrade() else { return };
        world.move_to_shared_cores().await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::mpsc;

    use bollard::models::HostConfig;

    use super::super::fake;
    use super::*;

    #[test]
    fn container_has_no_bounds_while_nothing_is_reserved() {
        let shared = |cores: &str, is_all| Shared {
            cores: cores.to_owned(),
            is_all,
        };
        let set = |shared| Cores::Shared(shared).set();
        assert_eq!(set(shared("0-3", true)), None);
        assert_eq!(set(shared("1-3", false)).as_deref(), Some("1-3"));
        assert!(is_there("", &shared("0-3", true)));
        assert!(is_there("0-3", &shared("0-3", true)));
        assert!(!is_there("", &shared("1-3", false)));
        assert!(!is_there("1-3", &shared("0-3", true)));
    }

    #[test]
    fn container_with_unreadable_cores_starts_unbound() {
        let seen = |seen| shared_or_all(seen, LaunchId(1)).map(Cores::Shared);
        let cores = seen(Err(io::ErrorKind::PermissionDenied.into())).unwrap();
        // It is one of those that are moved.
        assert_eq!((cores.set(), cores.label()), (None, SHARED));
        assert_eq!(seen(Ok(None)), None);
        assert_eq!(seen(Ok(Some(Shared::default()))), None);
    }

    /// What an engine with the cores 0 and 1 says of a container that shares others, and the sets that it was asked for.
    async fn made(shares: bool) -> (Result<String, Trouble>, Vec<bool>) {
        let (sender, receiver) = mpsc::channel();
        let (engine, _dir) = fake::engine(move |request| {
            let has_set = request.contains("\"CpusetCpus\":\"2-3\"");
            sender.send(has_set).unwrap();
            match has_set {
                true => {
                    let why = "Requested CPUs are not available - requested 2-3, available: 0-1";
                    (400, format!(r#"{{"message":"{why}"}}"#))
                }
                false => (201, r#"{"Id":"one","Warnings":[]}"#.to_owned()),
            }
        })
        .await;
        let host = HostConfig {
            cpuset_cpus: Some("2-3".to_owned()),
            ..HostConfig::default()
        };
        let body = ContainerCreateBody {
            host_config: Some(host),
            ..ContainerCreateBody::default()
        };
        let made = create(&engine, "one", body, shares).await;
        (made, receiver.try_iter().collect())
    }

    #[tokio::test]
    async fn container_that_shares_has_no_set_that_its_engine_refuses() {
        let (id, asked) = made(true).await;
        assert_eq!((id.as_deref(), asked), (Ok("one"), vec![true, false]));
        // Reserved cores are no matter of taste.
        let (id, asked) = made(false).await;
        assert!(matches!(id, Err(Trouble::Refused(_))), "{id:?}");
        assert_eq!(asked, [true]);
    }
}
