//! Messages of DNS, as far as a resolver needs them that answers for one domain and passes everything else on: a
//! question is read whole, an answer of others only as far as it shows that it is one.
//!
//! Whatever a message has in it, reading it ends, takes no more than its own length, and fails rather than panics.

use std::net::{Ipv4Addr, Ipv6Addr};

use drover_core::agent::names::{Record, Wanted, ZONE};

/// For how many seconds an answer may be kept.
const TTL: u32 = 1;
/// The most that a client takes over UDP unless it says that it takes more.
const DEFAULT_UDP_LENGTH: usize = 512;
/// The most that is sent and asked for over UDP, which passes everywhere in one piece.
const MAX_UDP_LENGTH: u16 = 1232;
/// The most that is sent over TCP.
const MAX_TCP_LENGTH: usize = u16::MAX as usize;
/// The longest name, with the lengths of its labels.
const MAX_NAME: usize = 255;
/// The longest label.
const MAX_LABEL: usize = 63;
/// The most records that come with a question.
const MAX_ADDITIONAL: u16 = 4;

const HEADER: usize = 12;
const INTERNET: u16 = 1;

const A: u16 = 1;
const SOA: u16 = 6;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const OPT: u16 = 41;
const IXFR: u16 = 251;
const AXFR: u16 = 252;

/// Bits of the header's third byte.
const RESPONSE: u8 = 0x80;
const OPCODE: u8 = 0x78;
const AUTHORITATIVE: u8 = 0x04;
const TRUNCATED: u8 = 0x02;
const RECURSION_DESIRED: u8 = 0x01;
/// Bits of its fourth byte.
const RECURSION_AVAILABLE: u8 = 0x80;
const CHECKING_DISABLED: u8 = 0x10;
const CODE: u8 = 0x0f;

/// The domain's name that a compressed name refers to: the question's.
const NAME_OF_QUESTION: [u8; 2] = [0xc0, 12];

/// How a question went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It is answered, maybe with nothing.
    Answered,
    /// There is no such name.
    NoName,
    /// It cannot be answered now.
    Failed,
    /// Nobody answers such questions here.
    Refused,
}

impl Code {
    fn number(self) -> u8 {
        match self {
            Code::Answered => 0,
            Code::Failed => 2,
            Code::NoName => 3,
            Code::Refused => 5,
        }
    }
}

/// How a question came, and how its answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// In one packet.
    Udp,
    /// In a connection.
    Tcp,
}

/// What a client says of itself beside its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extension {
    max_length: u16,
    flags: u16,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    id: u16,
    recursion: u8,
    checking: u8,
    /// As it came: labels with their lengths, and the root.
    name: Vec<u8>,
    kind: u16,
    class: u16,
    extension: Option<Extension>,
}

impl Query {
    /// Reads a message that is one question and nothing else; none if it is another one.
    pub fn read(message: &[u8]) -> Option<Query> {
        let mut rest = Reader(message);
        let (id, [first, second]) = (rest.number()?, rest.bytes()?);
        let [questions, answers, authorities, additional] = rest.counts()?;
        let is_question = first & (RESPONSE | OPCODE | TRUNCATED) == 0;
        let alone = [questions, answers, authorities] == [1, 0, 0];
        if !is_question || !alone || additional > MAX_ADDITIONAL {
            return None;
        }
        let name = rest.name()?;
        let (kind, class) = (rest.number()?, rest.number()?);
        let mut extension = None;
        for _ in 0..additional {
            let found = rest.additional()?;
            // There is one at most.
            if found.is_some() && extension.is_some() {
                return None;
            }
            extension = extension.or(found);
        }
        rest.0.is_empty().then_some(Query {
            id,
            recursion: first & RECURSION_DESIRED,
            checking: second & CHECKING_DISABLED,
            name,
            kind,
            class,
            extension,
        })
    }

    /// Its name, label by label, without the root.
    pub fn labels(&self) -> Vec<String> {
        let mut rest = Reader(&self.name);
        let mut labels = Vec::new();
        while let Some(label) = rest.label().filter(|label| !label.is_empty()) {
            labels.push(String::from_utf8_lossy(label).into_owned());
        }
        labels
    }

    /// What it asks.
    pub fn wanted(&self) -> Wanted {
        match self.kind {
            A => Wanted::Ipv4,
            AAAA => Wanted::Ipv6,
            SRV => Wanted::Service,
            _ => Wanted::Other,
        }
    }

    /// Whether it is about the Internet, and about names rather than all of a domain.
    pub fn is_usual(&self) -> bool {
        self.class == INTERNET && !matches!(self.kind, IXFR | AXFR)
    }

    /// How long its answer may be.
    pub fn max_length(&self, over: Over) -> usize {
        match over {
            Over::Tcp => MAX_TCP_LENGTH,
            Over::Udp => {
                let max_length = self.extension.map(|it| it.max_length.min(MAX_UDP_LENGTH));
                max_length.map_or(DEFAULT_UDP_LENGTH, |max_length| {
                    usize::from(max_length).max(DEFAULT_UDP_LENGTH)
                })
            }
        }
    }

    /// The same question, to be asked under another number.
    pub fn to_pass_on(&self, id: u16) -> Vec<u8> {
        let mut message = self.begin(id, self.recursion, self.checking);
        self.end(&mut message, 0, 0);
        message
    }

    /// Whether a message is the answer to what [`Query::to_pass_on`] asked.
    pub fn is_answered_by(&self, message: &[u8], id: u16) -> bool {
        let mut rest = Reader(message);
        let mut question = || {
            let (number, [first, _]) = (rest.number()?, rest.bytes()?);
            let [questions, ..] = rest.counts()?;
            let is_ours = number == id && first & (RESPONSE | OPCODE) == RESPONSE && questions == 1;
            let same = rest.name()?.eq_ignore_ascii_case(&self.name);
            let about = (rest.number()?, rest.number()?);
            Some(is_ours && same && about == (self.kind, self.class))
        };
        question() == Some(true)
    }

    /// The answer of somebody else, for whoever asked; cut off if it has more than there is room for.
    pub fn passed_on(&self, mut answer: Vec<u8>, max_length: usize) -> Vec<u8> {
        if answer.len() > max_length {
            let flags = |at: usize| answer.get(at).copied().unwrap_or_default();
            let mut short = self.begin(self.id, flags(2) | TRUNCATED, flags(3));
            self.end(&mut short, 0, 0);
            return short;
        }
        if let Some(number) = answer.get_mut(..2) {
            number.copy_from_slice(&self.id.to_be_bytes());
        }
        answer
    }

    /// An answer of our own, with as many records as there is room for.
    pub fn answer(&self, code: Code, records: &[Record], max_length: usize) -> Vec<u8> {
        let is_ours = matches!(code, Code::Answered | Code::NoName);
        let mut first = RESPONSE | self.recursion;
        if is_ours {
            first |= AUTHORITATIVE;
        }
        let second = RECURSION_AVAILABLE | self.checking | code.number();
        let mut message = self.begin(self.id, first, second);
        let max_length = max_length.saturating_sub(self.length_of_end());
        let (mut answers, mut authorities) = (0_u16, 0);
        for record in records.iter().filter_map(record) {
            if message.len() + record.len() > max_length || answers == u16::MAX {
                if let Some(flags) = message.get_mut(2) {
                    *flags |= TRUNCATED;
                }
                break;
            }
            message.extend(record);
            answers += 1;
        }
        if is_ours && records.is_empty() {
            message.extend(authority());
            authorities = 1;
        }
        self.end(&mut message, answers, authorities);
        message
    }

    /// A header without counts, and the question.
    fn begin(&self, id: u16, first: u8, second: u8) -> Vec<u8> {
        let mut message = Vec::with_capacity(DEFAULT_UDP_LENGTH);
        message.extend(id.to_be_bytes());
        message.extend([first, second]);
        message.extend([0; 8]);
        message.extend(&self.name);
        message.extend(self.kind.to_be_bytes());
        message.extend(self.class.to_be_bytes());
        message
    }

    fn length_of_end(&self) -> usize {
        if self.extension.is_some() { 11 } else { 0 }
    }

    /// What comes last, and the counts.
    fn end(&self, message: &mut Vec<u8>, answers: u16, authorities: u16) {
        if let Some(extension) = &self.extension {
            const DNSSEC_OK: u16 = 0x8000;
            message.push(0);
            for part in [OPT, MAX_UDP_LENGTH, 0, extension.flags & DNSSEC_OK, 0] {
                message.extend(part.to_be_bytes());
            }
        }
        let additional = u16::from(self.extension.is_some());
        let counts = [1, answers, authorities, additional].map(u16::to_be_bytes);
        if let Some(place) = message.get_mut(4..HEADER) {
            place.copy_from_slice(counts.as_flattened());
        }
    }
}

/// A record of the name that was asked about; none if it leads to what is no name.
fn record(of: &Record) -> Option<Vec<u8>> {
    let (kind, data) = match of {
        Record::Ipv4(address) => (A, Ipv4Addr::octets(address).to_vec()),
        Record::Ipv6(address) => (AAAA, Ipv6Addr::octets(address).to_vec()),
        Record::Service { port, target } => {
            // No instance goes before another one.
            let mut data: Vec<u8> = [1, 1, *port].map(u16::to_be_bytes).concat();
            data.extend(written(target)?);
            (SRV, data)
        }
    };
    Some(whole(&NAME_OF_QUESTION, kind, &data))
}

/// Whose the domain is, for how long it may be kept that there is nothing.
fn authority() -> Vec<u8> {
    const EACH: [u32; 5] = [1, 3600, 600, 86_400, TTL];
    let zone = written(ZONE).unwrap_or_else(|| vec![0]);
    let mut data = [zone.clone(), zone.clone()].concat();
    data.extend(EACH.map(u32::to_be_bytes).as_flattened());
    whole(&zone, SOA, &data)
}

fn whole(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = name.to_vec();
    record.extend(kind.to_be_bytes());
    record.extend(INTERNET.to_be_bytes());
    record.extend(TTL.to_be_bytes());
    // No name and no address is longer.
    record.extend(u16::try_from(data.len()).unwrap_or_default().to_be_bytes());
    record.extend(data);
    record
}

/// A name as messages have it.
fn written(name: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok()?;
        if label.is_empty() || label.len() > MAX_LABEL {
            return None;
        }
        bytes.push(length);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    (bytes.len() <= MAX_NAME).then_some(bytes)
}

/// What is not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn counts(&mut self) -> Option<[u16; 4]> {
        Some([
            self.number()?,
            self.number()?,
            self.number()?,
            self.number()?,
        ])
    }

    /// A label; an empty one is the root. None if it is something else, such as a reference: there is nothing yet that
    /// the name of a question could refer to.
    fn label(&mut self) -> Option<&'a [u8]> {
        let [length] = self.bytes()?;
        let length = Some(usize::from(length)).filter(|length| *length <= MAX_LABEL)?;
        self.take(length)
    }

    /// A name as it stands there, with the root.
    fn name(&mut self) -> Option<Vec<u8>> {
        let begin = self.0;
        while !self.label()?.is_empty() {}
        let length = begin.len() - self.0.len();
        let name = begin.get(..length)?;
        (length <= MAX_NAME).then(|| name.to_vec())
    }

    /// A record beside a question: what it says, if it is what the client says of itself.
    fn additional(&mut self) -> Option<Option<Extension>> {
        let name = self.name()?;
        let (kind, max_length) = (self.number()?, self.number()?);
        let (_code, flags, length) = (self.number()?, self.number()?, self.number()?);
        self.take(length.into())?;
        let is_extension = kind == OPT && name == [0];
        Some(is_extension.then_some(Extension { max_length, flags }))
    }
}

/// Whether an answer of others says that whoever gave it could not, so that another one may be asked.
pub(super) fn is_failure(answer: &[u8]) -> bool {
    let code = answer.get(3).map(|flags| flags & CODE);
    [Code::Failed, Code::Refused]
        .iter()
        .any(|it| code == Some(it.number()))
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
