//! Networks described for CNI: the network modes `cni/<name>`.

use drover_core::fingerprint::Fingerprint;

use super::super::{Context, ProbeError};

/// How many descriptions are read, and how long each may be.
const MOST: usize = 64;
const LONGEST: usize = 256 * 1024;

/// How many names are looked at for them.
const NAMES: usize = 4096;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    let dir = context.settings.cni_config_dir.display().to_string();
    let files = context.root.names(&dir, NAMES)?;
    for file in files.iter().filter(|name| is_description(name)).take(MOST) {
        match network(context, &format!("{dir}/{file}")) {
            Ok(Some(name)) => {
                found.resources.network_modes.insert(format!("cni/{name}"));
            }
            Ok(None) => {}
            // One bad file costs its own network and no other.
            Err(why) => tracing::warn!("no network of {dir}/{file}: {why}"),
        }
    }
    Ok(found)
}

fn is_description(file: &str) -> bool {
    [".conf", ".conflist", ".json"]
        .iter()
        .any(|ending| file.ends_with(ending))
}

/// The name of the network that a file describes.
fn network(context: &Context, path: &str) -> Result<Option<String>, String> {
    let text = context.root.text(path, LONGEST);
    let Some(text) = text.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let network: Network = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    if network.name.is_empty() || !network.name.chars().all(letters) || network.name.len() > 128 {
        return Err(format!("{:?} is no name of a network", network.name));
    }
    Ok(Some(network.name))
}

#[derive(serde::Deserialize)]
struct Network {
    name: String,
}
