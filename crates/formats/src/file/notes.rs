//! A bounded list of notes about a file.

/// Maximum number of notes per file.
const NOTES: usize = 20;

/// A bounded list of notes.
#[derive(Debug, Default)]
pub struct FileNotes {
    notes: Vec<String>,
    more: u64,
}

impl FileNotes {
    /// Adds a note, or counts it if there are too many.
    pub fn push(&mut self, note: String) {
        if self.notes.len() < NOTES {
            self.notes.push(note);
        } else {
            self.more += 1;
        }
    }
}

impl IntoIterator for FileNotes {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    fn into_iter(mut self) -> Self::IntoIter {
        if self.more > 0 {
            self.notes.push(format!("{} more notes like these", self.more));
        }
        self.notes.into_iter()
    }
}
