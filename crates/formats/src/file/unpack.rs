//! Decompresses files, up to a limit.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Maximum expansion factor of a compressed file. Session text reaches about a tenth of it.
const RATIO: u64 = 200;
/// Expanded size that every compressed file may reach, however small it is.
const LEAST: u64 = 64 << 20;
/// Expanded size that no compressed file may exceed.
const MOST: u64 = 8 << 30;

/// A reader, and whether its bytes were cut off.
pub(super) struct Unpacked<'a> {
    pub(super) bytes: Box<dyn Read + 'a>,
    /// Set once the limit is reached: the expanded size allowed for a file this small.
    pub(super) cut: Rc<Cell<Option<u64>>>,
}

/// Decompresses gzip and Zstandard, detected by their first bytes; everything else is passed through. `size` is the
/// compressed size; 0 if unknown.
pub(super) fn unpack<'a>(mut packed: Box<dyn Read + 'a>, size: u64) -> io::Result<Unpacked<'a>> {
    let mut start = [0; 4];
    let length = fill(&mut packed, &mut start)?;
    let start = &start[..length];
    let whole = io::Cursor::new(start.to_vec()).chain(packed);
    let cut = Rc::new(Cell::new(None));
    let limit = if size == 0 { MOST } else { size.saturating_mul(RATIO).clamp(LEAST, MOST) };
    let bounded = |inner: Box<dyn Read + 'a>| Bounded { inner, left: limit, limit, cut: Rc::clone(&cut) };
    let bytes: Box<dyn Read + 'a> = if start.starts_with(&GZIP) {
        Box::new(bounded(Box::new(flate2::read::MultiGzDecoder::new(whole))))
    } else if start.starts_with(&ZSTD) {
        Box::new(bounded(Box::new(Frames::Between(io::BufReader::new(whole)))))
    } else {
        Box::new(whole)
    };
    Ok(Unpacked { bytes, cut })
}

/// Reads until the buffer is full or the input ends.
pub(super) fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Stops at the limit and records it.
struct Bounded<'a> {
    inner: Box<dyn Read + 'a>,
    left: u64,
    limit: u64,
    cut: Rc<Cell<Option<u64>>>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            if self.inner.read(&mut [0])? > 0 {
                self.cut.set(Some(self.limit));
            }
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.inner.read(&mut buffer[..most])?;
        self.left -= length as u64;
        Ok(length)
    }
}

/// Maximum memory that a frame may request.
const WINDOW: u64 = 64 << 20;

type Frame<R> = ruzstd::decoding::StreamingDecoder<R, ruzstd::decoding::FrameDecoder>;

/// A Zstandard file may contain several frames.
enum Frames<R: Read> {
    Between(io::BufReader<R>),
    Inside(Box<Frame<io::BufReader<R>>>),
    Over,
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(self, Self::Over) {
                Self::Over => return Ok(0),
                Self::Between(mut packed) => {
                    if !io::BufRead::fill_buf(&mut packed)?.is_empty() {
                        let frame =
                            Frame::new_with_max_window_size(packed, WINDOW).map_err(io::Error::other)?;
                        *self = Self::Inside(Box::new(frame));
                    }
                }
                Self::Inside(mut frame) => match frame.read(buffer)? {
                    0 => *self = Self::Between(frame.into_inner()),
                    length => {
                        *self = Self::Inside(frame);
                        return Ok(length);
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn plain(packed: &[u8]) -> (Vec<u8>, Option<u64>) {
        let mut unpacked = unpack(Box::new(packed), packed.len() as u64).unwrap();
        let mut bytes = Vec::new();
        unpacked.bytes.read_to_end(&mut bytes).unwrap();
        (bytes, unpacked.cut.get())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn packed_or_not_the_bytes_are_the_same() {
        let text = b"{\"a\":1}\n".repeat(1000);
        for packed in [text.clone(), gzip(&text), zstd(&text)] {
            assert_eq!(plain(&packed), (text.clone(), None));
        }
        for short in [&b""[..], b"{", b"{}\n"] {
            assert_eq!(plain(short).0, short);
        }
    }

    #[test]
    fn several_members_are_one_text() {
        for pack in [gzip, zstd] {
            assert_eq!(plain(&[pack(b"one\n"), pack(b"two\n")].concat()).0, b"one\ntwo\n");
        }
    }

    #[test]
    fn a_bomb_is_cut() {
        let bomb = gzip(&vec![b' '; 80 << 20]);
        assert!(bomb.len() < 1 << 20);
        let (bytes, cut) = plain(&bomb);
        assert_eq!((bytes.len() as u64, cut), (LEAST, Some(LEAST)));
    }

    #[test]
    fn a_broken_file_is_an_error_after_what_was_good() {
        let packed = gzip(&b"line\n".repeat(100_000));
        let mut unpacked = unpack(Box::new(&packed[..packed.len() / 2]), 0).unwrap();
        let mut bytes = Vec::new();
        assert!(unpacked.bytes.read_to_end(&mut bytes).is_err());
        assert!(!bytes.is_empty());
    }
}
