//! Rules of the packet filter that are not as they should be, for whoever asks what is on this host.

use std::collections::BTreeMap;
use std::io;

use drover_core::ids::AllocId;
use drover_core::model::network::Ipv4;

use super::filter::{Entry, missing};
use super::netlink::Socket;
use super::{Host, Networks};

/// A rule that is missing, or one too many.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrongRule {
    /// The table with all rules is not there as a whole.
    NoTable(String),
    /// A port of an allocation is not published.
    Missing(AllocId, String),
    /// Something leads to an address that no network has.
    Stale(String),
}

impl Networks {
    /// The rules that are missing, and those that lead to networks which are not there. None if the bridge is another
    /// agent's, who tells of them.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn wrong_rules(&self) -> io::Result<Vec<WrongRule>> {
        let mut host = self.host();
        let known = self.0.bridge.forwards()?;
        let nothing = host.published.is_empty() && known.is_empty();
        if nothing || self.claim(&mut host)?.is_some() {
            return Ok(Vec::new());
        }
        let mut wrong = Vec::new();
        if !host.published.is_empty() && !self.0.bridge.filter().is_whole(&mut Socket::filter()?)? {
            wrong.push(WrongRule::NoTable(self.0.bridge.name.clone()));
        }
        let owners = self.addresses()?;
        for entry in missing(&host.published, &known) {
            // Of one that is removed at this moment nobody misses anything.
            if let Some(alloc) = owners.get(&entry.to()) {
                wrong.push(WrongRule::Missing(*alloc, entry.to_string()));
            }
        }
        let stale = known.iter().filter(|it| is_stale(it, &host, &owners));
        wrong.extend(stale.map(|entry| WrongRule::Stale(entry.to_string())));
        Ok(wrong)
    }

    /// Removes a rule that leads to no network, by its words. That there is none is success.
    ///
    /// # Errors
    /// The kernel says no, or the bridge is another agent's.
    pub fn remove_stale_rule(&self, words: &str) -> io::Result<()> {
        let mut host = self.host();
        if let Some(why) = self.claim(&mut host)? {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        let (known, owners) = (self.0.bridge.forwards()?, self.addresses()?);
        let is_it = |it: &&Entry| it.to_string() == words && is_stale(it, &host, &owners);
        let found: Vec<&Entry> = known.iter().filter(is_it).collect();
        let filter = self.0.bridge.filter();
        filter.change(&mut Socket::filter()?, &found, &[]).map(drop)
    }

    /// Whose each address behind the bridge is.
    fn addresses(&self) -> io::Result<BTreeMap<Ipv4, AllocId>> {
        let mut addresses = BTreeMap::new();
        for alloc in self.owners()? {
            addresses.extend(self.address(alloc)?.map(|address| (address, alloc)));
        }
        Ok(addresses)
    }
}

fn is_stale(entry: &Entry, host: &Host, owners: &BTreeMap<Ipv4, AllocId>) -> bool {
    let to = entry.to();
    !owners.contains_key(&to) && !host.published.contains_key(&to)
}
