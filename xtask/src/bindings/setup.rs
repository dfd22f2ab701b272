//! What the tests of the packages need from registries. It is installed before any test runs, and by nothing else.

use super::node;
use super::python::{self, Python};

/// Something that a run needs, in a folder of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Installation {
    /// A Python environment, by the name of its requirements.
    Python(String),
    /// Packages for Node, by the name of their lock file.
    Node(String),
}

impl Installation {
    /// Returns how messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Python(name) if name == python::CORE => "pytest, mypy and pyright".to_owned(),
            Self::Python(name) if name == python::BUILD => "maturin".to_owned(),
            Self::Python(name) => format!("{name} for Python"),
            Self::Node(name) if name == node::DEV => "TypeScript".to_owned(),
            Self::Node(name) if name == node::NEWER => "Node 22".to_owned(),
            Self::Node(name) => format!("{name} for Node"),
        }
    }

    /// Returns whether it is installed completely, at the pinned versions.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Python(name) => Python::find().is_ok_and(|python| python.has(name)),
            Self::Node(name) => node::has(name),
        }
    }

    /// Installs it anew.
    ///
    /// # Errors
    /// When Python or Node isn't there, or the package manager fails three times: its last lines.
    pub(crate) fn install(&self) -> Result<(), String> {
        match self {
            Self::Python(name) => Python::find()?.install(name),
            Self::Node(name) => node::install(name),
        }
    }
}

/// Lists what the quick run needs, or what all parts of the full run need.
pub(crate) fn installations(quick: bool) -> Vec<Installation> {
    let mut python = python::names();
    let mut node = node::pinned();
    if quick {
        python.retain(|name| python::QUICK.contains(&name.as_str()));
        node.retain(|name| node::QUICK.contains(&name.as_str()));
    } else {
        python.push(python::BUILD.to_owned());
        node.retain(|name| name != node::NEWER || !node::is_new());
    }
    node.insert(0, node::DEV.to_owned());
    let python = python.into_iter().map(Installation::Python);
    python.chain(node.into_iter().map(Installation::Node)).collect()
}

/// One of the languages that there are packages for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Node,
}

/// Lists what isn't installed yet, of one language.
pub(crate) fn missing(language: Language, quick: bool) -> Vec<Installation> {
    let is_of =
        |each: &Installation| matches!(each, Installation::Python(_)) == (language == Language::Python);
    installations(quick).into_iter().filter(|each| is_of(each) && !each.is_there()).collect()
}

/// Installs what is missing, of one language.
///
/// # Errors
/// What could not be installed, and why.
pub(crate) fn install(language: Language, quick: bool) -> Result<(), String> {
    let failure = |each: Installation| {
        println!("installing {}", each.name());
        each.install().err().map(|why| format!("{}: {why}", each.name()))
    };
    let failed: Vec<String> = missing(language, quick).into_iter().filter_map(failure).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}
