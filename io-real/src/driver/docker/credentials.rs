//! Who the agent is for a registry: what the task says, else what files say, else what helpers say.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use drover_core::driver::config::RegistryAuth;
use serde_json::Value;

use super::helper::{self, HelperError};

/// The largest file that is read.
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
    let mut failure = None;
    for source in sources {
        let looked_up = match source {
            CredentialSource::File(path) => in_file(path, registry)?,
            CredentialSource::Helper(name) => helper::ask(name, registry)?.into(),
        };
        match looked_up {
            Lookup::Known(found) => return Ok(Some(found)),
            Lookup::Nothing => {}
            Lookup::Failed(why) => failure = failure.or(Some(why)),
        }
    }
    failure.map_or(Ok(None), Err)
}

/// What a source knows of a registry.
enum Lookup {
    Known(DockerCredentials),
    Nothing,
    /// Whom it asks fails: that matters if no other source knows more.
    Failed(String),
}

impl From<Option<DockerCredentials>> for Lookup {
    fn from(found: Option<DockerCredentials>) -> Lookup {
        found.map_or(Lookup::Nothing, Lookup::Known)
    }
}

/// The registry of an image: what is before the first slash, if it is a name of a host.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => HUB,
    }
}

fn in_file(path: &Path, registry: &str) -> Result<Lookup, String> {
    let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(|error| at(&error))?;
    file.take(MOST)
        .read_to_end(&mut text)
        .map_err(|error| at(&error))?;
    let config: Value = serde_json::from_slice(&text).map_err(|error| at(&error))?;
    if let Some(name) = helper_of(config.get("credHelpers").and_then(|it| it.get(registry))) {
        return Ok(helper::ask(name, registry)?.into());
    }
    let known = config.get("auths").and_then(Value::as_object);
    let same = |name: &str| name == registry || host_of(name) == host_of(registry);
    for (_, auth) in known.into_iter().flatten().filter(|(name, _)| same(name)) {
        if let Some(found) = of_entry(auth, registry).map_err(|why| at(&why))? {
            return Ok(Lookup::Known(found));
        }
    }
    let store = helper_of(config.get("credsStore"));
    Ok(store.map_or(Lookup::Nothing, |name| of_store(name, registry)))
}

/// What the helper for all registries says. Files of other machines name some that are not here.
fn of_store(name: &str, registry: &str) -> Lookup {
    match helper::ask(name, registry) {
        Ok(found) => found.into(),
        Err(HelperError::Missing(why)) => {
            tracing::warn!(
                why,
                registry,
                "no password is known: credsStore is not there"
            );
            Lookup::Nothing
        }
        Err(HelperError::Failed(why)) => Lookup::Failed(why),
    }
}

/// The name of a helper, if there is one.
fn helper_of(value: Option<&Value>) -> Option<&str> {
    value
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
}

/// What an entry of a file says; none if it says nothing. `docker login` leaves empty ones where a helper knows more.
fn of_entry(auth: &Value, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let text = |name: &str| {
        let text = auth.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let mut found = DockerCredentials {
        username: text("username"),
        password: text("password"),
        identitytoken: text("identitytoken"),
        registrytoken: text("registrytoken"),
        ..DockerCredentials::default()
    };
    if let Some(encoded) = text("auth") {
        let decoded = STANDARD
            .decode(encoded)
            .map_err(|error| error.to_string())?;
        let decoded = String::from_utf8_lossy(&decoded);
        if let Some((name, password)) = decoded.split_once(':') {
            found.username = Some(name.to_owned());
            found.password = Some(password.trim_end_matches('\0').to_owned());
        }
    }
    if found == DockerCredentials::default() {
        return Ok(None);
    }
    found.serveraddress = Some(registry.to_owned());
    Ok(Some(found))
}

fn host_of(name: &str) -> &str {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').next().unwrap_or(name)
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
        // One that a helper knows more of counts for nothing, here or of another name of the registry.
        let text = format!(
            r#"{{"auths":{{"reg.example:5000":{{}},"https://reg.example:5000/v1/":{{"auth":"{encoded}"}},"b.example":{{}}}}}}"#
        );
        fs::write(&path, text).unwrap();
        assert!(
            of_agent(&sources, "reg.example:5000/a/b:1")
                .unwrap()
                .is_some()
        );
        assert_eq!(of_agent(&sources, "b.example/a").unwrap(), None);
        fs::write(&path, "{").unwrap();
        assert!(of_agent(&sources, "busybox").is_err());
    }

    #[test]
    fn entry_of_file_goes_before_the_store_and_after_the_helper_of_its_registry() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let sources = [CredentialSource::File(path.clone())];
        let name_of = |rest: &str| {
            let auth = STANDARD.encode("joe:x");
            let text = format!(r#"{{"auths":{{"a.example":{{"auth":"{auth}"}}}},{rest}}}"#);
            fs::write(&path, text).unwrap();
            let found = |image| Ok(of_agent(&sources, image)?.and_then(|it| it.username));
            (found("a.example/x"), found("b.example/x"))
        };
        let joe = || Ok::<_, String>(Some("joe".to_owned()));
        // A store that is not there is nobody's; one that cannot be asked is missed where nothing else answers.
        let store = name_of(r#""credsStore":"drover-test-has-none""#);
        assert_eq!(store, (joe(), Ok(None)));
        let (known, unknown) = name_of(r#""credsStore":"no/name""#);
        assert_eq!(known, joe());
        assert!(unknown.unwrap_err().contains("no/name"));
        // Whom the file names for a registry is asked, and nobody is there.
        let (known, unknown) = name_of(r#""credHelpers":{"a.example":"drover-test-has-none"}"#);
        let why = known.unwrap_err();
        assert!(
            why.contains("docker-credential-drover-test-has-none"),
            "{why}"
        );
        assert_eq!(unknown, Ok(None));
    }
}
