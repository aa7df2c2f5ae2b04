//! The guard of answers: whatever becomes of the work, exactly one answer leaves.
//!
//! Work that is dropped answers as a recoverable failure, and a cancelled hook answers as any
//! other. So the core needs no completions `lost` and `cancelled`, and the guarantee is the same.

use drover_core::effect::DriverEffect;
use drover_core::ids::TaskKey;
use drover_core::input::DriverInput;
use drover_core::op::Failure;

use super::Inbox;

/// An answer that is owed to the core. Dropped without having been given, as when the work
/// panicked or its runtime ended, it says that it was lost.
#[derive(Debug)]
pub(super) struct Answer {
    inbox: Inbox,
    task: TaskKey,
    lost: Option<DriverInput>,
}

impl Answer {
    /// The answer that `effect` asks for.
    pub(super) fn owed(inbox: &Inbox, task: &TaskKey, effect: &DriverEffect) -> Answer {
        let failure = Failure::recoverable("the answer was lost inside the agent");
        Answer {
            inbox: inbox.clone(),
            task: task.clone(),
            lost: Some(effect.get().failed(failure)),
        }
    }

    /// Gives the answer.
    pub(super) fn give(mut self, answer: DriverInput) {
        self.lost = None;
        self.inbox.send(&self.task, answer);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(lost) = self.lost.take() {
            if self.inbox.is_received() {
                tracing::error!(launch = %lost.launch(), "an answer was lost");
            }
            self.inbox.send(&self.task, lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drover_core::effect::request;
    use drover_core::ids::LaunchId;
    use drover_core::op::Op;
    use tokio::sync::mpsc;

    fn effects() -> Vec<DriverEffect> {
        let (op, launch) = (Op(7), LaunchId(1));
        let signal = String::new();
        vec![
            DriverEffect::Recover(request::Recover {
                op,
                launch,
                logs: drover_core::model::task::LogConfig::default(),
            }),
            DriverEffect::Signal(request::Signal { op, launch, signal }),
            DriverEffect::Destroy(request::Destroy { op, launch }),
        ]
    }

    #[test]
    fn panicking_work_gives_one_answer() {
        let (sender, mut inputs) = mpsc::unbounded_channel();
        let inbox = Inbox::new(sender);
        let task = TaskKey::default();
        for effect in effects() {
            let owed = Answer::owed(&inbox, &task, &effect);
            let work = std::thread::spawn(move || {
                let _owed = owed;
                panic!("as planned");
            });
            assert!(work.join().is_err());
            assert!(inputs.try_recv().is_ok());
            assert!(inputs.try_recv().is_err());
        }
    }

    #[test]
    fn completion_answers_once() {
        let (sender, mut inputs) = mpsc::unbounded_channel();
        let inbox = Inbox::new(sender);
        for effect in effects() {
            let answer = effect.get().failed(Failure::fatal("no"));
            Answer::owed(&inbox, &TaskKey::default(), &effect).give(answer);
            assert!(inputs.try_recv().is_ok());
            assert!(inputs.try_recv().is_err());
        }
    }
}
