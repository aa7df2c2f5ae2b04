//! What plugins say: their first line, and their messages.

use std::collections::BTreeMap;

use drover_core::device::attribute::Attribute;
use drover_core::device::group::groups_of;
use drover_core::driver::spec::{Strictness, decode};
use drover_core::model::value::Value;
use drover_core::stats::devices::DeviceTable;
use drover_io_real::plugin::{Address, bytes, handshake as line, msgpack};

/// A plugin's first line.
///
/// # Panics
/// If an address is taken at which nobody can listen, or that is not on this machine.
pub fn handshake(bytes: &[u8]) {
    match line::parse(bytes) {
        Ok(Address::Unix(path)) => {
            let text = path.as_os_str().as_encoded_bytes();
            assert!(path.is_absolute() && text.len() < 108 && !text.contains(&0));
        }
        Ok(Address::Tcp(address)) => assert!(address.ip().is_loopback() && address.port() != 0),
        // What it says goes into an event: it is for people, and bounded.
        Err(error) => assert!(error.to_string().len() < 4096),
    }
}

/// A message: the first byte says which, the rest is the message.
///
/// # Panics
/// If something is taken that cannot be so, or is lost.
pub fn plugin_message(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else {
        return;
    };
    match kind % 6 {
        0 => devices(message),
        1 => device_stats(message),
        2 => driver_health(message),
        3 => drop(bytes::task_stats(message)),
        4 => schema(message),
        _ => configuration(message),
    }
}

fn devices(message: &[u8]) {
    let Ok(reported) = bytes::devices(message) else {
        return;
    };
    let Ok(groups) = groups_of(&reported) else {
        return;
    };
    assert_eq!(groups.len(), reported.len(), "two groups of one name");
    let announced: usize = reported.iter().map(|group| group.devices.len()).sum();
    let known = groups.iter().map(|(id, group)| {
        assert!(!id.vendor.is_empty() && !id.kind.is_empty() && !id.name.is_empty());
        assert!(!group.devices.contains_key(""));
        group.devices.len()
    });
    assert_eq!(known.sum::<usize>(), announced, "two devices of one name");
}

fn device_stats(message: &[u8]) {
    let Ok(reported) = bytes::device_stats(message) else {
        return;
    };
    let mut table = DeviceTable::default();
    let taken = table.report("plugin", reported);
    let all = table.all();
    assert!(taken.is_ok() || all.is_empty(), "a part was taken");
    // Whoever asks twice sees each group once.
    let mut twice = all.clone();
    twice.merge(&all);
    assert_eq!(twice, all);
}

fn driver_health(message: &[u8]) {
    let Ok(reported) = bytes::driver_health(message) else {
        return;
    };
    for reported in reported.attributes.values() {
        if let Ok(fact) = Attribute::of(reported) {
            assert!(fact.to_string().len() < message.len() + 400);
        }
    }
}

/// A schema that is taken can be used.
fn schema(message: &[u8]) {
    let Ok(spec) = bytes::schema(message) else {
        return;
    };
    let odd = ("\u{0}".to_owned(), Value::Null);
    for given in [BTreeMap::new(), BTreeMap::from([odd])] {
        for strict in [Strictness::Resolved, Strictness::Unresolved] {
            if let Err(problems) = decode(&spec, &given, strict) {
                assert!(!problems.is_empty());
            }
        }
    }
}

/// What can be read is read the same when it was written again.
fn configuration(message: &[u8]) {
    let Ok(value) = msgpack::decode(message) else {
        return;
    };
    let again = msgpack::encode(&value).and_then(|bytes| msgpack::decode(&bytes));
    assert_eq!(again.ok(), Some(value));
}
