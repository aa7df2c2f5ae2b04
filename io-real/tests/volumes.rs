//! Directories of host volumes: made, found and removed, again and again.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use drover_core::effect::VolumeWork;
use drover_core::ids::VolumeId;
use drover_core::model::volume::Directory;
use drover_io_real::volumes::VolumeDirs;
use tempfile::TempDir;

const VOLUME: VolumeId = VolumeId(7);

struct Place {
    dir: TempDir,
    volumes: VolumeDirs,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().unwrap();
        let volumes = VolumeDirs::new(dir.path().join("a/volumes"));
        Place { dir, volumes }
    }

    async fn make(&self, mode: u32) -> PathBuf {
        let directory = Directory {
            mode,
            ..Directory::default()
        };
        let made = self.volumes.carry_out(VOLUME, VolumeWork::Make(directory));
        PathBuf::from(made.await.unwrap())
    }

    async fn remove(&self) -> std::io::Result<String> {
        self.volumes.carry_out(VOLUME, VolumeWork::Remove).await
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn directory_is_made_and_found_again_with_what_is_in_it() {
    let place = Place::new();
    let path = place.make(0o750).await;
    assert_eq!(
        path,
        place.dir.path().join("a/volumes").join(VOLUME.to_string())
    );
    assert_eq!(mode(&path), 0o750);
    fs::write(path.join("file"), "kept").unwrap();
    assert_eq!(place.make(0o750).await, path);
    assert_eq!(fs::read(path.join("file")).unwrap(), b"kept");
    let others = path.parent().unwrap();
    assert_eq!(mode(others), 0o711, "tasks pass through, and see no names");
}

#[tokio::test]
async fn volume_directory_owner_follows_its_parameters() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: not root");
    }
    let place = Place::new();
    let directory = Directory {
        uid: Some(12_345),
        gid: Some(54_321),
        ..Directory::default()
    };
    let made = place.volumes.carry_out(VOLUME, VolumeWork::Make(directory));
    let found = fs::metadata(made.await.unwrap()).unwrap();
    assert_eq!((found.uid(), found.gid()), (12_345, 54_321));
}

#[tokio::test]
async fn removal_follows_no_link_and_can_be_done_again() {
    let place = Place::new();
    let outside = place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "precious").unwrap();
    let path = place.make(0o777).await;
    symlink(&outside, path.join("link")).unwrap();
    fs::create_dir_all(path.join("deep/er")).unwrap();
    place.remove().await.unwrap();
    assert!(!path.exists());
    place.remove().await.unwrap();
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
}

#[tokio::test]
async fn volume_that_is_a_link_is_neither_made_nor_removed_through_it() {
    let place = Place::new();
    let outside = place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "precious").unwrap();
    let root = place.dir.path().join("a/volumes");
    fs::create_dir_all(&root).unwrap();
    symlink(&outside, root.join(VOLUME.to_string())).unwrap();
    let made = VolumeWork::Make(Directory::default());
    assert!(place.volumes.carry_out(VOLUME, made).await.is_err());
    place.remove().await.unwrap();
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
}

#[tokio::test]
async fn registered_directory_has_to_be_there_and_is_left_alone() {
    let place = Place::new();
    let file = place.dir.path().join("file");
    fs::write(&file, "").unwrap();
    let find = |path: &Path| VolumeWork::Find {
        path: path.display().to_string(),
    };
    let volumes = &place.volumes;
    volumes
        .carry_out(VOLUME, find(place.dir.path()))
        .await
        .unwrap();
    let why = volumes.carry_out(VOLUME, find(&file)).await.unwrap_err();
    assert!(why.to_string().contains("is no directory"), "{why}");
    let missing = find(&place.dir.path().join("missing"));
    let why = volumes.carry_out(VOLUME, missing).await.unwrap_err();
    assert!(why.to_string().contains("No such file"), "{why}");
    let path = place.dir.path().display().to_string();
    volumes
        .carry_out(VOLUME, VolumeWork::Leave { path })
        .await
        .unwrap();
    assert!(file.exists());
}

/// What is asked for one volume is done in its order, however long the first takes to begin.
#[tokio::test]
async fn work_for_one_volume_is_done_in_order() {
    let place = Place::new();
    for _ in 0..50 {
        let make = || {
            place
                .volumes
                .carry_out(VOLUME, VolumeWork::Make(Directory::default()))
        };
        let (made, removed, made_again, gone) =
            tokio::join!(make(), place.remove(), make(), place.remove());
        for done in [made, removed, made_again, gone] {
            assert!(!Path::new(&done.unwrap()).exists());
        }
    }
}
