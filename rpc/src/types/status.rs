//! What servers say of themselves: who leads, who votes, and who is there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::question;
use crate::msgpack::Raw;

question!(
    /// Who leads: its address for calls, as `10.0.0.1:4647`. Needs no token.
    StatusLeader,
    "Status.Leader",
    String
);

question!(
    /// Who votes: their addresses for calls. Needs no token.
    StatusPeers,
    "Status.Peers",
    Vec<String>
);

question!(
    /// All servers of a region. Where tokens are needed, it needs one that may read nodes.
    StatusMembers,
    "Status.Members",
    ServerMembers
);

/// The servers that a server knows of, and who it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServerMembers {
    pub members: Vec<ServerMember>,
    #[serde(rename = "ServerDC")]
    pub server_dc: String,
    pub server_name: String,
    pub server_region: String,
}

/// A server, as servers know each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ServerMember {
    /// Its bytes: [`ServerMember::address`].
    pub addr: Raw,
    pub delegate_cur: u8,
    pub delegate_max: u8,
    pub delegate_min: u8,
    pub name: String,
    /// That for the traffic between servers.
    pub port: u16,
    pub protocol_cur: u8,
    pub protocol_max: u8,
    pub protocol_min: u8,
    pub status: String,
    pub tags: BTreeMap<String, String>,
}

impl ServerMember {
    /// Its address; none if its bytes are none.
    pub fn address(&self) -> Option<IpAddr> {
        let bytes = self.addr.0.as_slice();
        let four = <[u8; 4]>::try_from(bytes).map(|it| IpAddr::V4(Ipv4Addr::from(it)));
        let sixteen = || <[u8; 16]>::try_from(bytes).map(|it| IpAddr::V6(Ipv6Addr::from(it)));
        let address = four.or_else(|_| sixteen());
        address.ok().map(|address| address.to_canonical())
    }
}
