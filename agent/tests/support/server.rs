//! A web server that does what each test wants of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::TIMEOUT;

/// What a server does when something is asked for.
#[derive(Clone)]
pub enum Does {
    /// It gives these bytes.
    Gives(Vec<u8>),
    /// It sends on.
    SendsOn(String),
    /// It begins, and says no more. What was asked is told, with the connection.
    Stalls(Sender<TcpStream>),
}

/// A web server.
pub struct Server {
    pub addr: String,
    /// Everything that was asked: the first line, and the headers.
    asked: Arc<Mutex<Vec<String>>>,
    does: Arc<Mutex<BTreeMap<String, Does>>>,
}

impl Server {
    pub fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            addr: listener.local_addr().unwrap().to_string(),
            asked: Arc::default(),
            does: Arc::default(),
        };
        let (asked, does) = (server.asked.clone(), server.does.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (asked, does) = (asked.clone(), does.clone());
                thread::spawn(move || serve(stream.unwrap(), &asked, &does));
            }
        });
        server
    }

    pub fn gives(&self, path: &str, bytes: &[u8]) {
        self.does(path, Does::Gives(bytes.to_vec()));
    }

    pub fn does(&self, path: &str, what: Does) {
        self.does.lock().unwrap().insert(path.to_owned(), what);
    }

    pub fn stalls(&self, path: &str) -> Receiver<TcpStream> {
        let (to, from) = channel();
        self.does(path, Does::Stalls(to));
        from
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// What was asked for, with all its headers, in small letters.
    pub fn asked(&self, path: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let first = format!("get {path} ");
        asked
            .iter()
            .filter(|one| one.starts_with(&first))
            .cloned()
            .collect()
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<String>>, does: &Mutex<BTreeMap<String, Does>>) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    asked.lock().unwrap().push(head.to_lowercase());
    let name = path.split('?').next().unwrap_or("");
    let what = does.lock().unwrap().get(name).cloned();
    // Whoever asked may have gone away.
    let _ = match what {
        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        Some(Does::Gives(bytes)) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                bytes.len()
            );
            stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(&bytes))
        }
        Some(Does::SendsOn(to)) => {
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(head.as_bytes())
        }
        Some(Does::Stalls(sender)) => {
            let begun = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx");
            let _ = sender.send(stream.try_clone().unwrap());
            begun
        }
    };
    // A connection that stalls is held by the test.
}

/// Waits until whoever asked has gone away.
pub fn is_gone(mut stream: TcpStream) {
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut rest = Vec::new();
    // Closed or reset: both are the end.
    let ended = stream.read_to_end(&mut rest);
    let waited = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
    assert!(!ended.is_err_and(waited), "whoever fetched lives on");
}
