//! Making a record that no version of ours would write.

use std::path::Path;
use std::time::{Duration, Instant};

/// Replaces a record's value by one that means nothing, and keeps the sum right: it was written so.
pub fn record(records: &Path, name: &str) {
    let db = open(records);
    let new = &b"\xff no record"[..];
    let old = db.insert(name, new).unwrap().unwrap();
    let sum = sum(&db);
    let hashes = sum[1] ^ hash(name, &old) ^ hash(name, new);
    put_sum(&db, [sum[0], hashes]);
}

/// Puts what stands under one name under another one too, and keeps the sum right.
pub fn copy(records: &Path, from: &str, to: &str) {
    let db = open(records);
    let new = db.get(from).unwrap().unwrap();
    let old = db.insert(to, &new).unwrap().unwrap();
    let sum = sum(&db);
    let hashes = sum[1] ^ hash(to, &old) ^ hash(to, &new);
    put_sum(&db, [sum[0], hashes]);
}

/// Makes a store as a version wrote it that did not number its commits.
pub fn number(data_dir: &Path) {
    let db = open(&data_dir.join("state/records"));
    let name = "sum.number";
    let old = db.remove(name).unwrap().unwrap();
    let sum = sum(&db);
    put_sum(&db, [sum[0] - 1, sum[1] ^ hash(name, &old)]);
    std::fs::remove_file(data_dir.join("last-commit")).unwrap();
}

fn hash(name: &str, value: &[u8]) -> u64 {
    drover_core::fnv::fnv1a(name.as_bytes().iter().chain(&[0]).chain(value))
}

/// How many records there are, and the sum of their hashes.
fn sum(db: &sled::Db) -> [u64; 2] {
    let sum = db.get("sum").unwrap().unwrap();
    [&sum[..8], &sum[8..]].map(|part| u64::from_le_bytes(part.try_into().unwrap()))
}

fn put_sum(db: &sled::Db, sum: [u64; 2]) {
    let bytes: Vec<u8> = sum.iter().flat_map(|part| part.to_le_bytes()).collect();
    db.insert("sum", bytes).unwrap();
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
