//! A folder that lives as long as its value.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A folder of this user alone, removed with everything in it when it is dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one among the system's temporary files.
    pub(super) fn new() -> anyhow::Result<Folder> {
        let name = format!("inboxd-demo-{:08x}", rand::random::<u32>());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path).with_context(|| {
            format!("{} cannot be made; name another folder with TMPDIR", path.display())
        })?;
        Ok(Folder(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is for the system to clean up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
