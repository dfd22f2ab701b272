//! What the check needs and the repository doesn't contain.

use std::path::Path;
use std::process::Command;

use crate::bindings::Language;
use crate::tools::{Tool, cargo_nightly, in_path, works};
use crate::{bindings, e2e, openapi_test, report_test};

/// A program that comes with Debian packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    RedisServer,
    Openssl,
    Script,
    GnuTime,
    Python,
    Node,
    Chromium,
}

/// Whether the quick run is meant, or the one over all frameworks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quick(pub(crate) bool);

/// The environment variable that names a clone of <https://github.com/RustSec/advisory-db>.
pub(crate) const ADVISORY_DATABASE: &str = "DELOOP_ADVISORY_DB";

/// A property of the machine that no package changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// A nightly Rust toolchain.
    Nightly,
    /// Namespaces for mounts and processes.
    Namespaces,
    /// Recorded sessions in `../shared`.
    SharedSessions,
    /// A clone of RustSec's advisory database, which [`ADVISORY_DATABASE`] names.
    AdvisoryDatabase,
}

/// Something that a part of the check, or a test, needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requirement {
    Program(Program),
    /// A tool from crates.io.
    Tool(&'static Tool),
    /// An agent from npm, by the name that `cargo xtask e2e` takes.
    Agent(&'static str),
    /// Tests a server by its OpenAPI document.
    Schemathesis,
    /// Drives a browser.
    Playwright,
    /// What the tests of the package of a language need, quick or all.
    Bindings(Language, Quick),
    Machine(Machine),
}

impl Requirement {
    /// What a test can need, as in `#[ignore = "needs redis-server, openssl"]`.
    const OF_TESTS: [Self; 7] = [
        Self::Program(Program::RedisServer),
        Self::Program(Program::Openssl),
        Self::Program(Program::Script),
        Self::Program(Program::GnuTime),
        Self::Program(Program::Python),
        Self::Machine(Machine::Namespaces),
        Self::Machine(Machine::SharedSessions),
    ];

    /// Returns what a test needs by the reason in its attribute `#[ignore]`; `None` if it is ignored for another reason.
    ///
    /// # Errors
    /// When it needs something that isn't known: its name.
    pub(crate) fn of_reason(reason: &str) -> Option<Result<Vec<Self>, String>> {
        let of_tests = |name: &str| Self::OF_TESTS.into_iter().find(|requirement| requirement.name() == name);
        let names = reason.strip_prefix("needs ")?.split(", ");
        Some(names.map(|name| of_tests(name).ok_or(name.to_owned())).collect())
    }

    /// Returns what is missing for a test with this reason.
    pub(crate) fn missing_for(reason: &str) -> Option<Self> {
        let needed = Self::of_reason(reason)?.unwrap_or_default();
        needed.into_iter().find(|requirement| !requirement.is_there())
    }

    /// Returns everything that tests can need.
    pub(crate) fn all_of_tests() -> &'static [Self] {
        &Self::OF_TESTS
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Program(Program::RedisServer) => "redis-server".into(),
            Self::Program(Program::Openssl) => "openssl".into(),
            Self::Program(Program::Script) => "script".into(),
            Self::Program(Program::GnuTime) => "GNU time".into(),
            Self::Program(Program::Python) => "python3".into(),
            Self::Program(Program::Node) => "Node.js 20 with npm".into(),
            Self::Program(Program::Chromium) => "chromium".into(),
            Self::Tool(tool) => tool.name.into(),
            Self::Agent(name) => format!("the agent {name}"),
            Self::Schemathesis => "schemathesis".into(),
            Self::Playwright => "playwright-core".into(),
            Self::Bindings(language, Quick(true)) => format!("one framework for {language:?}"),
            Self::Bindings(language, Quick(false)) => format!("all frameworks for {language:?}"),
            Self::Machine(Machine::Nightly) => "a nightly toolchain".into(),
            Self::Machine(Machine::Namespaces) => "namespaces".into(),
            Self::Machine(Machine::SharedSessions) => "shared sessions".into(),
            Self::Machine(Machine::AdvisoryDatabase) => "an advisory database".into(),
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Program(Program::RedisServer) => in_path("redis-server").is_some(),
            Self::Program(Program::Openssl) => in_path("openssl").is_some(),
            Self::Program(Program::Script) => Path::new("/usr/bin/script").exists(),
            Self::Program(Program::GnuTime) => Path::new("/usr/bin/time").exists(),
            Self::Program(Program::Python) => has_python(),
            Self::Program(Program::Node) => has_node(),
            Self::Program(Program::Chromium) => report_test::browser().is_some(),
            Self::Tool(tool) => tool.program().is_some(),
            Self::Agent(name) => e2e::is_installed(name),
            Self::Schemathesis => openapi_test::schemathesis().is_some(),
            Self::Playwright => report_test::has_driver(),
            Self::Bindings(language, Quick(quick)) => bindings::missing(*language, *quick).is_empty(),
            Self::Machine(Machine::Nightly) => works(&mut cargo_nightly(&["--version"])),
            Self::Machine(Machine::Namespaces) => e2e::has_namespaces(),
            Self::Machine(Machine::SharedSessions) => Path::new("../shared/corpus").is_dir(),
            Self::Machine(Machine::AdvisoryDatabase) => {
                std::env::var_os(ADVISORY_DATABASE).is_some_and(|folder| Path::new(&folder).is_dir())
            }
        }
    }

    /// Returns the Debian packages that bring it, if that is where it comes from.
    pub(super) fn packages(&self) -> Option<&'static [&'static str]> {
        let Self::Program(program) = self else { return None };
        Some(match program {
            Program::RedisServer => &["redis-server"],
            Program::Openssl => &["openssl"],
            Program::Script => &["bsdutils"],
            Program::GnuTime => &["time"],
            Program::Python => &["python3", "python3-venv"],
            Program::Node => &["nodejs", "npm"],
            Program::Chromium => &["chromium"],
        })
    }

    /// Whether `cargo xtask setup` brings it, so that a check under CI fails without it.
    pub(crate) fn can_be_installed(&self) -> bool {
        !matches!(self, Self::Machine(_))
    }

    /// Returns what to do about it if it is missing.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Machine(Machine::Nightly) => "missing; rustup toolchain install nightly",
            Self::Machine(Machine::Namespaces) => "not permitted on this machine",
            Self::Machine(Machine::SharedSessions) => "missing; they are no part of the repository",
            Self::Machine(Machine::AdvisoryDatabase) => {
                "missing; DELOOP_ADVISORY_DB names a clone of RustSec/advisory-db"
            }
            _ => "missing; cargo xtask setup",
        }
    }

    /// Installs what no Debian package brings.
    ///
    /// # Errors
    /// When a registry fails three times; says what it answered.
    pub(super) fn install(&self) -> Result<(), String> {
        match self {
            Self::Tool(tool) => tool.install(),
            Self::Agent(name) => e2e::install(name),
            Self::Schemathesis => openapi_test::install(),
            Self::Playwright => report_test::install_driver(),
            Self::Bindings(language, Quick(quick)) => bindings::install(*language, *quick),
            Self::Program(_) | Self::Machine(_) => Ok(()),
        }
    }
}

fn has_python() -> bool {
    let supported = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    works(Command::new("python3").args(["-c", supported]))
}

fn has_node() -> bool {
    let supported = "process.exit(Number(process.versions.node.split('.')[0]) >= 20 ? 0 : 1)";
    works(Command::new("node").args(["-e", supported])) && works(Command::new("npm").arg("--version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_what_a_test_needs() {
        for requirement in Requirement::OF_TESTS {
            let reason = format!("needs {}", requirement.name());
            assert_eq!(Requirement::of_reason(&reason), Some(Ok(vec![requirement])));
        }
        let both = [Program::RedisServer, Program::Openssl].map(Requirement::Program).to_vec();
        assert_eq!(Requirement::of_reason("needs redis-server, openssl"), Some(Ok(both)));
        assert_eq!(Requirement::of_reason("needs luck"), Some(Err("luck".to_owned())));
        assert_eq!(Requirement::of_reason("a measurement; run it with --nocapture"), None);
    }
}
