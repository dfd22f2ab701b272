//! Opens one input and reads it as items, whatever its compression, encoding and format.

use std::io::{self, Read, Seek};

use deloop_formats::{FileRead, Format, Item, ReadError, read_file, sniff};
use indicatif::ProgressBar;

use super::{InputSource, SessionInput, opencode};
use crate::safe_file;

/// Reads an input and hands out each item with the number of its line, from 1; 0 where there are no lines.
pub(crate) fn read(
    input: &SessionInput,
    progress: &ProgressBar,
    emit: &mut dyn FnMut(Item, u64),
) -> Result<FileRead, ReadError> {
    if let InputSource::File(path) = &input.source
        && let Some(read) = opencode::read(path, emit)?
    {
        return Ok(read);
    }
    let (raw, size) = open(input)?;
    let path = match &input.source {
        InputSource::Stdin | InputSource::Kept(_) => None,
        _ => Some(input.path()),
    };
    let raw = Box::new(ProgressReader { inner: raw, progress });
    let mut read = read_file(raw, size, path, &|head| choose(input, head), &input.own_files, emit)?;
    if let InputSource::File(path) = &input.source
        && std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() != size)
    {
        read.notes.push("changed while it was read; later lines are ignored".to_owned());
    }
    Ok(read)
}

/// Opens an input and returns its bytes, uncompressed or not, with their number; 0 if unknown.
fn open(input: &SessionInput) -> io::Result<(Box<dyn Read + '_>, u64)> {
    Ok(match &input.source {
        InputSource::Stdin => (Box::new(io::stdin().lock()), input.size),
        InputSource::Kept(file) => {
            let mut file = file.as_ref();
            file.seek(io::SeekFrom::Start(0))?;
            (Box::new(file), input.size)
        }
        InputSource::Bundled(_, bytes) => (Box::new(*bytes), input.size),
        InputSource::File(path) => {
            let file = safe_file::open_named(path)?;
            let about = file.metadata()?;
            // Anything written to it from now on is ignored.
            if about.is_file() {
                (Box::new(file.take(about.len())), about.len())
            } else {
                (Box::new(file), input.size)
            }
        }
    })
}

fn choose(input: &SessionInput, head: &[u8]) -> Option<&'static dyn Format> {
    input.forced.or_else(|| input.likely.filter(|f| f.sniff(head))).or_else(|| sniff(head))
}

struct ProgressReader<'a, R> {
    inner: R,
    progress: &'a ProgressBar,
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.progress.inc(length as u64);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deloop_formats::OwnFiles;
    use std::io::Write;

    /// An agent that is still running keeps writing while its file is read.
    #[test]
    fn a_file_that_grows_is_read_as_far_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let line = "{\"type\":\"turn\",\"text\":\"a\"}\n";
        std::fs::write(&path, line.repeat(5000)).unwrap();
        let size = (line.len() * 5000) as u64;
        let input = SessionInput {
            source: InputSource::File(path.clone()),
            size,
            likely: None,
            forced: None,
            named: true,
            own_files: OwnFiles::default(),
        };
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut seen = 0;
        let read = read(&input, &ProgressBar::hidden(), &mut |_, number| {
            seen += 1;
            assert_eq!(number, seen);
            file.write_all(line.as_bytes()).unwrap();
        });
        let Ok(read) = read else { panic!("it is read") };
        assert_eq!(seen, 5000);
        assert_eq!(
            read.notes.into_iter().collect::<Vec<_>>(),
            ["changed while it was read; later lines are ignored"]
        );
    }
}
