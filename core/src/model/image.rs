//! Image updates: when the registry is asked whether the tag of a task's image moved.

use serde::{Deserialize, Serialize};

use super::policy::PeriodicConfig;
use super::task::Task;

/// The only policy: a new digest of the tag means a new version of the job.
pub const DIGEST: &str = "digest";

/// How a task follows the tag of its image. Not Nomad's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ImageUpdate {
    /// Whether the registry is asked at all. The digest that runs stays as it is if not.
    pub enabled: bool,
    /// A cron line.
    pub schedule: String,
    /// What is compared: always [`DIGEST`].
    pub policy: String,
    /// The time zone of the cron line.
    pub time_zone: String,
}

impl Default for ImageUpdate {
    fn default() -> ImageUpdate {
        ImageUpdate {
            enabled: true,
            schedule: String::new(),
            policy: DIGEST.to_owned(),
            time_zone: "UTC".to_owned(),
        }
    }
}

impl ImageUpdate {
    /// Its times, as those of a periodic job are written.
    pub fn times(&self) -> PeriodicConfig {
        PeriodicConfig {
            spec: self.schedule.clone(),
            time_zone: self.time_zone.clone(),
            ..PeriodicConfig::default()
        }
    }
}

impl Task {
    /// The image that its configuration names; none if it names none.
    pub fn image(&self) -> Option<&str> {
        self.config.get("image")?.as_str()
    }

    /// How it follows the tag of its image, if it does now.
    pub fn followed_image(&self) -> Option<(&str, &ImageUpdate)> {
        let update = self.image_update.as_ref().filter(|it| it.enabled)?;
        Some((self.image()?, update))
    }
}

/// The name of an image without tag and digest.
pub fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        // That is the port of a registry.
        Some((_, tag)) if tag.contains('/') => name,
        Some((name, _)) => name,
        None => name,
    }
}

/// The tag of an image, if it names one.
pub fn tag(image: &str) -> Option<&str> {
    let name = image.split('@').next().unwrap_or(image);
    let (_, tag) = name.rsplit_once(':')?;
    Some(tag).filter(|tag| !tag.is_empty() && !tag.contains('/'))
}

/// An image of this content, whatever its tag means by now.
pub fn pinned(image: &str, digest: &str) -> String {
    match digest.is_empty() {
        true => image.to_owned(),
        false => format!("{}@{digest}", repository(image)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_a_registry_is_no_tag() {
        for (image, name, of) in [
            ("app", "app", None),
            ("app:1.2", "app", Some("1.2")),
            ("reg:5000/a/app", "reg:5000/a/app", None),
            ("reg:5000/a/app:1", "reg:5000/a/app", Some("1")),
            ("reg:5000/app:1@sha256:00", "reg:5000/app", Some("1")),
            ("app@sha256:00", "app", None),
            ("app:", "app", None),
        ] {
            assert_eq!((repository(image), tag(image)), (name, of), "{image}");
        }
        assert_eq!(
            pinned("reg:5000/app:1", "sha256:0f"),
            "reg:5000/app@sha256:0f"
        );
        assert_eq!(pinned("app:1", ""), "app:1");
    }
}
