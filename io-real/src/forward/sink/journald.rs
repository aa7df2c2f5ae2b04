//! The journal's own protocol: a datagram of fields for each line.

use std::path::PathBuf;

use tokio::net::UnixDatagram;

use super::{Common, Entry, Refused, in_time, labels, runs};

/// The priorities of standard output and standard error, as in syslog.
const PRIORITIES: (&str, &str) = ("6", "3");
/// A name of a field is never longer.
const LONGEST_NAME: usize = 64;

#[derive(Debug)]
pub(in crate::forward) struct Journald {
    path: PathBuf,
    socket: Option<UnixDatagram>,
}

impl Journald {
    pub(super) fn new(path: PathBuf) -> Journald {
        Journald { path, socket: None }
    }

    pub(super) async fn send(&mut self, common: &Common, lines: &[Entry]) -> Result<(), Refused> {
        let mut taken = 0;
        for lines in runs(lines) {
            let same = lines.first().map(|line| same(common, line));
            for line in lines {
                let datagram = datagram(same.as_deref().unwrap_or_default(), line);
                let sent = self.send_one(&datagram).await;
                sent.map_err(|why| {
                    self.socket = None;
                    Refused::after(taken, why)
                })?;
                taken += 1;
            }
        }
        Ok(())
    }

    async fn send_one(&mut self, datagram: &[u8]) -> Result<(), String> {
        let connected = || async {
            let socket = UnixDatagram::unbound()?;
            socket.connect(&self.path)?;
            Ok(socket)
        };
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => in_time(connected()).await?,
        };
        in_time(socket.send(datagram)).await?;
        self.socket = Some(socket);
        Ok(())
    }
}

/// A line as fields, with those that are the same for all of its stream. Lines have a bound, and so does this: it
/// fits into a datagram.
fn datagram(same: &[u8], line: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(same.len() + line.text.len() + 64);
    field(&mut bytes, "MESSAGE", &line.text);
    let micros = line.time.0.div_euclid(1_000).to_string();
    field(&mut bytes, "SYSLOG_TIMESTAMP", &micros);
    bytes.extend_from_slice(same);
    bytes
}

/// The fields that are the same for all lines of a stream.
fn same(common: &Common, line: &Entry) -> Vec<u8> {
    let mut bytes = Vec::new();
    let priority = match line.is_error {
        true => PRIORITIES.1,
        false => PRIORITIES.0,
    };
    field(&mut bytes, "PRIORITY", priority);
    field(&mut bytes, "SYSLOG_IDENTIFIER", line.source.task.as_str());
    for (label, value) in labels(common, &line.source, line.is_error) {
        field(&mut bytes, &field_name(label), &value);
    }
    bytes
}

/// `DROVER_` and the label in capitals, digits and `_`.
fn field_name(label: &str) -> String {
    let letters = label
        .chars()
        .map(|letter| match letter.to_ascii_uppercase() {
            letter if letter.is_ascii_uppercase() || letter.is_ascii_digit() => letter,
            _ => '_',
        });
    "DROVER_"
        .chars()
        .chain(letters)
        .take(LONGEST_NAME)
        .collect()
}

/// A field with a length, whatever is in its value.
fn field(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        bytes.push(b'\n');
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        bytes.push(b'=');
    }
    bytes.extend_from_slice(value.as_bytes());
    bytes.push(b'\n');
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::examples::{common, entry};
    use super::*;

    #[test]
    fn line_is_a_datagram_of_fields() {
        let line = entry("hello = you", false, 5_000);
        let bytes = datagram(&same(&common(), &line), &line);
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "MESSAGE=hello = you");
        for line in [
            "PRIORITY=6",
            "SYSLOG_IDENTIFIER=main",
            "SYSLOG_TIMESTAMP=1795236197000005",
            "DROVER_JOB=web",
            "DROVER_ENV=prod",
            "DROVER_STREAM=stdout",
        ] {
            assert!(lines.contains(&line), "{line}: {text}");
        }
    }

    #[test]
    fn value_with_a_line_break_bears_its_length() {
        let mut bytes = Vec::new();
        field(&mut bytes, "A", "x\ny");
        assert_eq!(bytes, b"A\n\x03\0\0\0\0\0\0\0x\ny\n");
        assert_eq!(field_name("my-label.x"), "DROVER_MY_LABEL_X");
    }
}
