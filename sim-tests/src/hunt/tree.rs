//! The copy of the source tree that bugs are planted in.

use std::fs;
use std::path::{Path, PathBuf};

use super::patch::Patch;

/// A copy of the tree, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
}

/// A bug that is planted; dropped, the tree is as it was.
#[derive(Debug)]
pub(super) struct Planted {
    before: Vec<(PathBuf, String)>,
}

impl Tree {
    /// Copies the tree at `from`, without version control and without what was built.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub(super) fn copy_of(from: &Path) -> Result<Tree, String> {
        let name = format!("drover-hunt-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let tree = Tree { root };
        copy(from, &tree.root).map_err(|why| format!("copy to {}: {why}", tree.root.display()))?;
        Ok(tree)
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

impl Drop for Tree {
    fn drop(&mut self) {
        // A copy that stays behind in the directory for such things harms nobody.
        let _ = fs::remove_dir_all(&self.root);
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

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            // Every folder of build results bears this mark.
            if !path.join("CACHEDIR.TAG").exists() {
                copy(&path, &target)?;
            }
        } else if entry.file_type()?.is_file() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
