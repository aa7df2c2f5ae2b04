//! Asking the driver. A call of it may hang, and then nothing can end it: so each question has a
//! thread of its own, there is one at a time, and who asks waits only as long as it likes.

use std::ffi::OsString;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use super::library::{Library, LoadError};

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum AskError {
    /// The machine has no driver.
    Absent(String),
    /// The driver does not work.
    Broken(String),
    /// It has not answered yet.
    Hangs,
    /// It has not answered an earlier question yet.
    Busy,
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AskError::Absent(why) => write!(f, "no NVIDIA driver here: {why}"),
            AskError::Broken(why) => write!(f, "the NVIDIA driver does not work: {why}"),
            AskError::Hangs => f.write_str("the NVIDIA driver does not answer"),
            AskError::Busy => {
                f.write_str("the NVIDIA driver has not answered an earlier question yet")
            }
        }
    }
}

/// The driver, by way of its library. It is loaded by the first question and stays.
pub(super) struct Driver {
    path: Option<OsString>,
    library: Arc<Mutex<Option<Library>>>,
}

impl Driver {
    /// The library at this path, or where the machine's loader finds it.
    pub(super) fn new(path: Option<OsString>) -> Driver {
        Driver {
            path,
            library: Arc::default(),
        }
    }

    /// Asks. Waits until `turn` for earlier questions, and then until `answer` for this one, which
    /// is asked to its end also if nobody waits any more. After an error the library is loaded
    /// anew: the driver may be another one by then.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        turn: Duration,
        answer: Duration,
        question: impl FnOnce(&mut Library) -> Result<T, String> + Send + 'static,
    ) -> Result<T, AskError> {
        let library = timeout(turn, self.library.clone().lock_owned()).await;
        let mut library = library.map_err(|_| AskError::Busy)?;
        let path = self.path.clone();
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let result = put(question, &mut library, path);
            drop(library);
            // Whoever asked may have gone.
            let _ = sender.send(result);
        };
        let thread = thread::Builder::new().name("nvml".to_owned()).spawn(work);
        thread.map_err(|error| AskError::Broken(format!("it cannot be asked: {error}")))?;
        match timeout(answer, receiver).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(AskError::Broken("its library panicked".to_owned())),
            Err(_) => Err(AskError::Hangs),
        }
    }
}

fn put<T>(
    question: impl FnOnce(&mut Library) -> Result<T, String>,
    library: &mut Option<Library>,
    path: Option<OsString>,
) -> Result<T, AskError> {
    if library.is_none() {
        let loaded = Library::load(path.as_deref()).map_err(|error| match error {
            LoadError::Absent(why) => AskError::Absent(why),
            LoadError::Broken(why) => AskError::Broken(why),
        })?;
        *library = Some(loaded);
    }
    let Some(loaded) = library.as_mut() else {
        return Err(AskError::Broken("it is not loaded".to_owned()));
    };
    question(loaded).map_err(|why| {
        *library = None;
        AskError::Broken(why)
    })
}

impl Drop for Driver {
    /// To let the library go is a call of the driver, too.
    fn drop(&mut self) {
        let library = self.library.clone().try_lock_owned();
        if let Ok(mut library) = library
            && library.is_some()
        {
            let end = move || drop(library.take());
            // Without a thread it stays until the process ends.
            let _ = thread::Builder::new().name("nvml".to_owned()).spawn(end);
        }
    }
}
