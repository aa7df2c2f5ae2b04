//! Dumps of memory: none of a shim, and of a task only those that it asks for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// No dump, not even into a program that the kernel would start for it: such a program is started whatever
/// the limit is, but for a limit of one byte.
const NEVER: u64 = 1;

/// Lets the kernel write no dump of this process: it holds a task's environment.
pub fn forbid() {
    let maximum = getrlimit(Resource::Core).maximum;
    let wanted = Rlimit {
        current: Some(NEVER),
        // One byte is a hard limit of none as well: no dump fits.
        maximum: maximum.map(|maximum| maximum.max(NEVER)),
    };
    // Only root may raise a hard limit of none, and not each.
    if setrlimit(Resource::Core, wanted).is_err() {
        set(NEVER);
    }
}

/// What a task begins with: no dumps, and the right to ask for them up to the hard limit, which is the agent's.
pub fn leave_to_task() {
    set(0);
}

/// Sets the soft limit; the hard one stays, and bounds it.
fn set(soft: u64) {
    let maximum = getrlimit(Resource::Core).maximum;
    let current = Some(maximum.map_or(soft, |maximum| soft.min(maximum)));
    // A soft limit up to the hard one is never refused.
    let _ = setrlimit(Resource::Core, Rlimit { current, maximum });
}
