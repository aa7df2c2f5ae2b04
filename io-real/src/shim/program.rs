//! The shim program, which travels inside the agent.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use drover_core::fnv::fnv1a;

/// The program, as the build script built it.
pub(super) static PROGRAM: &[u8] = include_bytes!(env!("DROVER_SHIM"));

/// Makes sure that the program lies in `dir`, and returns its path.
///
/// Its name bears a hash of its content, so an upgraded agent leaves alone the program that running
/// shims execute. A file with the right name but another content is replaced.
pub(super) fn install(dir: &Path) -> io::Result<PathBuf> {
    let path = dir.join(format!("shim-{:016x}", fnv1a(PROGRAM)));
    let intact = fs::read(&path).is_ok_and(|content| content == PROGRAM)
        && fs::metadata(&path).is_ok_and(|meta| meta.permissions().mode() & 0o111 == 0o111);
    if !intact {
        write(dir, &path)?;
    }
    Ok(path)
}

fn write(dir: &Path, path: &Path) -> io::Result<()> {
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&temporary)?;
    let written = file.write_all(PROGRAM).and_then(|()| file.sync_all());
    // Closed before it is executed: a program that is open for writing cannot be.
    drop(file);
    if let Err(error) = written.and_then(|()| fs::rename(&temporary, path)) {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(dir)?.sync_all()
}
