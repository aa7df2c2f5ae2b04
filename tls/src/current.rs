//! Settings that are exchanged while they are used.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// What is in force at the moment. Clones share it. Whoever begins something takes what there is then, and keeps it:
/// connections live on with what they were made with, and the next one has what is new.
pub struct Current<T>(Arc<RwLock<Arc<T>>>);

impl<T> Current<T> {
    /// Begins with this.
    pub fn new(value: Arc<T>) -> Current<T> {
        Current(Arc::new(RwLock::new(value)))
    }

    /// What is in force.
    pub fn get(&self) -> Arc<T> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts something new in force.
    pub fn set(&self, value: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T> Clone for Current<T> {
    fn clone(&self) -> Current<T> {
        Current(self.0.clone())
    }
}

impl<T> fmt::Debug for Current<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}
