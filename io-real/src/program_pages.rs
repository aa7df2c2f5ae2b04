//! Pages of the program's own file.
//!
//! The kernel maps sixteen pages of a program where one is used, so an agent whose start passed through a large part of
//! its code has most of that in memory for as long as it lives, whatever it still uses. At rest the pages are let go:
//! what is used again is mapped again from the kernel's cache, in microseconds, and what is not can be taken by whoever
//! needs memory. (A breakpoint that a debugger had set before is lost with them.)

use std::ffi::{c_int, c_void};
use std::ptr;

use rustix::mm::{Advice, madvise};

/// Lets go of what is mapped of the program's code and constants.
pub(crate) fn let_go() {
    // SAFETY: the function is of the type that is wanted, and uses its argument not at all.
    unsafe {
        libc::dl_iterate_phdr(Some(let_go_of), ptr::null_mut());
    }
}

/// The program itself is the first thing that is shown; the answer ends the walk.
unsafe extern "C" fn let_go_of(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the loader gives a thing that is valid during the call, with as many headers as it says.
    let (base, headers) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
        (object.dlpi_addr, headers)
    };
    for segment in headers {
        // What the loader wrote to, as it does to tables of addresses, is part of a segment that can be written.
        if segment.p_type != libc::PT_LOAD || segment.p_flags & libc::PF_W != 0 {
            continue;
        }
        // SAFETY: it asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = u64::try_from(page).unwrap_or(u64::MAX);
        let begin = (base + segment.p_vaddr).next_multiple_of(page);
        let end = (base + segment.p_vaddr + segment.p_memsz) / page * page;
        let (Ok(at), Ok(length)) = (
            usize::try_from(begin),
            usize::try_from(end.saturating_sub(begin)),
        ) else {
            continue;
        };
        // SAFETY: these pages are mapped from the program's file and nobody ever wrote to them, so they are the same
        // when they are mapped again.
        let _ = unsafe {
            madvise(
                ptr::with_exposed_provenance_mut(at),
                length,
                Advice::LinuxDontNeed,
            )
        };
    }
    1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::fs;

    use super::*;

    /// How many pages of files are in this program's memory.
    fn pages_of_files() -> u64 {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(2).unwrap().parse().unwrap()
    }

    #[test]
    fn program_whose_pages_are_let_go_runs_on_with_fewer() {
        let are_fewer = |_: &u32| {
            let before = pages_of_files();
            let_go();
            pages_of_files() < before
        };
        // Other tests may use many at the same moment.
        let seen = (1..=100).find(are_fewer).unwrap();
        // A call through a table of addresses, which the loader had written to.
        let number: &dyn std::fmt::Display = &seen;
        assert_eq!(number.to_string().parse(), Ok(seen));
    }
}
