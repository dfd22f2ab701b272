//! The command line of `deloop audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const AUDIT_HELP: &str = "\
Examples:
  deloop audit verify
  deloop audit query --session s1 --turns
  deloop audit export --format csv --out audit.csv

Exit codes: 0 success; 1 `verify` found tampering or a missing record; 2 the log couldn't be read.";

const VERIFY_HELP: &str = "\
Examples:
  deloop audit verify
  deloop audit verify --state /var/lib/deloop --head 1041:3f2a…
  deloop audit verify --key-file /etc/deloop/audit.key
  deloop audit verify --store redis://redis.internal:6379

Reads every record and prints the head: the number and hash of the last one. Without options, this
finds accidents. Whoever can write the log's folder can also write a new log; these options show that:

  --head      nothing up to the head that you noted was changed or removed, or is explained by a
              deletion or purge that was recorded behind it
  --store     the same, with the heads that the server keeps in Redis
  --key-file  every record was written by someone who has the key

The server may be running.

Exit codes: 0 the log is intact; 1 tampering or a missing record was found; 2 the log couldn't be read.";

const QUERY_HELP: &str = "\
Examples:
  deloop audit query --since 1d
  deloop audit query --session s1 --turns
  deloop audit query --action stop --project web --json
  deloop audit query --action session --actor alice

Exit codes: 0 success; 2 the log, or a line of it, couldn't be read.";

const EXPORT_HELP: &str = "\
Examples:
  deloop audit export > audit.jsonl
  deloop audit export --format csv --since 30d --out audit.csv

JSON lines are the records as they are stored, hashes included. In CSV, a cell that a spreadsheet
would take for a formula starts with an apostrophe.

Exit codes: 0 success; 2 the log, or a line of it, couldn't be read.";

const PURGE_HELP: &str = "\
Examples:
  deloop audit purge s1
  deloop audit purge s1 --project web --state /var/lib/deloop

Removes the session's name, messages, details and turns from its records. The records stay, with a
tombstone, and a new one names you. The log still verifies. Stop the server first.

Exit codes: 0 success; 2 the log is in use or couldn't be read or written.";

/// `deloop audit`
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
    /// The state folder of the server [default: your state folder]
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) state: Option<PathBuf>,
}

impl AuditArgs {
    /// Returns whether the output is data.
    pub(crate) fn is_for_programs(&self) -> bool {
        match &self.command {
            AuditCommand::Query(args) => args.json,
            AuditCommand::Export(_) => true,
            AuditCommand::Verify(_) | AuditCommand::Purge(_) => false,
        }
    }
}

/// The subcommands of `deloop audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no record was changed or removed
    #[command(after_help = VERIFY_HELP)]
    Verify(AuditVerifyArgs),
    /// Show records
    #[command(after_help = QUERY_HELP)]
    Query(AuditQueryArgs),
    /// Write all records as JSON lines or CSV
    #[command(after_help = EXPORT_HELP)]
    Export(AuditExportArgs),
    /// Remove what was recorded of a session
    #[command(after_help = PURGE_HELP)]
    Purge(AuditPurgeArgs),
}

/// `deloop audit verify`
#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// A head that you noted: everything up to it must be unchanged
    #[arg(long, value_name = "SEQ:HASH")]
    pub(crate) head: Option<String>,
    /// The server's `[serve.audit] key_file`: every record must be written with it; repeat it for older keys
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Vec<PathBuf>,
    /// The Redis of the server, which holds heads of the log: `redis://HOST[:PORT]`, or `rediss://` for TLS
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct AuditFilterArgs {
    /// Only records of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Only records of this project
    #[arg(long)]
    pub(crate) project: Option<String>,
    /// Only this action, such as `session.reset`, or the part before or after its dot
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// Only what this person, key or program did
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Only records since then: 30d, 12h, 2w, 90m or a date
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only records until then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

/// `deloop audit query`
#[derive(Debug, Args)]
pub(crate) struct AuditQueryArgs {
    #[command(flatten)]
    pub(crate) filter: AuditFilterArgs,
    /// Number of records to show, the newest ones
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
    /// Show the last turns of stopped sessions
    #[arg(long)]
    pub(crate) turns: bool,
    /// Print one JSON object per record
    #[arg(long)]
    pub(crate) json: bool,
}

/// `deloop audit export`
#[derive(Debug, Args)]
pub(crate) struct AuditExportArgs {
    #[command(flatten)]
    pub(crate) filter: AuditFilterArgs,
    /// The format
    #[arg(long, value_enum, default_value_t = AuditFormat::Jsonl)]
    pub(crate) format: AuditFormat,
    /// The file to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// The formats of `deloop audit export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// One JSON object per line
    Jsonl,
    /// For spreadsheets
    Csv,
}

/// `deloop audit purge`
#[derive(Debug, Args)]
pub(crate) struct AuditPurgeArgs {
    /// The session's whole name
    pub(crate) session: String,
    /// The session's project
    #[arg(long, default_value = "default")]
    pub(crate) project: String,
    /// The server's `[serve.audit] key_file`, if it has one
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}
