//! The folders in which agents keep their sessions on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use deloop_formats::{Base, Format, Place};

/// The operating systems whose folders differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// Linux and the other Unixes: the XDG folders.
    Unix,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl System {
    /// The one this runs on.
    pub(crate) fn here() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::Mac
        } else {
            Self::Unix
        }
    }
}

/// Returns the folder of a place, from environment variables; `None` if they are not set.
pub(crate) fn folder(
    place: &Place,
    system: System,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || set(if system == System::Windows { "USERPROFILE" } else { "HOME" }).or_else(|| set("HOME"));
    let user = |unix_variable: &str, unix_folder: &str| match system {
        System::Unix => set(unix_variable).or_else(|| Some(home()?.join(unix_folder))),
        System::Mac => Some(home()?.join("Library/Application Support")),
        System::Windows => set("APPDATA"),
    };
    let base = match place.base {
        Base::Home => home(),
        Base::Variable(name, below_home) => set(name).or_else(|| Some(home()?.join(below_home))),
        Base::Data => user("XDG_DATA_HOME", ".local/share"),
        Base::Config => user("XDG_CONFIG_HOME", ".config"),
    }?;
    Some(place.folder.split('/').filter(|part| !part.is_empty()).fold(base, |path, part| path.join(part)))
}

/// A folder of an agent on this machine.
pub(crate) struct AgentFolder {
    pub(crate) format: &'static dyn Format,
    pub(crate) folder: PathBuf,
    pub(crate) suffix: &'static str,
}

/// Returns the folders of every agent, whether they exist or not.
pub(crate) fn known(formats: &[&'static dyn Format]) -> Vec<AgentFolder> {
    let variable = |name: &str| std::env::var_os(name);
    let of = |format: &&'static dyn Format| {
        let format = *format;
        format.places().iter().filter_map(move |place| {
            let folder = folder(place, System::here(), &variable)?;
            Some(AgentFolder { format, folder, suffix: place.suffix })
        })
    };
    formats.iter().flat_map(of).collect()
}

/// Returns whether a file's name ends as the place says, packed or not.
pub(crate) fn fits(path: &Path, suffix: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    plain.ends_with(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: Base, system: System, variables: &[(&str, &str)]) -> Option<String> {
        let place = Place { base, folder: "agent/sessions", suffix: ".jsonl" };
        let variable =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        folder(&place, system, &variable).map(|p| p.to_string_lossy().replace('\\', "/"))
    }

    #[test]
    fn every_system_has_its_own_folders() {
        let home = [("HOME", "/h"), ("USERPROFILE", "C:/u"), ("APPDATA", "C:/u/AppData")];
        let cases = [
            (Base::Home, System::Unix, "/h/agent/sessions"),
            (Base::Home, System::Windows, "C:/u/agent/sessions"),
            (Base::Data, System::Unix, "/h/.local/share/agent/sessions"),
            (Base::Data, System::Mac, "/h/Library/Application Support/agent/sessions"),
            (Base::Data, System::Windows, "C:/u/AppData/agent/sessions"),
            (Base::Config, System::Unix, "/h/.config/agent/sessions"),
            (Base::Variable("AGENT_HOME", ".agent"), System::Mac, "/h/.agent/agent/sessions"),
        ];
        for (base, system, expected) in cases {
            assert_eq!(at(base, system, &home).as_deref(), Some(expected), "{base:?} {system:?}");
        }
    }

    #[test]
    fn variables_win_and_empty_ones_do_not_count() {
        let set = [("HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("AGENT_HOME", "/a"), ("XDG_CONFIG_HOME", "")];
        assert_eq!(at(Base::Data, System::Unix, &set).unwrap(), "/x/agent/sessions");
        assert_eq!(
            at(Base::Variable("AGENT_HOME", ".agent"), System::Unix, &set).unwrap(),
            "/a/agent/sessions"
        );
        assert_eq!(at(Base::Config, System::Unix, &set).unwrap(), "/h/.config/agent/sessions");
        assert_eq!(at(Base::Home, System::Unix, &[]), None);
    }

    #[test]
    fn packed_files_fit_too() {
        assert!(fits(Path::new("/a/b.jsonl"), ".jsonl") && fits(Path::new("b.jsonl.zst"), ".jsonl"));
        assert!(!fits(Path::new("/a/b.json"), ".jsonl") && !fits(Path::new("/a.jsonl/b"), ".jsonl"));
    }
}
