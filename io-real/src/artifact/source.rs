//! Where an artifact comes from: Nomad's way of writing it, taken apart.
//!
//! `[getter::]URL[//part][?parameters]`. Options of the artifact are parameters too. Those that
//! say how it is fetched (`checksum`, `archive`, `ref`, `depth`, `region`, `aws_…`, `filename`)
//! are taken out; any other is the server's.

use core::fmt;
use std::path::PathBuf;

use drover_core::model::artifact::{Artifact, Checksum};
use drover_core::text::quote;
use serde::{Deserialize, Serialize};

use super::url::{NO_FILE, Url, is_file_name};

/// An artifact's source and options, understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Where from.
    pub source: Source,
    /// The part of it that is wanted: a relative path without `..`; all of it if empty.
    pub part: String,
    /// What its bytes must sum up to.
    pub checksum: Option<Checksum>,
    /// What is to be unpacked.
    pub archive: Option<Archive>,
    /// The name of the file if it is one.
    pub file_name: String,
}

/// Where something is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// On a web server.
    Http(Url),
    /// In a git repository.
    Git {
        /// Its URL.
        url: Url,
        /// The branch, tag or commit; its usual branch if none.
        reference: Option<String>,
        /// How many commits are wanted; all if none.
        depth: Option<u32>,
    },
    /// On a server that speaks S3.
    S3 {
        /// The object's URL.
        url: Url,
        /// The region that signatures name.
        region: String,
        /// Who asks; anybody if none.
        credentials: Option<Credentials>,
    },
    /// On this machine.
    File(PathBuf),
}

/// Who asks a server that speaks S3.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The key's name.
    pub id: String,
    /// The key.
    pub secret: String,
    /// A token beside the key.
    pub token: Option<String>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_string())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Http(url) | Source::Git { url, .. } | Source::S3 { url, .. } => url.fmt(f),
            Source::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How files are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// What is around it.
    pub packed: Packed,
    /// What is inside.
    pub holds: Holds,
}

/// A compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Packed {
    /// None, or one of its own.
    Plain,
    /// gzip.
    Gz,
    /// Zstandard.
    Zst,
    /// xz.
    Xz,
}

/// What is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    /// One file.
    File,
    /// A tar archive.
    Tar,
    /// A zip archive.
    Zip,
}

/// Archives by the ends of their names; the longer ones first.
const ARCHIVES: &[(&str, Packed, Holds)] = &[
    ("tar.zstd", Packed::Zst, Holds::Tar),
    ("tar.zst", Packed::Zst, Holds::Tar),
    ("tar.gz", Packed::Gz, Holds::Tar),
    ("tar.xz", Packed::Xz, Holds::Tar),
    ("tzst", Packed::Zst, Holds::Tar),
    ("tgz", Packed::Gz, Holds::Tar),
    ("txz", Packed::Xz, Holds::Tar),
    ("tar", Packed::Plain, Holds::Tar),
    ("zip", Packed::Plain, Holds::Zip),
    ("zst", Packed::Zst, Holds::File),
    ("gz", Packed::Gz, Holds::File),
    ("xz", Packed::Xz, Holds::File),
];

/// Archives of Nomad that are not unpacked here.
const NOT_UNPACKED: &[&str] = &["tar.bz2", "tbz2", "bz2"];

/// Hosts that are written without a scheme and mean git.
const GIT_HOSTS: &[&str] = &["github.com", "gitlab.com", "bitbucket.org"];

/// Understands an artifact's source and options.
///
/// # Errors
/// What is wrong with them, in words that hold no secret.
pub fn parse(artifact: &Artifact) -> Result<Wanted, String> {
    let text = artifact.getter_source.trim();
    let (getter, text) = forced(text);
    let (getter, text) = detect(getter, text)?;
    let (text, part) = split_part(&text)?;
    let mut url = match text.strip_prefix("file://") {
        Some(path) => local(path)?,
        None => Url::parse(&text).map_err(|why| format!("its source is no URL: {why}"))?,
    };
    for (key, value) in &artifact.getter_options {
        url.take(key);
        url.query.push((key.clone(), value.clone()));
    }
    if url.take("sshkey").is_some() {
        return Err("sshkey is not supported: git is supported over https".to_owned());
    }
    let checksum = url.take("checksum").filter(|sum| !sum.is_empty());
    let checksum = checksum.map(|sum| Checksum::parse(&sum)).transpose();
    let checksum = checksum.map_err(|why| format!("checksum: {why}"))?;
    let archive_option = url.take("archive");
    let named = url.take("filename");
    let source = source(getter.as_deref(), url)?;
    let name = file_name(&source, named)?;
    let archive = match &source {
        Source::Git { .. } if checksum.is_some() => {
            return Err("a git repository has no checksum: give the commit as ref".to_owned());
        }
        Source::Git { .. } => None,
        Source::Http(_) | Source::S3 { .. } | Source::File(_) => {
            archive(archive_option.as_deref(), &name)?
        }
    };
    if let Source::Http(_) | Source::S3 { .. } = source
        && archive.is_none_or(|archive| archive.holds == Holds::File)
        && !part.is_empty()
    {
        return Err("//PART needs an archive or a git repository before it".to_owned());
    }
    let file_name = unpacked_name(&name, archive);
    Ok(Wanted {
        source,
        part,
        checksum,
        archive,
        file_name,
    })
}

/// The getter that is asked for, and the rest.
fn forced(text: &str) -> (Option<String>, &str) {
    match text.split_once("::") {
        Some((getter, rest)) if !getter.is_empty() && getter.bytes().all(is_letter) => {
            (Some(getter.to_ascii_lowercase()), rest)
        }
        Some(_) | None => (None, text),
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// What is written without a scheme: a path, or a host that is known.
fn detect(getter: Option<String>, text: &str) -> Result<(Option<String>, String), String> {
    if text.split(['?', '#']).next().unwrap_or("").contains("://") {
        return Ok((getter, text.to_owned()));
    }
    if text.starts_with('/') {
        return Ok((getter, format!("file://{text}")));
    }
    let host = text.split(['/', '?']).next().unwrap_or("");
    if host.contains('@') {
        return Err("git over ssh is not supported; write git::https://…".to_owned());
    }
    if GIT_HOSTS.contains(&host) && getter.as_deref().is_none_or(|getter| getter == "git") {
        return Ok((
            Some("git".to_owned()),
            format!("https://{}", repository(text)),
        ));
    }
    if host.ends_with(".amazonaws.com") && getter.as_deref().is_none_or(|getter| getter == "s3") {
        return Ok((Some("s3".to_owned()), format!("https://{text}")));
    }
    Err("its source is neither a URL nor an absolute path".to_owned())
}

/// `github.com/owner/name/dir` is the part `dir` of the repository `owner/name`.
fn repository(text: &str) -> String {
    let (path, query) = match text.find('?') {
        Some(at) => text.split_at_checked(at).unwrap_or((text, "")),
        None => (text, ""),
    };
    if path.contains("//") {
        return text.to_owned();
    }
    let mut steps = path.splitn(4, '/');
    let repository: Vec<&str> = steps.by_ref().take(3).collect();
    let name = repository.join("/");
    let git = if name.ends_with(".git") { "" } else { ".git" };
    match steps.next().filter(|part| !part.is_empty()) {
        Some(part) => format!("{name}{git}//{part}{query}"),
        None => format!("{name}{git}{query}"),
    }
}

/// Takes `//part` out of what stands before the query.
fn split_part(text: &str) -> Result<(String, String), String> {
    let (before, query) = match text.find(['?', '#']) {
        Some(at) => text.split_at_checked(at).unwrap_or((text, "")),
        None => (text, ""),
    };
    let path = before.find("://").map_or(0, |at| at + 3);
    let slashes = before.get(path..).and_then(|rest| rest.find("//"));
    let Some(at) = slashes.map(|at| path + at) else {
        return Ok((text.to_owned(), String::new()));
    };
    let (before, part) = before.split_at_checked(at).unwrap_or((before, ""));
    let mut steps = Vec::new();
    for step in part.split('/') {
        match step {
            "" | "." => {}
            ".." => return Err("//PART must not have .. in it".to_owned()),
            step if step.contains(char::is_control) => {
                return Err("//PART must not have control characters in it".to_owned());
            }
            step => steps.push(step),
        }
    }
    Ok((format!("{before}{query}"), steps.join("/")))
}

/// A path of this machine, with its parameters.
fn local(text: &str) -> Result<Url, String> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    Url::of_file(path, query)
}

fn source(getter: Option<&str>, url: Url) -> Result<Source, String> {
    let scheme = url.scheme().to_owned();
    match (getter, scheme.as_str()) {
        (None | Some("file" | "git"), "file") if url.file_path().is_none() => {
            Err(NO_FILE.to_owned())
        }
        (None | Some("file"), "file") => {
            Ok(Source::File(url.file_path().unwrap_or_default().into()))
        }
        (None, "http" | "https") => Ok(Source::Http(url)),
        (Some("http" | "https"), scheme) if getter == Some(scheme) => Ok(Source::Http(url)),
        (Some("git"), "http" | "https" | "file") => git(url),
        (Some("s3"), "http" | "https") => s3(url),
        (Some("git"), "ssh") | (None, "ssh" | "git") => {
            Err("git is supported over http and https; write git::https://…".to_owned())
        }
        (Some(getter), _) => Err(format!(
            "{} is not supported with {}; known are http, https, git, s3 and file",
            quote(&format!("{getter}::")),
            quote(&format!("{scheme}://"))
        )),
        (None, _) => {
            let scheme: String = scheme.chars().take(20).collect();
            let scheme = quote(&format!("{scheme}://"));
            Err(format!(
                "{scheme} is not supported; known are http, https, git::, s3:: and files"
            ))
        }
    }
}

fn git(mut url: Url) -> Result<Source, String> {
    let reference = url.take("ref").filter(|reference| !reference.is_empty());
    if reference
        .as_ref()
        .is_some_and(|reference| !is_reference(reference))
    {
        return Err("ref is no branch, tag or commit".to_owned());
    }
    let depth = url.take("depth").map(|depth| depth.parse::<u32>());
    let depth = depth.transpose().map_err(|_| "depth is not a number")?;
    Ok(Source::Git {
        url,
        reference,
        depth: depth.filter(|depth| *depth > 0),
    })
}

/// A branch, a tag or a commit: nothing that git would take for an option, a pattern or two names.
fn is_reference(text: &str) -> bool {
    let letter = |byte: u8| is_letter(byte) || b"/._+-@#".contains(&byte);
    text.bytes().next().is_some_and(is_letter) && text.bytes().all(letter) && !text.contains("..")
}

fn s3(mut url: Url) -> Result<Source, String> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let id = given(url.take("aws_access_key_id"));
    let secret = given(url.take("aws_access_key_secret"));
    let token = given(url.take("aws_access_token"));
    let region = given(url.take("region"));
    url.take("aws_profile");
    let credentials = match (id, secret) {
        (Some(id), Some(secret)) => Some(Credentials { id, secret, token }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err("aws_access_key_id and aws_access_key_secret go together".to_owned());
        }
    };
    let fit = |text: &String| text.bytes().all(|byte| is_letter(byte) || byte == b'-');
    let region = region.or_else(|| region_of(url.host()));
    let region = region.unwrap_or_else(|| "us-east-1".to_owned());
    if !fit(&region) {
        return Err("region is none".to_owned());
    }
    Ok(Source::S3 {
        url,
        region,
        credentials,
    })
}

/// `s3-eu-west-1.amazonaws.com`, `s3.eu-west-1.amazonaws.com`, each also below a bucket.
fn region_of(host: &str) -> Option<String> {
    let name = host.strip_suffix(".amazonaws.com")?;
    let mut steps = name.rsplit('.');
    let last = steps.next()?;
    let region = match last.strip_prefix("s3-") {
        Some(region) => region,
        None if steps.next() == Some("s3") => last,
        None => return None,
    };
    Some(region.to_owned())
}

fn file_name(source: &Source, named: Option<String>) -> Result<String, String> {
    if let Some(name) = named {
        let fits = is_file_name(&name);
        return fits.then_some(name).ok_or("filename is none".to_owned());
    }
    let name = match source {
        Source::Http(url) | Source::S3 { url, .. } | Source::Git { url, .. } => url.file_name(),
        Source::File(path) => {
            let name = path.file_name().and_then(|name| name.to_str());
            name.filter(|name| is_file_name(name)).map(str::to_owned)
        }
    };
    Ok(name.unwrap_or_else(|| "artifact".to_owned()))
}

fn archive(option: Option<&str>, name: &str) -> Result<Option<Archive>, String> {
    let known = |end: &str| ARCHIVES.iter().find(|(known, _, _)| *known == end);
    let found = match option {
        Some("false" | "0") => None,
        Some(kind) if !kind.is_empty() => {
            let names: Vec<&str> = ARCHIVES.iter().map(|(name, _, _)| *name).collect();
            let message = || format!("archive: known are {} and false", names.join(", "));
            Some(known(kind).ok_or_else(message)?)
        }
        Some(_) | None => {
            let name = name.to_ascii_lowercase();
            let ends = |end: &str| {
                name.strip_suffix(end)
                    .is_some_and(|stem| stem.ends_with('.'))
            };
            if let Some(end) = NOT_UNPACKED.iter().find(|end| ends(end)) {
                return Err(format!(
                    "{end} is not unpacked here; archive = \"false\" leaves it as it is"
                ));
            }
            ARCHIVES.iter().find(|(end, _, _)| ends(end))
        }
    };
    Ok(found.map(|&(_, packed, holds)| Archive { packed, holds }))
}

/// A single file that is unpacked loses the end of its name.
fn unpacked_name(name: &str, archive: Option<Archive>) -> String {
    let single = archive.is_some_and(|archive| archive.holds == Holds::File);
    match name.rsplit_once('.') {
        Some((stem, "gz" | "zst" | "xz")) if single && is_file_name(stem) => stem.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
#[path = "source_tests.rs"]
mod tests;
