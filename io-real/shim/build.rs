//! Links the shim as a freestanding static program: no libc, no start files, no interpreter.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    for arg in ["-nostartfiles", "-nostdlib", "-static", "-no-pie"] {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
    for arg in [
        "--gc-sections",
        "--build-id=none",
        "-z,norelro",
        "--no-eh-frame-hdr",
    ] {
        println!("cargo:rustc-link-arg-bins=-Wl,{arg}");
    }
    let dir = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=discard.ld");
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{dir}/discard.ld");
    if arch == "x86_64" {
        // One page of headers and text instead of a page for each kind. Elsewhere pages may be
        // larger than 4 KiB, and the linker's default alignment is needed.
        for arg in ["-z,noseparate-code", "-z,max-page-size=4096"] {
            println!("cargo:rustc-link-arg-bins=-Wl,{arg}");
        }
    }
}
