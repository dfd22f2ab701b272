/// Where an agent stores its session files: a folder below a base, and which files in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The base folder.
    pub base: Base,
    /// The folder below it, with `/` between its parts, or the one file that contains all sessions.
    pub folder: &'static str,
    /// The suffix of its session files, at any depth (".jsonl").
    pub suffix: &'static str,
}

/// The folder that a [`Place`] is relative to. Users can move each with the variable named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The user's home folder (`HOME`, on Windows `USERPROFILE`).
    Home,
    /// The folder in this variable, or else this folder below the home folder.
    Variable(&'static str, &'static str),
    /// The user's data folder: `XDG_DATA_HOME` or `~/.local/share`, on macOS `~/Library/Application Support`,
    /// on Windows `%APPDATA%`.
    Data,
    /// The user's configuration folder: `XDG_CONFIG_HOME` or `~/.config`, on macOS
    /// `~/Library/Application Support`, on Windows `%APPDATA%`.
    Config,
}
