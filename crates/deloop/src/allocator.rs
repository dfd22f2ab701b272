//! The command's allocator.
#![expect(unsafe_code, reason = "an allocator can't be written without; all it does is choose between two")]

use std::alloc::{GlobalAlloc, Layout, System};

use libmimalloc_sys as mi;

/// Larger pieces, in bytes, are the system's: it returns them at once, and makes them larger without a copy. So a hook that
/// reads a large event needs no more memory than with the system's allocator alone.
const LARGE: usize = 32 << 10;
/// mimalloc aligns every piece to this many bytes. Asking for it by name takes longer and, for most sizes, more memory.
const ALIGNED: usize = 8;

/// Allocates small pieces with mimalloc. A server allocates and frees them all the time, on every thread, which glibc's
/// allocator does more slowly.
pub(crate) struct Allocator;

fn is_large(size: usize) -> bool {
    size >= LARGE
}

// SAFETY: a piece is given back to the allocator it came from, because its layout says how large it is. The pieces of
// mimalloc are as large and as aligned as their layout says.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the caller's promises are the same.
        unsafe {
            match size {
                size if is_large(size) => System.alloc(layout),
                size if align <= ALIGNED => mi::mi_malloc(size).cast(),
                size => mi::mi_malloc_aligned(size, align).cast(),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: the caller's promises are the same.
        unsafe {
            match size {
                size if is_large(size) => System.alloc_zeroed(layout),
                size if align <= ALIGNED => mi::mi_zalloc(size).cast(),
                size => mi::mi_zalloc_aligned(size, align).cast(),
            }
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe {
            if is_large(layout.size()) { System.dealloc(piece, layout) } else { mi::mi_free(piece.cast()) }
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the caller's promises are the same. Between the two, the bytes are moved as the default does it.
        unsafe {
            match (is_large(layout.size()), is_large(size)) {
                (true, true) => System.realloc(piece, layout, size),
                (false, false) if align <= ALIGNED => mi::mi_realloc(piece.cast(), size).cast(),
                (false, false) => mi::mi_realloc_aligned(piece.cast(), size, align).cast(),
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(size, align));
                    if !moved.is_null() {
                        piece.copy_to_nonoverlapping(moved, layout.size().min(size));
                        self.dealloc(piece, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size and alignment, made larger and smaller over the border between the two.
    #[test]
    fn pieces_are_aligned_and_keep_their_bytes() {
        let sizes = [1, 2, 7, 8, 9, 15, 24, 100, 1_000, 8_191, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE];
        for (size, next) in sizes.iter().flat_map(|size| sizes.iter().map(move |next| (*size, *next))) {
            for align in [1, 2, 4, 8, 16, 32, 64, 128, 4_096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the sizes aren't zero, and each piece is freed with the layout that it has then.
                unsafe {
                    let piece = Allocator.alloc_zeroed(layout);
                    assert!(!piece.is_null() && piece.addr().is_multiple_of(align), "{layout:?}");
                    assert!((0..size).all(|at| *piece.add(at) == 0), "{layout:?}");
                    piece.write_bytes(7, size);
                    let piece = Allocator.realloc(piece, layout, next);
                    assert!(!piece.is_null() && piece.addr().is_multiple_of(align), "{layout:?} to {next}");
                    assert!((0..size.min(next)).all(|at| *piece.add(at) == 7), "{layout:?} to {next}");
                    piece.write_bytes(8, next);
                    Allocator.dealloc(piece, Layout::from_size_align(next, align).unwrap());
                    let piece = Allocator.alloc(layout);
                    assert!(!piece.is_null() && piece.addr().is_multiple_of(align), "{layout:?}");
                    piece.write_bytes(9, size);
                    Allocator.dealloc(piece, layout);
                }
            }
        }
    }
}
