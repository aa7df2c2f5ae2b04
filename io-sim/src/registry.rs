//! A registry of images: tags that move, and which content each launch runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::{IMAGE_TIMEOUT, Input};
use drover_core::driver::config::MockConfig;
use drover_core::effect::ImageQuery;
use drover_core::ids::LaunchId;
use drover_core::input::{ImageDigests, NodeInput};
use drover_core::model::value::Value;
use drover_core::op::{Failure, Op};
use drover_core::store::periodic::second_of;
use drover_core::time::Span;

use crate::faults::Fault;
use crate::world::World;

/// What it knows.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tags: BTreeMap<String, Tag>,
    /// Digests whose programs fail as soon as they start.
    broken: BTreeSet<String>,
    /// What each launch runs.
    runs: BTreeMap<LaunchId, String>,
    /// How many contents there are.
    contents: u32,
}

/// A tag of an image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tag {
    /// The content that it means.
    pub(crate) digest: String,
    /// How often it was moved.
    pub(crate) moves: u32,
    /// When it was moved last, in seconds since 1970.
    pub(crate) moved: i64,
}

impl Registry {
    /// Whether there are no images.
    pub(crate) fn is_unused(&self) -> bool {
        self.tags.is_empty()
    }

    /// What an image's tag is.
    pub(crate) fn tag(&self, image: &str) -> Option<&Tag> {
        self.tags.get(image)
    }

    /// What an image's tag means.
    pub fn digest(&self, image: &str) -> Option<&str> {
        Some(self.tags.get(image)?.digest.as_str())
    }

    /// What a launch runs.
    pub fn digest_of(&self, launch: LaunchId) -> Option<&str> {
        self.runs.get(&launch).map(String::as_str)
    }
}

impl World {
    /// Somebody moves the tag of an image to new content, which works or does not. Its digest.
    pub fn push_image(&mut self, image: &str, works: bool) -> String {
        self.registry.contents += 1;
        let digest = format!("sha256:{:064x}", self.registry.contents);
        if !works {
            self.registry.broken.insert(digest.clone());
        }
        self.point_tag(image, &digest);
        digest
    }

    /// Somebody moves the tag of an image to content that is there.
    pub fn point_tag(&mut self, image: &str, digest: &str) {
        let moved = second_of(self.now().wall);
        let tag = self.registry.tags.entry(image.to_owned()).or_default();
        digest.clone_into(&mut tag.digest);
        (tag.moves, tag.moved) = (tag.moves + 1, moved);
    }

    /// A task starts whose configuration is this: of its image it gets what the tag means now, or what is named.
    pub(crate) fn fetch_image(
        &mut self,
        launch: LaunchId,
        config: &BTreeMap<String, Value>,
        mut mock: MockConfig,
    ) -> MockConfig {
        let image = config.get("image").and_then(Value::as_str);
        let Some(image) = image else { return mock };
        let named = image.split_once('@').map(|(_, digest)| digest);
        let digest = named.or_else(|| self.registry.digest(image));
        let Some(digest) = digest.map(str::to_owned) else {
            return mock;
        };
        if self.registry.broken.contains(&digest) {
            (mock.command.run_for, mock.command.exit_code) = (Span::ZERO, 1);
        }
        self.registry.runs.insert(launch, digest);
        mock
    }

    /// Somebody asks what a tag means.
    pub(crate) fn look_up_image(&mut self, op: Op, query: &ImageQuery) {
        let image: Arc<str> = query.image.as_str().into();
        if self.fires(Fault::HangProbe, &image) {
            return;
        }
        let tag = self.registry.digest(&image).map(str::to_owned);
        let tag = tag.filter(|_| !self.fires(Fault::FailProbe, &image));
        let alive = query.launches.iter().filter(|it| self.living.contains(it));
        let used = alive.filter_map(|launch| self.registry.runs.get(launch));
        let used = used.cloned().collect();
        let result = match tag {
            Some(tag) => Ok(ImageDigests { tag, used }),
            None => Err(Failure::recoverable("the registry is broken")),
        };
        let input = Input::Node(NodeInput::Image { op, result });
        self.answer(self.life, op, &image, IMAGE_TIMEOUT, input);
    }
}
