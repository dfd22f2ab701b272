//! `deloop keys`: creates, lists and revokes the keys of a server.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use deloop_detect::clean;
use deloop_server::{ApiKey, KEY_FILE, KeyFile, KeyProject, KeyRecord, KeyScope, Project};
use deloop_types::Millis;

use crate::exit::{self, Failure};
use crate::live::words::time;
use crate::print;
use crate::safe_file::{self, Expected, FileLock, Links, Permission, Target};
use crate::sessions::since::since;
use crate::state::{State, now};

/// A longer file isn't a key file.
const LONGEST: u64 = 16 << 20;

pub(crate) const KEYS_HELP: &str = "\
Examples:
  deloop keys add ci --scope ingest --project web --expires 90d
  deloop keys add alice --scope ingest,attend --project web
  deloop keys add ci-2 --scope ingest --project web --group ci
  deloop keys add grafana --scope read --all-projects
  deloop keys list
  deloop keys revoke ci

The key is printed once; the server stores its hash in keys.json in its state folder. As soon as
that file exists, every request needs `Authorization: Bearer KEY`. Running servers notice a change
within a second.

Scopes: ingest (send steps), attend (human text, interventions and ends lift a stop), read (sessions,
swarms, events, metrics), operate (reset, end, message, restore, clear), admin (everything).
Give unattended agents `ingest`, and a person's machine `ingest,attend`.

A session belongs to the key that opened it. Keys of one group share their sessions.";

/// `deloop keys`
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
    /// The state folder of the server [default: your state folder]
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) state: Option<PathBuf>,
}

/// The subcommands of `deloop keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print it, once
    Add(AddKeyArgs),
    /// List the keys, without their secret part
    List,
    /// Make a key invalid
    Revoke {
        /// The key's name
        name: String,
    },
}

/// `deloop keys add`
#[derive(Debug, Args)]
pub(crate) struct AddKeyArgs {
    /// Who uses the key: 1 to 64 letters, digits, `.`, `_` and `-`
    pub(crate) name: String,
    /// What it allows, as a list: ingest, attend, read, operate, admin
    #[arg(long, required = true, value_name = "SCOPES", value_delimiter = ',', value_parser = scope)]
    pub(crate) scope: Vec<KeyScope>,
    /// The project whose sessions and swarms it can use
    #[arg(long, value_name = "PROJECT", default_value = "default", value_parser = Project::parse)]
    pub(crate) project: Project,
    /// It can use the sessions and swarms of every project
    #[arg(long, conflicts_with = "project")]
    pub(crate) all_projects: bool,
    /// The group of keys that share their sessions [default: its own name]
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,
    /// How long it is valid: 12h, 90d, 52w [default: until it is revoked]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
}

fn scope(name: &str) -> Result<KeyScope, String> {
    KeyScope::parse(name).ok_or_else(|| {
        let all = KeyScope::ALL.map(KeyScope::name).join(", ");
        format!("the scopes are {all}")
    })
}

pub(crate) fn run(args: &KeysArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let folder = match &args.state {
        Some(folder) => folder.clone(),
        None => State::here()?.folder().to_owned(),
    };
    let path = folder.join(KEY_FILE);
    let file = StoredKeys::read(path.clone())?;
    let change = || -> Result<(FileLock, StoredKeys), Failure> {
        let lock = safe_file::lock(&path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        // Another command may have changed the file before it released the lock.
        Ok((lock, StoredKeys::read(path.clone())?))
    };
    match &args.command {
        KeysCommand::Add(args) => {
            let (_lock, file) = change()?;
            add(file, args, out)
        }
        KeysCommand::List => list(&file.keys, out),
        KeysCommand::Revoke { name } => {
            let (_lock, file) = change()?;
            revoke(file, name, out)
        }
    }
}

/// The key file as it was read.
struct StoredKeys {
    path: PathBuf,
    /// Its content; `None` if there is no file.
    before: Option<Vec<u8>>,
    keys: KeyFile,
}

impl StoredKeys {
    fn read(path: PathBuf) -> Result<Self, Failure> {
        let told = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
        let before = match safe_file::read(&path, LONGEST, Links::Refuse) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(told(&error)),
        };
        let keys = before.as_deref().map(KeyFile::parse).transpose().map_err(|error| told(&error))?;
        Ok(Self { keys: keys.unwrap_or_default(), before, path })
    }

    /// Writes the file, unless something without the lock changed it in the meantime.
    fn write(&self) -> Result<(), Failure> {
        let told = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", self.path.display()));
        let bytes = self.keys.to_bytes().map_err(|error| told(&error))?;
        let expected = self.before.as_deref().map_or(Expected::Absent, Expected::Bytes);
        Target::making_folders(&self.path)
            .and_then(|target| target.replace(&bytes, Permission::Private, expected))
            .map_err(|error| told(&error))
    }
}

fn add(mut file: StoredKeys, args: &AddKeyArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let now = now();
    let expires = args.expires.as_deref().map(|text| ahead(text, now)).transpose()?;
    let mut scopes = args.scope.clone();
    scopes.sort_unstable();
    scopes.dedup();
    let project = if args.all_projects { KeyProject::All } else { KeyProject::One(args.project.clone()) };
    let key = ApiKey::generate()?;
    let record = KeyRecord::new(&key, args.name.clone(), scopes, project, now, expires);
    let record = record.in_group(args.group.clone());
    let about = describe(&record);
    file.keys.add(record).map_err(Failure::new)?;
    file.write()?;
    // The key alone on standard output, so that a script can keep it.
    writeln!(out, "{}", key.secret_text())?;
    out.flush()?;
    print::tell(format_args!("Key {about}. It won't be shown again."));
    Ok(exit::OK)
}

/// Returns the time that a duration ends.
fn ahead(text: &str, now: Millis) -> Result<Millis, Failure> {
    // As long ahead as `--since` is back.
    let end = since(text, now).ok().map(|back| Millis(now.0 + (now.0 - back.0))).filter(|end| *end > now);
    end.ok_or_else(|| Failure::new("`--expires` takes a duration such as 12h, 90d or 52w"))
}

fn list(keys: &KeyFile, out: &mut dyn Write) -> Result<u8, Failure> {
    if keys.keys().is_empty() {
        writeln!(out, "No keys. `deloop keys add NAME --scope ingest,read` creates one.")?;
    }
    for key in keys.keys() {
        writeln!(out, "{}", describe(key))?;
    }
    Ok(exit::OK)
}

fn describe(key: &KeyRecord) -> String {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let project = match &key.project {
        KeyProject::One(project) => format!("project {project}"),
        KeyProject::All => "all projects".to_owned(),
    };
    let expires = match key.expires {
        Some(end) if end <= now() => format!("expired {}", time(end)),
        Some(end) => format!("expires {}", time(end)),
        None => "doesn't expire".to_owned(),
    };
    let (name, id) = (clean(&key.name, 64), clean(&key.id, 16));
    let group = match key.group() {
        own if own == key.name => String::new(),
        group => format!("group {}; ", clean(group, 64)),
    };
    format!(
        "{name} ({id}): {}; {project}; {group}created {}; {expires}",
        scopes.join(", "),
        time(key.created)
    )
}

fn revoke(mut file: StoredKeys, name: &str, out: &mut dyn Write) -> Result<u8, Failure> {
    if !file.keys.revoke(name) {
        let name = clean(name, 64);
        return Err(Failure::new(format!("there is no key named `{name}`; `deloop keys list` lists them")));
    }
    file.write()?;
    writeln!(out, "Revoked {name}.")?;
    if file.keys.keys().is_empty() {
        writeln!(
            out,
            "No key is left, so the server refuses every request. To use it without keys again, delete {} and restart \
             the server.",
            file.path.display()
        )?;
    }
    Ok(exit::OK)
}
