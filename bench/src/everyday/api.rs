//! A client of Nomad's HTTP API: one connection.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

/// How long anything may take before the measurement is given up.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);
/// How long a client rests between two looks at the state, so that looking costs the agent little.
pub(crate) const REST: Duration = Duration::from_millis(5);

/// One connection to an agent.
pub(crate) struct Api {
    addr: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Api {
    pub(crate) async fn new(addr: &str) -> Api {
        Api::connect(addr).await.expect("the agent does not listen")
    }

    async fn connect(addr: &str) -> Result<Api, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let addr = addr.to_owned();
        Ok(Api { addr, sender })
    }

    /// One to a socket of this machine, if somebody listens there.
    pub(crate) async fn at_socket(path: &str) -> Option<Api> {
        let stream = UnixStream::connect(path).await.ok()?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let addr = "localhost".to_owned();
        Some(Api { addr, sender })
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Request<Full<Bytes>> {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.addr)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap()
    }

    /// Sends a request and gives the answer as soon as its head is there.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Response<Incoming> {
        let request = self.request(method, path, body);
        let answer = self.sender.send_request(request).await;
        answer.expect("the agent hung up")
    }

    /// Whether there is an answer, and it is of success.
    pub(crate) async fn answers(&mut self, path: &str) -> bool {
        let request = self.request("GET", path, "");
        let answer = self.sender.send_request(request).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// The answer's body, which must be of success.
    pub(crate) async fn bytes(&mut self, method: &str, path: &str, body: &str) -> Bytes {
        let answer = self.send(method, path, body).await;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(500)]);
        assert!(status.is_success(), "{method} {path}: {status}: {text}");
        bytes
    }

    pub(crate) async fn get(&mut self, path: &str) -> Value {
        let bytes = self.bytes("GET", path, "").await;
        serde_json::from_slice(&bytes).expect("no JSON")
    }

    /// What is answered, also if that is no success; nothing if it is no JSON.
    pub(crate) async fn get_json(&mut self, path: &str) -> Value {
        let body = self.send("GET", path, "").await.into_body();
        let bytes = body.collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    }

    pub(crate) async fn put(&mut self, path: &str, body: &Value) -> Value {
        let bytes = self.bytes("PUT", path, &body.to_string()).await;
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    }

    /// Submits a job. Returns the state's index.
    pub(crate) async fn submit(&mut self, job: &Value) -> u64 {
        let answer = self.put("/v1/jobs", &json!({ "Job": job })).await;
        answer["JobModifyIndex"].as_u64().unwrap()
    }

    /// Looks at something until `done` likes it.
    pub(crate) async fn wait_for(&mut self, path: &str, done: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let seen = self.get(path).await;
            if done(&seen) {
                return seen;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "nothing becomes of {path}: {seen}"
            );
            sleep(REST).await;
        }
    }

    /// The same by blocking queries: looks again as soon as something changed.
    pub(crate) async fn await_change(
        &mut self,
        path: &str,
        done: impl Fn(&Value) -> bool,
    ) -> Value {
        let begin = Instant::now();
        let mut index = 0;
        loop {
            let query = format!("{path}?index={index}&wait=10s");
            let answer = self.send("GET", &query, "").await;
            let header = answer.headers().get("x-nomad-index");
            let changed = header.and_then(|value| value.to_str().ok()?.parse().ok());
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let seen = serde_json::from_slice(&bytes).unwrap_or_default();
            if done(&seen) {
                return seen;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "nothing becomes of {path}: {seen}"
            );
            index = changed.unwrap_or(0);
        }
    }

    /// The only allocation of a job, once it runs.
    pub(crate) async fn running(&mut self, job: &str) -> String {
        let path = format!("/v1/job/{job}/allocations");
        let runs = |list: &Value| list[0]["ClientStatus"] == "running";
        let list = self.wait_for(&path, runs).await;
        list[0]["ID"].as_str().unwrap().to_owned()
    }
}

/// Waits until the node is ready and its driver is known.
pub(crate) async fn await_node(addr: &str) {
    let begin = Instant::now();
    loop {
        if let Ok(mut api) = Api::connect(addr).await {
            let nodes = api.get_json("/v1/nodes").await;
            let driver = &nodes[0]["Drivers"]["raw_exec"];
            if nodes[0]["Status"] == "ready" && driver["Healthy"] == true {
                return;
            }
        }
        assert!(begin.elapsed() < TIMEOUT, "the node is not ready");
        sleep(REST).await;
    }
}

pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Of a list of times, the one that so many percent are not above, in microseconds.
pub(crate) fn quantile(list: &mut [Duration], percent: usize) -> u128 {
    list.sort_unstable();
    list[(list.len() * percent / 100).min(list.len() - 1)].as_micros()
}
