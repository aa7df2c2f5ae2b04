//! Dumps of the agent's memory: there are none, since it holds secrets.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A limit of no bytes would still let the kernel start a program that takes the dump; with a limit of one byte
/// it does not.
const NEVER: u64 = 1;

/// Lets the kernel write no dump of this process, nor of what it starts, unless that sets a limit of its own.
/// Shims give tasks theirs.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub fn forbid() -> Result<(), Errno> {
    let maximum = getrlimit(Resource::Core).maximum;
    let wanted = Rlimit {
        current: Some(NEVER),
        // One byte is a hard limit of none as well: no dump fits.
        maximum: maximum.map(|maximum| maximum.max(NEVER)),
    };
    match setrlimit(Resource::Core, wanted) {
        // Only root may raise it, and not each.
        Err(Errno::PERM) => {
            let current = maximum;
            setrlimit(Resource::Core, Rlimit { current, maximum })
        }
        set => set,
    }
}
