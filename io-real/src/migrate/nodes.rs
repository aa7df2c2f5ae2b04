//! Other nodes by the addresses that people or servers name: which are spoken to over TLS, and whether one answers.

use std::sync::Arc;
use std::time::Duration;

use drover_core::ids::AllocId;
use drover_core::op::Failure;
use tokio::time::timeout;

use super::peer::Peer;
use crate::connect::{Connect, Tcp};

/// How addresses begin where TLS is spoken.
const HTTPS: &str = "https://";

/// How long finding out whether a node answers may take.
const TRYING: Duration = Duration::from_secs(20);

/// Why nothing is asked of a node that speaks TLS.
pub(super) const NO_AUTHORITY: &str = "its node speaks TLS, and this agent has no certificate authority to know it by \
                                       (tls { http, ca_file })";

/// How nodes are reached. What is at `https://` is reached over TLS or not at all. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Nodes {
    plain: Arc<dyn Connect>,
    encrypted: Option<Arc<dyn Connect>>,
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes::new(Arc::new(Tcp), None)
    }
}

impl Nodes {
    /// Over `plain`, and those that speak TLS over `encrypted`, which knows whom to believe.
    pub fn new(plain: Arc<dyn Connect>, encrypted: Option<Arc<dyn Connect>>) -> Nodes {
        Nodes { plain, encrypted }
    }

    /// The same over another network.
    #[must_use]
    pub(super) fn over(self, plain: Arc<dyn Connect>) -> Nodes {
        Nodes { plain, ..self }
    }

    /// Whether this is an address that could be asked.
    ///
    /// # Errors
    /// Why it is not, in words.
    pub fn takes(&self, address: &str) -> Result<(), String> {
        self.peer(address).map(drop).map_err(|why| why.message)
    }

    /// Whether a node answers at this address, as one that has this allocation. It is shown no token, so where users
    /// need one, it does not say whether it knows the allocation, and is believed.
    ///
    /// # Errors
    /// It does not; why, in words that name it.
    pub async fn answers(&self, address: &str, alloc: AllocId) -> Result<(), String> {
        let asked = async { self.peer(address)?.has(alloc).await };
        match timeout(TRYING, asked).await {
            Ok(answered) => answered.map_err(|why| why.message),
            Err(_) => Err(format!("{address}: it does not answer within {TRYING:?}")),
        }
    }

    /// Whether what is at this address can be asked, as far as TLS matters.
    pub(super) fn may_speak_to(&self, address: &str) -> bool {
        self.encrypted.is_some() || !address.starts_with(HTTPS)
    }

    pub(super) fn peer(&self, address: &str) -> Result<Peer<'_>, Failure> {
        match (address.starts_with(HTTPS), &self.encrypted) {
            (true, Some(encrypted)) => Peer::of("https", address, &**encrypted),
            (true, None) => Err(Failure::recoverable(format!("{address}: {NO_AUTHORITY}"))),
            (false, _) => Peer::of("http", address, &*self.plain),
        }
    }
}
