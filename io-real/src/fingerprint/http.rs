//! Asks the service with which a cloud tells a machine about itself: plain HTTP on one address.
//! No names are resolved, no redirection followed, and everything has a bound.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::error::ProbeError;

/// How long an answer is at most.
const MOST: usize = 64 * 1024;

/// A service, and until when it may answer all that it is asked.
pub(super) struct Service {
    base: String,
    address: SocketAddr,
    deadline: Instant,
}

/// A header that goes with a question.
pub(super) type Header<'a> = (&'a str, &'a str);

impl Service {
    /// The service at `base`, such as `http://169.254.169.254`.
    pub(super) fn new(base: &str, patience: Duration) -> Result<Service, ProbeError> {
        let authority = base.strip_prefix("http://").unwrap_or_default();
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let address = authority
            .parse()
            .or_else(|_| format!("{authority}:80").parse())
            .map_err(|_| ProbeError::Setting {
                name: "the address of the cloud's service",
                why: format!("{base:?} is not http:// and an address by number"),
            })?;
        Ok(Service {
            base: base.to_owned(),
            address,
            deadline: Instant::now() + patience,
        })
    }

    /// What is at `path`, without the blanks around it; `None` if nothing is there.
    pub(super) fn get(
        &self,
        path: &str,
        headers: &[Header<'_>],
    ) -> Result<Option<String>, ProbeError> {
        self.ask("GET", path, headers)
    }

    /// Puts nothing at `path`, and answers as [`Service::get`].
    pub(super) fn put(
        &self,
        path: &str,
        headers: &[Header<'_>],
    ) -> Result<Option<String>, ProbeError> {
        self.ask("PUT", path, headers)
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[Header<'_>],
    ) -> Result<Option<String>, ProbeError> {
        let answer = self
            .exchange(&self.question(method, path, headers))
            .map_err(|error| self.failed(path, &error))?;
        let (code, body) = parse(&answer).ok_or_else(|| self.failed(path, &"it is no HTTP"))?;
        match code {
            200 => {
                let text = String::from_utf8_lossy(&body);
                Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
            }
            404 => Ok(None),
            other => Err(self.failed(path, &format!("status {other}"))),
        }
    }

    fn question(&self, method: &str, path: &str, headers: &[Header<'_>]) -> String {
        let mut question = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            question.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "PUT" {
            question.push_str("Content-Length: 0\r\n");
        }
        question.push_str("Connection: close\r\n\r\n");
        question
    }

    fn exchange(&self, question: &str) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&self.address, self.left()?)?;
        stream.set_write_timeout(Some(self.left()?))?;
        stream.write_all(question.as_bytes())?;
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            stream.set_read_timeout(Some(self.left()?))?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(answer),
                Ok(length) => answer.extend_from_slice(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
            if answer.len() > MOST {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            // Some keep the connection open although they were asked not to.
            if is_whole(&answer) {
                return Ok(answer);
            }
        }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }

    fn failed(&self, path: &str, why: &dyn std::fmt::Display) -> ProbeError {
        ProbeError::Service {
            what: format!("{}{path}", self.base),
            why: why.to_string(),
        }
    }
}

/// A text that may be sent as a header's value.
pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether an answer is there as far as it says that it goes.
fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = split(answer) else {
        return false;
    };
    if is_chunked(&head) {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = header(&head, "content-length").and_then(|value| value.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

/// The status and the body of an answer.
fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (head, body) = split(answer)?;
    let status = head.lines().next()?.strip_prefix("HTTP/1.")?;
    let code = status.split(' ').nth(1)?.parse().ok()?;
    let body = if is_chunked(&head) {
        unchunk(body)?
    } else {
        body.to_vec()
    };
    Some((code, body))
}

fn split(answer: &[u8]) -> Option<(String, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(answer.get(..end)?).into_owned();
    Some((head, answer.get(end + 4..)?))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
}

/// Puts the pieces of a body together.
fn unchunk(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(body.get(..end)?).ok()?;
        let size = size.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        let rest = body.get(end + 2..)?;
        whole.extend_from_slice(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}
