//! Archives. Whoever made one is an enemy: nothing of it gets anywhere but through [`Sink`].

#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader, Read, Seek};

use rustix::fs::{CWD, Mode, OFlags, openat};
use zip::ZipArchive;

use crate::artifact::settings::Limits;
use crate::artifact::source::{Archive, Holds, Packed};
use crate::artifact::wire::{DOWNLOAD, TREE};
use crate::unpack::{Attributes, Bound, Bounds, Keep, Sink, Trouble, gz, refused, tar, xz, zst};

/// What an archive may become without anybody asking how much smaller it was.
const FREE: u64 = 64 << 20;

/// Unpacks the file of downloads. Returns whether it became a tree, or one file in its place.
///
/// # Errors
/// It is no such archive, or one that does harm.
pub(super) fn unpack(archive: Archive, limits: &Limits) -> Result<bool, Trouble> {
    let file = File::open(DOWNLOAD).map_err(Trouble::disk)?;
    let packed = file.metadata().map_err(Trouble::disk)?.len();
    DirBuilder::new().create(TREE).map_err(Trouble::disk)?;
    let mut sink = sink(limits, packed)?;
    match archive.holds {
        // Some who make archives leave out the mark of their end.
        Holds::Tar => tar(
            &mut plain(archive.packed, BufReader::new(file)),
            &mut sink,
            &mut |_, _| Ok(()),
        )
        .map(drop)?,
        Holds::Zip => zip(file, limits, &mut sink)?,
        Holds::File => {
            sink.file(
                b"file",
                &Attributes::mode(0o644),
                &mut plain(archive.packed, BufReader::new(file)),
            )?;
            std::fs::rename(format!("{TREE}/file"), DOWNLOAD).map_err(Trouble::disk)?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// The tree in the working directory, to be filled with what comes out of so many `packed` bytes.
///
/// # Errors
/// There is no such directory.
pub(super) fn sink(limits: &Limits, packed: u64) -> Result<Sink, Trouble> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = openat(CWD, TREE, flags, Mode::empty()).map_err(Trouble::disk)?;
    Ok(Sink::new(top, bounds(limits, packed), Keep::Little))
}

fn bounds(limits: &Limits, packed: u64) -> Bounds {
    let unbounded = |limit| if limit == 0 { u64::MAX } else { limit };
    let by_ratio = match limits.unpacked_ratio {
        0 => u64::MAX,
        ratio => packed.saturating_mul(ratio).max(FREE),
    };
    let (by_size, entries) = (
        unbounded(limits.unpacked_bytes),
        unbounded(limits.unpacked_files),
    );
    let most = by_ratio.min(by_size);
    let why = if most == by_size {
        format!("it unpacks to more than {most} bytes, which is decompression_size_limit")
    } else {
        format!(
            "it unpacks to more than {} times its size, which is decompression_ratio_limit",
            limits.unpacked_ratio
        )
    };
    Bounds {
        bytes: Bound { most, why },
        entries: Bound {
            most: entries,
            why: format!(
                "it has more than {entries} entries, which is decompression_file_count_limit"
            ),
        },
    }
}

/// Takes a compression away.
fn plain<'a>(packed: Packed, from: impl BufRead + 'a) -> Box<dyn Read + 'a> {
    match packed {
        Packed::Plain => Box::new(from),
        Packed::Gz => gz(from),
        Packed::Xz => xz(from),
        Packed::Zst => zst(from),
    }
}

fn zip(from: impl Read + Seek, limits: &Limits, sink: &mut Sink) -> Result<(), Trouble> {
    let unreadable = |error| Trouble::lasting(format!("it is no zip archive: {error}"));
    let mut archive = ZipArchive::new(from).map_err(unreadable)?;
    let many = u64::try_from(archive.len()).unwrap_or(u64::MAX);
    if limits.unpacked_files > 0 && many > limits.unpacked_files {
        return Err(Trouble::lasting(format!(
            "it has more than {} entries, which is decompression_file_count_limit",
            limits.unpacked_files
        )));
    }
    for nth in 0..archive.len() {
        let mut entry = archive.by_index(nth).map_err(unreadable)?;
        let name = entry.name_raw().to_vec();
        let mode = entry.unix_mode().unwrap_or(0o644);
        match mode & 0o170_000 {
            0o120_000 => {
                let mut target = Vec::new();
                let read = (&mut entry).take(4_097).read_to_end(&mut target);
                read.map_err(|error| refused(&name, &format!("cannot be unpacked: {error}")))?;
                sink.link(&name, &target, &Attributes::default())?;
            }
            _ if entry.is_dir() => sink.dir(&name, &Attributes::default())?,
            0 | 0o100_000 => sink.file(&name, &Attributes::mode(mode & 0o7777), &mut entry)?,
            _ => return Err(refused(&name, "is no plain file")),
        }
    }
    Ok(())
}
