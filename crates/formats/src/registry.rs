use crate::Format;
use crate::native::Native;

/// Every format, in the order in which they are tried: the more telling before the more general.
pub static FORMATS: &[&dyn Format] = &[&Native];

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
