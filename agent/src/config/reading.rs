//! What blocks with a name and settings of their own share: how they are read, so that each mistake bears its place.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use drover_core::text::{parse_duration, quote};
use drover_io_real::post::{PostBox, check_ca_file, check_header, check_url};
use hcl_edit::structure::Block;

use super::literal::{Fields, fields};
use super::place::Places;
use super::{label, unknown};

/// Longer names nobody means.
const LONGEST_NAME: usize = 64;

/// The name of a block, and what mistakes in it are said to be about. `others` are the names of the blocks before it.
///
/// # Errors
/// It has no name, one that is no name of a file or that another block has, or there are more than `most`.
pub(super) fn named<'b, 'o>(
    block: &'b Block,
    places: &Places<'_>,
    mut others: impl ExactSizeIterator<Item = &'o str>,
    most: usize,
) -> Result<(&'b str, String), String> {
    let at = places.of(block);
    let name = label(block).map_err(|why| format!("{at}{why}"))?;
    let about = format!("{} {}", block.ident.as_str(), quote(name));
    let fail = |why: String| format!("{at}{about}: {why}");
    check_name(name).map_err(fail)?;
    let count = others.len();
    if others.any(|other| other == name) {
        return Err(fail("it is there twice".to_owned()));
    }
    if count >= most {
        return Err(fail(format!("there are more than {most}")));
    }
    Ok((name, about))
}

/// Names are names of files.
fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(fits) {
        true => Ok(()),
        false => Err(format!(
            "a name has letters, digits, - and _, and no more than {LONGEST_NAME} of them"
        )),
    }
}

/// A block that is read setting by setting; mistakes bear the place of the setting.
pub(super) struct Reading<'b> {
    block: &'b Block,
    about: String,
    places: &'b Places<'b>,
    given: Fields,
}

impl<'b> Reading<'b> {
    /// One that has these settings and no others.
    pub(super) fn of(
        block: &'b Block,
        about: &str,
        places: &'b Places<'b>,
        known: &[&str],
    ) -> Result<Reading<'b>, String> {
        if let Some((name, at)) = places.unknown(&block.body, known) {
            return Err(format!("{at}{about}: {}", unknown("setting", &name, known)));
        }
        let given = fields(&block.body);
        Ok(Reading {
            given: given.map_err(|why| format!("{}{about}: {why}", places.of(block)))?,
            block,
            about: about.to_owned(),
            places,
        })
    }

    /// Takes a setting.
    pub(super) fn take<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields, &'static str) -> Result<T, String>,
    ) -> Result<T, String> {
        read(&mut self.given, name).map_err(|why| {
            let at = self.places.setting(self.block, name);
            // What takes settings names them already.
            match why.starts_with(name) {
                true => format!("{at}{}: {why}", self.about),
                false => format!("{at}{}: {name}: {why}", self.about),
            }
        })
    }
}

/// A time from a second to `most`.
pub(super) fn duration(
    given: &mut Fields,
    name: &'static str,
    unset: Duration,
    most: Duration,
) -> Result<Duration, String> {
    let Some(text) = given.text(name)? else {
        return Ok(unset);
    };
    let span = parse_duration(&text).map_err(|why| format!("{}: {why}", quote(&text)))?;
    let time = Duration::from_nanos(u64::try_from(span.0).unwrap_or(0));
    match time >= Duration::from_secs(1) && time <= most {
        true => Ok(time),
        false => Err(format!("{} is not from 1s to {most:?}", quote(&text))),
    }
}

/// Where something is posted: `url`, `headers`, `timeout` and `ca_file`.
///
/// # Errors
/// The first that cannot be.
pub(super) fn post_box(read: &mut Reading<'_>) -> Result<PostBox, String> {
    let url = read.take("url", |given, name| {
        check_url(&given.text(name)?.unwrap_or_default())
    })?;
    let headers = read.take("headers", headers)?;
    let timeout = read.take("timeout", |given, name| {
        let (unset, most) = (Duration::from_secs(10), Duration::from_secs(300));
        duration(given, name, unset, most)
    })?;
    let ca_file = read.take("ca_file", |given, name| {
        let file = given.text(name)?.map(PathBuf::from);
        if file.is_some() && url.scheme() != "https" {
            return Err("it is for a url of https".to_owned());
        }
        file.as_deref().map(check_ca_file).transpose()?;
        Ok(file)
    })?;
    Ok(PostBox {
        url,
        headers,
        timeout,
        ca_file,
    })
}

/// Headers that can be sent. A mistake in one does not tell what it says.
fn headers(given: &mut Fields, name: &'static str) -> Result<BTreeMap<String, String>, String> {
    let headers = given.text_map(name)?;
    for (header, value) in &headers {
        check_header(header, value)?;
    }
    Ok(headers)
}
