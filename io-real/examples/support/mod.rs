//! What both example plugins share.

pub(crate) mod base;
pub(crate) mod mischief;
pub(crate) mod proto;
pub(crate) mod serve;
#[allow(dead_code, reason = "one of the plugins has tasks")]
pub(crate) mod task;
