//! Configurations as plugins read them: MessagePack.

use drover_core::model::value::Value;

use super::error::PluginError;

/// A value in MessagePack: numbers as short as they can be, names as text.
///
/// # Errors
/// It does not fit, which no value of a job does.
pub fn encode(value: &Value) -> Result<Vec<u8>, PluginError> {
    rmp_serde::to_vec(value).map_err(|error| PluginError::Invalid(error.to_string()))
}

/// Reads a value back.
///
/// # Errors
/// It is none, or holds what no configuration does: bytes, or names that are no text.
pub fn decode(bytes: &[u8]) -> Result<Value, PluginError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(128);
    serde::Deserialize::deserialize(&mut reader)
        .map_err(|error: rmp_serde::decode::Error| PluginError::Invalid(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use drover_core::driver::spec::literal;

    use super::*;

    #[test]
    fn msgpack_config_matches_reference() {
        let value = literal(r#"{ a = 1, b = [true, null], c = "x", d = 1.5 }"#).unwrap();
        let bytes = b"\x84\xa1a\x01\xa1b\x92\xc3\xc0\xa1c\xa1x\xa1d\xcb\x3f\xf8\0\0\0\0\0\0";
        assert_eq!(encode(&value).unwrap(), bytes);
        assert_eq!(decode(bytes).unwrap(), value);
    }

    #[test]
    fn arbitrary_bytes_are_safe() {
        let value = literal(r#"{ a = [1, -7, 70000], b = { c = "text", d = 0.25 } }"#).unwrap();
        let good = encode(&value).unwrap();
        let mut random = crate::plugin::fuzz::Random::new(11);
        let mut read = 0;
        for _ in 0..20_000 {
            if let Ok(value) = decode(&random.mutated(&good)) {
                read += 1;
                assert_eq!(decode(&encode(&value).unwrap()).unwrap(), value);
            }
        }
        assert!(read > 100, "only {read} could be read");
        let deep = vec![0x91; 100_000];
        assert!(decode(&deep).is_err());
    }
}
