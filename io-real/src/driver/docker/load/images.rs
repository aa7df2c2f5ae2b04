//! The images of an engine, and what they are called.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bollard::query_parameters::ListImagesOptionsBuilder;

use super::super::engine::{Engine, SOON};
use super::super::image::in_path;
use super::super::records::Records;
use super::super::trouble::Trouble;

/// The images of an engine.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Images {
    pub(in super::super) ids: BTreeSet<String>,
    pub(super) tags: BTreeMap<String, String>,
}

/// An image that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Present {
    pub(in super::super) id: String,
    /// All that it is called.
    pub(in super::super) tags: Vec<String>,
}

impl Present {
    /// The tags by which a reference means this image only because an archive said so; none if it is otherwise.
    ///
    /// # Errors
    /// That cannot be read.
    pub(in super::super) fn planted(
        &self,
        records: &Records,
        reference: &str,
    ) -> io::Result<Vec<String>> {
        if is_content(reference) {
            return Ok(Vec::new());
        }
        let is_meant = |tag: &&String| familiar(tag) == familiar(reference);
        // Where the engine writes it in a way of its own, it may be any.
        let is_clear = self.tags.iter().any(|tag| is_meant(&tag));
        let mut planted = Vec::new();
        for tag in self.tags.iter().filter(|tag| !is_clear || is_meant(tag)) {
            if records.was_given(tag, &self.id)? {
                planted.push(tag.clone());
            }
        }
        Ok(planted)
    }
}

/// A name as people write it: without what stands for the usual registry.
pub(in super::super) fn familiar(name: &str) -> &str {
    let hubs = ["docker.io/", "index.docker.io/"];
    let rest = hubs.iter().find_map(|hub| name.strip_prefix(hub));
    let name = rest.unwrap_or(name);
    match name.strip_prefix("library/") {
        Some(rest) if !rest.contains('/') => rest,
        Some(_) | None => name,
    }
}

/// Whether a reference says the content of what it means, which is always the same.
pub(in super::super) fn is_content(reference: &str) -> bool {
    reference.contains('@') || reference.starts_with("sha256:")
}

/// The images of an engine.
///
/// # Errors
/// It does not answer.
pub(in super::super) async fn all_images(engine: &Engine) -> Result<Images, Trouble> {
    Images::of(engine).await
}

impl Images {
    pub(super) async fn of(engine: &Engine) -> Result<Images, Trouble> {
        let options = ListImagesOptionsBuilder::new().all(true).build();
        let found = Engine::within(SOON, engine.docker().list_images(Some(options))).await?;
        let mut images = Images::default();
        for image in found {
            // Engines of earlier days say so of images without a tag.
            let tags = image.repo_tags.into_iter();
            for tag in tags.filter(|tag| !tag.starts_with("<none>")) {
                images.tags.insert(tag, image.id.clone());
            }
            images.ids.insert(image.id);
        }
        Ok(images)
    }

    /// The image that a name means.
    pub(in super::super) fn meant(&self, name: &str) -> Option<String> {
        let meant = self.tags.get(name);
        meant.or_else(|| self.tags.get(familiar(name))).cloned()
    }

    /// Notes that an image has this name now, however it is written.
    pub(super) fn call(&mut self, name: &str, id: &str) {
        let name = familiar(name);
        let known = self.tags.iter_mut();
        for (_, known) in known.filter(|(tag, _)| familiar(tag) == name) {
            id.clone_into(known);
        }
        self.tags.insert(name.to_owned(), id.to_owned());
    }

    /// Whether a reference meant this image already.
    pub(super) fn knows(&self, reference: &str, image: &Present) -> bool {
        let had = |tag: &String| {
            let had = self.tags.get(tag).or_else(|| self.tags.get(familiar(tag)));
            had == Some(&image.id)
        };
        is_content(reference) || image.tags.iter().all(had)
    }
}

pub(in super::super) async fn inspect(
    engine: &Engine,
    reference: &str,
) -> Result<Present, Trouble> {
    let reference = in_path(reference)?;
    let image = Engine::within(SOON, engine.docker().inspect_image(reference)).await?;
    let silent = || Trouble::Failed("the engine does not say which image that is".to_owned());
    Ok(Present {
        id: image.id.ok_or_else(silent)?,
        tags: image.repo_tags.unwrap_or_default(),
    })
}
