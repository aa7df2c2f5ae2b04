//! Values in other languages.

pub(crate) mod json;
pub(crate) mod toml;
pub(crate) mod yaml;
mod yaml_text;
