//! Builds the task shim, a freestanding program, and hands its path to `src/shim/program.rs`.
//!
//! The shim has its own settings (no libc, static, fixed address), which cargo cannot give to one
//! package of a workspace. So a second cargo builds it, in a directory of its own, shielded from
//! the flags and wrappers of the build that this script is a part of.
//!
//! It also compiles the plugin protocol.

#[path = "build/protocol.rs"]
mod protocol;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What would carry the outer build's settings into the inner one.
const LEAKS: [&str; 11] = [
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

fn main() {
    let dir = PathBuf::from(var("CARGO_MANIFEST_DIR")).join("shim");
    for part in ["src", "build.rs", "discard.ld", "Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={}", dir.join(part).display());
    }
    println!("cargo:rerun-if-changed=build.rs");
    let program = build(&dir);
    println!("cargo:rustc-env=DROVER_SHIM={}", program.display());
    protocol::compile();
}

fn build(dir: &Path) -> PathBuf {
    let target = var("TARGET");
    let output = PathBuf::from(var("OUT_DIR")).join("shim");
    let mut cargo = Command::new(var("CARGO"));
    for name in LEAKS {
        cargo.env_remove(name);
    }
    for (name, _) in env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PROFILE_"))
        {
            cargo.env_remove(name);
        }
    }
    // With `--target`, these flags reach the shim but not the build scripts on the way to it.
    let status = cargo
        .current_dir(dir)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Crelocation-model=static")
        .args([
            "build",
            "--release",
            "--locked",
            "--target",
            &target,
            "--target-dir",
        ])
        .arg(&output)
        .status();
    match status {
        Ok(status) if status.success() => output.join(target).join("release/drover-shim"),
        Ok(status) => panic!("cannot build the task shim in {}: {status}", dir.display()),
        Err(error) => panic!("cannot run cargo to build the task shim: {error}"),
    }
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo did not set {name}: {error}"))
}
