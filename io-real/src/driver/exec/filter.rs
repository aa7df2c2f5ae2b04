//! The filters for system calls of isolated tasks.
//!
//! Two are loaded, one after the other. The first lets through the calls that programs need; any other number,
//! also one that no kernel has yet, does not exist for the task (`ENOSYS`), so that C libraries fall back to
//! an older call. The second says `EPERM` to calls that exist and are for administrators, unless the task has the
//! capability for them. `clone3` and `io_uring` do not exist: what they are asked for lies in memory, where no
//! filter sees it.
//!
//! Calls by another architecture's numbers (32-bit programs) kill the program.

use std::collections::BTreeMap;
use std::io;

use drover_core::driver::capabilities::Capabilities;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::calls::{ALLOWED, FOR_CAPABILITIES, FOR_NOBODY};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `CLONE_NEW*`: each makes a namespace.
const NAMESPACES: [u64; 8] = [
    0x80,
    0x2_0000,
    0x200_0000,
    0x400_0000,
    0x800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

/// Kinds of sockets that reach the kernel's cryptography and the hypervisor.
const SOCKETS: [u64; 2] = [38, 40];

/// Personalities that are harmless: the usual, as of 32 bits (which only changes a name), with randomisation in
/// both, and the question for it.
const PERSONALITIES: [u64; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// What puts characters into somebody's terminal: `TIOCSTI`, `TIOCLINUX`.
const TERMINAL: [u64; 2] = [0x5412, 0x541c];

/// What takes a file out of its project, and with that out of its disk quota: `FS_IOC_FSSETXATTR`, `FS_IOC_SETFLAGS`.
const ATTRIBUTES: [u64; 2] = [0x401c_5820, 0x4008_6602];

/// The filters for a task with these capabilities, in the order in which they are loaded.
///
/// # Errors
/// There are none for this machine's architecture.
pub(super) fn filters(capabilities: Capabilities) -> io::Result<Vec<Vec<u8>>> {
    let known = compile(
        known(capabilities),
        SeccompAction::Allow,
        libc::ENOSYS,
        true,
    )?;
    let refused = compile(
        refused(capabilities)?,
        SeccompAction::Allow,
        libc::EPERM,
        false,
    )?;
    Ok(vec![bytes(&known), bytes(&refused)])
}

fn known(capabilities: Capabilities) -> Rules {
    let mut rules: Rules = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    for (_, calls) in FOR_CAPABILITIES {
        rules.extend(calls.iter().map(|call| (*call, Vec::new())));
    }
    rules.extend(FOR_NOBODY.iter().map(|call| (*call, Vec::new())));
    if capabilities.has("sys_admin") {
        rules.insert(libc::SYS_clone3, Vec::new());
    }
    rules
}

fn refused(capabilities: Capabilities) -> io::Result<Rules> {
    let mut rules: Rules = FOR_NOBODY.iter().map(|call| (*call, Vec::new())).collect();
    for (names, calls) in FOR_CAPABILITIES {
        if !names.iter().any(|name| capabilities.has(name)) {
            rules.extend(calls.iter().map(|call| (*call, Vec::new())));
        }
    }
    if !capabilities.has("sys_admin") {
        let makes = |flag| rule([condition(0, SeccompCmpOp::MaskedEq(flag), flag)]);
        rules.insert(
            libc::SYS_clone,
            NAMESPACES
                .map(makes)
                .into_iter()
                .collect::<io::Result<_>>()?,
        );
    }
    let is = |argument| move |value| rule([condition(argument, SeccompCmpOp::Eq, value)]);
    rules.insert(
        libc::SYS_socket,
        SOCKETS.map(is(0)).into_iter().collect::<io::Result<_>>()?,
    );
    let attributes = ATTRIBUTES
        .into_iter()
        .filter(|_| !capabilities.has("linux_immutable"));
    let controls = TERMINAL.into_iter().chain(attributes).map(is(1));
    rules.insert(libc::SYS_ioctl, controls.collect::<io::Result<_>>()?);
    // All conditions of a rule together: none of these.
    let odd = rule(PERSONALITIES.map(|known| condition(0, SeccompCmpOp::Ne, known)))?;
    rules.insert(libc::SYS_personality, vec![odd]);
    Ok(rules)
}

/// A condition on an argument of 32 bits.
fn condition(argument: u8, op: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    condition.map_err(io::Error::other)
}

fn rule<const N: usize>(conditions: [io::Result<SeccompCondition>; N]) -> io::Result<SeccompRule> {
    let conditions: Vec<SeccompCondition> = conditions.into_iter().collect::<io::Result<_>>()?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// A filter that lets calls through, if they are in the table or if they are not, and refuses the others.
fn compile(rules: Rules, pass: SeccompAction, errno: i32, listed: bool) -> io::Result<BpfProgram> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let (others, listed) = match listed {
        true => (refuse, pass),
        false => (pass, refuse),
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, others, listed, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

/// The instructions as the kernel reads them.
fn bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for one in program {
        bytes.extend(one.code.to_ne_bytes());
        bytes.extend([one.jt, one.jf]);
        bytes.extend(one.k.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn filters_fit_into_the_kernel() {
        for capabilities in [Capabilities::default(), Capabilities::ALL] {
            for filter in filters(capabilities).unwrap() {
                assert_eq!(filter.len() % 8, 0);
                // The kernel takes 4096 instructions.
                assert!(
                    (1..4096).contains(&(filter.len() / 8)),
                    "{}",
                    filter.len() / 8
                );
            }
        }
    }

    #[test]
    fn call_is_refused_without_its_capability_only() {
        let none = refused(Capabilities::default()).unwrap();
        let all = refused(Capabilities::ALL).unwrap();
        let kept = |rules: &Rules, call| rules.get(&call).is_none();
        for call in [
            libc::SYS_mount,
            libc::SYS_bpf,
            libc::SYS_setns,
            libc::SYS_reboot,
        ] {
            assert!(!kept(&none, call) && kept(&all, call), "{call}");
        }
        for call in [libc::SYS_keyctl, libc::SYS_userfaultfd] {
            assert!(!kept(&none, call) && !kept(&all, call), "{call}");
        }
        assert!(!known(Capabilities::default()).contains_key(&libc::SYS_clone3));
        assert!(!known(Capabilities::ALL).contains_key(&libc::SYS_io_uring_setup));
    }
}
