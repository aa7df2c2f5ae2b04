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
use drover_core::time::{Span, Timestamp};

use crate::faults::Fault;
use crate::scene::Scene;

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

impl Registry {
    /// Somebody moves the tag of an image to new content, which works or does not. Its digest.
    pub(crate) fn push(&mut self, now: Timestamp, image: &str, works: bool) -> String {
        self.contents += 1;
        let digest = format!("sha256:{:064x}", self.contents);
        if !works {
            self.broken.insert(digest.clone());
        }
        self.point_tag(now, image, &digest);
        digest
    }

    /// Somebody moves the tag of an image to content that is there.
    fn point_tag(&mut self, now: Timestamp, image: &str, digest: &str) {
        let moved = second_of(now);
        let tag = self.tags.entry(image.to_owned()).or_default();
        digest.clone_into(&mut tag.digest);
        (tag.moves, tag.moved) = (tag.moves + 1, moved);
    }

    /// A task starts whose configuration is this: of its image it gets what the tag means now, or what is named.
    pub(crate) fn fetch(
        &mut self,
        launch: LaunchId,
        config: &BTreeMap<String, Value>,
        mut mock: MockConfig,
    ) -> MockConfig {
        let image = config.get("image").and_then(Value::as_str);
        let Some(image) = image else { return mock };
        let named = image.split_once('@').map(|(_, digest)| digest);
        let digest = named.or_else(|| self.digest(image));
        let Some(digest) = digest.map(str::to_owned) else {
            return mock;
        };
        if self.broken.contains(&digest) {
            (mock.command.run_for, mock.command.exit_code) = (Span::ZERO, 1);
        }
        self.runs.insert(launch, digest);
        mock
    }

    /// Somebody asks what a tag means.
    pub(crate) fn look_up(
        &self,
        scene: &mut Scene,
        living: &BTreeSet<LaunchId>,
        op: Op,
        query: &ImageQuery,
    ) {
        let image: Arc<str> = query.image.as_str().into();
        if scene.fires(Fault::HangProbe, &image) {
            return;
        }
        let tag = self.digest(&image).map(str::to_owned);
        let tag = tag.filter(|_| !scene.fires(Fault::FailProbe, &image));
        let alive = query.launches.iter().filter(|it| living.contains(it));
        let used = alive.filter_map(|launch| self.runs.get(launch));
        let used = used.cloned().collect();
        let result = match tag {
            Some(tag) => Ok(ImageDigests { tag, used }),
            None => Err(Failure::recoverable("the registry is broken")),
        };
        let input = Input::Node(NodeInput::Image { op, result });
        scene.answer(scene.life, op, &image, IMAGE_TIMEOUT, input);
    }
}
