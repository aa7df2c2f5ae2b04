//! Bytes: files, payloads, hashes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Bytes. They are encoded as a string is; empty ones as nil. Servers send some as a list of numbers, such as the
/// distances of a node's parts.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Raw(pub Vec<u8>);

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            serializer.serialize_none()
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Raw, E> {
                Ok(Raw(bytes.to_vec()))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw(text.as_bytes().to_vec()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Raw, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = numbers.next_element()? {
                    bytes.push(byte);
                }
                Ok(Raw(bytes))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::Raw;
    use crate::msgpack::decode;

    #[test]
    fn bytes_come_as_a_string_or_as_a_list_of_numbers() {
        let lists: [&[u8]; 3] = [
            b"\xa2\x0a\xff",
            b"\x92\x0a\xcc\xff",
            b"\x92\x0a\xd1\x00\xff",
        ];
        for list in lists {
            assert_eq!(decode::<Raw>(list), Ok(Raw(vec![10, 255])), "{list:?}");
        }
        assert_eq!(decode::<Raw>(b"\x90"), Ok(Raw::default()));
        let others: [&[u8]; 3] = [b"\x91\xcd\x01\x00", b"\x91\xa1x", b"\x80"];
        for other in others {
            assert!(decode::<Raw>(other).is_err(), "{other:?}");
        }
    }
}
