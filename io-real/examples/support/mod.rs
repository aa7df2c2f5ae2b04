//! What both example plugins share.

pub(crate) mod base;
pub(crate) mod mischief;
pub(crate) mod proto;
pub(crate) mod serve;
