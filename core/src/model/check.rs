//! A check of a service, read from the block as it was written.

use serde::{Deserialize, Serialize};

use super::service::{Service, field};
use super::value::Value;
use crate::text::{parse_duration, quote};
use crate::time::Span;

/// The shortest interval and timeout.
const SHORTEST: Span = Span::secs(1);
/// The most bytes of a request's path, headers and body together.
const MAX_REQUEST: usize = 64 * 1024;
/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// What is checked of a service, how, and what follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Check {
    /// Its name, with references.
    pub name: String,
    /// How it is checked.
    pub kind: CheckKind,
    /// From one run to the next.
    pub interval: Span,
    /// How long one run may take; then it has failed.
    pub timeout: Span,
    /// The label of a port of the group, or a number; the service's port if empty.
    pub port: String,
    /// How the address is found; the host's if empty.
    pub address_mode: String,
    /// Of a group's service, the task that it is about; empty for what the service says.
    pub task: String,
    /// What it is taken to be before its first result.
    pub initial: CheckStatus,
    /// So many successes in a row make it pass.
    pub success_before_passing: u32,
    /// So many failures in a row make it fail.
    pub failures_before_critical: u32,
    /// So many failures in a row make it a warning; none do if 0.
    pub failures_before_warning: u32,
    /// What a roll-out makes of it.
    pub on_update: OnUpdate,
    /// When its task is restarted because of it, if ever.
    pub restart: Option<CheckRestart>,
}

/// How a service is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CheckKind {
    /// By a request that is answered with a status below 400.
    Http(HttpRequest),
    /// By a connection that is taken.
    Tcp,
    /// By `grpc.health.v1.Health/Check` of this service, which says that it serves.
    Grpc(String),
    /// By a program in the task: 0 is a success, 1 a warning, anything else a failure.
    Script {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// By what the task brings with it: the `HEALTHCHECK` of an image.
    Own,
}

/// A request by which a service is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HttpRequest {
    /// How TLS is spoken, if it is.
    pub tls: Option<Tls>,
    /// The method.
    pub method: String,
    /// The path, with what follows it.
    pub path: String,
    /// Headers; a name may be there more than once.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// How TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tls {
    /// The name that the certificate is for; the address if empty.
    pub server_name: String,
    /// Whether any certificate will do.
    pub skip_verify: bool,
}

/// What is thought of a service by a check.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum CheckStatus {
    /// Nothing is known yet.
    #[default]
    Pending,
    /// It works.
    Success,
    /// It works, and somebody should look.
    Warning,
    /// It does not work.
    Failure,
}

impl CheckStatus {
    /// The word that people and tools see.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckStatus::Pending => "pending",
            CheckStatus::Success => "success",
            CheckStatus::Warning => "warning",
            CheckStatus::Failure => "failure",
        }
    }
}

/// What a roll-out makes of a check that does not succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnUpdate {
    /// The allocation is not healthy.
    #[default]
    RequireHealthy,
    /// The same, except for warnings.
    IgnoreWarnings,
    /// Nothing.
    Ignore,
}

/// When a task is restarted because of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckRestart {
    /// After so many failures in a row.
    pub limit: u32,
    /// Failures count only so long after the start.
    pub grace: Span,
    /// Whether warnings are no failures.
    pub ignore_warnings: bool,
}

/// Why a check cannot be run: the field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckProblem {
    /// The field, as job files name it.
    pub field: &'static str,
    /// What is wrong.
    pub message: String,
}

impl CheckProblem {
    fn new(field: &'static str, message: impl Into<String>) -> CheckProblem {
        let message = message.into();
        CheckProblem { field, message }
    }
}

impl Check {
    /// The checks of a service, in the order of the job file.
    pub fn of_service(service: &Value) -> impl Iterator<Item = Result<Check, CheckProblem>> {
        let checks = field(service, "checks").and_then(Value::as_list);
        let checks = checks.into_iter().flatten();
        checks.map(|check| Check::read(check, service))
    }

    fn read(check: &Value, service: &Value) -> Result<Check, CheckProblem> {
        let text = |name| text(check, name);
        let own_or_of_service = |name| match text(name) {
            "" => self::text(service, name),
            own => own,
        };
        let name = match text("name") {
            "" => format!("service: {} check", quote(self::text(service, "name"))),
            given => given.to_owned(),
        };
        Ok(Check {
            name,
            kind: kind(check)?,
            interval: at_least_a_second(check, "interval")?,
            timeout: at_least_a_second(check, "timeout")?,
            port: text("port_label").to_owned(),
            address_mode: address_mode(text("address_mode"))?.to_owned(),
            task: own_or_of_service("task_name").to_owned(),
            initial: initial(text("initial_status"))?,
            success_before_passing: count(check, "success_before_passing")?,
            failures_before_critical: count(check, "failures_before_critical")?,
            failures_before_warning: count(check, "failures_before_warning")?,
            on_update: on_update(own_or_of_service("on_update"))?,
            restart: restart(check, service)?,
        })
    }

    /// Looks at what decides nothing here: whether it can be asked so.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), CheckProblem> {
        match &self.kind {
            CheckKind::Http(request) => request.check(),
            CheckKind::Tcp | CheckKind::Grpc(_) | CheckKind::Script { .. } | CheckKind::Own => {
                Ok(())
            }
        }
    }

    /// Whether it happens in its task: no address and port is needed for it.
    pub fn is_in_task(&self) -> bool {
        matches!(self.kind, CheckKind::Script { .. } | CheckKind::Own)
    }

    /// The texts of it that may refer to the environment or the node.
    pub fn has_references(&self) -> bool {
        let of_kind: Vec<&String> = match &self.kind {
            CheckKind::Http(request) => {
                let headers = request.headers.iter().map(|(_, value)| value);
                headers.chain([&request.path, &request.body]).collect()
            }
            CheckKind::Tcp | CheckKind::Own => Vec::new(),
            CheckKind::Grpc(service) => vec![service],
            CheckKind::Script { command, args } => args.iter().chain([command]).collect(),
        };
        let mut texts = of_kind.into_iter().chain([&self.name]);
        texts.any(|text| text.contains("${"))
    }
}

impl Service<'_> {
    /// Whether somebody shall look whether it works.
    pub fn has_checks(block: &Value) -> bool {
        let checks = field(block, "checks").and_then(Value::as_list);
        checks.is_some_and(|checks| !checks.is_empty())
    }
}

fn text<'a>(block: &'a Value, name: &str) -> &'a str {
    field(block, name).and_then(Value::as_str).unwrap_or("")
}

fn flag(block: &Value, name: &str) -> bool {
    field(block, name) == Some(&Value::Bool(true))
}

fn kind(check: &Value) -> Result<CheckKind, CheckProblem> {
    match text(check, "type").to_ascii_lowercase().as_str() {
        "http" => Ok(CheckKind::Http(request(check)?)),
        "tcp" => Ok(CheckKind::Tcp),
        "grpc" if flag(check, "grpc_use_tls") => {
            let message = "gRPC over TLS is not supported by this version";
            Err(CheckProblem::new("grpc_use_tls", message))
        }
        "grpc" => Ok(CheckKind::Grpc(text(check, "grpc_service").to_owned())),
        "script" if text(check, "command").is_empty() => {
            Err(CheckProblem::new("command", "a script check needs one"))
        }
        "script" => {
            let args = field(check, "args").and_then(Value::as_list);
            let args = args.into_iter().flatten().filter_map(Value::as_str);
            Ok(CheckKind::Script {
                command: text(check, "command").to_owned(),
                args: args.map(str::to_owned).collect(),
            })
        }
        "healthcheck" => Ok(CheckKind::Own),
        other => {
            let message = format!(
                "must be http, tcp, grpc, script or healthcheck, is {}",
                quote(other)
            );
            Err(CheckProblem::new("type", message))
        }
    }
}

fn request(check: &Value) -> Result<HttpRequest, CheckProblem> {
    let tls = match text(check, "protocol").to_ascii_lowercase().as_str() {
        "" | "http" => None,
        "https" => Some(Tls {
            server_name: text(check, "tls_server_name").to_owned(),
            skip_verify: flag(check, "tls_skip_verify"),
        }),
        other => {
            let message = format!("must be http or https, is {}", quote(other));
            return Err(CheckProblem::new("protocol", message));
        }
    };
    let method = match text(check, "method") {
        "" => "GET".to_owned(),
        given => given.to_ascii_uppercase(),
    };
    if !method.bytes().all(|c| c.is_ascii_uppercase()) {
        let message = format!("{} is no method", quote(&method));
        return Err(CheckProblem::new("method", message));
    }
    Ok(HttpRequest {
        tls,
        method,
        path: text(check, "path").to_owned(),
        headers: headers(check),
        body: text(check, "body").to_owned(),
    })
}

impl HttpRequest {
    /// Looks at what only whoever sends it cares about.
    fn check(&self) -> Result<(), CheckProblem> {
        if !self.path.starts_with('/') && !self.path.starts_with("${") {
            let message = format!("must begin with /, is {}", quote(&self.path));
            return Err(CheckProblem::new("path", message));
        }
        let bad = |(name, value): &&(String, String)| !is_header(name, value);
        if let Some((name, _)) = self.headers.iter().find(bad) {
            let message = format!("{} is no header", quote(name));
            return Err(CheckProblem::new("header", message));
        }
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len());
        let bytes = headers.sum::<usize>() + self.path.len() + self.body.len();
        if bytes > MAX_REQUEST || self.headers.len() > MAX_HEADERS {
            let message = format!(
                "path, headers and body have more than {MAX_REQUEST} bytes or {MAX_HEADERS} headers"
            );
            return Err(CheckProblem::new("body", message));
        }
        Ok(())
    }
}

fn headers(check: &Value) -> Vec<(String, String)> {
    let blocks = match field(check, "header") {
        Some(Value::Map(map)) => map,
        Some(_) | None => return Vec::new(),
    };
    let mut headers = Vec::new();
    for (name, values) in blocks {
        let one = core::slice::from_ref(values);
        let values = values.as_list().unwrap_or(one);
        for value in values.iter().filter_map(Value::as_str) {
            headers.push((name.clone(), value.to_owned()));
        }
    }
    headers
}

/// Whether this can stand in a request without being taken for anything else.
fn is_header(name: &str, value: &str) -> bool {
    let of_name = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    let of_value = |c: u8| c == b'\t' || (c >= b' ' && c != 0x7f);
    !name.is_empty() && name.bytes().all(of_name) && value.bytes().all(of_value)
}

fn span(block: &Value, name: &'static str) -> Result<Option<Span>, CheckProblem> {
    match field(block, name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int(nanoseconds)) => Ok(Some(Span(*nanoseconds))),
        Some(Value::String(text)) => match parse_duration(text) {
            Ok(span) => Ok(Some(span)),
            Err(_) => {
                let message = format!("{} is no duration", quote(text));
                Err(CheckProblem::new(name, message))
            }
        },
        Some(_) => Err(CheckProblem::new(name, "must be a duration")),
    }
}

fn at_least_a_second(check: &Value, name: &'static str) -> Result<Span, CheckProblem> {
    match span(check, name)? {
        Some(span) if span >= SHORTEST => Ok(span),
        Some(span) => {
            let message = format!("must be at least {SHORTEST}, is {span}");
            Err(CheckProblem::new(name, message))
        }
        None => Err(CheckProblem::new(name, "a check needs one")),
    }
}

fn count(block: &Value, name: &'static str) -> Result<u32, CheckProblem> {
    let given = field(block, name).and_then(Value::as_int).unwrap_or(0);
    u32::try_from(given).map_err(|_| {
        let message = format!("must be 0 or more, is {given}");
        CheckProblem::new(name, message)
    })
}

fn address_mode(mode: &str) -> Result<&str, CheckProblem> {
    match mode {
        "" | "host" | "driver" | "alloc" => Ok(mode),
        other => {
            let message = format!("must be host, driver or alloc, is {}", quote(other));
            Err(CheckProblem::new("address_mode", message))
        }
    }
}

fn initial(status: &str) -> Result<CheckStatus, CheckProblem> {
    match status {
        "" => Ok(CheckStatus::Pending),
        "passing" => Ok(CheckStatus::Success),
        "warning" => Ok(CheckStatus::Warning),
        "critical" => Ok(CheckStatus::Failure),
        other => {
            let message = format!("must be passing, warning or critical, is {}", quote(other));
            Err(CheckProblem::new("initial_status", message))
        }
    }
}

fn on_update(policy: &str) -> Result<OnUpdate, CheckProblem> {
    match policy {
        "" | "require_healthy" => Ok(OnUpdate::RequireHealthy),
        "ignore_warnings" => Ok(OnUpdate::IgnoreWarnings),
        "ignore" => Ok(OnUpdate::Ignore),
        other => {
            let message = format!(
                "must be require_healthy, ignore_warnings or ignore, is {}",
                quote(other)
            );
            Err(CheckProblem::new("on_update", message))
        }
    }
}

/// What the check says of restarts; what it leaves open the service says.
fn restart(check: &Value, service: &Value) -> Result<Option<CheckRestart>, CheckProblem> {
    let given = |block| field(block, "check_restart").filter(|it| it.as_map().is_some());
    let (own, of_service) = (given(check), given(service));
    let blocks = || own.into_iter().chain(of_service);
    let said = |name| blocks().find(|block| field(block, name).is_some());
    let limit = match said("limit") {
        Some(block) => count(block, "limit")?,
        None => 0,
    };
    if limit == 0 {
        return Ok(None);
    }
    let grace = match said("grace") {
        Some(block) => span(block, "grace")?,
        None => None,
    };
    let grace = grace.unwrap_or(SHORTEST);
    if grace < Span::ZERO {
        return Err(CheckProblem::new("check_restart", "grace is negative"));
    }
    Ok(Some(CheckRestart {
        limit,
        grace,
        ignore_warnings: said("ignore_warnings").is_some_and(|it| flag(it, "ignore_warnings")),
    }))
}
