//! Tests of the record, here because the shim itself has no test harness.

use super::record::{Exit, FILE, Failure, LogFile, Process, Record, SIZE, SLOT, State};

fn full() -> Record {
    let mut record = Record::new([b'l'; 36], [b'b'; 36], State::Ended);
    record.seq = 7;
    record.shim = Process {
        pid: 11,
        start_time: 12,
    };
    record.task = Process {
        pid: 13,
        start_time: u64::MAX,
    };
    (record.started_ns, record.finished_ns) = (14, 15);
    record.exit = Exit::Signal(9);
    (record.oom, record.lost) = (true, true);
    record.failure = Failure {
        step: 16,
        errno: -17,
        path: 18,
    };
    record.oom_base = 19;
    record.logs = [
        LogFile {
            dev: 20,
            ino: 21,
            index: 22,
        },
        LogFile {
            dev: 23,
            ino: 24,
            index: 25,
        },
    ];
    record
}

#[test]
fn shim_record_round_trips() {
    let record = full();
    assert_eq!(Record::decode(&record.encode()), Some(record));
}

#[test]
fn changed_record_byte_is_detected() {
    let bytes = full().encode();
    for at in 0..SIZE {
        let mut torn = bytes;
        torn[at] ^= 0x40;
        assert_eq!(Record::decode(&torn), None, "byte {at}");
        assert_eq!(Record::decode(&bytes[..at]), None, "cut at {at}");
    }
}

#[test]
fn torn_write_keeps_older_slot() {
    let mut file = [0; FILE];
    assert_eq!(Record::newest(&file), None);
    let mut record = full();
    for _ in 0..4 {
        record.seq += 1;
        let at = record.offset() as usize;
        assert!(at == 0 || at == SLOT);
        file[at..at + SIZE].copy_from_slice(&record.encode());
        assert_eq!(Record::newest(&file), Some(record));
    }
    let at = record.offset() as usize;
    file[at + 100] ^= 1;
    assert_eq!(
        Record::newest(&file).map(|older| older.seq),
        Some(record.seq - 1)
    );
}

#[test]
fn wait_status_is_decoded() {
    assert_eq!(Exit::from_wait_status(0), Exit::Code(0));
    assert_eq!(Exit::from_wait_status(0x0700), Exit::Code(7));
    assert_eq!(Exit::from_wait_status(9), Exit::Signal(9));
    assert_eq!(Exit::from_wait_status(0x8b), Exit::Signal(11));
}
