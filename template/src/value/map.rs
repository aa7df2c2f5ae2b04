//! Maps, which can be changed by all who have them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Of, Record, Text, Value};

/// Values by keys, in the order of their keys' bytes.
///
/// It may contain itself, so nothing goes through one without counting how deep it is.
#[derive(Debug)]
pub(crate) struct Map {
    entries: RefCell<BTreeMap<Text, Value>>,
    of: Of,
    /// The Nomad variable whose items these are.
    variable: Option<Rc<Record>>,
}

impl Map {
    pub(crate) fn new(entries: BTreeMap<Text, Value>, of: Of) -> Self {
        Self {
            entries: RefCell::new(entries),
            of,
            variable: None,
        }
    }

    /// The items of a variable.
    pub(crate) fn items_of(variable: Rc<Record>, items: BTreeMap<Text, Value>) -> Self {
        Self {
            entries: RefCell::new(items),
            of: Of::Records,
            variable: Some(variable),
        }
    }

    pub(crate) fn of(&self) -> Of {
        self.of
    }

    pub(crate) fn variable(&self) -> Option<&Rc<Record>> {
        self.variable.as_ref()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    pub(crate) fn set(&self, key: Text, value: Value) {
        self.entries.borrow_mut().insert(key, value);
    }

    pub(crate) fn remove(&self, key: &[u8]) {
        self.entries.borrow_mut().remove(key);
    }

    /// All entries as they are now: the map may change while one goes over them.
    pub(crate) fn entries(&self) -> Vec<(Text, Value)> {
        let entries = self.entries.borrow();
        (entries.iter())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Lets everything go, so that no circle of maps remains.
    pub(crate) fn clear(&self) {
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        drop(entries);
    }

    /// What a key has that is not there.
    pub(crate) fn missing(&self) -> Value {
        match self.of {
            Of::Any => Value::Nil,
            Of::Texts => Value::text(""),
            Of::Records => Value::Record(Rc::new(Record::item("", ""))),
            Of::Ints => Value::int(0),
        }
    }
}
