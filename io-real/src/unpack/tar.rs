//! Tar archives.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::{Archive, EntryType, Header};

use super::sink::{Attributes, Sink, refused};
use super::trouble::Trouble;

/// How many bytes may stand between two entries: their names, and what else is said of them. The
/// reader keeps all of that in memory.
const BETWEEN: u64 = 1 << 20;

/// How much is read after the end of an archive, in bytes.
const PADDING: u64 = 1 << 20;

/// Sees the name of an entry, and what is in it.
pub(crate) type OnEntry<'a> = dyn FnMut(&[u8], &mut dyn Read) -> Result<(), Trouble> + 'a;

/// How an archive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the mark that its writer puts after the last entry.
    Marked,
    /// Without it, where nothing more came: more may have been meant to.
    Unmarked,
}

/// Unpacks an archive. `on_entry` sees each entry's name first, and may end it all.
///
/// # Errors
/// It is none, it does harm, or `on_entry` says so.
pub(crate) fn tar(
    from: &mut dyn Read,
    sink: &mut Sink,
    on_entry: &mut OnEntry<'_>,
) -> Result<End, Trouble> {
    let unreadable = |error: io::Error| match error.kind() {
        // Whoever sends it broke off.
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {
            Trouble::passing(error.to_string())
        }
        _ => Trouble::lasting(format!("it is no tar archive: {error}")),
    };
    let left = Rc::new(Cell::new(Some(BETWEEN)));
    let end = Rc::new(Cell::new(End::Marked));
    let mut archive = Archive::new(Metered {
        from: &mut *from,
        left: left.clone(),
        end: end.clone(),
    });
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        left.set(None);
        let name = entry.path_bytes().into_owned();
        let target = entry.link_name_bytes().map(|target| target.into_owned());
        let target = target.unwrap_or_default();
        on_entry(&name, &mut entry)?;
        let attributes = attributes(entry.header()).map_err(unreadable)?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                sink.file(&name, &attributes, &mut entry)?;
            }
            EntryType::Directory => sink.dir(&name, &attributes)?,
            EntryType::Symlink => sink.link(&name, &target, &attributes)?,
            EntryType::Link => sink.copy(&name, &target)?,
            EntryType::XGlobalHeader => {}
            EntryType::Char | EntryType::Block => return Err(refused(&name, "is a device")),
            EntryType::Fifo => return Err(refused(&name, "is a pipe")),
            _ => return Err(refused(&name, "is of an unknown type")),
        }
        // What is left of an entry that holds no file is skipped by the reader: no more than this.
        left.set(Some(BETWEEN));
    }
    // What is around it may have a sum at its end, after some padding.
    let rest = io::copy(&mut from.take(PADDING), &mut io::sink());
    rest.map(|_| end.get()).map_err(unreadable)
}

fn attributes(header: &Header) -> io::Result<Attributes> {
    // What is not said, or makes no sense, is root's and very old.
    let id = |id: io::Result<u64>| u32::try_from(id.unwrap_or(0)).unwrap_or(0);
    Ok(Attributes {
        mode: header.mode()?,
        user: id(header.uid()),
        group: id(header.gid()),
        modified: header.mtime().unwrap_or(0),
    })
}

/// Reads no further than what is left, if that is counted.
struct Metered<'a> {
    from: &'a mut dyn Read,
    left: Rc<Cell<Option<u64>>>,
    /// `Unmarked` once more was wanted than came.
    end: Rc<Cell<End>>,
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        if read == 0 && !into.is_empty() {
            self.end.set(End::Unmarked);
        }
        if let Some(left) = self.left.get() {
            let many = u64::try_from(read).unwrap_or(u64::MAX);
            let Some(less) = left.checked_sub(many) else {
                return Err(io::Error::other("one entry has too many headers"));
            };
            self.left.set(Some(less));
        }
        Ok(read)
    }
}
