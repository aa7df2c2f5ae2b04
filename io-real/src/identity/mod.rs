//! Tokens by which tasks prove who they are: made, written and held here, and nowhere else.
//!
//! A lone agent is its own issuer. Its key is made once and stays in its directory; whoever wants
//! to check a token gets the public half ([`Issuer::keys`]). What servers of a cluster placed has tokens that these
//! signed ([`crate::cluster::ServeTasks`]). Tokens go into files of the task, and
//! those that are variables are held in memory for its starts and its scripts: neither the core nor a
//! recording ever has one.
//!
//! Files are written through handles below the task's directory. Variables are held in memory as
//! long as the allocation is known, and are given to a start, or to a script beside the task, when
//! that leaves the loop (`node.rs`), behind the recorder.
//!
//! The key is Ed25519, in `identity/` of the data directory. A key that is there and damaged is not
//! replaced: tokens that were issued would be void without anybody having said so.

mod key;
mod token;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use drover_core::effect::{DriverEffect, request};
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::secret::Secret;
use drover_core::time::Timestamp;
use drover_core::work::{IdentityWork, Issuing};

use crate::dirs::{Access, AllocDirs};
use crate::user;

pub use key::Key;
use token::Claims;

/// Tokens that are variables, of each task.
type Variables = Arc<Mutex<BTreeMap<TaskKey, BTreeMap<String, String>>>>;

/// Whoever issues tokens. Cheap to clone.
#[derive(Clone)]
pub struct Issuer {
    key: Arc<Key>,
    /// Variables for starts that are about to come, and for what runs beside tasks.
    held: Variables,
    /// Those that the last start of a task was given.
    given: Variables,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Issuer")
    }
}

impl Issuer {
    /// Signs with this key.
    pub fn new(key: Key) -> Issuer {
        Issuer {
            key: Arc::new(key),
            held: Arc::default(),
            given: Arc::default(),
        }
    }

    /// The public half of the key, as a JSON Web Key Set.
    pub fn keys(&self) -> serde_json::Value {
        self.key.public()
    }

    /// Makes tokens for a task, writes those that are files, and holds those that are variables.
    ///
    /// # Errors
    /// A file cannot be written, or the task's user is unknown.
    pub fn issue(
        &self,
        dirs: &AllocDirs,
        key: &TaskKey,
        asked: &Issuing,
        now: Timestamp,
    ) -> io::Result<()> {
        let token = |of: &IdentityWork| self.token(key, asked, of, now);
        let all = asked.identities.iter();
        let tokens = all.map(|of| (of.name.clone(), token(of).into()));
        self.hand_out(dirs, key, asked, &tokens.collect())
    }

    /// Writes tokens that are files, and holds those that are variables, by the names of their identities.
    ///
    /// # Errors
    /// There is no token for one that was asked for, its file cannot be written, or the task's user is unknown.
    pub fn hand_out(
        &self,
        dirs: &AllocDirs,
        key: &TaskKey,
        asked: &Issuing,
        tokens: &BTreeMap<String, Secret>,
    ) -> io::Result<()> {
        let access = access(&asked.user)?;
        let files = dirs.files(key.alloc, key.task.as_str())?;
        let mut held = BTreeMap::new();
        for identity in &asked.identities {
            let token = tokens.get(&identity.name).ok_or_else(|| {
                io::Error::other(format!("there is no token of identity {}", identity.name))
            })?;
            if let Some(task_path) = &identity.file {
                files.write(task_path, token.expose().as_bytes(), access)?;
            }
            if let Some(variable) = &identity.variable {
                held.insert(variable.clone(), token.expose().to_owned());
            }
        }
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.clone()).or_default().extend(held);
        Ok(())
    }

    fn token(&self, key: &TaskKey, asked: &Issuing, of: &IdentityWork, now: Timestamp) -> String {
        let claims = Claims::new(key, asked, of, now);
        token::signed(&self.key, &claims)
    }

    /// A start is about to leave, or what runs beside the task: the task's variables go with it.
    pub fn complete(&self, key: &TaskKey, effect: &mut DriverEffect) {
        let env = match effect {
            DriverEffect::Start(request::Start { config, .. }) => {
                // Each start has its own; what runs beside it has the same.
                let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
                given.remove(key);
                let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(held) = all.remove(key).filter(|held| !held.is_empty()) {
                    Arc::make_mut(config).env.extend(held.clone());
                    given.insert(key.clone(), held);
                }
                return;
            }
            DriverEffect::Exec(request::Exec { program, .. }) => {
                &mut Arc::make_mut(program).task.env
            }
            DriverEffect::OpenSession(request::OpenSession { program, .. }) => {
                &mut Arc::make_mut(program).task.env
            }
            DriverEffect::Recover(request::Recover { .. })
            | DriverEffect::Stop(request::Stop { .. })
            | DriverEffect::Signal(request::Signal { .. })
            | DriverEffect::Health(request::Health { .. })
            | DriverEffect::Destroy(request::Destroy { .. }) => return,
        };
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        env.extend(given.get(key).cloned().unwrap_or_default());
        let all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = all.get(key) {
            let held = held
                .iter()
                .map(|(name, token)| (name.clone(), token.clone()));
            env.extend(held);
        }
    }

    /// Of an allocation that is gone nothing is held.
    pub fn forget(&self, alloc: AllocId) {
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|key, _| key.alloc != alloc);
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|key, _| key.alloc != alloc);
    }
}

/// The task's user alone reads its tokens; without one, the agent's, as whom the task runs.
fn access(user: &str) -> io::Result<Access> {
    let (uid, gid) = user::owner(user)?.unzip();
    Ok(Access {
        mode: 0o600,
        uid,
        gid,
    })
}
