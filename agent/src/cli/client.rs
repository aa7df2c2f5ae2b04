//! What commands ask of an agent, which is usually on the same machine.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drover_io_real::connect::{Connect, Connection as Way, Tcp};
use drover_io_real::http_client::{self, Trouble, encoded};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config, tungstenite};

use drover_tls::TlsError;

use super::args::Connection;
use super::denied;
use super::exit_code::Failure;
use super::place::Place;
use super::secure::TlsOptions;
use super::token::{Secret, Token};
use crate::json::{strip_nulls, typed};

/// Where an agent listens unless told otherwise.
pub const DEFAULT_ADDRESS: &str = "http://127.0.0.1:4646";
/// The header with the token.
const TOKEN: HeaderName = HeaderName::from_static("x-nomad-token");
/// The variable that users of Nomad put the token into.
const NOMAD_TOKEN: &str = "NOMAD_TOKEN";
/// The most bytes of an answer that is kept whole.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A websocket to an agent.
pub type Socket = WebSocketStream<Box<dyn Way>>;

/// Asks one agent.
#[derive(Clone, Debug)]
pub struct Client {
    place: Place,
    /// How agents are spoken to that are at an address with https.
    tls: TlsOptions,
    namespace: Option<String>,
    region: Option<String>,
    /// What is shown to the agent there, and to no other.
    token: Option<Token>,
    /// The variable that such a token is looked for in.
    variable: &'static str,
    network: Arc<dyn Connect>,
    /// How long a whole answer may take; as long as it wants if none.
    limit: Option<Duration>,
}

/// An answer with the state's index.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    /// For the next blocking query; 0 if the agent does not say.
    pub index: u64,
    /// Where the next page of a list begins, if there is one.
    pub next_token: Option<String>,
    /// What it says.
    pub value: T,
}

impl Client {
    /// A client by the options and the environment.
    ///
    /// # Errors
    /// The address or the token makes no sense.
    pub fn new(
        options: &Connection,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Client, Failure> {
        let chosen = |given: &Option<String>, name: &str| {
            let own = |prefix: &str| env(&format!("{prefix}_{name}"));
            let value = given
                .clone()
                .or_else(|| own("DROVER"))
                .or_else(|| own("NOMAD"));
            value.filter(|value| !value.is_empty())
        };
        let address = chosen(&options.address, "ADDR");
        let variables = ["DROVER_TOKEN", NOMAD_TOKEN];
        let token = Token::find("-token", options.token.as_ref(), &variables, &env)?;
        let file = |given: &Option<PathBuf>, name: &str| {
            let own = |prefix: &str| env(&format!("{prefix}_{name}")).map(PathBuf::from);
            let file = given
                .clone()
                .or_else(|| own("DROVER"))
                .or_else(|| own("NOMAD"));
            file.filter(|file| !file.as_os_str().is_empty())
        };
        let skips = chosen(&None, "SKIP_VERIFY").is_some_and(|it| it == "1" || it == "true");
        let tls = TlsOptions {
            ca_cert: file(&options.ca_cert, "CACERT"),
            ca_path: file(&options.ca_path, "CAPATH"),
            client_cert: file(&options.client_cert, "CLIENT_CERT"),
            client_key: file(&options.client_key, "CLIENT_KEY"),
            server_name: chosen(&options.tls_server_name, "TLS_SERVER_NAME"),
            skip_verify: options.tls_skip_verify || skips,
        };
        Ok(Client {
            place: Place::of(address.as_deref().unwrap_or(DEFAULT_ADDRESS), &tls)?,
            tls,
            namespace: chosen(&options.namespace, "NAMESPACE"),
            region: chosen(&options.region, "REGION"),
            token,
            variable: NOMAD_TOKEN,
            network: Arc::new(Tcp),
            limit: None,
        })
    }

    /// The same over another network.
    #[must_use]
    pub fn over(self, network: Arc<dyn Connect>) -> Client {
        Client { network, ..self }
    }

    /// The same, whose whole answers come within this time or not at all: for an agent that is not next
    /// door, and on the way to which a connection may be lost without a sign.
    #[must_use]
    pub fn within(self, limit: Duration) -> Client {
        let limit = Some(limit);
        Client { limit, ..self }
    }

    /// The same for another agent, which is not shown the token of this one.
    ///
    /// # Errors
    /// The address makes no sense.
    pub fn at(&self, address: &str) -> Result<Client, Failure> {
        let place = Place::of(address, &self.tls)?;
        let is_same = place.url() == self.place.url();
        Ok(Client {
            place,
            token: self.token.clone().filter(|_| is_same),
            ..self.clone()
        })
    }

    /// The same with a token of the option or the variable of these names, if one of them is there.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn with_token(
        self,
        option: &'static str,
        given: Option<&Secret>,
        variable: &'static str,
    ) -> Result<Client, Failure> {
        let env = |name: &str| std::env::var(name).ok();
        let found = Token::find(option, given, &[variable], env)?;
        Ok(Client {
            token: found.or(self.token),
            variable,
            ..self
        })
    }

    /// Where the agent is.
    pub fn url(&self) -> String {
        self.place.url()
    }

    /// The socket of this machine behind which the agent is, if there is one between.
    pub fn socket(&self) -> Option<&Path> {
        match &self.place {
            Place::Socket(path) => Some(path),
            Place::Network { .. } => None,
        }
    }

    /// The option or variable that the token of requests is from; none if they have none.
    pub fn token_source(&self) -> Option<&'static str> {
        Some(self.token.as_ref()?.source)
    }

    /// The options of curl that speak TLS as this client does.
    pub fn curl_tls(&self) -> Vec<String> {
        let file = |name: &str, file: &Option<PathBuf>| {
            let file = file.as_ref()?;
            Some(format!("{name} {}", file.display()))
        };
        let tls = &self.tls;
        let files = [
            file("--cacert", &tls.ca_cert),
            file("--capath", &tls.ca_path),
            file("--cert", &tls.client_cert),
            file("--key", &tls.client_key),
            tls.skip_verify.then(|| "--insecure".to_owned()),
        ];
        files.into_iter().flatten().collect()
    }

    /// Reads something.
    ///
    /// # Errors
    /// The agent does not answer, or with an error.
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Failure> {
        Ok(self.read(path, query).await?.value)
    }

    /// Reads something with the state's index.
    ///
    /// # Errors
    /// The agent does not answer, or with an error.
    pub async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Answer<T>, Failure> {
        let answer = async {
            let response = self.send(Method::GET, path, query, None).await?;
            let header = |name: &str| response.headers().get(name)?.to_str().ok();
            let index = header("x-nomad-index").and_then(|value| value.parse().ok());
            let next_token = header("x-nomad-nexttoken").filter(|token| !token.is_empty());
            let next_token = next_token.map(str::to_owned);
            let value = decode(&whole(response).await?)?;
            Ok(Answer {
                index: index.unwrap_or(0),
                next_token,
                value,
            })
        };
        self.in_time(answer).await
    }

    /// Changes something.
    ///
    /// # Errors
    /// The agent does not answer, or with an error.
    pub async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<T, Failure> {
        let body = body.map(|body| Bytes::from(body.to_string()));
        let answer = async { decode(&whole(self.send(method, path, query, body).await?).await?) };
        self.in_time(answer).await
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(limit) = self.limit else {
            return answer.await;
        };
        let late = |_| {
            let (at, seconds) = (self.url(), limit.as_secs());
            Failure::new(format!("no answer from {at} within {seconds} s"))
        };
        timeout(limit, answer)
            .await
            .unwrap_or_else(|over| Err(late(over)))
    }

    /// Sends a request. An answer that is an error is a failure.
    ///
    /// # Errors
    /// The agent does not answer, or with an error.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<Response<Incoming>, Failure> {
        let target = self.target(path, query)?;
        let response = self
            .exchange(method, target, body.unwrap_or_default())
            .await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = whole(response).await?;
        Err(self.refused(status.as_u16(), &String::from_utf8_lossy(&text)))
    }

    fn refused(&self, status: u16, text: &str) -> Failure {
        let hint = denied::hint(status, text, self.token_source(), self.variable);
        Failure::status(status, text).or_try(hint)
    }

    /// Sends a request as it is, and gives back whatever comes.
    ///
    /// # Errors
    /// The agent does not answer.
    pub async fn exchange(
        &self,
        method: Method,
        target: Uri,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        self.exchange_with(method, target, &[], body).await
    }

    /// The same with more headers, which win over those that all requests have.
    ///
    /// # Errors
    /// The agent does not answer.
    pub async fn exchange_with(
        &self,
        method: Method,
        target: Uri,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(method).uri(target);
        let has_own = headers.iter().any(|(name, _)| name == TOKEN);
        if let Some(token) = self.token.as_ref().filter(|_| !has_own) {
            request = request.header(TOKEN, &token.header);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let way = self.place.way(&self.network);
        let answer = http_client::send(&*way, self.place.authority(), request, body).await;
        answer.map_err(|trouble| self.failure(&trouble))
    }

    /// Opens a websocket, with messages of so many bytes at most.
    ///
    /// # Errors
    /// The agent does not answer, or with an error.
    pub async fn websocket(
        &self,
        path: &str,
        query: &[(&str, &str)],
        max_message: usize,
    ) -> Result<Socket, Failure> {
        let target = self.target(path, query)?;
        // Whether it is encrypted is not said in it.
        let address = format!("ws://{}{target}", self.place.authority());
        let request = address.into_client_request();
        let mut request = request.map_err(|error| Failure::new(format!("no request: {error}")))?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(TOKEN, token.header.clone());
        }
        let way = self.place.way(&self.network);
        let connected = timeout(CONNECT, way.connect(self.place.authority())).await;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it took too long");
        let connected = connected.map_err(late).and_then(|connected| connected);
        let connection = connected.map_err(|error| self.failure(&Trouble::Unconnected(error)))?;
        let config = WebSocketConfig::default()
            .write_buffer_size(0)
            .max_message_size(Some(max_message))
            .max_frame_size(Some(max_message));
        let upgraded = client_async_with_config(request, connection, Some(config)).await;
        match upgraded {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => {
                let body = response.body().clone().unwrap_or_default();
                let text = String::from_utf8_lossy(&body);
                Err(self.refused(response.status().as_u16(), &text))
            }
            Err(error) => {
                let at = self.url();
                Err(Failure::new(format!(
                    "the agent at {at} opens no websocket: {error}"
                )))
            }
        }
    }

    fn failure(&self, trouble: &Trouble) -> Failure {
        let at = self.url();
        let why = match trouble {
            Trouble::Broken(_) => {
                return Failure::new(format!(
                    "the agent at {at} closed the connection: {trouble}"
                ));
            }
            Trouble::Request(_) => return Failure::new(trouble.to_string()),
            Trouble::Unconnected(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "nothing listens there".to_owned()
            }
            Trouble::Unconnected(error) => match TlsError::within(error) {
                Some(why) => return Failure::new(format!("no TLS with the agent at {at}: {why}")),
                None => error.to_string(),
            },
        };
        Failure::new(format!(
            "no agent answers at {at}: {why}\nStart one with `drover agent` or `drover up FILE`, \
             or set its address with -address or DROVER_ADDR."
        ))
    }

    /// The path and query of a request, with what every request carries.
    ///
    /// # Errors
    /// It cannot be written so.
    pub fn target(&self, path: &str, query: &[(&str, &str)]) -> Result<Uri, Failure> {
        let mut target = path.to_owned();
        let given = |name: &str| query.iter().any(|(key, _)| *key == name);
        let common = [("namespace", &self.namespace), ("region", &self.region)];
        let common = common.into_iter().filter(|(name, _)| !given(name));
        let common = common.filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let mut separator = if path.contains('?') { '&' } else { '?' };
        for (name, value) in query.iter().copied().chain(common) {
            target.push(separator);
            target.push_str(&format!("{}={}", encoded(name), encoded(value)));
            separator = '&';
        }
        target
            .parse()
            .map_err(|error| Failure::new(format!("no path: {target}: {error}")))
    }
}

/// The whole body of an answer.
///
/// # Errors
/// It breaks off, or is larger than anything that makes sense.
pub async fn whole(response: Response<Incoming>) -> Result<Bytes, Failure> {
    let whole = http_client::whole(response.into_body(), MAX_ANSWER).await;
    whole.map_err(|error| Failure::new(format!("the connection broke during the answer: {error}")))
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let mut value = if bytes.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(bytes).map_err(strange)?
    };
    strip_nulls(&mut value);
    decoded(&value)
}

/// What a part of an answer is as a type.
///
/// # Errors
/// It is of another shape.
pub fn decoded<T: DeserializeOwned>(answer: &Value) -> Result<T, Failure> {
    typed(answer).map_err(strange)
}

/// What the agent answered is nothing that it should answer.
pub(super) fn strange(error: impl Display) -> Failure {
    Failure::new(format!("the agent's answer cannot be decoded: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_overrides_environment() {
        let env = |name: &str| match name {
            "DROVER_ADDR" => Some("http://one:1".to_owned()),
            "NOMAD_ADDR" => Some("http://two:2".to_owned()),
            "NOMAD_NAMESPACE" => Some("team/a".to_owned()),
            _ => None,
        };
        let client = Client::new(&Connection::default(), env).unwrap();
        assert_eq!(client.url(), "http://one:1");
        let target = client.target("/v1/jobs", &[("prefix", "a b")]).unwrap();
        assert_eq!(
            target.to_string(),
            "/v1/jobs?prefix=a%20b&namespace=team%2Fa"
        );
        let options = Connection {
            address: Some("three:3".to_owned()),
            ..Connection::default()
        };
        let client = Client::new(&options, env).unwrap();
        assert_eq!(client.url(), "http://three:3");
    }

    #[test]
    fn token_is_for_the_configured_address_alone() {
        let env = |name: &str| (name == "NOMAD_TOKEN").then(|| "hunter2".to_owned());
        let client = Client::new(&Connection::default(), env).unwrap();
        assert_eq!(client.token_source(), Some("NOMAD_TOKEN"));
        let same = client.at("127.0.0.1:4646").unwrap();
        assert_eq!(same.token_source(), Some("NOMAD_TOKEN"));
        for other in [
            "http://127.0.0.1:4647",
            "https://127.0.0.1:4646",
            "unix:///run/x.sock",
        ] {
            // Whom TLS believes is of no interest here.
            let tls = TlsOptions {
                skip_verify: true,
                ..TlsOptions::default()
            };
            let client = Client {
                tls,
                ..client.clone()
            };
            assert_eq!(client.at(other).unwrap().token_source(), None, "{other}");
        }
        assert!(!format!("{client:?}").contains("hunter2"));
    }
}
