//! A web server that does what each test wants of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use super::TIMEOUT;

/// What a server does when something is asked for.
#[derive(Clone)]
pub enum Does {
    /// It gives these bytes.
    Gives(Vec<u8>),
    /// It sends on.
    SendsOn(String),
    /// It answers with this status.
    Refuses(u16),
    /// It begins, and says no more. What was asked is told, with the connection.
    Stalls(Sender<TcpStream>),
}

/// A web server.
pub struct Server {
    pub addr: String,
    /// Everything that was asked: the first line, and the headers.
    asked: Arc<Mutex<Vec<String>>>,
    posts: Arc<Posts>,
    does: Arc<Mutex<BTreeMap<String, Does>>>,
}

/// Everything that was handed in: where, with which head, and what.
#[derive(Default)]
struct Posts {
    all: Mutex<Vec<(String, String, String)>>,
    more: Condvar,
}

impl Server {
    pub fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            addr: listener.local_addr().unwrap().to_string(),
            asked: Arc::default(),
            posts: Arc::default(),
            does: Arc::default(),
        };
        let (asked, does) = (server.asked.clone(), server.does.clone());
        let posts = server.posts.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (asked, does, posts) = (asked.clone(), does.clone(), posts.clone());
                thread::spawn(move || serve(stream.unwrap(), &asked, &posts, &does));
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

    /// What was handed in at this path; waits a while for more than `seen`, unless that is 0.
    pub fn posted(&self, path: &str, seen: usize) -> Vec<String> {
        let of_path = |all: &Vec<(String, String, String)>| {
            let of_path = all.iter().filter(|(at, _, _)| at == path);
            of_path.map(|(_, _, body)| body.clone()).collect::<Vec<_>>()
        };
        let all = self.posts.all.lock().unwrap();
        let found = of_path(&all);
        if found.len() > seen || seen == 0 && !found.is_empty() {
            return found;
        }
        let (all, _) = self
            .posts
            .more
            .wait_timeout(all, Duration::from_millis(100))
            .unwrap();
        of_path(&all)
    }

    /// With which heads, in small letters.
    pub fn heads(&self, path: &str) -> Vec<String> {
        let all = self.posts.all.lock().unwrap();
        let of_path = all.iter().filter(|(at, _, _)| at == path);
        of_path.map(|(_, head, _)| head.clone()).collect()
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

fn serve(
    mut stream: TcpStream,
    asked: &Mutex<Vec<String>>,
    posts: &Posts,
    does: &Mutex<BTreeMap<String, Does>>,
) {
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
    if head.starts_with("POST ") {
        let Some(body) = body(&mut reader, &head) else {
            return;
        };
        let post = (name.to_owned(), head.to_lowercase(), body);
        posts.all.lock().unwrap().push(post);
        posts.more.notify_all();
    }
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
        Some(Does::Refuses(status)) => {
            let head = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(head.as_bytes())
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

/// What comes after a head.
fn body(reader: &mut impl Read, head: &str) -> Option<String> {
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1)?;
    let length = length.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(String::from_utf8_lossy(&body).into_owned())
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
