//! Reads lines of bytes of any content and length.

use std::io::{BufRead, BufReader, Read};

/// A longer line is skipped and reported.
pub const LONGEST: usize = deloop_types::limits::EVENT;

/// The memory of a longer line is released after use.
const KEPT: usize = 4 * 1024 * 1024;

/// Reads lines one by one.
pub struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    ended: bool,
}

/// One line of input.
pub enum InputLine<'a> {
    /// The bytes without the line ending.
    Text(&'a [u8]),
    /// A line longer than [`LONGEST`].
    TooLong,
}

impl<R: Read> Lines<R> {
    /// Creates a reader of lines.
    pub fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(64 * 1024, input), line: Vec::new(), ended: true }
    }

    /// Reads the next line; `None` at the end.
    ///
    /// # Errors
    /// When the input can't be read.
    pub fn next_line(&mut self) -> std::io::Result<Option<InputLine<'_>>> {
        self.line.clear();
        if self.line.capacity() > KEPT {
            self.line = Vec::new();
        }
        let mut any = false;
        let mut too_long = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            too_long |= self.line.len() + part.len() > LONGEST;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            self.ended = end.is_some();
            if self.ended {
                break;
            }
        }
        Ok(match (any, too_long) {
            (false, _) => None,
            (true, true) => Some(InputLine::TooLong),
            (true, false) => Some(InputLine::Text(&self.line)),
        })
    }

    /// Returns whether the last line had a line ending. In a file that is being written, it may have none yet.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns whether the next line is already available, in which case the answer can be flushed later.
    pub fn has_more(&self) -> bool {
        memchr::memchr(b'\n', self.input.buffer()).is_some()
    }
}
