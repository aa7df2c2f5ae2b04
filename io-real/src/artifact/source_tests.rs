use super::*;

fn with(source: &str, options: &[(&str, &str)]) -> Result<Wanted, String> {
    let options = options.iter();
    parse(&Artifact {
        getter_source: source.to_owned(),
        getter_options: options
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..Artifact::default()
    })
}

fn read(source: &str) -> Wanted {
    with(source, &[]).unwrap()
}

#[test]
fn artifact_urls_are_parsed_like_nomad() {
    let wanted = read(
        "https://host/a/x.tar.gz//sub/dir?checksum=md5:0123456789abcdef0123456789abcdef&token=1",
    );
    assert_eq!(wanted.part, "sub/dir");
    assert!(wanted.checksum.is_some());
    let Source::Http(url) = wanted.source else {
        panic!("{:?}", wanted.source);
    };
    assert_eq!(url.request(), "https://host/a/x.tar.gz?token=1");
    let archive = wanted.archive.unwrap();
    assert_eq!((archive.packed, archive.holds), (Packed::Gz, Holds::Tar));
    for (source, shown, part) in [
        (
            "git::https://h/r.git//x?ref=v1&depth=1",
            "https://h/r.git",
            "x",
        ),
        (
            "github.com/owner/name",
            "https://github.com/owner/name.git",
            "",
        ),
        (
            "github.com/owner/name/a/b?ref=x",
            "https://github.com/owner/name.git",
            "a/b",
        ),
        (
            "s3::http://127.0.0.1:9000/bucket/key",
            "http://127.0.0.1:9000/bucket/key",
            "",
        ),
        (
            "bucket.s3.amazonaws.com/key",
            "https://bucket.s3.amazonaws.com/key",
            "",
        ),
        ("/etc/motd", "/etc/motd", ""),
        ("file:///srv/a.zip", "/srv/a.zip", ""),
        ("http::http://h/x", "http://h/x", ""),
    ] {
        let wanted = read(source);
        assert_eq!(wanted.source.to_string(), shown, "{source}");
        assert_eq!(wanted.part, part, "{source}");
    }
}

#[test]
fn artifact_options_override_url() {
    let wanted = with("git::https://h/r?ref=a", &[("ref", "b"), ("depth", "3")]).unwrap();
    let Source::Git {
        reference, depth, ..
    } = wanted.source
    else {
        panic!("{:?}", wanted.source);
    };
    assert_eq!((reference.as_deref(), depth), (Some("b"), Some(3)));
    let plain = with("https://h/x.zip", &[("archive", "false")]).unwrap();
    assert_eq!(plain.archive, None);
    let forced = with("https://h/x", &[("archive", "tgz")]).unwrap();
    assert!(forced.archive.is_some());
    assert_eq!(read("https://h/notes.txt.gz").file_name, "notes.txt");
    assert_eq!(
        with("https://h/", &[("filename", "y")]).unwrap().file_name,
        "y"
    );
}

#[test]
fn s3_region_is_parsed_from_host() {
    for (host, expected) in [
        ("s3.amazonaws.com", "us-east-1"),
        ("s3-eu-west-1.amazonaws.com", "eu-west-1"),
        ("b.s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ("b.s3-eu-west-1.amazonaws.com", "eu-west-1"),
        ("minio.example.org", "us-east-1"),
    ] {
        let wanted = read(&format!("s3::https://{host}/x/y"));
        let Source::S3 { region, .. } = wanted.source else {
            panic!("{:?}", wanted.source);
        };
        assert_eq!(region, expected, "{host}");
    }
}

#[test]
fn refused_source_has_reason() {
    for (source, options, expected) in [
        ("git@github.com:a/b", &[][..], "over ssh"),
        ("git::ssh://git@h/x", &[], "over http"),
        ("hg::https://h/x", &[], "is not supported"),
        ("ftp://h/x", &[], "is not supported"),
        ("some words", &[], "neither a URL"),
        ("./x", &[], "neither a URL"),
        ("https:///x", &[], "no host"),
        ("https://h/x//../y", &[], "must not have .."),
        ("https://h/x.bin//y", &[], "needs an archive"),
        ("https://h/x", &[("checksum", "md5:12")], "md5 has 32"),
        ("https://h/x", &[("archive", "rar")], "known are"),
        ("https://h/x.tar.bz2", &[], "tar.bz2 is not unpacked"),
        ("https://h/x", &[("filename", "../x")], "filename"),
        (
            "git::https://h/x",
            &[("ref", "--upload-pack=x")],
            "ref is no",
        ),
        ("git::https://h/x", &[("sshkey", "x")], "sshkey"),
        (
            "git::https://h/x",
            &[("checksum", "0123456789abcdef0123456789abcdef")],
            "no checksum",
        ),
        (
            "s3::https://h/x",
            &[("aws_access_key_id", "x")],
            "go together",
        ),
        ("s3::https://h/x", &[("region", "a/b")], "region"),
        ("/srv/../etc/shadow", &[], "must not have .."),
        ("git::file:///srv/../etc", &[], "must not have .."),
        ("FILE:///srv/..%2f..%2Fetc/shadow", &[], "must not have .."),
    ] {
        let why = with(source, options).unwrap_err();
        assert!(why.contains(expected), "{source}: {why}");
    }
}

#[test]
fn artifact_error_contains_no_secret() {
    let wanted = with(
        "s3::https://me:hunter2@h/x?aws_access_key_id=hunter2&q=hunter2",
        &[("aws_access_key_secret", "hunter2")],
    );
    assert!(!format!("{wanted:?}").contains("hunter2"));
    for source in [
        "https://me:hunter2@h:x/?y=hunter2",
        "x?y=hunter2",
        "hunter2@h/x",
    ] {
        let why = with(source, &[]).unwrap_err();
        assert!(!why.contains("hunter2"), "{why}");
    }
}
