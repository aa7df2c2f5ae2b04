//! Archives that become more than they look like.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, Seek, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

const MIB: u64 = 1 << 20;

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// An archive with these files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

/// What the engine gets of an archive that may become so much, and what is wrong with it.
fn passed_on(archive: &[u8], most: u64) -> (Vec<u8>, Option<io::Error>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(archive).unwrap();
    file.rewind().unwrap();
    let (into, mut pieces) = mpsc::channel(1);
    let limit = Limit {
        most,
        why: "as the test says".to_owned(),
        kind: io::ErrorKind::FileTooLarge,
    };
    let passing = std::thread::spawn(move || pass_on(file, &limit, &into, |_| Ok(())));
    let (mut bytes, mut wrong, mut is_whole) = (Vec::new(), None, false);
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Ok(Part::Piece(piece)) => bytes.extend_from_slice(&piece),
            Ok(Part::End) => is_whole = true,
            Err(error) => wrong = Some(error),
        }
    }
    passing.join().unwrap();
    assert_eq!(is_whole, wrong.is_none(), "it is whole or wrong");
    (bytes, wrong)
}

/// The engine gets all of it.
fn assert_passes(archive: &[u8], most: u64) {
    let (bytes, wrong) = passed_on(archive, most);
    assert!(wrong.is_none(), "{wrong:?}");
    assert!(bytes == archive, "it is another one");
}

/// The engine does not get the end of it.
fn assert_refused(archive: &[u8], most: u64, words: &str) {
    assert_end_is_kept(archive, archive, most, words);
}

/// The engine does not get the end of what this becomes.
fn assert_end_is_kept(archive: &[u8], unpacked: &[u8], most: u64, words: &str) {
    let (bytes, wrong) = passed_on(archive, most);
    let wrong = wrong.unwrap().to_string();
    assert!(wrong.contains(words), "{wrong}");
    assert!(bytes.len() < unpacked.len(), "the engine has all of it");
}

#[test]
fn archive_that_fits_goes_on_as_it_is() {
    let layer = archive(&[("etc/passwd", &[b'x'; 200_000]), ("bin/sh", b"sh")]);
    let files: &[(&str, &[u8])] = &[("manifest.json", b"[]"), ("a/layer.tar", &layer)];
    assert_passes(&archive(files), MIB);
    let packed = gzipped(&layer);
    let files: &[(&str, &[u8])] = &[("blobs/sha256/0", &packed), ("index.json", b"{}")];
    assert_passes(&archive(files), MIB);
    let (bytes, wrong) = passed_on(&gzipped(&archive(files)), MIB);
    assert!(wrong.is_none(), "{wrong:?}");
    assert!(bytes == archive(files), "it goes on as what it becomes");
    // What stands after its end goes along.
    assert_passes(&[archive(files), vec![0; 100_000]].concat(), MIB);
    let long = "x".repeat(300);
    assert_passes(&archive(&[(&long, &archive(&[(&long, b"y")]))]), MIB);
}

#[test]
fn archive_that_becomes_huge_is_not_handed_over() {
    let zeros = vec![0; 8 << 20];
    let layer = gzipped(&archive(&[("zeros", &zeros)]));
    assert!(layer.len() < 100_000);
    let image = archive(&[("blobs/sha256/0", &layer), ("index.json", b"{}")]);
    assert_passes(&image, 16 * MIB);
    assert_refused(&image, 4 * MIB, "more than 4 MiB, as the test says");
    assert_end_is_kept(&gzipped(&image), &image, 4 * MIB, "more than 4 MiB");
    // What is no archive inside of one may be unpacked as well.
    assert_refused(
        &archive(&[("x", &gzipped(&zeros))]),
        4 * MIB,
        "more than 4 MiB",
    );
    // So is what follows the end of a layer.
    let after = gzipped(&[archive(&[]), zeros].concat());
    assert_refused(&archive(&[("x", &after)]), 4 * MIB, "more than 4 MiB");
}

/// An archive that says something of what follows, and ends.
fn extended(record: &[u8]) -> Vec<u8> {
    let mut entry = Builder::new(Vec::new());
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::XHeader);
    header.set_size(record.len() as u64);
    entry.append_data(&mut header, "x", record).unwrap();
    entry.into_inner().unwrap()
}

#[test]
fn declared_size_counts() {
    let mut header = Header::new_gnu();
    header.set_path("huge").unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    let layer = [header.as_bytes().as_slice(), &[0; 4096]].concat();
    assert_refused(&archive(&[("layer.tar", &layer)]), MIB, "more than 1 MiB");
    let layer = [
        extended(b"22 size=1099511627776\n")[..1024].to_vec(),
        archive(&[("huge", b"x")]),
    ]
    .concat();
    assert_refused(&archive(&[("layer.tar", &layer)]), MIB, "more than 1 MiB");
}

#[test]
fn file_with_holes_is_refused() {
    let mut header = Header::new_gnu();
    header.set_path("holes").unwrap();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(0);
    header.set_cksum();
    let layer = [header.as_bytes().as_slice(), &[0; 1024]].concat();
    assert_refused(&archive(&[("layer.tar", &layer)]), MIB, "holes");
    let layer = extended(b"31 GNU.sparse.realsize=9999999\n");
    assert_refused(&archive(&[("layer.tar", &layer)]), MIB, "holes");
}

#[test]
fn invalid_image_archive_is_refused() {
    let cut = archive(&[("file", &[b'x'; 2000])]);
    // What was counted to its end may go on: no engine makes an image of it.
    let broken: [(&[u8], _); 2] = [
        (b"no archive", "does not begin like one"),
        (&cut[..1500], "in the middle of a file"),
    ];
    for (archive, words) in broken {
        let (_, wrong) = passed_on(archive, MIB);
        assert!(wrong.unwrap().to_string().contains(words));
    }
    let mut damaged = archive(&[("one", b"1"), ("two", b"2")]);
    damaged[1024] ^= 1;
    assert_refused(&damaged, MIB, "damaged");
}

/// Gives one byte at a time, as compression does where its parts meet.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = into.len().min(1);
        self.0.read(&mut into[..length])
    }
}

#[test]
fn compression_header_in_two_parts_is_recognised() {
    let layer = gzipped(&archive(&[("zeros", &vec![0; 8 << 20])]));
    let mut unpacked = 0;
    let mut plain = plain(BufReader::with_capacity(1, Slow(&layer))).unwrap();
    unpacked += io::copy(&mut plain, &mut io::sink()).unwrap();
    assert!(unpacked > 8 << 20, "{unpacked}");
    let image = archive(&[("layer.tar", &layer)]);
    let (first, second) = image.split_at(BLOCK + 1);
    let packed = [gzipped(first), gzipped(second)].concat();
    assert_end_is_kept(&packed, &image, 4 * MIB, "more than 4 MiB");
    // What engines would unpack once more is none.
    assert_end_is_kept(
        &gzipped(&packed),
        &packed,
        16 * MIB,
        "does not begin like one",
    );
}

/// A header of this kind, with a name and a size as they are.
fn header(kind: u8, name: &[u8], size: u64) -> Header {
    let mut header = Header::new_old();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkflag = [kind];
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

#[test]
fn directory_of_an_old_archive_has_no_content() {
    let hidden = archive(&[("hidden", &[b'x'; 2000])]);
    let size = hidden.len() as u64;
    let dir = [header(0, b"dir/", size).as_bytes().as_slice(), &hidden].concat();
    assert_refused(&dir, MIB, "a directory has content");
    assert_refused(
        &archive(&[("layer.tar", &dir)]),
        MIB,
        "a directory has content",
    );
    let mut long = [0; BLOCK];
    long[..5].copy_from_slice(b"long/");
    let of_file = header(0, b"file", size);
    let entry = header(b'L', b"x", 5);
    let blocks: Vec<u8> = [entry.as_bytes(), &long, of_file.as_bytes()]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    assert_refused(
        &[blocks, hidden.clone()].concat(),
        MIB,
        "a directory has content",
    );
    let file = [of_file.as_bytes().as_slice(), &hidden, &[0; 1024]].concat();
    assert_passes(&file, MIB);
    let empty = [header(0, b"dir/", 0).as_bytes().as_slice(), &[0; 1024]].concat();
    assert_passes(&empty, MIB);
}

/// What lists the layers of these images, as older engines do.
fn manifest(images: &[&[&str]]) -> Vec<u8> {
    let image = |layers: &&[&str]| serde_json::json!({"Config": "c.json", "Layers": layers});
    let all: Vec<_> = images.iter().map(image).collect();
    serde_json::to_vec(&all).unwrap()
}

#[test]
fn layer_counts_as_often_as_it_is_unpacked() {
    let layer = archive(&[("file", &[b'x'; 1 << 20])]);
    let files = |list: &[u8]| {
        let first = archive(&[
            ("manifest.json", list),
            ("a/layer.tar", &layer),
            ("b.tar", b"b"),
        ]);
        let last = archive(&[
            ("a/layer.tar", &layer),
            ("b.tar", b"b"),
            ("manifest.json", list),
        ]);
        [first, last]
    };
    let (a, b) = ("a/layer.tar", "b.tar");
    let shared: &[&[&str]] = &[&[a, b], &[a], &[a, b]];
    for image in files(&manifest(shared)) {
        assert_passes(&image, 2 * MIB);
    }
    let others: [&[&[&str]]; 4] = [
        &[&[a, a]],
        &[&[a], &[b, a]],
        &[&[a, "./a//layer.tar"]],
        &[&[a, "none"]],
    ];
    for image in others.iter().flat_map(|list| files(&manifest(list))) {
        assert_refused(&image, 2 * MIB, "more than 2 MiB");
        assert_passes(&image, 3 * MIB);
    }
    for list in [
        r#"[{"layer\u017f":["b.tar","a/layer.tar"]},{"Layers":["a/layer.tar"]}]"#,
        " [{\"LAYERS\":[\"a/layer.tar\",\"a/layer.tar\"]}] x",
    ] {
        for image in files(list.as_bytes()) {
            assert_refused(&image, 2 * MIB, "more than 2 MiB");
        }
    }
}

#[test]
fn layer_counts_as_often_as_its_digest_is_named() {
    let layer = archive(&[("file", &[b'x'; 1 << 20])]);
    let named = |count: usize| {
        let layers = vec![serde_json::json!({"digest": "sha256:0a"}); count];
        let manifest = serde_json::to_vec(&serde_json::json!({"layers": layers})).unwrap();
        archive(&[
            ("blobs/sha256/0a", &layer),
            ("blobs/sha256/0b", &manifest),
            ("index.json", b"{}"),
        ])
    };
    assert_passes(&named(1), 2 * MIB);
    assert_refused(&named(2), 2 * MIB, "more than 2 MiB");
    // It may end without the blocks that say so.
    let mut bare = named(2);
    bare.truncate(bare.len() - 1024);
    assert_refused(&bare, 2 * MIB, "more than 2 MiB");
    let twice = br#"{"layers":[],"layers":[]}"#;
    assert_refused(
        &archive(&[("x", twice), ("y", &[0; 9000])]),
        MIB,
        "is invalid",
    );
}

/// An archive with a large layer, these links, and a list.
fn linked(links: &[(&str, &str)], list: Option<&[&str]>) -> Vec<u8> {
    let layer = archive(&[("file", &[b'x'; 1 << 20])]);
    let mut tar = Builder::new(archive_without_end(&[("a/layer.tar", &layer)]));
    for (name, target) in links {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, name, target).unwrap();
    }
    if let Some(list) = list {
        let text = manifest(&[list]);
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, "manifest.json", text.as_slice())
            .unwrap();
    }
    tar.into_inner().unwrap()
}

fn archive_without_end(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = archive(files);
    bytes.truncate(bytes.len() - 1024);
    bytes
}

#[test]
fn link_to_a_layer_counts_as_the_layer() {
    let link = ("b/layer.tar", "../a/layer.tar");
    let once: [&[&str]; 2] = [&["b/layer.tar"], &["a/layer.tar"]];
    for list in once {
        assert_passes(&linked(&[link], Some(list)), 2 * MIB);
    }
    let both = Some(["a/layer.tar", "b/layer.tar"].as_slice());
    assert_refused(&linked(&[link], both), 2 * MIB, "more than 2 MiB");
    // Without a list each link is a layer.
    assert_refused(&linked(&[link], None), 2 * MIB, "more than 2 MiB");
    // What stands for a directory may stand for anything.
    let dirs = [("b", "a"), ("b/layer.tar", "../c/../a/layer.tar")];
    for links in [&dirs[..1], &dirs[1..], &dirs[..]] {
        assert_refused(&linked(links, both), 2 * MIB, "more than 2 MiB");
    }
}

/// The images that are noted of an archive before its end goes on.
fn noted(archive: &[u8]) -> Brings {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(archive).unwrap();
    file.rewind().unwrap();
    let (into, mut pieces) = mpsc::channel(1);
    let (sender, receiver) = std::sync::mpsc::channel();
    let limit = Limit {
        most: MIB,
        why: "as the test says".to_owned(),
        kind: io::ErrorKind::FileTooLarge,
    };
    let passing = std::thread::spawn(move || {
        // Who cannot note them does not pass the end on.
        let fail = |brings| {
            sender.send(brings).unwrap();
            Err(io::Error::other("the disk is full"))
        };
        pass_on(file, &limit, &into, fail);
    });
    let mut bytes = 0;
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Ok(Part::Piece(piece)) => bytes += piece.len(),
            Ok(Part::End) => panic!("it was passed on"),
            Err(error) => assert_eq!(error.to_string(), "the disk is full"),
        }
    }
    passing.join().unwrap();
    assert!(bytes < archive.len(), "the engine has all of it");
    receiver.recv().unwrap()
}

#[test]
fn images_of_an_archive_are_noted_before_its_end() {
    let (one, two) = ("0f".repeat(32), "1e".repeat(32));
    let list = format!(
        r#"[{{"Config":"{one}.json","RepoTags":["app:1","app:2"],"Layers":[]}},
            {{"Config":"blobs/sha256/{two}","RepoTags":null,"Layers":[]}},
            {{"Config":"none.json","RepoTags":["other:1"],"Layers":[]}}]"#
    );
    let lie = list.replace("app", "lie");
    let files: &[(&str, &[u8])] = &[
        ("./manifest.json", list.as_bytes()),
        ("x.json", lie.as_bytes()),
    ];
    let names = ["app:1", "app:2"].map(str::to_owned);
    let expected = [
        (format!("sha256:{one}"), names.into()),
        (format!("sha256:{two}"), [].into()),
    ];
    assert_eq!(noted(&archive(files)), expected.into());
}
