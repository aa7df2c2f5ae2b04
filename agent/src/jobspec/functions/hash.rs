//! Digests and ids.

use core::fmt::Write;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use uuid::Uuid;

use super::super::eval::value::Val;
use super::args::text;
use super::{Context, Function, Outcome};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("md5", (1, 1), |_, args| {
        Ok(hex(&Md5::digest(text(args, 0)?)))
    }),
    Function::new("sha1", (1, 1), |_, args| {
        Ok(hex(&Sha1::digest(text(args, 0)?)))
    }),
    Function::new("sha256", (1, 1), |_, args| {
        Ok(hex(&Sha256::digest(text(args, 0)?)))
    }),
    Function::new("sha512", (1, 1), |_, args| {
        Ok(hex(&Sha512::digest(text(args, 0)?)))
    }),
    Function::new("uuidv4", (0, 0), |_, _| {
        Ok(Val::text(Uuid::new_v4().to_string()))
    }),
    Function::new("uuidv5", (2, 2), uuidv5),
];

fn hex(bytes: &[u8]) -> Val {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Val::text(text)
}

fn uuidv5(_: &Context<'_>, args: &[Val]) -> Outcome {
    let namespace = match text(args, 0)?.as_str() {
        "dns" => Uuid::NAMESPACE_DNS,
        "url" => Uuid::NAMESPACE_URL,
        "oid" => Uuid::NAMESPACE_OID,
        "x500" => Uuid::NAMESPACE_X500,
        other => Uuid::parse_str(other)
            .map_err(|_| format!("\"{other}\" is neither a UUID nor dns, url, oid or x500"))?,
    };
    let id = Uuid::new_v5(&namespace, text(args, 1)?.as_bytes());
    Ok(Val::text(id.to_string()))
}
