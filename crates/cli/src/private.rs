//! Files for the user alone.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Writes a file (mode 0600, its folders 0700) so that a reader sees the old one or the new one, never half of one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&name).and_then(|mut file| file.write_all(bytes));
    let done = written.and_then(|()| std::fs::rename(&name, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&name);
    }
    done
}
