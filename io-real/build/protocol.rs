//! Compiles the plugin protocol: for us the client's side, for the example plugins the server's.

use std::fs;
use std::path::PathBuf;

const FILES: [&str; 7] = [
    "base.proto",
    "device.proto",
    "driver.proto",
    "hclspec.proto",
    "health.proto",
    "plugin.proto",
    "structs.proto",
];

/// Writes `client/` and `server/` below the output directory.
pub(crate) fn compile() {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build");
    let files = protox::compile(FILES, ["proto"])
        .unwrap_or_else(|error| panic!("the plugin protocol does not compile: {error}"));
    for side in ["client", "server"] {
        let to = PathBuf::from(crate::var("OUT_DIR")).join(side);
        fs::create_dir_all(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
        tonic_prost_build::configure()
            .build_client(side == "client")
            .build_server(side == "server")
            .build_transport(false)
            .btree_map(".")
            .include_file("all.rs")
            .out_dir(&to)
            .compile_fds(files.clone())
            .unwrap_or_else(|error| panic!("cannot write the plugin protocol's code: {error}"));
    }
}
