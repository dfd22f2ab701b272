use crate::Format;
use crate::cline::Cline;
use crate::copilot_cli::CopilotCli;
use crate::cursor::Cursor;
use crate::gemini_cli::{GeminiCli, GeminiCliJson};
use crate::goose::Goose;
use crate::native::Native;
use crate::opencode::Opencode;
use crate::openhands::OpenHands;

/// Every format, in the order in which they are tried: the more telling before the more general.
pub static FORMATS: &[&dyn Format] =
    &[&Native, &CopilotCli, &GeminiCli, &GeminiCliJson, &Opencode, &OpenHands, &Goose, &Cline, &Cursor];

/// The format of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.name() == name)
}

/// The format that a file's first bytes are of.
#[must_use]
pub fn sniff(head: &[u8]) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.sniff(head))
}
