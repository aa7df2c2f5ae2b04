//! What an isolated task may do: its user, its capabilities, and its filters for system calls.

use crate::child;
use crate::kernel;
use crate::spec::{Fault, Isolation, Start};
use crate::wire::Step;
use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
};

/// Becomes the task's user, with its capabilities and no others, and then loads the filters.
///
/// Where programs may gain privileges, filters can be loaded only while this process may administer the system,
/// that is first; they let all of the rest here pass.
pub fn become_user(isolation: &Isolation, start: &Start) -> core::result::Result<(), Fault> {
    let fault = Fault::at(Step::Capabilities);
    let is_root = start.user.is_none_or(|(uid, _)| uid == 0);
    drop_bounding(isolation.bounding).map_err(&fault)?;
    clear_ambient_capability_set().map_err(&fault)?;
    if !isolation.no_new_privs {
        load(isolation)?;
    }
    if !is_root && isolation.effective != 0 {
        set_keep_capabilities(true).map_err(&fault)?;
    }
    child::become_user(start)?;
    take(isolation, is_root).map_err(&fault)?;
    if isolation.no_new_privs {
        set_no_new_privs(true).map_err(&fault)?;
        load(isolation)?;
    }
    Ok(())
}

fn drop_bounding(keep: u64) -> Result<()> {
    for number in 0..u64::BITS {
        let one = 1 << number;
        if keep & one != 0 {
            continue;
        }
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(one)) {
            // The kernel knows no more of them.
            Err(Errno::INVAL) => break,
            dropped => dropped?,
        }
    }
    Ok(())
}

/// Another user than root keeps capabilities through the execution of a program only if they are ambient.
fn take(isolation: &Isolation, is_root: bool) -> Result<()> {
    let own = capabilities(None)?.permitted;
    let wanted = CapabilitySet::from_bits_retain(isolation.effective) & own;
    let inheritable = match is_root {
        true => CapabilitySet::empty(),
        false => wanted,
    };
    set_capabilities(
        None,
        CapabilitySets {
            effective: wanted,
            permitted: wanted,
            inheritable,
        },
    )?;
    for one in inheritable.iter() {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

fn load(isolation: &Isolation) -> core::result::Result<(), Fault> {
    for filter in isolation.filters {
        kernel::load_filter(filter).map_err(Fault::at(Step::Seccomp))?;
    }
    Ok(())
}
