//! How much one client may ask, so that no task keeps the resolver from the others.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most clients that are told apart at a time; of others nothing is taken then.
const MOST_CLIENTS: usize = 4096;

/// Bounds of each client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How many it may begin in a second, in the long run.
    pub(super) each_second: u32,
    /// How many at once after a rest.
    pub(super) at_once: u32,
    /// How many may be under way.
    pub(super) under_way: u32,
    /// How many of all clients may be under way. Of what is free of them one client has a quarter at most: whoever
    /// takes much leaves something to those who come later.
    pub(super) of_all: u32,
}

/// The part of what is free that one client may have.
const SHARE: u32 = 4;

#[derive(Debug)]
struct Client {
    /// How many thousandths of one it may begin, and since when.
    left: u64,
    at: Instant,
    under_way: u32,
}

/// Who asked lately.
#[derive(Debug)]
pub(super) struct Clients {
    bounds: Bounds,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    clients: BTreeMap<Ipv4Addr, Client>,
    /// How many of all of them are under way.
    under_way: u32,
}

/// That something of a client is under way, for as long as this lives.
#[derive(Debug)]
pub(super) struct UnderWay {
    of: Arc<Clients>,
    client: Ipv4Addr,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut known = self.of.known();
        known.under_way = known.under_way.saturating_sub(1);
        if let Some(client) = known.clients.get_mut(&self.client) {
            client.under_way = client.under_way.saturating_sub(1);
        }
    }
}

impl Bounds {
    fn most(self) -> u64 {
        u64::from(self.at_once) * 1000
    }

    /// What a client may begin by now.
    fn left(self, client: &Client, now: Instant) -> u64 {
        let rested = now.saturating_duration_since(client.at);
        // Longer than anybody needs to rest.
        let rested = rested.min(Duration::from_secs(3600)).as_millis();
        let gained = u64::try_from(rested).unwrap_or(u64::MAX);
        let gained = gained.saturating_mul(self.each_second.into());
        client.left.saturating_add(gained).min(self.most())
    }
}

impl Clients {
    pub(super) fn new(bounds: Bounds) -> Arc<Clients> {
        Arc::new(Clients {
            bounds,
            known: Mutex::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins something of a client; none if that is too much.
    pub(super) fn begin(self: &Arc<Clients>, from: Ipv4Addr, now: Instant) -> Option<UnderWay> {
        let bounds = self.bounds;
        let mut known = self.known();
        let Known { clients, under_way } = &mut *known;
        if clients.len() >= MOST_CLIENTS && !clients.contains_key(&from) {
            // Whoever rested long enough is as good as new.
            clients.retain(|_, it| it.under_way > 0 || bounds.left(it, now) < bounds.most());
            if clients.len() >= MOST_CLIENTS {
                return None;
            }
        }
        let client = clients.entry(from).or_insert(Client {
            left: bounds.most(),
            at: now,
            under_way: 0,
        });
        client.left = bounds.left(client, now);
        client.at = now;
        let free = bounds.of_all.saturating_sub(*under_way);
        if client.under_way >= bounds.under_way.min(free.div_ceil(SHARE)) {
            return None;
        }
        client.left = client.left.checked_sub(1000)?;
        client.under_way += 1;
        *under_way += 1;
        Some(UnderWay {
            of: self.clone(),
            client: from,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        each_second: 10,
        at_once: 20,
        under_way: 4,
        of_all: 32,
    };
    const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// How many of so many tries of a client are taken, each over at once.
    fn taken(clients: &Arc<Clients>, from: Ipv4Addr, now: Instant) -> usize {
        let tries = (0..100).filter(|_| clients.begin(from, now).is_some());
        tries.count()
    }

    #[test]
    fn client_over_its_limit_waits_and_delays_no_other() {
        let clients = Clients::new(BOUNDS);
        let now = Instant::now();
        assert_eq!(taken(&clients, ONE, now), 20);
        assert_eq!(taken(&clients, OTHER, now), 20);
        assert_eq!(taken(&clients, ONE, now + Duration::from_millis(500)), 5);
        assert_eq!(taken(&clients, ONE, now + Duration::from_secs(7200)), 20);
    }

    #[test]
    fn only_so_many_are_under_way() {
        let clients = Clients::new(BOUNDS);
        let now = Instant::now();
        let mut held: Vec<UnderWay> = Vec::new();
        held.extend((0..10).filter_map(|_| clients.begin(ONE, now)));
        assert_eq!(held.len(), 4);
        held.pop();
        assert!(clients.begin(ONE, now).is_some());
    }

    #[test]
    fn clients_that_take_all_they_get_leave_something_to_others() {
        let clients = Clients::new(BOUNDS);
        let now = Instant::now();
        let taking = |number: u32| {
            let from = Ipv4Addr::from(number);
            let clients = clients.clone();
            move || clients.begin(from, now)
        };
        // More than would be needed if each took all that it may have by itself.
        let mut held: Vec<UnderWay> = Vec::new();
        for number in 0..BOUNDS.of_all / BOUNDS.under_way + 2 {
            held.extend(std::iter::from_fn(taking(number)));
        }
        let one_more: Vec<UnderWay> = std::iter::from_fn(taking(1000)).collect();
        assert!(!one_more.is_empty(), "{} are held", held.len());
        drop((held, one_more));
        assert_eq!(clients.known().under_way, 0);
        let again: Vec<UnderWay> = std::iter::from_fn(taking(1000)).collect();
        assert_eq!(again.len(), 4);
    }

    #[test]
    fn all_clients_together_have_only_so_many() {
        let clients = Clients::new(BOUNDS);
        let now = Instant::now();
        let many = (0..1000).filter_map(|number| clients.begin(Ipv4Addr::from(number), now));
        let held: Vec<UnderWay> = many.collect();
        assert_eq!(held.len(), 32);
    }

    #[test]
    fn clients_without_end_are_not_remembered() {
        let clients = Clients::new(BOUNDS);
        let now = Instant::now();
        let most = u32::try_from(MOST_CLIENTS).unwrap();
        for number in 0..most {
            assert!(clients.begin(Ipv4Addr::from(number), now).is_some());
        }
        let one_more = Ipv4Addr::from(most);
        assert!(clients.begin(one_more, now).is_none());
        let rested = now + Duration::from_secs(2);
        assert!(clients.begin(one_more, rested).is_some());
        assert_eq!(clients.known().clients.len(), 1);
    }
}
