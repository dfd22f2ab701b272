//! The command's allocator.
#![expect(unsafe_code, reason = "an allocator can't be written without; all it does is choose between two")]

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

/// Larger pieces, in bytes, are the system's: it returns them at once, and makes them larger without a copy. So a hook that
/// reads a large event needs no more memory than with the system's allocator alone.
const LARGE: usize = 32 << 10;

/// Allocates small pieces with mimalloc. A server allocates and frees them all the time, on every thread, which glibc's
/// allocator does more slowly.
pub(crate) struct Allocator;

fn is_large(size: usize) -> bool {
    size >= LARGE
}

// SAFETY: a piece is given back to the allocator it came from, because its layout says how large it is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        unsafe { if is_large(layout.size()) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        unsafe {
            if is_large(layout.size()) { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe {
            if is_large(layout.size()) {
                System.dealloc(piece, layout);
            } else {
                MiMalloc.dealloc(piece, layout);
            }
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are the same. Between the two, the bytes are moved as the default does it.
        unsafe {
            match (is_large(layout.size()), is_large(size)) {
                (true, true) => System.realloc(piece, layout, size),
                (false, false) => MiMalloc.realloc(piece, layout, size),
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
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
