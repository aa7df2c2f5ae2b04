//! Who the agent is for a registry: what the task says, else what files say, else what helpers say.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use drover_core::driver::config::RegistryAuth;
use serde_json::Value;

/// The largest file or answer that is read.
const MOST: u64 = 1 << 20;

/// The name under which the registry of images without one is known in files.
const HUB: &str = "https://index.docker.io/v1/";

/// Where passwords are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// A file as `docker login` writes it.
    File(PathBuf),
    /// The program `docker-credential-<name>`.
    Helper(String),
}

/// What a task says of itself, if it says anything.
pub(super) fn of_task(auth: &RegistryAuth) -> DockerCredentials {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    DockerCredentials {
        username: some(&auth.username),
        password: some(&auth.password),
        email: some(&auth.email),
        serveraddress: some(&auth.server_address),
        ..DockerCredentials::default()
    }
}

/// What the agent's sources say of the registry of an image; none if none of them knows it. Blocks.
///
/// # Errors
/// A source that cannot be asked.
pub(super) fn of_agent(
    sources: &[CredentialSource],
    image: &str,
) -> Result<Option<DockerCredentials>, String> {
    let registry = registry(image);
    for source in sources {
        let found = match source {
            CredentialSource::File(path) => in_file(path, registry),
            CredentialSource::Helper(name) => from_helper(name, registry),
        };
        if let Some(found) = found? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The registry of an image: what is before the first slash, if it is a name of a host.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => HUB,
    }
}

fn in_file(path: &Path, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(|error| at(&error))?;
    file.take(MOST)
        .read_to_end(&mut text)
        .map_err(|error| at(&error))?;
    let config: Value = serde_json::from_slice(&text).map_err(|error| at(&error))?;
    if let Some(helper) = config.get("credHelpers").and_then(|it| it.get(registry)) {
        return from_helper(helper.as_str().unwrap_or_default(), registry);
    }
    let known = config.get("auths").and_then(Value::as_object);
    let known = known.and_then(|auths| {
        let same = |name: &str| name == registry || host_of(name) == host_of(registry);
        auths
            .iter()
            .find(|(name, _)| same(name))
            .map(|(_, auth)| auth)
    });
    let Some(auth) = known else { return Ok(None) };
    let text = |name: &str| auth.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut found = DockerCredentials {
        username: text("username"),
        password: text("password"),
        identitytoken: text("identitytoken"),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    };
    if let Some(encoded) = text("auth") {
        let decoded = STANDARD.decode(encoded).map_err(|error| at(&error))?;
        let decoded = String::from_utf8_lossy(&decoded);
        if let Some((name, password)) = decoded.split_once(':') {
            found.username = Some(name.to_owned());
            found.password = Some(password.trim_end_matches('\0').to_owned());
        }
    }
    Ok(Some(found))
}

fn host_of(name: &str) -> &str {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').next().unwrap_or(name)
}

fn from_helper(name: &str, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("{name:?} is no name of a credential helper"));
    }
    let program = format!("docker-credential-{name}");
    let answer = ask(&program, registry).map_err(|error| format!("{program}: {error}"))?;
    let Some(answer) = answer else {
        return Ok(None);
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let (username, secret) = (text("Username"), text("Secret"));
    let mut found = DockerCredentials {
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    };
    match username.as_deref() {
        Some("<token>") => found.identitytoken = secret,
        _ => (found.username, found.password) = (username, secret),
    }
    Ok(Some(found))
}

/// Asks a helper; none if it knows nothing of the registry.
fn ask(program: &str, registry: &str) -> io::Result<Option<Value>> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read it says what is wrong by its end.
        let _ = io::Write::write_all(&mut stdin, registry.as_bytes());
    }
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST).read_to_end(&mut text)?;
    }
    if !child.wait()?.success() {
        return Ok(None);
    }
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(io::Error::other)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn file_of_docker_login_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let encoded = STANDARD.encode("joe:se:cret");
        let text =
            format!(r#"{{"auths":{{"https://reg.example:5000/v1/":{{"auth":"{encoded}"}}}}}}"#);
        fs::write(&path, text).unwrap();
        let sources = [CredentialSource::File(path.clone())];
        let found = of_agent(&sources, "reg.example:5000/a/b:1")
            .unwrap()
            .unwrap();
        assert_eq!(found.username.as_deref(), Some("joe"));
        assert_eq!(found.password.as_deref(), Some("se:cret"));
        assert_eq!(of_agent(&sources, "busybox").unwrap(), None);
        fs::write(&path, "{").unwrap();
        assert!(of_agent(&sources, "busybox").is_err());
    }
}
