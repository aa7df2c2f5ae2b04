//! Which server to use: a state machine without I/O.
//!
//! The list is the one that servers advertise with each heartbeat. Each node shuffles it, so that nodes
//! spread over the servers. Configured addresses that are not advertised come last: if no advertised
//! server can be reached, they are a way back into the cluster.
//!
//! The current server is used until it fails. Then it is backed off ([`Backoff`]), and the next server that
//! is not takes over.
//!
//! Time is passed in, as the time since an origin of the caller's choice.

mod random;

use std::time::Duration;

use random::Random;

/// How many advertised, and how many configured servers are used.
const MAX_SERVERS: usize = 64;

/// The longest address, in bytes.
const MAX_ADDRESS: usize = 300;

/// How long a server that failed is not used. The time doubles with each failure in a row; nodes take
/// between half of it and all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The time after the first failure.
    pub initial: Duration,
    /// The longest time.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            initial: Duration::from_millis(500),
            max: Duration::from_secs(15),
        }
    }
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Use the server of this address.
    Use(String),
    /// All servers have failed: wait until then.
    Wait(Duration),
    /// No server is known.
    Empty,
}

/// The known servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Servers {
    configured: Vec<String>,
    servers: Vec<Server>,
    /// The index of the current server.
    current: usize,
    backoff: Backoff,
    random: Random,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Server {
    address: String,
    /// Failures in a row.
    failures: u32,
    /// It is not used before then.
    retry_at: Duration,
}

impl Servers {
    /// Starts with the configured addresses. The seed must differ from node to node.
    pub fn new(configured: Vec<String>, backoff: Backoff, seed: u64) -> Servers {
        let configured = valid(configured.iter());
        let mut servers = Servers {
            servers: Vec::new(),
            configured: Vec::new(),
            current: 0,
            backoff,
            random: Random(seed),
        };
        servers.servers = servers.shuffled(configured.clone());
        servers.configured = configured;
        servers
    }

    /// Replaces the list by the one that a server advertised; an empty one is ignored. What is known of
    /// servers in both stays, and so does the current server if it is in both.
    pub fn update<'a>(&mut self, advertised: impl IntoIterator<Item = &'a String>) {
        let advertised = valid(advertised.into_iter());
        if advertised.is_empty() {
            return;
        }
        let only_configured = |address: &&String| !advertised.contains(address);
        let configured: Vec<String> = self
            .configured
            .iter()
            .filter(only_configured)
            .cloned()
            .collect();
        // Most heartbeats bring the same list: it is not shuffled again.
        if self.has_all(advertised.iter().chain(&configured)) {
            return;
        }
        let old = std::mem::take(&mut self.servers);
        self.servers = self.shuffled(advertised);
        let configured = self.shuffled(configured);
        self.servers.extend(configured);
        for server in &mut self.servers {
            if let Some(known) = old.iter().find(|old| old.address == server.address) {
                server.clone_from(known);
            }
        }
        let current = old.get(self.current).map(|server| &server.address);
        let kept = self
            .servers
            .iter()
            .position(|server| Some(&server.address) == current);
        self.current = kept.unwrap_or(0);
    }

    /// The server to use.
    pub fn choose(&mut self, now: Duration) -> Choice {
        let count = self.servers.len();
        let usable = (0..count)
            .map(|step| (self.current + step) % count)
            .find(|index| self.servers[*index].retry_at <= now);
        if let Some(index) = usable {
            self.current = index;
            return Choice::Use(self.servers[index].address.clone());
        }
        match self.servers.iter().map(|server| server.retry_at).min() {
            Some(soonest) => Choice::Wait(soonest),
            None => Choice::Empty,
        }
    }

    /// A server replied.
    pub fn succeeded(&mut self, address: &str) {
        if let Some(server) = self
            .servers
            .iter_mut()
            .find(|server| server.address == address)
        {
            server.failures = 0;
            server.retry_at = Duration::ZERO;
        }
    }

    /// A server could not be reached, its connection was lost, or it cannot serve.
    pub fn failed(&mut self, address: &str, now: Duration) {
        let Some(index) = self
            .servers
            .iter()
            .position(|server| server.address == address)
        else {
            return;
        };
        let server = &mut self.servers[index];
        let doubled = self
            .backoff
            .initial
            .saturating_mul(1 << server.failures.min(16));
        let delay = self.random.jitter(doubled.min(self.backoff.max));
        server.failures = server.failures.saturating_add(1);
        server.retry_at = now.saturating_add(delay);
        if index == self.current {
            self.current = (index + 1) % self.servers.len();
        }
    }

    /// How long to wait before a server with a temporary error is called again.
    pub fn retry_delay(&mut self) -> Duration {
        self.random.jitter(self.backoff.initial)
    }

    /// All addresses, in the order of the list.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.address.as_str())
    }

    /// Whether the list consists of these addresses, in whatever order.
    fn has_all<'a>(&self, addresses: impl Iterator<Item = &'a String>) -> bool {
        let mut addresses: Vec<&str> = addresses.map(String::as_str).collect();
        let mut known: Vec<&str> = self.addresses().collect();
        addresses.sort_unstable();
        known.sort_unstable();
        addresses == known
    }

    fn shuffled(&mut self, addresses: Vec<String>) -> Vec<Server> {
        let server = |address| Server {
            address,
            failures: 0,
            retry_at: Duration::ZERO,
        };
        let mut servers: Vec<Server> = addresses.into_iter().map(server).collect();
        self.random.shuffle(&mut servers);
        servers
    }
}

/// The addresses that are neither empty nor too long, each once, [`MAX_SERVERS`] at most.
fn valid<'a>(addresses: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut valid: Vec<String> = Vec::new();
    for address in addresses {
        let fits = !address.is_empty() && address.len() <= MAX_ADDRESS;
        if fits && !valid.contains(address) && valid.len() < MAX_SERVERS {
            valid.push(address.clone());
        }
    }
    valid
}
