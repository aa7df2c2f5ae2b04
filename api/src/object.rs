//! JSON objects that are written field by field at the end of a text.

use std::io::Write;

use serde::Serialize;

/// An object that is being written.
#[derive(Debug)]
pub(crate) struct Object<'t> {
    text: &'t mut Vec<u8>,
    is_empty: bool,
}

impl<'t> Object<'t> {
    pub(crate) fn begin(text: &'t mut Vec<u8>) -> Object<'t> {
        text.push(b'{');
        Object {
            text,
            is_empty: true,
        }
    }

    pub(crate) fn end(self) {
        self.text.push(b'}');
    }

    /// A field, of which the value is to be written at the end of the text.
    pub(crate) fn field(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.separate();
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
        self.text
    }

    /// The same by a name that somebody chose.
    pub(crate) fn entry(&mut self, name: &str) -> &mut Vec<u8> {
        self.separate();
        write_text(name, self.text);
        self.text.push(b':');
        self.text
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.text.push(b',');
        }
    }

    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        write_text(value, self.field(name));
    }

    /// An id or a time, in which nothing is to be escaped, or an empty text.
    pub(crate) fn shown(&mut self, name: &'static str, value: Option<impl std::fmt::Display>) {
        let text = self.field(name);
        text.push(b'"');
        if let Some(value) = value {
            // Memory takes all that is written to it.
            let _ = write!(text, "{value}");
        }
        text.push(b'"');
    }

    pub(crate) fn flag(&mut self, name: &'static str, value: bool) {
        self.raw(name, if value { "true" } else { "false" });
    }

    pub(crate) fn null(&mut self, name: &'static str) {
        self.raw(name, "null");
    }

    /// A value of which the JSON is known.
    pub(crate) fn raw(&mut self, name: &'static str, value: &str) {
        self.field(name).extend_from_slice(value.as_bytes());
    }

    /// Whatever else: numbers, and what is seldom there.
    pub(crate) fn value(&mut self, name: &'static str, value: &impl Serialize) {
        write_value(value, self.field(name));
    }

    /// Fields that come in one piece: `"A":0,"B":""`.
    pub(crate) fn fields(&mut self, known: &[u8]) {
        self.separate();
        self.text.extend_from_slice(known);
    }
}

/// A text in quotes. Few have anything to escape.
pub(crate) fn write_text(value: &str, text: &mut Vec<u8>) {
    let is_odd = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Without an end in the middle, several bytes are looked at in one step.
    let any_odd = value.bytes().fold(false, |any, byte| any | is_odd(byte));
    if any_odd {
        return write_value(&value, text);
    }
    text.push(b'"');
    text.extend_from_slice(value.as_bytes());
    text.push(b'"');
}

fn write_value(value: &impl Serialize, text: &mut Vec<u8>) {
    // Memory takes all that is written to it, and what is written here has a form in JSON.
    let _ = serde_json::to_writer(text, value);
}
