//! JSON of allocations, kept from one answer to the next. Records are shared and immutable: what is made of the
//! same ones is the same, so nothing has to say when it is out of date.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drover_core::ids::AllocId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::records::AllocRecords;

/// How many bytes of JSON are kept. What comes on top of them sweeps the rest away, which is made again when it is
/// asked for.
const MOST_BYTES: usize = 1 << 20;

/// The most allocations of a list that are kept: longer ones would only push each other out.
pub(super) const MOST_OF_LIST: usize = 256;

/// How much of an allocation is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// As lists show it.
    Stub,
    /// With its job.
    Whole,
}

/// What is shown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Shown<D> {
    /// In the form that the answer has.
    Made(D),
    /// JSON from before.
    Kept(Arc<RawValue>),
}

/// The JSON of allocations that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Rendered(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    all: BTreeMap<(AllocId, Form), Text>,
    bytes: usize,
}

#[derive(Debug)]
struct Text {
    of: AllocRecords,
    json: Arc<RawValue>,
}

impl Rendered {
    /// An allocation, by what is kept of it if that was made of the same records.
    pub(super) fn show<D>(
        &self,
        form: Form,
        alloc: &AllocRecords,
        made: impl FnOnce() -> D,
        json: fn(&D) -> serde_json::Result<Box<RawValue>>,
    ) -> Shown<D> {
        if let Some(json) = self.kept(form, alloc) {
            return Shown::Kept(json);
        }
        let made = made();
        match json(&made) {
            Ok(json) => Shown::Kept(self.keep(form, alloc, json)),
            Err(_) => Shown::Made(made),
        }
    }

    /// What is kept of an allocation, if that was made of the same records.
    pub(super) fn kept(&self, form: Form, alloc: &AllocRecords) -> Option<Arc<RawValue>> {
        let texts = self.texts();
        let text = texts.all.get(&(alloc.alloc().id, form))?;
        text.of.is_same(alloc).then(|| text.json.clone())
    }

    /// Keeps the JSON of an allocation.
    pub(super) fn keep(
        &self,
        form: Form,
        alloc: &AllocRecords,
        json: Box<RawValue>,
    ) -> Arc<RawValue> {
        let (of, json) = (alloc.clone(), Arc::<RawValue>::from(json));
        let text = Text {
            of,
            json: json.clone(),
        };
        self.texts().keep((alloc.alloc().id, form), text);
        json
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Texts {
    fn keep(&mut self, key: (AllocId, Form), text: Text) {
        let size = text.json.get().len();
        if self.bytes + size > MOST_BYTES {
            *self = Texts::default();
        }
        self.bytes += size;
        if let Some(old) = self.all.insert(key, text) {
            self.bytes -= old.json.get().len();
        }
    }
}
