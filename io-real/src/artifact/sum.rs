//! Sums of files.

use std::io::{self, Read};

use drover_core::model::artifact::SumKind;
use sha2::Digest;

/// The sum of everything that comes, in small hexadecimal digits.
///
/// # Errors
/// It cannot be read.
pub(super) fn sum_of(kind: SumKind, from: &mut impl Read) -> io::Result<String> {
    match kind {
        SumKind::Md5 => digest::<md5::Md5>(from),
        SumKind::Sha1 => digest::<sha1::Sha1>(from),
        SumKind::Sha256 => digest::<sha2::Sha256>(from),
        SumKind::Sha512 => digest::<sha2::Sha512>(from),
    }
}

fn digest<D: Digest>(from: &mut impl Read) -> io::Result<String> {
    let mut digest = D::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => digest.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hex(&digest.finalize()))
}

/// Small hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_references() {
        for (kind, expected) in [
            (SumKind::Md5, "900150983cd24fb0d6963f7d28e17f72"),
            (SumKind::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                SumKind::Sha256,
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            assert_eq!(sum_of(kind, &mut b"abc".as_slice()).unwrap(), expected);
        }
        let long = sum_of(SumKind::Sha512, &mut b"abc".as_slice()).unwrap();
        assert!(long.starts_with("ddaf35a193617aba") && long.len() == 128);
    }
}
