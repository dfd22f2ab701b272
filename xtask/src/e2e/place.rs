//! Where one run takes place: an empty home, a work folder with small scripts, and a counter outside of both.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folders of one run. They are kept if it failed, for a look at what went wrong.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) root: PathBuf,
    /// `$HOME` of the agent.
    pub(super) home: PathBuf,
    /// Where the agent works.
    pub(super) work: PathBuf,
    /// First on the agent's PATH; `deloop` is here.
    pub(super) bin: PathBuf,
}

/// The command an agent is stuck on: it fails each time in the same way.
pub(super) const STUCK: &str = "sh check.sh";

const CHECK: &str = "echo check >> \"$E2E_COUNTER\"\necho \"error: no target named widget\" >&2\nexit 2\n";
const TEST: &str = "echo test >> \"$E2E_COUNTER\"\nread have < value.txt\n\
    if [ \"$have\" = 3 ]; then echo \"1 passed\"; else echo \"FAILED: want 3, have $have\"; exit 1; fi\n";
const POLL: &str = "echo poll >> \"$E2E_COUNTER\"\npolls=$(grep -c poll \"$E2E_COUNTER\")\n\
    if [ \"$polls\" -ge 4 ]; then echo \"deployment finished\"; else echo \"deploying, $((polls * 25)) %\"; fi\n";
const NOTE: &str = "echo \"$1\" >> \"$E2E_COUNTER\"\necho \"noted $1\"\n";
/// Waits until somebody else has done something, 30 s at most.
const WAIT: &str = "echo wait >> \"$E2E_COUNTER\"\nbeats=0\n\
    while [ ! -e \"$E2E_COUNTER.signal\" ] && [ $beats -lt 300 ]; do sleep 0.1; beats=$((beats + 1)); done\n\
    echo \"waited\"\n";
/// Never ends, and starts something that leaves its process group and ignores signals.
const HANG: &str = "echo hang >> \"$E2E_COUNTER\"\n\
    (setsid sh -c 'trap \"\" INT TERM HUP; while :; do sleep 1; done' &)\nwhile :; do sleep 1; done\n";

impl Place {
    /// Empties the folder and fills it anew.
    pub(super) fn new(root: PathBuf) -> io::Result<Self> {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let place = Self { home: root.join("home"), work: root.join("work"), bin: root.join("bin"), root };
        for folder in [&place.home, &place.work, &place.bin] {
            fs::create_dir_all(folder)?;
        }
        let scripts = [
            ("check.sh", CHECK),
            ("test.sh", TEST),
            ("poll.sh", POLL),
            ("note.sh", NOTE),
            ("wait.sh", WAIT),
            ("hang.sh", HANG),
        ];
        for (name, text) in scripts {
            fs::write(place.work.join(name), text)?;
        }
        fs::write(place.work.join("notes.txt"), "The value must be 3.\n")?;
        Ok(place)
    }

    /// The file to which every command of the work folder adds a line.
    pub(super) fn counter(&self) -> PathBuf {
        self.root.join("counter")
    }

    /// The state folder of the server, in cases that have one.
    pub(super) fn server(&self) -> PathBuf {
        self.root.join("server")
    }

    /// The file that `wait.sh` waits for.
    pub(super) fn signal(&self) -> PathBuf {
        self.root.join("counter.signal")
    }

    /// The command lines of the processes that were left when the program had ended.
    pub(super) fn left(&self) -> PathBuf {
        self.root.join("counter.left")
    }

    /// When each event of a timed hook began and ended.
    pub(super) fn events(&self) -> PathBuf {
        self.root.join("counter.events")
    }

    /// Where deloop keeps its state in this home.
    pub(super) fn state(&self) -> PathBuf {
        self.home.join(".local/state/deloop")
    }

    /// The program that the agent's hooks call.
    pub(super) fn deloop(&self) -> PathBuf {
        self.bin.join("deloop")
    }

    /// How often this command of the work folder ran.
    pub(super) fn ran(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.counter()).unwrap_or_default();
        text.lines().filter(|line| *line == name).count()
    }
}

/// Writes a file and the folders above it.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Writes a file that can be executed. If there is one, it is replaced, because its contents may be shared by a link.
pub(super) fn write_program(path: &Path, text: &str) -> io::Result<()> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    write(path, text)?;
    make_executable(path)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}
