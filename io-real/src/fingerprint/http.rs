//! Asks the service with which a cloud describes a machine to itself: plain HTTP on one address.
//! No names are resolved, no redirection followed, and everything has a bound.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ureq::http::StatusCode;
use ureq::{Agent, RequestBuilder};

use super::error::ProbeError;
use crate::http_client::authority;

/// How long an answer is at most.
const MOST: usize = 64 * 1024;

/// A service, and until when it may answer all that it is asked.
pub(super) struct Service {
    base: String,
    agent: Agent,
    deadline: Instant,
}

/// A header that goes with a question.
pub(super) type Header<'a> = (&'a str, &'a str);

type Answer = Result<ureq::http::Response<ureq::Body>, ureq::Error>;

impl Service {
    /// The service at `base`, such as `http://169.254.169.254`.
    pub(super) fn new(base: &str, timeout: Duration) -> Result<Service, ProbeError> {
        let by_number = |at: &String| at.parse::<SocketAddr>().is_ok();
        let unfit = || ProbeError::Setting {
            name: "the address of the cloud's service",
            why: format!("{base:?} is not http:// and an address by number"),
        };
        let at = authority(base).filter(by_number).ok_or_else(unfit)?;
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .max_response_header_size(MOST)
            .build();
        Ok(Service {
            base: format!("http://{at}"),
            agent: config.new_agent(),
            deadline: Instant::now() + timeout,
        })
    }

    /// What is at `path`, without the blanks around it; `None` if nothing is there.
    pub(super) fn get(
        &self,
        path: &str,
        headers: &[Header<'_>],
    ) -> Result<Option<String>, ProbeError> {
        let question = self.agent.get(format!("{}{path}", self.base));
        self.read(path, self.with(question, headers).call())
    }

    /// Puts nothing at `path`, and answers as [`Service::get`].
    pub(super) fn put(
        &self,
        path: &str,
        headers: &[Header<'_>],
    ) -> Result<Option<String>, ProbeError> {
        let question = self.agent.put(format!("{}{path}", self.base));
        self.read(path, self.with(question, headers).send_empty())
    }

    fn with<B>(&self, question: RequestBuilder<B>, headers: &[Header<'_>]) -> RequestBuilder<B> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let question = question.config().timeout_global(Some(left)).build();
        headers.iter().fold(question, |question, (name, value)| {
            question.header(*name, *value)
        })
    }

    fn read(&self, path: &str, answer: Answer) -> Result<Option<String>, ProbeError> {
        let mut answer = answer.map_err(|error| self.failed(path, error))?;
        match answer.status() {
            StatusCode::OK => {
                let body = answer.body_mut().with_config().limit(MOST as u64);
                let text = body.lossy_utf8(true).read_to_string();
                let text = text.map_err(|error| self.failed(path, error))?;
                Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
            }
            StatusCode::NOT_FOUND => Ok(None),
            other => Err(self.reported(path, format!("status {other}"))),
        }
    }

    fn failed(&self, path: &str, error: ureq::Error) -> ProbeError {
        // As the system calls it, whoever noticed it.
        let slow = matches!(error, ureq::Error::Timeout(_));
        let error = match slow {
            true => io::Error::from(io::ErrorKind::TimedOut),
            false => error.into_io(),
        };
        self.reported(path, error.to_string())
    }

    fn reported(&self, path: &str, why: String) -> ProbeError {
        ProbeError::Service {
            what: format!("{}{path}", self.base),
            why,
        }
    }
}

/// A text that may be sent as a header's value.
pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}
