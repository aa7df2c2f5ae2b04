//! An image that a container is made of, and what of it must not reach the engine.
//!
//! An engine gives a container the labels of its image. Some mean something to the engine, to what runs below it, or
//! to tools that manage containers by them, or to us, and whoever made the image is none of these. Labels cannot be
//! taken away; but what is said of the container goes first, so they say nothing.

use std::collections::HashMap;

use super::engine::{Engine, SOON};
use super::image::in_path;
use super::trouble::Trouble;

/// How labels begin that engines and their tools have for themselves, and we.
const RESERVED: [&str; 11] = [
    "drover.",
    "com.docker.",
    "io.docker.",
    "org.dockerproject.",
    "containerd.io/",
    "io.containerd.",
    "io.cri-containerd",
    "io.kubernetes.",
    "io.podman.",
    "nerdctl/",
    "desktop.docker.io/",
];

/// An image that is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) id: String,
    /// In bytes, unpacked.
    pub(super) size: u64,
    /// Its labels that are not its maker's to give.
    reserved: Vec<String>,
}

impl Taken {
    /// Looks at an image.
    ///
    /// # Errors
    /// It is not there, or the engine does not answer.
    pub(super) async fn of(engine: &Engine, image: &str) -> Result<Taken, Trouble> {
        let found = engine.docker().inspect_image(in_path(image)?);
        let found = Engine::within(SOON, found).await?;
        let labels = found.config.and_then(|config| config.labels);
        let labels = labels.unwrap_or_default().into_keys();
        Ok(Taken {
            id: image.to_owned(),
            size: found.size.and_then(|it| it.try_into().ok()).unwrap_or(0),
            reserved: labels.filter(|label| is_reserved(label)).collect(),
        })
    }

    /// Labels that say nothing, in place of the image's own.
    pub(super) fn silenced(&self) -> HashMap<String, String> {
        let labels = self.reserved.iter().cloned();
        labels.map(|label| (label, String::new())).collect()
    }
}

fn is_reserved(label: &str) -> bool {
    RESERVED.iter().any(|begin| label.starts_with(begin))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::fake;
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn labels_of_an_image_that_are_ours_or_an_engines_say_nothing() {
        let found = r#"{ "Size": 7, "Config": { "Labels": { "drover.launch": "theirs", "drover.agent": "theirs",
                         "com.docker.x": "theirs", "maker": "theirs" } } }"#;
        let (engine, _place) = fake::engine(|_| (200, found.to_owned())).await;
        let id = format!("sha256:{}", "0f".repeat(32));
        let taken = Taken::of(&engine, &id).await.unwrap();
        let engine_labels = ["drover.launch", "drover.agent", "com.docker.x"];
        let engine_labels = engine_labels.map(|label| (label.to_owned(), String::new()));
        assert_eq!(
            (taken.size, taken.silenced()),
            (7, HashMap::from(engine_labels))
        );
    }
}
