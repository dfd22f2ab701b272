//! `deloop audit`: verifies, shows, exports and purges the audit log of a server.

pub(crate) mod args;
mod csv;
mod show;

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};

use deloop_server::{
    AuditError, AuditEvidence, AuditFilter, AuditHead, AuditKey, AuditLog, AuditRecord, AuditSettings,
    Project, audit_server, published_heads, read_records, safe_json, verify,
};

use deloop_store::{RedisStore, StoreError};

use self::args::{
    AuditArgs, AuditCommand, AuditExportArgs, AuditFilterArgs, AuditFormat, AuditPurgeArgs, AuditQueryArgs,
    AuditVerifyArgs,
};
use crate::args::RuleArgs;
use crate::config;
use crate::exit::{self, Failure};
use crate::print;
use crate::safe_file;
use crate::serve::redis::RedisSettings;
use crate::sessions::since::since;
use crate::state::{State, now};

/// The folder of the audit log in a server's state folder.
pub(crate) const AUDIT_FOLDER: &str = "audit";

pub(crate) fn run(args: &AuditArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let folder = folder(args.state.as_deref())?;
    match &args.command {
        AuditCommand::Verify(args) => run_verify(&folder, args, out),
        AuditCommand::Query(args) => query(&folder, args, out),
        AuditCommand::Export(args) => export(&folder, args, out),
        AuditCommand::Purge(args) => purge(&folder, args, out),
    }
}

/// Returns the name of the person at the command line, for the audit log.
pub(crate) fn person() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|variable| std::env::var(variable).ok());
    format!("{} (command line)", name.as_deref().filter(|name| !name.is_empty()).unwrap_or("unknown"))
}

fn folder(state: Option<&Path>) -> Result<PathBuf, Failure> {
    let state = match state {
        Some(state) => state.to_owned(),
        None => State::here()?.folder().to_owned(),
    };
    let folder = state.join(AUDIT_FOLDER);
    if std::fs::symlink_metadata(&folder).is_ok_and(|about| about.is_dir()) {
        return Ok(folder);
    }
    Err(Failure::new(format!(
        "there is no audit log in {}; `deloop serve` creates one, and --state names the server's state folder",
        state.display()
    )))
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        Self::new(error.to_string())
    }
}

fn run_verify(folder: &Path, args: &AuditVerifyArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let wrong =
        || Failure::new("--head takes a number, a colon and a hash, as `deloop audit verify` prints them");
    let noted =
        args.head.as_deref().map(|text| AuditHead::parse(text.trim()).ok_or_else(wrong)).transpose()?;
    let keys = args.key_file.iter().map(|file| read_key(file, folder)).collect::<Result<_, _>>()?;
    let published = args.store.as_deref().map(|url| heads_in(url, folder)).transpose()?;
    let evidence = AuditEvidence { noted, published, keys };
    let found = verify(folder, &evidence)?;
    show::verification(&found, &evidence, out)?;
    Ok(if found.problems.is_empty() { exit::OK } else { exit::FOUND })
}

fn read_key(file: &Path, folder: &Path) -> Result<AuditKey, Failure> {
    AuditKey::read(file, folder.parent().unwrap_or(folder)).map_err(Failure::new)
}

/// Returns the heads that the log's server published in Redis.
fn heads_in(url: &str, folder: &Path) -> Result<Vec<AuditHead>, Failure> {
    let failed = |error: StoreError| Failure::new(error.to_string());
    let block = config::load_quietly(&RuleArgs::default())?.serve()?;
    let RedisSettings { url, options, .. } = RedisSettings::at(url, &block.redis)?;
    let store = RedisStore::open(&url, options).map_err(failed)?;
    let Some(server) = audit_server(folder) else { return Ok(Vec::new()) };
    published_heads(&store.records(), &server, now()).map_err(failed)
}

fn query(folder: &Path, args: &AuditQueryArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let filter = filter(&args.filter)?;
    let mut newest: VecDeque<AuditRecord> = VecDeque::new();
    let unreadable = read_records::<Failure>(folder, &filter, |_, record| {
        if newest.len() >= args.limit {
            newest.pop_front();
        }
        if args.limit > 0 {
            newest.push_back(record);
        }
        Ok(())
    })?;
    if args.json {
        for record in &newest {
            writeln!(out, "{}", safe_json(record)?)?;
        }
    } else {
        show::table(newest.make_contiguous(), args.turns, out)?;
    }
    Ok(told_of(unreadable))
}

fn export(folder: &Path, args: &AuditExportArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let filter = filter(&args.filter)?;
    let mut file = Vec::new();
    let into: &mut dyn Write = if args.out.is_some() { &mut file } else { out };
    if args.format == AuditFormat::Csv {
        writeln!(into, "{}", csv::HEAD)?;
    }
    let unreadable = read_records::<Failure>(folder, &filter, |line, record| {
        match args.format {
            // deloop escapes what it writes, so this changes only lines that someone else wrote.
            AuditFormat::Jsonl => write!(into, "{}", print::escaped_text(&String::from_utf8_lossy(line)))?,
            AuditFormat::Csv => writeln!(into, "{}", csv::row(&record)?)?,
        }
        Ok(())
    })?;
    if let Some(path) = &args.out {
        safe_file::replace_named(path, &file)
            .map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
    }
    Ok(told_of(unreadable))
}

fn purge(folder: &Path, args: &AuditPurgeArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let project = Project::parse(&args.project).map_err(Failure::new)?;
    let mut settings = AuditSettings::default();
    settings.key = args.key_file.as_deref().map(|file| read_key(file, folder)).transpose()?;
    let log = AuditLog::open(folder, settings, now())?;
    let count = log.purge(&project, &args.session.as_str().into(), &person(), now())?;
    let records = if count == 1 { "1 record".to_owned() } else { format!("{count} records") };
    writeln!(out, "Purged {records} of session {}.", deloop_detect::clean(&args.session, 256))?;
    Ok(exit::OK)
}

fn filter(args: &AuditFilterArgs) -> Result<AuditFilter, Failure> {
    let time = |text: &Option<String>, flag: &str| {
        let parse =
            |text: &String| since(text, now()).map_err(|why| Failure::new(why.replace("--since", flag)));
        text.as_ref().map(parse).transpose()
    };
    Ok(AuditFilter {
        session: args.session.clone(),
        project: args.project.clone(),
        action: args.action.clone(),
        actor: args.actor.clone(),
        since: time(&args.since, "--since")?,
        until: time(&args.until, "--until")?,
    })
}

/// Reports lines that couldn't be read. Returns the exit code.
fn told_of(unreadable: u64) -> u8 {
    if unreadable == 0 {
        return exit::OK;
    }
    let lines = if unreadable == 1 {
        "1 unreadable line".to_owned()
    } else {
        format!("{unreadable} unreadable lines")
    };
    print::tell(format_args!("deloop: skipped {lines}; `deloop audit verify` says more"));
    exit::COULD_NOT_RUN
}
