/// Where an agent stores its session files: a folder below a base, and which files in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The base folder.
    pub base: Base,
    /// The folder below it, with `/` between its parts; or the one file that holds all sessions.
    pub folder: &'static str,
    /// How the names of its session files end, at any depth (".jsonl").
    pub suffix: &'static str,
}

/// The folder that a [`Place`] is below; a user may move each with the variable named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The user's home folder (`HOME`, on Windows `USERPROFILE`).
    Home,
    /// What this variable says, or else this folder below the home folder.
    Variable(&'static str, &'static str),
    /// The user's data folder: `XDG_DATA_HOME` or `~/.local/share`, on macOS `~/Library/Application Support`,
    /// on Windows `%APPDATA%`.
    Data,
    /// The user's configuration folder: `XDG_CONFIG_HOME` or `~/.config`, on macOS
    /// `~/Library/Application Support`, on Windows `%APPDATA%`.
    Config,
}
