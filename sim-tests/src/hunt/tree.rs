//! The copy of the source tree that bugs are planted in.
//!
//! It lies beside its build results and is kept with them: what did not change is not copied and
//! not built again. What an interrupted hunt left planted is mended by the next.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::patch::Patch;

/// The mark of every folder of build results. The hunt's own bears it too: it may lie in the tree
/// that is copied, where nothing else was built.
const BUILT: &str = "CACHEDIR.TAG";

/// What such a mark says, see <https://bford.info/cachedir/>.
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

/// A copy of the tree. One hunt at a time has it.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    _lock: File,
}

/// A bug that is planted; dropped, the tree is as it was.
#[derive(Debug)]
pub(super) struct Planted {
    before: Vec<(PathBuf, String)>,
}

impl Tree {
    /// Copies the tree at `from` into `folder`, without version control and without what was
    /// built. Waits while another hunt is there.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub(super) fn copy_of(from: &Path, folder: &Path) -> Result<Tree, String> {
        let root = folder.join("tree");
        let copied = fs::create_dir_all(&root)
            .and_then(|()| fs::write(folder.join(BUILT), SIGNATURE))
            .and_then(|()| File::create(folder.join("lock")))
            .and_then(|lock| lock.lock().map(|()| lock))
            .and_then(|lock| mirror(from, &root).map(|()| lock));
        let lock = copied.map_err(|why| format!("copy to {}: {why}", root.display()))?;
        Ok(Tree { root, _lock: lock })
    }

    /// Where it lies.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Plants a bug until the answer is dropped.
    ///
    /// # Errors
    /// That it does not apply, or what cannot be written.
    pub(super) fn plant(&self, bug: &Patch) -> Result<Planted, String> {
        let mut planted = Planted { before: Vec::new() };
        for (path, text) in bug.applied(&self.root)? {
            let failed = |why: std::io::Error| format!("{}: {why}", path.display());
            let before = fs::read_to_string(&path).map_err(failed)?;
            planted.before.push((path.clone(), before));
            fs::write(&path, text).map_err(failed)?;
        }
        Ok(planted)
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        for (path, text) in &self.before {
            if let Err(why) = fs::write(path, text) {
                eprintln!("{} still holds a planted bug: {why}", path.display());
            }
        }
    }
}

/// Makes `to` like `from`, and touches nothing that is so already.
fn mirror(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    let mut kept: BTreeSet<OsString> = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let (path, target) = (entry.path(), to.join(&name));
        let built = kind.is_dir() && path.join(BUILT).exists();
        if built || name == ".git" {
            continue;
        }
        if kind.is_dir() {
            mirror(&path, &target)?;
        } else if kind.is_file() {
            let text = fs::read(&path)?;
            if fs::read(&target).ok().as_ref() != Some(&text) {
                fs::write(&target, text)?;
            }
        }
        kept.insert(name);
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if kept.contains(&entry.file_name()) {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
