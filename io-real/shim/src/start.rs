//! The entry point, and what the compiler takes for granted.

use core::arch::global_asm;

// The kernel enters with the stack pointer at argc and aligned to 16 bytes. We want no arguments but where they
// are, to hide them; and a stack as a called function expects it, and a frame chain that ends.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {main}",
    "ud2",
    main = sym crate::enter,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl {main}",
    "brk #1",
    main = sym crate::enter,
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    rustix::runtime_448b8ad740e2a26f::exit_group(101)
}

// The compiler emits calls to these five. Their loops go through volatile accesses (or string
// instructions), or it would recognise them and compile each into a call to itself.

/// # Safety
/// As C's `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    let mut at = 0;
    while at < len {
        // SAFETY: the caller vouches for `len` bytes at both places.
        unsafe { to.add(at).write_volatile(from.add(at).read()) };
        at += 1;
    }
    to
}

/// # Safety
/// As C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: copying upwards never overwrites what is still to be read.
        return unsafe { memcpy(to, from, len) };
    }
    let mut at = len;
    while at > 0 {
        at -= 1;
        // SAFETY: the caller vouches for `len` bytes at both places.
        unsafe { to.add(at).write_volatile(from.add(at).read()) };
    }
    to
}

/// # Safety
/// As C's `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, len: usize) -> *mut u8 {
    let mut at = 0;
    while at < len {
        // SAFETY: the caller vouches for `len` bytes.
        unsafe { to.add(at).write_volatile(value as u8) };
        at += 1;
    }
    to
}

/// # Safety
/// As C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    let mut at = 0;
    while at < len {
        // SAFETY: the caller vouches for `len` bytes at both places.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
        at += 1;
    }
    0
}

/// # Safety
/// As `bcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: the same contract.
    unsafe { memcmp(a, b, len) }
}

/// # Safety
/// As C's `strlen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: the caller vouches for a NUL at the end.
    while unsafe { text.add(len).read_volatile() } != 0 {
        len += 1;
    }
    len
}
