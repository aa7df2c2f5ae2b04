//! What the measured agent runs.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::thread::sleep;
use std::time::Duration;

use crate::api::wall;

/// Answers every HTTP request on a port of this machine.
pub(crate) fn answer(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut request = [0; 4096];
    for connection in listener.incoming() {
        let Ok(mut connection) = connection else {
            continue;
        };
        // A request of a check is one packet.
        let _ = connection.read(&mut request);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        let _ = connection.write_all(answer);
    }
}

/// Says when it was started, and ends.
pub(crate) fn stamp(socket: &str) {
    let now = wall().as_nanos().to_le_bytes();
    UnixDatagram::unbound()
        .and_then(|own| own.send_to(&now, socket))
        .expect("nobody wants to know");
}

/// Writes lines that say when they were written, and waits.
pub(crate) fn chatter(count: u32, millis: u64) {
    let mut out = std::io::stdout().lock();
    for _ in 0..count {
        sleep(Duration::from_millis(millis));
        let line = format!("{}\n", wall().as_nanos());
        out.write_all(line.as_bytes()).unwrap();
        out.flush().unwrap();
    }
    sleep(Duration::from_secs(86_400));
}

/// Writes so many mebibytes of lines, and waits.
pub(crate) fn bulk(mebibytes: usize) {
    let line = [&[b'x'; 127][..], b"\n"].concat();
    let mebibyte = line.repeat(1 << 13);
    let mut out = std::io::stdout().lock();
    for _ in 0..mebibytes {
        out.write_all(&mebibyte).unwrap();
    }
    out.flush().unwrap();
    sleep(Duration::from_secs(86_400));
}
