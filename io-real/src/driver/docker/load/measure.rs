//! How large an archive of images becomes: counted on its way to the engine, which unpacks all that it gets.
//!
//! The engine gets a piece only when what is in it was counted, so it never has the end of an archive that is too
//! large, and gives up what it has of it. Layers are archives in the archive, compressed or not; an engine unpacks
//! what is in those and looks no deeper. What this cannot read an engine might, and so it is refused.
//!
//! The archive itself goes on unpacked: of what is compressed an engine may see more than was counted.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::mentions::{Brings, Mentions, may_describe_layers};
use crate::unpack::{gz, xz, zst};

/// How much of an archive is read at a time.
const PIECE: usize = 64 * 1024;

/// The unit of archives.
const BLOCK: usize = 512;

/// The most that may be said of a file beside its header, in bytes.
const MAX_OVERRIDES: u64 = 1 << 20;

/// The most that may be said of images in one file, in bytes.
const MOST_OF_IMAGES: u64 = 32 << 20;

/// How large an archive may become, and who says so.
#[derive(Clone, Debug)]
pub(in super::super) struct Limit {
    pub(in super::super) most: u64,
    pub(in super::super) why: String,
    /// The kind of the error of an archive that is larger: where a disk is full, there may be room another time.
    pub(in super::super) kind: io::ErrorKind,
}

/// What an engine gets of an archive.
#[derive(Debug)]
pub(super) enum Part {
    Piece(Bytes),
    /// It has all of it.
    End,
}

/// Sends an archive on, each piece after it was counted, or what is wrong with it. `note` hears which images it has
/// before its end goes on.
pub(super) fn pass_on(
    archive: File,
    limit: &Limit,
    into: &mpsc::Sender<io::Result<Part>>,
    note: impl Fn(Brings) -> io::Result<()>,
) {
    let passed = pass(archive, limit, into, note);
    // Nobody may wait for it any more.
    let _ = into.blocking_send(passed.map(|()| Part::End));
}

fn pass(
    archive: impl Read,
    limit: &Limit,
    into: &mpsc::Sender<io::Result<Part>>,
    note: impl Fn(Brings) -> io::Result<()>,
) -> io::Result<()> {
    let mut counted = Counted {
        archive: plain(BufReader::with_capacity(PIECE, archive))?,
        piece: Bytes::new(),
        read: 0,
        into,
    };
    let mut count = Count {
        left: limit.most,
        limit,
        mentions: Mentions::new(),
    };
    count.archive(&mut counted, 0)?;
    note(count.mentions.brings())?;
    // What follows an archive belongs to it as well.
    io::copy(&mut counted, &mut io::sink())?;
    counted.send()
}

/// What was read of an archive goes on when more of it was read: the last piece when all was counted.
struct Counted<'a> {
    archive: Box<dyn Read + 'a>,
    piece: Bytes,
    /// How much of the piece was read.
    read: usize,
    into: &'a mpsc::Sender<io::Result<Part>>,
}

impl Counted<'_> {
    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        self.read = 0;
        if piece.is_empty() {
            return Ok(());
        }
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "it was given up");
        self.into
            .blocking_send(Ok(Part::Piece(piece)))
            .map_err(gone)
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() {
            let mut next = vec![0; PIECE];
            let count = self.archive.read(&mut next)?;
            if count == 0 {
                return Ok(0);
            }
            self.send()?;
            next.truncate(count);
            self.piece = next.into();
        }
        let rest = self.piece.get(self.read..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(rest);
        }
        self.read += count;
        Ok(count)
    }
}

struct Count<'a> {
    left: u64,
    limit: &'a Limit,
    mentions: Mentions,
}

impl Count<'_> {
    fn take(&mut self, bytes: u64) -> io::Result<()> {
        let too_large = || {
            let Limit { most, why, kind } = self.limit;
            io::Error::new(
                *kind,
                format!("it becomes more than {} MiB, {why}", most >> 20),
            )
        };
        self.left = self.left.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// Counts an archive, compressed or not. What is none counts as it is, unless it is the outermost.
    fn archive(&mut self, from: &mut dyn Read, depth: u32) -> io::Result<()> {
        let from = match depth {
            0 => Box::new(from),
            _ => plain(BufReader::new(from))?,
        };
        let mut inside = BufReader::with_capacity(PIECE, from);
        let mut block = [0; BLOCK];
        let mut length = fill(&mut inside, &mut block)?;
        let is_archive = length == BLOCK && is_header(&block);
        if depth == 0 && (!is_archive || packing(&block).is_some()) {
            return Err(broken("it does not begin like one"));
        }
        let begin = block.get(..length).unwrap_or_default();
        // A file can be both to an engine, but a header that was made by a program has zeros.
        let is_text = !begin.contains(&0) || !is_archive;
        if depth > 0 && is_text && may_describe_layers(begin, length < BLOCK) {
            return self.text(begin, &mut inside);
        }
        if !is_archive {
            return self.bytes(length, &mut inside);
        }
        let mut overrides = EntryOverrides::default();
        while length == BLOCK && block.iter().any(|byte| *byte != 0) {
            if !is_header(&block) {
                return Err(broken("a header is damaged"));
            }
            overrides = self.entry(&block, overrides, &mut inside, depth)?;
            length = fill(&mut inside, &mut block)?;
        }
        if depth == 0 {
            // Before the engine has the end.
            self.take(self.mentions.again())?;
        }
        // Compressed padding is unpacked as well.
        self.bytes(length, &mut inside)
    }

    /// Counts what may describe images.
    fn text(&mut self, begin: &[u8], from: &mut dyn Read) -> io::Result<()> {
        let mut text = begin.to_vec();
        from.take(MOST_OF_IMAGES).read_to_end(&mut text)?;
        if text.len() as u64 > MOST_OF_IMAGES {
            return Err(broken("the description of its images is too large"));
        }
        self.take(text.len() as u64)?;
        self.mentions.read_layers(&text)
    }

    /// Counts all that is left.
    fn bytes(&mut self, before: usize, from: &mut dyn Read) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        let mut count = before;
        loop {
            self.take(count as u64)?;
            count = from.read(&mut piece)?;
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Counts an entry, and what is in it. `overrides` is what those before it set for it. Returns those of the next one.
    fn entry(
        &mut self,
        header: &[u8; BLOCK],
        mut overrides: EntryOverrides,
        from: &mut impl BufRead,
        depth: u32,
    ) -> io::Result<EntryOverrides> {
        let kind = header[156];
        let own = || number(&header[124..136]);
        let size = match kind {
            // Of those that have no content, engines read none.
            b'1'..=b'6' => 0,
            b'x' | b'g' | b'L' | b'K' => own()?,
            _ => overrides.size.map_or_else(own, Ok)?,
        };
        self.take(BLOCK as u64)?;
        let mut content = from.by_ref().take(size);
        match kind {
            b'S' => {
                return Err(broken(
                    "it has a file with holes, which can become any size",
                ));
            }
            b'x' | b'g' | b'L' | b'K' if size > MAX_OVERRIDES => {
                return Err(broken("the extended header of a file is too large"));
            }
            b'x' | b'g' | b'L' | b'K' => {
                let mut text = Vec::new();
                content.read_to_end(&mut text)?;
                overrides.add(kind, &text)?;
            }
            _ => {
                self.content(header, &overrides, &mut content, depth)?;
                overrides = EntryOverrides::default();
            }
        }
        let padding = size
            .checked_next_multiple_of(BLOCK as u64)
            .map(|it| it - size);
        let padding = padding.ok_or_else(|| broken("a number is too large"))?;
        let rest = content.limit().saturating_add(padding);
        let skipped = io::copy(&mut from.by_ref().take(rest), &mut io::sink())?;
        match skipped == rest {
            true => Ok(overrides),
            false => Err(broken("it ends in the middle of a file")),
        }
    }

    /// Counts what an entry stands for.
    fn content(
        &mut self,
        header: &[u8; BLOCK],
        overrides: &EntryOverrides,
        content: &mut io::Take<&mut impl BufRead>,
        depth: u32,
    ) -> io::Result<()> {
        let kind = header[156];
        let own = name(header);
        let name = overrides.name().unwrap_or(&own);
        // Old archives have directories of this kind, which have no content whatever is said.
        if kind == 0 && content.limit() > 0 && (name.ends_with(b"/") || own.ends_with(b"/")) {
            return Err(broken("a directory has content"));
        }
        if depth > 0 {
            return self.take(content.limit());
        }
        if is_doubtful(header) {
            self.mentions.doubt();
        }
        if kind == b'1' || kind == b'2' {
            let target = overrides
                .target()
                .unwrap_or_else(|| to_zero(&header[157..257]));
            return self.mentions.link(name, target, kind == b'1');
        }
        let before = self.left;
        self.mentions.begin(name);
        if content.limit() > 0 {
            self.archive(content, 1)?;
        }
        self.mentions.file(name, before - self.left)
    }
}

/// What extended headers before an entry set for it.
#[derive(Default)]
struct EntryOverrides {
    size: Option<u64>,
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    long_name: Option<Vec<u8>>,
    long_target: Option<Vec<u8>>,
}

impl EntryOverrides {
    /// Takes the extended header of this kind.
    fn add(&mut self, kind: u8, text: &[u8]) -> io::Result<()> {
        match kind {
            b'L' => self.long_name = Some(to_zero(text).to_vec()),
            b'K' => self.long_target = Some(to_zero(text).to_vec()),
            b'x' => {
                let (long_name, long_target) = (self.long_name.take(), self.long_target.take());
                *self = EntryOverrides {
                    long_name,
                    long_target,
                    ..records(text)?
                };
            }
            // What is said of all ends what is said of the next one, and nothing of it counts.
            _ => {
                records(text)?;
                *self = EntryOverrides::default();
            }
        }
        Ok(())
    }

    fn name(&self) -> Option<&[u8]> {
        let long = self.long_name.as_deref().filter(|name| !name.is_empty());
        long.or(self.path.as_deref())
    }

    fn target(&self) -> Option<&[u8]> {
        let long = self.long_target.as_deref().filter(|name| !name.is_empty());
        long.or(self.target.as_deref())
    }
}

/// The name that a header has.
fn name(header: &[u8; BLOCK]) -> Vec<u8> {
    let own = to_zero(&header[..100]);
    let prefix: &[u8] = match &header[257..265] {
        b"ustar\x0000" if &header[508..512] == b"tar\0" => to_zero(&header[345..476]),
        b"ustar\x0000" => to_zero(&header[345..500]),
        _ => b"",
    };
    match prefix {
        b"" => own.to_vec(),
        prefix => [prefix, b"/", own].concat(),
    }
}

/// Whether engines may take another name from a header.
fn is_doubtful(header: &[u8; BLOCK]) -> bool {
    let is_known = &header[257..265] == b"ustar\x0000";
    !is_known && header[345..500].iter().any(|byte| *byte != 0)
}

fn to_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

pub(super) fn broken(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it cannot be read as an archive of images: {why}"),
    )
}

/// How something is compressed.
enum Packing {
    Gz,
    Xz,
    Zst,
    Bz,
}

/// What tells how something is compressed, in bytes.
const SIGN: usize = 6;

/// How engines think that something is compressed that begins like this.
fn packing(begin: &[u8]) -> Option<Packing> {
    match begin {
        [0x1f, 0x8b, 0x08, ..] => Some(Packing::Gz),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Zst),
        [b'B', b'Z', b'h', ..] => Some(Packing::Bz),
        _ => None,
    }
}

/// Takes away what engines take away.
fn plain<'a>(mut from: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    // One look into a buffer may show less.
    let mut begin = Vec::new();
    from.by_ref().take(SIGN as u64).read_to_end(&mut begin)?;
    let packing = packing(&begin);
    let whole = io::Cursor::new(begin).chain(from);
    Ok(match packing {
        Some(Packing::Gz) => gz(whole),
        Some(Packing::Xz) => xz(whole),
        Some(Packing::Zst) => zst(whole),
        Some(Packing::Bz) => return Err(broken("it is compressed with bzip2")),
        None => Box::new(whole),
    })
}

/// Reads a block, or what there is of it.
fn fill(from: &mut impl Read, block: &mut [u8; BLOCK]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = block.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}

/// Whether the sum of a header is right, with bytes that are signed or not.
fn is_header(block: &[u8; BLOCK]) -> bool {
    let is_sum = |at: usize| (148..156).contains(&at);
    let bytes = block.iter().enumerate();
    let bytes = bytes.map(|(at, byte)| if is_sum(at) { b' ' } else { *byte });
    let unsigned: i64 = bytes.clone().map(i64::from).sum();
    let signed: i64 = bytes.map(|byte| i64::from(byte.cast_signed())).sum();
    let checksum = number(&block[148..156])
        .ok()
        .and_then(|it| i64::try_from(it).ok());
    checksum == Some(unsigned) || checksum == Some(signed)
}

/// A number of a header: octal digits, or bytes where those are too few.
fn number(field: &[u8]) -> io::Result<u64> {
    if let [first, rest @ ..] = field
        && first & 0x80 != 0
    {
        let mut digits = std::iter::once(first & 0x7f).chain(rest.iter().copied());
        let sum = digits.try_fold(0_u64, |sum, digit| {
            sum.checked_mul(256)?.checked_add(digit.into())
        });
        return sum.ok_or_else(|| broken("a number is too large"));
    }
    let text: String = field.iter().map(|byte| char::from(*byte)).collect();
    let text = text.trim_matches(['\0', ' ']);
    match text.split('\0').next().unwrap_or_default() {
        "" => Ok(0),
        digits => u64::from_str_radix(digits, 8).map_err(|_| broken("a number is none")),
    }
}

/// What records say of the next file.
fn records(mut text: &[u8]) -> io::Result<EntryOverrides> {
    let mut overrides = EntryOverrides::default();
    while !text.is_empty() {
        let wrong = || broken("the extended header of a file is invalid");
        let space = text
            .iter()
            .position(|byte| *byte == b' ')
            .ok_or_else(wrong)?;
        let (length, _) = text.split_at(space);
        let length = std::str::from_utf8(length)
            .ok()
            .and_then(|it| it.parse::<usize>().ok());
        let length = length
            .filter(|length| *length > space + 1)
            .ok_or_else(wrong)?;
        let record = text.get(space + 1..length - 1).ok_or_else(wrong)?;
        if record.starts_with(b"GNU.sparse.") {
            return Err(broken(
                "it has a file with holes, which can become any size",
            ));
        }
        let named = |name: &[u8]| Some(name.to_vec()).filter(|name| !name.is_empty());
        if let Some(size) = record.strip_prefix(b"size=") {
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|it| it.parse().ok());
            overrides.size = Some(size.ok_or_else(wrong)?);
        } else if let Some(path) = record.strip_prefix(b"path=") {
            overrides.path = named(path);
        } else if let Some(target) = record.strip_prefix(b"linkpath=") {
            overrides.target = named(target);
        }
        text = text.get(length..).ok_or_else(wrong)?;
    }
    Ok(overrides)
}

#[cfg(test)]
mod tests;
