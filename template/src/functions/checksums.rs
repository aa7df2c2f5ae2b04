//! Checksums and encodings of bytes.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use sha2::{Digest, Sha256};

use super::Param::Text;
use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;

pub(super) const TABLE: &[Function] = &[
    function("base64Encode", &[Text], "a text in base64", |cx, args| {
        cx.text(STANDARD.encode(args.text(0)?))
    }),
    function(
        "base64Decode",
        &[Text],
        "the text decoded from base64",
        |cx, args| decode(cx, args, &STANDARD),
    ),
    function(
        "base64URLEncode",
        &[Text],
        "a text in the base64 of URLs",
        |cx, args| cx.text(URL_SAFE.encode(args.text(0)?)),
    ),
    function(
        "base64URLDecode",
        &[Text],
        "the text decoded from URL-safe base64",
        |cx, args| decode(cx, args, &URL_SAFE),
    ),
    function("sha256Hex", &[Text], "the SHA-256 of a text", |cx, args| {
        cx.text(hex(&Sha256::digest(args.text(0)?)))
    }),
    function("md5sum", &[Text], "the MD5 of a text", |cx, args| {
        cx.text(hex(&md5::Md5::digest(args.text(0)?)))
    }),
    function(
        "hmacSHA256Hex",
        &[Text, Text],
        "the HMAC-SHA-256 of the first text by the second",
        |cx, args| cx.text(hex(&hmac(args.text(1)?, args.text(0)?))),
    ),
];

pub(super) fn decode(cx: &mut Cx<'_>, args: Args<'_>, engine: &impl Engine) -> Result {
    // New lines may stand anywhere in it.
    let text: Vec<u8> = args
        .text(0)?
        .iter()
        .copied()
        .filter(|byte| !b"\r\n".contains(byte))
        .collect();
    let decoded = engine.decode(text);
    let decoded = decoded.map_err(|_| Fault::failed("the text is no base64 of this sort"))?;
    cx.text(decoded)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut block = match key.len() > BLOCK {
        true => Sha256::digest(key).to_vec(),
        false => key.to_vec(),
    };
    block.resize(BLOCK, 0);
    let padded = |pad: u8| block.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}
