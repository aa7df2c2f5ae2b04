//! Making a record that no version of ours would write.

use std::path::Path;
use std::time::{Duration, Instant};

/// Replaces a record's value by one that means nothing, and keeps the sum right: it was written so.
pub fn record(records: &Path, name: &str) {
    let db = open(records);
    let hash = |value: &[u8]| {
        let bytes = name.as_bytes().iter().chain(&[0]).chain(value);
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let old = db.insert(name, b"\xff no record").unwrap().unwrap();
    let mut sum: [u8; 16] = db.get("sum").unwrap().unwrap().as_ref().try_into().unwrap();
    let mut hashes = u64::from_le_bytes(sum[8..].try_into().unwrap());
    hashes ^= hash(&old) ^ hash(b"\xff no record");
    sum[8..].copy_from_slice(&hashes.to_le_bytes());
    db.insert("sum", &sum).unwrap();
    db.flush().unwrap();
}

/// Who closed it a moment ago may not have let go of its lock yet: that is a thread's work.
fn open(records: &Path) -> sled::Db {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let config = sled::Config::new().path(records).flush_every_ms(None);
        match config.open() {
            Err(sled::Error::Io(_)) if Instant::now() < until => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
}
