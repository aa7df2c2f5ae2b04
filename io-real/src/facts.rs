//! What an agent needs of its machine before anything else: a name, and random numbers.

use std::io;

use drover_core::ids::uuid_of_version;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::uname;

/// The host's name.
pub fn hostname() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Which boot of the machine this is.
///
/// # Errors
/// The kernel does not say it.
pub fn boot_id() -> io::Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// A UUID of version 4 that nobody guesses.
///
/// # Errors
/// The machine has no randomness.
pub fn new_uuid() -> io::Result<u128> {
    let mut bytes = [0_u8; 16];
    match getrandom(&mut bytes, GetRandomFlags::empty())? {
        16 => {}
        short => {
            let words = format!("the machine gave {short} random bytes of 16");
            return Err(io::Error::other(words));
        }
    }
    Ok(uuid_of_version(4, u128::from_be_bytes(bytes)))
}

/// Random bits from the machine, for the core's seed and the node's id.
pub fn random() -> u128 {
    let mut bytes = [0_u8; 16];
    // Fails only before the machine has any randomness at all, long before agents run; the boot
    // clock is the best that is left then.
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(16) => u128::from_ne_bytes(bytes),
        Ok(_) | Err(_) => u128::from(crate::clock::now().at.0),
    }
}
