//! What a tag means in its registry, and which content launches run: for image updates. The engine asks the registry, as
//! it does when it fetches an image, with the same passwords; nothing is fetched.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use drover_core::driver::config::DockerConfig;
use drover_core::effect::ImageQuery;
use drover_core::ids::LaunchId;
use drover_core::input::ImageDigests;
use drover_core::model::image::repository;
use drover_core::op::Failure;
use futures::{StreamExt, TryStreamExt, stream};

use super::World;
use super::engine::{Engine, SOON};
use super::image::{in_path, reference};
use super::load;

/// How long an engine that is just coming up is waited for.
const ENGINE_TIME: Duration = Duration::from_secs(2);

/// How many images are looked at at once.
const AT_ONCE: usize = 8;

/// How long a registry may take.
const REGISTRY_TIME: Duration = Duration::from_secs(45);

impl World {
    /// What the tag of an image means, and what these launches run.
    pub(super) async fn look_up_image(&self, query: &ImageQuery) -> Result<ImageDigests, Failure> {
        let reference = reference(&query.image);
        let what = format!("image {reference:?}: cannot ask its registry");
        in_path(&reference).map_err(|trouble| trouble.failure(&what))?;
        let engine = self.engine_within(ENGINE_TIME).await?;
        let asked = Arc::new(DockerConfig {
            image: query.image.clone(),
            auth: query.auth.clone(),
            auth_soft_fail: query.auth_soft_fail,
            ..DockerConfig::default()
        });
        let credentials = self.credentials(&asked).await?;
        let found = engine
            .docker()
            .inspect_registry_image(&reference, credentials);
        let found = Engine::within(REGISTRY_TIME, found).await;
        let found = found.map_err(|trouble| trouble.failure(&what))?;
        let tag = found.descriptor.digest.filter(|it| is_digest(it));
        let tag = tag.ok_or_else(|| {
            let why = format!("{what}: what it answers names no digest");
            Failure::recoverable(why)
        })?;
        let launches = query.launches.iter().copied();
        let digests = launches.map(|launch| self.digest_of(&engine, launch, &reference, &tag));
        let digests = stream::iter(digests).buffer_unordered(AT_ONCE);
        let used: BTreeSet<Option<String>> = digests.try_collect().await?;
        let used = used.into_iter().flatten().collect();
        Ok(ImageDigests { tag, used })
    }

    /// The digest of what a launch runs, where `reference` says. None if its image did not come from there.
    ///
    /// # Errors
    /// Its image is not known, or not now: after a restart, a container may not be found again yet. What runs is not
    /// guessed then.
    async fn digest_of(
        &self,
        engine: &Engine,
        launch: LaunchId,
        reference: &str,
        wanted: &str,
    ) -> Result<Option<String>, Failure> {
        let image = self.images.uses.used_by(launch).ok_or_else(|| {
            Failure::recoverable("which image a container of it has is not known yet")
        })?;
        let found = engine.docker().inspect_image(&image);
        let found = Engine::within(SOON, found).await;
        let found = found.map_err(|it| it.failure("the image of a container is not known"))?;
        let digests = found.repo_digests.unwrap_or_default();
        Ok(digest_in(&digests, reference, wanted))
    }
}

/// The digest that an image with these has where `reference` says: the wanted one if that is one of several. Digests of
/// other places are left out, as nothing can be fetched by them from this one.
fn digest_in(digests: &[String], reference: &str, wanted: &str) -> Option<String> {
    let place = load::familiar(repository(reference));
    let mut here: Vec<&str> = (digests.iter())
        .filter_map(|it| it.split_once('@'))
        .filter(|(name, digest)| load::familiar(name) == place && is_digest(digest))
        .map(|(_, digest)| digest)
        .collect();
    here.sort_unstable();
    let is_wanted = here.contains(&wanted);
    let found = match is_wanted {
        true => Some(wanted),
        false => here.first().copied(),
    };
    found.map(str::to_owned)
}

/// Whether a text is a digest: it becomes a part of an image's name.
fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:");
    hex.is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_digest_becomes_part_of_a_name() {
        let digest = format!("sha256:{}", "0f".repeat(32));
        assert!(is_digest(&digest));
        for other in [
            "",
            "sha256:",
            "sha256:0f",
            &digest[7..],
            &digest.to_uppercase(),
        ] {
            assert!(!is_digest(other), "{other:?}");
        }
        assert!(!is_digest(&format!("{}/", &digest[..70])));
    }

    #[test]
    fn digest_is_that_of_the_same_place() {
        let of = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let (a, b, c) = (of("a"), of("b"), of("c"));
        let all = [
            format!("other/app@{a}"),
            format!("app@{c}"),
            format!("app@{b}"),
        ];
        let found = |reference: &str, wanted: &str| digest_in(&all, reference, wanted);
        assert_eq!(found("app:1", &c), Some(c.clone()));
        assert_eq!(found("docker.io/library/app:1", &c), Some(c.clone()));
        assert_eq!(found("app:1", &a), Some(b), "its own, whatever is wanted");
        assert_eq!(found("other/app:1", &c), Some(a));
        assert_eq!(found("reg.example:5000/app:1", &c), None);
    }
}
