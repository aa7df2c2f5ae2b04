//! What is left of images that an agent brought to a real engine: nothing, wherever the agent was killed; and nothing
//! of others goes with it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a test may panic"
)]

#[path = "common/docker_world.rs"]
#[macro_use]
mod docker_world;
#[path = "common/registry.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod registry;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use docker_world::engine::IMAGE;
use docker_world::{World, command, text, with};
use drover_core::effect::TaskConfig;
use drover_io_real::driver::docker::{Fate, FoundImage};
use registry::{Does, Registry};

/// A task of this image, which stays.
fn of(image: &str) -> TaskConfig {
    with(command(&["/bin/sleep", "1000"]), "image", text(image))
}

/// A task whose archive has this image.
fn loaded(image: &str) -> TaskConfig {
    with(of(image), "load", text("image.tar"))
}

/// All that images are called, and the ids of those without a name.
fn images(world: &World) -> BTreeSet<String> {
    let line = "{{.Repository}}:{{.Tag}} {{.ID}}";
    let output = world
        .engine
        .says(&["image", "ls", "--no-trunc", "--format", line]);
    let lines = output.lines().map(|line| line.split_once(' ').unwrap());
    let called = |(name, id): (&str, &str)| match name {
        "<none>:<none>" => id.to_owned(),
        name => name.to_owned(),
    };
    lines.map(called).collect()
}

fn id(world: &World, image: &str) -> String {
    world
        .engine
        .says(&["image", "inspect", "-f", "{{.Id}}", image])
}

fn is_there(world: &World, image: &str) -> bool {
    world
        .engine
        .docker(&["image", "inspect", image])
        .status
        .success()
}

/// An archive of an image that is nowhere else, with these names. The image's id.
fn archive(world: &World, who: &str, names: &[&str]) -> String {
    world
        .engine
        .image_with("made:1", &format!("LABEL who={who}"));
    let id = id(world, "made:1");
    let path = world.alloc_dir().join("web/local/image.tar");
    let path = path.to_string_lossy();
    names
        .iter()
        .for_each(|name| drop(world.engine.says(&["tag", "made:1", name])));
    world.engine.says(&[&["save", "-o", &path], names].concat());
    world.engine.says(&[&["rmi", "made:1"], names].concat());
    assert!(!is_there(world, &id), "somebody else has it");
    id
}

/// What begins with these is remembered of images, and forgotten with them. That an archive was handed over is
/// remembered for as long as the engine may go on with it.
const REMEMBERED: [&str; 4] = ["image-", "pull-", "tag-", "tags"];

/// The next agents see to it that nothing is left of what killed ones brought.
fn assert_nothing_is_left(world: &mut World, point: &str) {
    world.begin();
    world.end_unknown(&[]);
    world.until_healthy();
    let only = BTreeSet::from([IMAGE.to_owned()]);
    for _ in 0..200 {
        world.turns(100);
        let is_noted = |begin: &str| !world.remembered(begin).is_empty();
        if images(world) == only && !REMEMBERED.into_iter().any(is_noted) {
            return;
        }
        if is_noted("tags") {
            continue;
        }
        // An engine goes on with an archive after its agent died: what came then is found, as an audit finds it.
        let inventory = world.life().driver.inventory();
        let found = inventory.find().unwrap().images;
        for image in found.iter().filter(|image| image.fate == Fate::Left) {
            // It may be used or removed since then.
            drop(inventory.remove_image(image));
        }
    }
    let left: Vec<String> = REMEMBERED
        .iter()
        .flat_map(|it| world.remembered(it))
        .collect();
    assert_eq!((images(world), left), (only, Vec::new()), "killed {point}");
}

/// Where a start is killed: as soon as this has come to pass.
type Point = (&'static str, fn(&World, &str) -> bool);

/// Starts a launch, and kills its agent so many turns after this point.
fn kill_at(
    world: &mut World,
    launch: u128,
    config: TaskConfig,
    ((point, is_so), turns): (Point, usize),
    id: &str,
) {
    world.ask_start(launch, config);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while !is_so(world, id) {
        assert!(std::time::Instant::now() < until, "{point} never came");
        world.turns(1);
    }
    world.turns(turns);
    drop(world.life.take());
}

#[test]
fn download_leaves_nothing_wherever_its_agent_is_killed() {
    let mut world = world!();
    world.settings.image_delay = Duration::from_millis(1);
    let registry = Registry::start();
    let points: [(Does, Point); 4] = [
        (
            Does::Hold,
            ("before it began", |world, _| {
                !world.remembered("pull-").is_empty()
            }),
        ),
        (
            Does::Serve,
            ("when its content is known", |world, _| {
                let noted = world.remembered("pull-");
                let text = |name: &String| fs::read(world.records().join(name)).unwrap_or_default();
                // The digests of the images that were there are of the same form.
                let has_digest = |bytes: &[u8]| bytes.windows(8).any(|it| it == b"digest\xd9G");
                noted.iter().any(|name| has_digest(&text(name)))
            }),
        ),
        (
            Does::Serve,
            ("when it is remembered", |world, _| {
                !world.remembered("image-").is_empty()
            }),
        ),
        (
            Does::Serve,
            ("when its container is there", |world, _| {
                !world.engine.containers().is_empty()
            }),
        ),
    ];
    for (launch, (does, point)) in (1..).zip(points) {
        world.begin();
        world.until_healthy();
        registry.does(does);
        registry.put(
            "web",
            "1",
            &world.engine.layer(),
            &[&format!("WHO={launch}")],
        );
        let config = of(&registry.image("web:1"));
        kill_at(&mut world, launch, config, (point, 0), "");
        registry.does(Does::Serve);
        assert_nothing_is_left(&mut world, point.0);
    }
}

#[test]
fn archive_leaves_nothing_wherever_its_agent_is_killed() {
    let mut world = world!();
    world.settings.image_delay = Duration::from_millis(1);
    let end: Point = ("around its end", |world, _| {
        !world.remembered("loaded-").is_empty()
    });
    let begins: Point = ("before it began", |world, _| {
        !world.remembered("tags").is_empty()
    });
    let tagged: Point = ("when its tag is known", |world, _| {
        !world.remembered("tag-").is_empty()
    });
    let used: Point = ("when its container is there", |world, _| {
        !world.engine.containers().is_empty()
    });
    let points = [
        (begins, 0),
        // The engine has not all of it, or goes on without its agent, or is done.
        (end, 0),
        (end, 2),
        (end, 10),
        (end, 100),
        (("when the engine has it", is_there), 0),
        (tagged, 0),
        (used, 0),
    ];
    for (launch, (point, turns)) in (1..).zip(points) {
        world.begin();
        world.until_healthy();
        let id = archive(&world, &launch.to_string(), &["app:1", "other/app:2"]);
        kill_at(&mut world, launch, loaded("app:1"), (point, turns), &id);
        assert_nothing_is_left(&mut world, point.0);
    }
}

#[test]
fn image_of_an_archive_goes_after_its_last_task() {
    let mut world = world!();
    world.settings.image_delay = Duration::from_millis(1);
    world.begin();
    archive(&world, "first", &["app:1"]);
    for launch in [1, 2] {
        world.start(launch, loaded("app:1")).unwrap();
    }
    // It takes the first one's tag, and leaves it without a name.
    let second = archive_of_other(&world);
    world.start(3, loaded("app:1")).unwrap();
    assert_eq!(id(&world, "app:1"), second);
    for (launch, left) in [(1, 3), (2, 2), (3, 1)] {
        world.end(launch);
        world.forget(launch);
        world.turns(1000);
        world.until(|world| images(world).len() <= left);
        assert_eq!(images(&world).len(), left, "after {launch}");
    }
    world.until(|world| {
        world.remembered("tag-").is_empty() && world.remembered("loaded-").is_empty()
    });
}

/// An archive of another image with the name `app:1`, which is in use here.
fn archive_of_other(world: &World) -> String {
    let first = id(world, "app:1");
    world.engine.image_with("app:1", "LABEL who=second");
    let second = id(world, "app:1");
    let path = world.alloc_dir().join("web/local/image.tar");
    world
        .engine
        .says(&["save", "-o", &path.to_string_lossy(), "app:1"]);
    world.engine.says(&["tag", &first, "app:1"]);
    world.engine.says(&["rmi", &second]);
    second
}

/// What a lone look finds of images: their names and what becomes of them.
fn found(world: &World) -> Vec<FoundImage> {
    world.lone_inventory().find().unwrap().images
}

/// Fetches or loads an image, uses it, and keeps it.
fn bring(world: &mut World, launch: u128, config: TaskConfig) {
    world.start(launch, config).unwrap();
    world.end(launch);
    world.forget(launch);
}

#[test]
fn images_of_others_are_neither_reported_nor_removed() {
    let mut world = world!();
    world.settings.collect_images = false;
    world.begin();
    let registry = Registry::start();
    registry.put("web", "1", &world.engine.layer(), &["WHO=web"]);
    let web = registry.image("web:1");
    // Of the same layers, made by somebody else; and one that somebody else fetched.
    world.engine.image_with("same-layers:1", "ENV WHO=web");
    registry.put("theirs", "1", &world.engine.layer(), &["WHO=theirs"]);
    let theirs = registry.image("theirs:1");
    world.engine.says(&["pull", &theirs]);
    bring(&mut world, 1, of(&web));
    bring(&mut world, 2, of(&theirs));
    bring(&mut world, 3, of("same-layers:1"));
    let before = images(&world);
    let ours = found(&world);
    let names: Vec<_> = ours.iter().flat_map(|image| image.names.clone()).collect();
    assert_eq!((names, ours[0].fate), (vec![web.clone()], Fate::Left));
    // Somebody uses it.
    world
        .engine
        .says(&["create", "--name", "theirs", &web, "/bin/true"]);
    assert_eq!(found(&world), []);
    world.lone_inventory().remove_image(&ours[0]).unwrap();
    assert_eq!(images(&world), before);
    world.engine.says(&["rm", "theirs"]);
    assert_eq!(found(&world), [], "and so it is theirs");
    // Somebody gives it a name, and takes the agent's away.
    registry.put("web", "2", &world.engine.layer(), &["WHO=second"]);
    let second = registry.image("web:2");
    bring(&mut world, 4, of(&second));
    let ours = found(&world);
    world.engine.says(&["tag", &second, "mine:1"]);
    let tag = found(&world);
    assert_eq!((tag[0].name(), tag[0].is_whole), (second.as_str(), false));
    world.engine.says(&["rmi", &second]);
    assert_eq!(found(&world), []);
    world.lone_inventory().remove_image(&ours[0]).unwrap();
    assert!(is_there(&world, "mine:1"));
    assert_eq!(found(&world), []);
}

#[test]
fn tag_that_was_moved_stays_and_image_goes() {
    let mut world = world!();
    world.settings.collect_images = false;
    world.begin();
    let app = archive(&world, "app", &["app:1"]);
    bring(&mut world, 1, loaded("app:1"));
    let ours = found(&world);
    assert_eq!(
        (ours[0].name(), &ours[0].names[..]),
        (app.as_str(), &["app:1".to_owned()][..])
    );
    // Somebody makes it mean another one.
    world.engine.says(&["tag", IMAGE, "app:1"]);
    let image = id(&world, IMAGE);
    assert_eq!(
        world.lone_inventory().remove_image(&ours[0]).unwrap(),
        "removed"
    );
    assert!(!is_there(&world, &app));
    assert_eq!(
        (id(&world, "app:1"), id(&world, IMAGE)),
        (image.clone(), image)
    );
}

#[test]
fn tags_of_an_archive_go_from_an_image_that_is_others() {
    let mut world = world!();
    world.settings.collect_images = false;
    world.begin();
    let app = archive(&world, "app", &["app:1"]);
    let path = world.alloc_dir().join("web/local/image.tar");
    world.engine.says(&["load", "-i", &path.to_string_lossy()]);
    world.engine.says(&["tag", "app:1", "mine:1"]);
    world.engine.says(&["rmi", "app:1"]);
    bring(&mut world, 1, loaded("app:1"));
    let ours = found(&world);
    assert_eq!((ours[0].name(), ours[0].is_whole), ("app:1", false));
    assert_eq!(
        world.lone_inventory().remove_image(&ours[0]).unwrap(),
        "untagged"
    );
    assert_eq!(
        (id(&world, "mine:1"), is_there(&world, "app:1")),
        (app, false)
    );
    assert_eq!(
        (found(&world), world.remembered("tag-")),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn running_agent_says_what_becomes_of_its_images() {
    let mut world = world!();
    let registry = Registry::start();
    registry.put("web", "1", &world.engine.layer(), &["WHO=web"]);
    let web = registry.image("web:1");
    world.start(1, of(&web)).unwrap();
    let fate = |world: &mut World| {
        let inventory = world.life().driver.inventory();
        inventory
            .find()
            .unwrap()
            .images
            .into_iter()
            .next()
            .map(|it| it.fate)
    };
    assert_eq!(
        fate(&mut world),
        Some(Fate::Used(drover_core::ids::LaunchId(1)))
    );
    world.end(1);
    world.forget(1);
    world.until(|world| world.remembered("pull-").is_empty());
    assert_eq!(fate(&mut world), Some(Fate::Awaited));
    let inventory = world.life().driver.inventory();
    let image = inventory.find().unwrap().images.remove(0);
    let refused = inventory.remove_image(&image).unwrap_err().to_string();
    assert!(refused.contains("something uses it"), "{refused}");
    world.settings.collect_images = false;
    world.begin();
    world.until_healthy();
    assert_eq!(fate(&mut world), Some(Fate::Kept));
}
