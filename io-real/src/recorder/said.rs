//! An input as numbers: the answers that come with every start and end of a task, where all went
//! well. Writing them down allocates nothing, counts no pointers, and leaves nothing behind that
//! another thread would have to give back. Any other input is handed over whole.

use std::sync::atomic::{AtomicU64, Ordering};

use drover_core::ids::{AllocId, LaunchId, TaskKey, TaskName};
use drover_core::input::{DriverInput, Found, HookInput, HookOutput, Input, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::op::Op;
use drover_core::store::CommitId;

/// What an input is, of which numbers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The core's time has come.
    Timeout,
    Saved,
    HookDone,
    TaskHookDone,
    Started,
    Running,
    Exited,
    Stopped,
    Signaled,
    Destroyed,
    DestroyedWithExit,
    /// Anything else: it lies beside the numbers.
    Other,
}

impl Said {
    /// All of them, each at the place of its number.
    pub(super) const ALL: [Said; 12] = [
        Said::Timeout,
        Said::Saved,
        Said::HookDone,
        Said::TaskHookDone,
        Said::Started,
        Said::Running,
        Said::Exited,
        Said::Stopped,
        Said::Signaled,
        Said::Destroyed,
        Said::DestroyedWithExit,
        Said::Other,
    ];
}

/// One more number than an input takes at most.
pub(super) const MOST: usize = 17;

/// Where an input is written.
pub(super) type Places = [AtomicU64; MOST];

/// Writes an input, unless it is [`Said::Other`]. Returns how many numbers it takes.
#[inline]
pub(super) fn write(places: &Places, input: &Input) -> (Said, usize) {
    match input {
        Input::Store(StoreInput::Saved(CommitId(id))) => {
            put(places, 0, *id);
            (Said::Saved, 1)
        }
        Input::Driver(key, said) => write_driver(places, key, said),
        Input::Hook(HookInput {
            op,
            alloc,
            task,
            result: Ok(output),
        }) if is_nothing(output) => write_hook(places, *op, *alloc, task.as_ref()),
        Input::Hook(_)
        | Input::Template(..)
        | Input::Store(StoreInput::Failed(..))
        | Input::Local(..)
        | Input::Operator(..)
        | Input::Node(_)
        | Input::Shutdown(_) => OTHER,
    }
}

const OTHER: (Said, usize) = (Said::Other, 0);

#[inline]
fn put(places: &Places, at: usize, number: u64) {
    if let Some(place) = places.get(at) {
        place.store(number, Ordering::Relaxed);
    }
}

/// Whether a hook gave nothing to its task.
#[inline]
fn is_nothing(output: &HookOutput) -> bool {
    let HookOutput {
        env,
        mounts,
        nodes,
        rendered,
        message,
        remote,
        secrets,
    } = output;
    env.is_empty()
        && mounts.is_empty()
        && nodes.is_empty()
        && rendered.is_empty()
        && message.is_empty()
        && remote.is_none()
        && secrets.is_empty()
}

#[inline]
fn write_hook(places: &Places, op: Op, alloc: AllocId, task: Option<&TaskName>) -> (Said, usize) {
    let (said, name) = match task {
        None => (Said::HookDone, ""),
        Some(task) => (Said::TaskHookDone, task.as_str()),
    };
    let Some(first) = beginning(name) else {
        return OTHER;
    };
    put(places, 0, op.0);
    put(places, 1, low(alloc.0));
    put(places, 2, high(alloc.0));
    put(places, 3, first);
    (said, write_rest(places, 4, name))
}

#[inline]
fn write_driver(places: &Places, key: &TaskKey, said: &DriverInput) -> (Said, usize) {
    let TaskKey { alloc, task } = key;
    let Some(first) = beginning(task.as_str()) else {
        return OTHER;
    };
    // In one word what only some kinds say: the operation, or how it ended.
    let (kind, one, launch) = match said {
        DriverInput::Started {
            op,
            launch,
            network: None,
        } => (Said::Started, op.0, launch),
        DriverInput::Recovered {
            op,
            launch,
            found: Found::Running,
        } => (Said::Running, op.0, launch),
        DriverInput::Exited { launch, result } => match of_exit(result) {
            Some(exit) => (Said::Exited, exit, launch),
            None => return OTHER,
        },
        DriverInput::Stopped {
            op,
            launch,
            result: Ok(()),
        } => (Said::Stopped, op.0, launch),
        DriverInput::Signaled {
            op,
            launch,
            result: Ok(()),
        } => (Said::Signaled, op.0, launch),
        DriverInput::Destroyed {
            op,
            launch,
            result: Ok(None),
        } => (Said::Destroyed, op.0, launch),
        DriverInput::Destroyed {
            op,
            launch,
            result: Ok(Some(exit)),
        } => match of_exit(exit) {
            Some(exit) => {
                put(places, 6, exit);
                (Said::DestroyedWithExit, op.0, launch)
            }
            None => return OTHER,
        },
        DriverInput::Started {
            network: Some(_), ..
        }
        | DriverInput::Recovered {
            found: Found::Exited(_) | Found::NeverStarted | Found::Rebooted | Found::Gone(_),
            ..
        }
        | DriverInput::Stopped { result: Err(_), .. }
        | DriverInput::Signaled { result: Err(_), .. }
        | DriverInput::Executed { .. }
        | DriverInput::Destroyed { result: Err(_), .. }
        | DriverInput::StartFailed { .. }
        | DriverInput::StartLost { .. }
        | DriverInput::Said { .. } => return OTHER,
    };
    put(places, 0, one);
    put(places, 1, low(alloc.0));
    put(places, 2, high(alloc.0));
    put(places, 3, low(launch.0));
    put(places, 4, high(launch.0));
    put(places, 5, first);
    let rest = 6 + usize::from(kind == Said::DestroyedWithExit);
    (kind, write_rest(places, rest, task.as_str()))
}

/// An end of which nothing is said in words, and whose signal is a usual one.
#[inline]
fn of_exit(exit: &ExitResult) -> Option<u64> {
    let ExitResult {
        code,
        signal,
        oom_killed,
        message: None,
    } = exit
    else {
        return None;
    };
    let signal = u64::from(u8::try_from(*signal).ok()?) << 32;
    let flags = u64::from(*oom_killed) << 41 | u64::from(code.is_some()) << 40;
    Some(flags | signal | u64::from(code.unwrap_or(0).cast_unsigned()))
}

/// How many letters of a name stand in the word of its length.
const AT_ONCE: usize = 6;

/// How many letters a name has at most. What a longer one is in is handed over whole.
const LETTERS: usize = AT_ONCE + 8 * (MOST - 8);

/// A name's length and its first letters; none of a name that is too long.
#[inline]
fn beginning(name: &str) -> Option<u64> {
    let length = u16::try_from(name.len()).ok()?;
    if name.len() > LETTERS {
        return None;
    }
    let bytes = name.as_bytes();
    let first = bytes.get(..AT_ONCE).unwrap_or(bytes);
    Some(u64::from(length) | word(first) << 16)
}

/// What [`beginning`] had no room for, from this place on. Returns the place behind it.
#[inline]
fn write_rest(places: &Places, mut at: usize, name: &str) -> usize {
    if let Some(rest @ [_, ..]) = name.as_bytes().get(AT_ONCE..) {
        for eight in rest.chunks(8) {
            put(places, at, word(eight));
            at += 1;
        }
    }
    at
}

/// Eight bytes or fewer, the first one lowest.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // Where they overlap they are the same.
        (Some(first), Some(last)) => {
            let last = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
            u64::from(u32::from_le_bytes(*first)) | last
        }
        _ => {
            let little = bytes.iter().rev();
            little.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        }
    }
}

/// Numbers as they were written, from the beginning.
#[derive(Debug)]
pub(super) struct Numbers<'a>(pub(super) core::slice::Iter<'a, u64>);

impl Numbers<'_> {
    pub(super) fn next(&mut self) -> Option<u64> {
        self.0.next().copied()
    }

    fn id(&mut self) -> Option<u128> {
        let low = self.next()?;
        Some(u128::from(self.next()?) << 64 | u128::from(low))
    }

    /// The name that begins with this number.
    fn name(&mut self, first: u64) -> Option<TaskName> {
        let [a, b, first @ ..] = first.to_le_bytes();
        let length = usize::from(u16::from_le_bytes([a, b]));
        let mut bytes = Vec::with_capacity(length + AT_ONCE);
        bytes.extend(first);
        while bytes.len() < length {
            bytes.extend(self.next()?.to_le_bytes());
        }
        bytes.truncate(length);
        Some(TaskName::from(String::from_utf8(bytes).ok()?))
    }

    /// The input that was written as this; none if it is another one, or no numbers follow.
    pub(super) fn input(&mut self, said: Said) -> Option<Input> {
        match said {
            Said::Timeout | Said::Other => None,
            Said::Saved => Some(Input::Store(StoreInput::Saved(CommitId(self.next()?)))),
            Said::HookDone | Said::TaskHookDone => {
                let op = Op(self.next()?);
                let alloc = AllocId(self.id()?);
                let first = self.next()?;
                let name = self.name(first)?;
                let task = (said == Said::TaskHookDone).then_some(name);
                let result = Ok(HookOutput::default());
                Some(Input::Hook(HookInput {
                    op,
                    alloc,
                    task,
                    result,
                }))
            }
            Said::Started
            | Said::Running
            | Said::Exited
            | Said::Stopped
            | Said::Signaled
            | Said::Destroyed
            | Said::DestroyedWithExit => self.driver(said),
        }
    }

    fn driver(&mut self, said: Said) -> Option<Input> {
        let one = self.next()?;
        let op = Op(one);
        let alloc = AllocId(self.id()?);
        let launch = LaunchId(self.id()?);
        let first = self.next()?;
        let of_destroy = match said {
            Said::DestroyedWithExit => exit(self.next()?),
            _ => ExitResult::default(),
        };
        let task = self.name(first)?;
        let news = match said {
            Said::Started => DriverInput::Started {
                op,
                launch,
                network: None,
            },
            Said::Running => DriverInput::Recovered {
                op,
                launch,
                found: Found::Running,
            },
            Said::Exited => DriverInput::Exited {
                launch,
                result: exit(one),
            },
            Said::Stopped => DriverInput::Stopped {
                op,
                launch,
                result: Ok(()),
            },
            Said::Signaled => DriverInput::Signaled {
                op,
                launch,
                result: Ok(()),
            },
            Said::Destroyed => DriverInput::Destroyed {
                op,
                launch,
                result: Ok(None),
            },
            Said::DestroyedWithExit => DriverInput::Destroyed {
                op,
                launch,
                result: Ok(Some(of_destroy)),
            },
            Said::Timeout | Said::Saved | Said::HookDone | Said::TaskHookDone | Said::Other => {
                return None;
            }
        };
        Some(Input::Driver(TaskKey { alloc, task }, news))
    }
}

/// The end that was written as this.
fn exit(word: u64) -> ExitResult {
    let [a, b, c, d, signal, flags, ..] = word.to_le_bytes();
    let code = i32::from_le_bytes([a, b, c, d]);
    ExitResult {
        code: (flags & 1 == 1).then_some(code),
        signal: i32::from(signal),
        oom_killed: flags & 2 == 2,
        message: None,
    }
}

#[inline]
fn low(both: u128) -> u64 {
    u64::try_from(both & u128::from(u64::MAX)).unwrap_or(0)
}

#[inline]
fn high(both: u128) -> u64 {
    low(both >> 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use drover_core::input::{DriverNetwork, ShutdownMode};
    use drover_core::op::Failure;

    use super::*;

    const OP: Op = Op(7);
    const LAUNCH: LaunchId = LaunchId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

    fn exit(message: Option<&str>) -> ExitResult {
        ExitResult {
            code: Some(-1),
            signal: 9,
            oom_killed: true,
            message: message.map(str::to_owned),
        }
    }

    /// What drivers say, and whether it is all numbers.
    fn drivers_say() -> Vec<(DriverInput, bool)> {
        let failure = || Failure::fatal("no");
        let (op, launch) = (OP, LAUNCH);
        let started = |network| DriverInput::Started {
            op,
            launch,
            network,
        };
        let recovered = |found| DriverInput::Recovered { op, launch, found };
        let exited = |result| DriverInput::Exited { launch, result };
        let stopped = |result| DriverInput::Stopped { op, launch, result };
        let signaled = |result| DriverInput::Signaled { op, launch, result };
        let destroyed = |result| DriverInput::Destroyed { op, launch, result };
        let strange = ExitResult {
            signal: -1,
            ..ExitResult::default()
        };
        let (message, details) = ("hello".to_owned(), BTreeMap::new());
        vec![
            (started(None), true),
            (started(Some(DriverNetwork::default())), false),
            (recovered(Found::Running), true),
            (recovered(Found::NeverStarted), false),
            (recovered(Found::Exited(exit(None))), false),
            (recovered(Found::Rebooted), false),
            (recovered(Found::Gone("away".to_owned())), false),
            (exited(exit(None)), true),
            (exited(ExitResult::default()), true),
            (exited(ExitResult::code(0)), true),
            (exited(exit(Some("why"))), false),
            (exited(strange), false),
            (stopped(Ok(())), true),
            (stopped(Err(failure())), false),
            (signaled(Ok(())), true),
            (signaled(Err(failure())), false),
            (destroyed(Ok(None)), true),
            (destroyed(Ok(Some(exit(None)))), true),
            (destroyed(Ok(Some(exit(Some("why"))))), false),
            (destroyed(Err(failure())), false),
            (
                DriverInput::StartFailed {
                    op,
                    launch,
                    failure: failure(),
                },
                false,
            ),
            (
                DriverInput::StartLost {
                    op,
                    launch,
                    why: "lost".to_owned(),
                },
                false,
            ),
            (
                DriverInput::Said {
                    launch,
                    message,
                    details,
                },
                false,
            ),
        ]
    }

    fn hook(task: Option<&str>, result: Result<HookOutput, Failure>) -> Input {
        Input::Hook(HookInput {
            op: OP,
            alloc: AllocId(LAUNCH.0 + 3),
            task: task.map(TaskName::from),
            result,
        })
    }

    /// Inputs, and whether they are all numbers.
    fn inputs() -> Vec<(Input, bool)> {
        let key = |task: &str| TaskKey {
            alloc: AllocId(LAUNCH.0 + 1),
            task: task.into(),
        };
        let env = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let gives = HookOutput {
            env,
            ..HookOutput::default()
        };
        let says = drivers_say().into_iter();
        let mut all: Vec<(Input, bool)> = says
            .map(|(said, is_plain)| (Input::Driver(key("main"), said), is_plain))
            .collect();
        for name in [
            "",
            "ä",
            "abc",
            "abcd",
            "abcde",
            "abcdef",
            "abcdefg",
            "abcdefghijklmn",
            "abcdefghijklmno",
            &"x".repeat(LETTERS),
        ] {
            let said = DriverInput::Stopped {
                op: OP,
                launch: LAUNCH,
                result: Ok(()),
            };
            all.push((Input::Driver(key(name), said), true));
            all.push((hook(Some(name), Ok(HookOutput::default())), true));
        }
        let endless = "x".repeat(LETTERS + 1);
        let full = "full".to_owned();
        let ended = DriverInput::Destroyed {
            op: OP,
            launch: LAUNCH,
            result: Ok(Some(exit(None))),
        };
        all.extend([
            (Input::Driver(key(&endless), ended), false),
            (hook(Some(&endless), Ok(HookOutput::default())), false),
            (hook(None, Ok(HookOutput::default())), true),
            (hook(Some("main"), Ok(gives)), false),
            (hook(None, Err(Failure::fatal("no"))), false),
            (Input::Store(StoreInput::Saved(CommitId(8))), true),
            (Input::Store(StoreInput::Failed(CommitId(8), full)), false),
            (Input::Shutdown(ShutdownMode::KeepTasks), false),
        ]);
        all
    }

    #[test]
    fn what_was_said_is_read_as_it_was_written() {
        for (input, is_plain) in inputs() {
            let places: Places = core::array::from_fn(|_| AtomicU64::new(0));
            let (said, taken) = write(&places, &input);
            assert_eq!(said != Said::Other, is_plain, "{input:?}");
            assert!(is_plain || taken == 0, "{input:?}");
            let words: Vec<u64> = (places.iter().take(taken))
                .map(|place| place.load(Ordering::Relaxed))
                .collect();
            let mut numbers = Numbers(words.iter());
            let read = numbers.input(said);
            assert_eq!(read.as_ref(), is_plain.then_some(&input));
            assert_eq!(numbers.next(), None, "{input:?}");
        }
    }

    #[test]
    fn each_kind_stands_at_its_number() {
        for (place, said) in Said::ALL.into_iter().enumerate() {
            assert_eq!(said as usize, place);
        }
    }
}
