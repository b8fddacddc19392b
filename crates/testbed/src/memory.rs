//! How much memory this process uses, told by a counting allocator and by the kernel.
//!
//! The allocator counts what is live on the calling thread, to the byte and independently of what other threads do; the
//! kernel's resident set also shows what size classes and fragmentation cost. A binary or test that wants the former
//! declares [`Counting`] as its global allocator.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};

use mimalloc::MiMalloc;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// The allocator that the real binary uses, with a count of live bytes per thread.
pub struct Counting;

/// Bytes that this thread has allocated and not freed; what another thread frees for it stays counted. Zero when
/// [`Counting`] is not the global allocator.
pub fn live_bytes() -> i64 {
    LIVE.get()
}

fn count(size: usize, sign: i64) {
    // A layout's size fits in isize, so the conversion always holds.
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    // A thread that ends still frees things after its variables are gone; those are no longer of interest.
    let _ = LIVE.try_with(|live| live.set(live.get() + sign * size));
}

// SAFETY: every call is passed on to mimalloc unchanged, with the same layout; counting neither allocates nor unwinds.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's obligations are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's obligations are passed on.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's obligations are passed on.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(size, 1);
        // SAFETY: the caller's obligations are passed on.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}
