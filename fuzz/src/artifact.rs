//! Sources of artifacts: what is understood of them leads nowhere and holds no secret.

use drover_core::model::artifact::Artifact;
use drover_io_real::artifact::source::{Source, Wanted, parse};
use drover_io_real::artifact::url::{Url, is_file_name};

/// A source in the first line, options as `name=value` in the others.
///
/// # Panics
/// If what is understood could lead out of its directory, be taken for an option of a program, or
/// shows who asks; or if it is not the same when it was written down and read.
pub fn artifact(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lines = text.split('\n');
    let source = lines.next().unwrap_or("").to_owned();
    let options = lines.filter_map(|line| line.split_once('='));
    let artifact = Artifact {
        getter_source: source.clone(),
        getter_options: options
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..Artifact::default()
    };
    let read = parse(&artifact);
    assert_eq!(read, parse(&artifact), "the same is understood otherwise");
    match read {
        Err(why) => assert!(!why.is_empty() && why.len() < 400, "{why}"),
        Ok(wanted) => leads_nowhere(&wanted),
    }
    if let Ok(url) = Url::parse(&source) {
        let again = Url::parse(&url.request());
        let same = again.is_ok_and(|again| {
            (again.scheme(), again.authority(), again.path())
                == (url.scheme(), url.authority(), url.path())
        });
        assert!(same, "{url} is asked for as something else");
    }
}

fn leads_nowhere(wanted: &Wanted) {
    assert!(is_file_name(&wanted.file_name), "{}", wanted.file_name);
    let mut steps = wanted.part.split('/');
    assert!(
        wanted.part.is_empty() || steps.all(is_file_name_of_any_length),
        "{}",
        wanted.part
    );
    let shown = wanted.source.to_string();
    match &wanted.source {
        Source::Http(url) | Source::S3 { url, .. } => has_a_host(url, &["http", "https"]),
        Source::Git { url, reference, .. } => {
            if url.scheme() != "file" {
                has_a_host(url, &["http", "https"]);
            }
            let option = reference.as_ref().is_some_and(|text| text.starts_with('-'));
            assert!(!option && !url.request().starts_with('-'));
        }
        Source::File(path) => {
            assert!(path.is_absolute(), "{shown}");
            let up = |step| step == std::path::Component::ParentDir;
            assert!(!path.components().any(up), "{shown}");
        }
    }
}

fn is_file_name_of_any_length(step: &str) -> bool {
    !matches!(step, "" | "." | "..") && !step.contains(char::is_control)
}

fn has_a_host(url: &Url, schemes: &[&str]) {
    assert!(
        schemes.contains(&url.scheme()) && !url.host().is_empty(),
        "{url}"
    );
    let shown = url.to_string();
    assert!(
        !shown.contains(['@', '?', '#', ' ']) || url.path().contains('@'),
        "{shown}"
    );
}
