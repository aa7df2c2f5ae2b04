//! What there is, by the file beside the library.

use std::ffi::{CStr, c_char, c_uint};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// What a call about a lost GPU answers.
const GPU_IS_LOST: c_uint = 15;

/// A GPU by its number, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All of it.
    Whole(u32),
    /// One part.
    Part(u32, u32),
}

impl Target {
    /// What callers hold of it: never zero.
    pub(crate) fn handle(self) -> usize {
        let number = match self {
            Target::Whole(index) => index << 8,
            Target::Part(index, part) => index << 8 | (part + 1),
        };
        number as usize + (1 << 40)
    }

    /// What callers hold.
    pub(crate) fn of_handle(handle: usize) -> Option<Target> {
        let number = u32::try_from(handle.checked_sub(1 << 40)?).ok()?;
        let index = number >> 8;
        Some(match number & 0xff {
            0 => Target::Whole(index),
            part => Target::Part(index, part - 1),
        })
    }

    fn index(self) -> u32 {
        match self {
            Target::Whole(index) | Target::Part(index, _) => index,
        }
    }
}

/// What there is.
#[derive(Default)]
pub(crate) struct Config {
    pub(crate) gpus: u32,
    pub(crate) model: String,
    mig: Vec<(u32, u32)>,
    uuids: Vec<(u32, String)>,
    lost: Vec<u32>,
    fail: Vec<(String, u32)>,
    hang: Vec<String>,
}

impl Config {
    fn read() -> Config {
        let text = place().and_then(|path| fs::read_to_string(path).ok());
        let mut config = Config {
            model: "NVIDIA H7".to_owned(),
            ..Config::default()
        };
        for line in text.unwrap_or_default().lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
            let number = |text: &str| text.parse().unwrap_or(0);
            match what {
                "gpus" => config.gpus = number(first),
                "model" => config.model = rest.to_owned(),
                "mig" => config.mig.push((number(first), number(second))),
                "uuid" => config.uuids.push((number(first), second.to_owned())),
                "lost" => config.lost.push(number(first)),
                "fail" => config.fail.push((first.to_owned(), number(second))),
                "hang" => config.hang.push(first.to_owned()),
                _ => {}
            }
        }
        config
    }

    /// Into how many parts a GPU is divided; 0 for one that is not.
    pub(crate) fn parts(&self, index: u32) -> u32 {
        let divided = self.mig.iter().find(|(gpu, _)| *gpu == index);
        divided.map_or(0, |(_, parts)| *parts)
    }

    pub(crate) fn uuid(&self, target: Target) -> String {
        match target {
            Target::Whole(index) => {
                let other = self.uuids.iter().find(|(gpu, _)| *gpu == index);
                other.map_or(format!("GPU-{index}"), |(_, uuid)| uuid.clone())
            }
            Target::Part(index, part) => format!("MIG-{index}-{part}"),
        }
    }

    /// All GPUs and all their parts.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let of = |index| {
            let parts = (0..self.parts(index)).map(move |part| Target::Part(index, part));
            std::iter::once(Target::Whole(index)).chain(parts)
        };
        (0..self.gpus).flat_map(of).collect()
    }
}

/// Begins a call: what there is, unless the call is to fail. Returns late if it is to hang.
pub(crate) fn at(call: &str, target: Option<Target>) -> Result<Config, c_uint> {
    let mut config = Config::read();
    while config.hang.iter().any(|hangs| hangs == call) {
        thread::sleep(Duration::from_millis(2));
        config = Config::read();
    }
    if let Some((_, code)) = config.fail.iter().find(|(fails, _)| fails == call) {
        return Err(*code);
    }
    let lost = |target: Target| config.lost.contains(&target.index());
    match target.is_some_and(lost) {
        true => Err(GPU_IS_LOST),
        false => Ok(config),
    }
}

/// The file beside the library: that of this copy, since each test has one of its own.
fn place() -> Option<PathBuf> {
    static HERE: c_char = 0;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is of this library, and there is room for what is asked for.
    let found = unsafe { libc::dladdr((&raw const HERE).cast(), info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: it was filled in, with the name that the library was loaded by.
    let name = unsafe { CStr::from_ptr(info.assume_init().dli_fname) };
    let mut path = name.to_str().ok()?.to_owned();
    path.push_str(".conf");
    Some(PathBuf::from(path))
}
