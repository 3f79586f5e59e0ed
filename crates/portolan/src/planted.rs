//! Planted mistakes, which prove that `cargo xtask sanitize --planted` finds such. Only a build with the feature
//! `planted` has them.
#![allow(unsafe_code, reason = "safe code has neither of these mistakes")]

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::thread;

/// Number that threads change without an order between them.
struct Racy(UnsafeCell<u64>);

// SAFETY: none. This is the first mistake.
unsafe impl Sync for Racy {}

static RACY: Racy = Racy(UnsafeCell::new(0));

/// Changes a number in two threads at a time, which ThreadSanitizer reports. Then reads memory that was freed, which
/// both sanitizers report.
pub(crate) fn make_mistakes() {
    let add = || {
        (0..1000).for_each(|_| {
            // SAFETY: none, because another thread does the same.
            unsafe { *RACY.0.get() += 1 };
        })
    };
    thread::scope(|scope| {
        scope.spawn(add);
        scope.spawn(add);
    });
    let freed = black_box(Box::into_raw(Box::new(1_u64)));
    // SAFETY: the pointer is that of a box, which nothing else uses.
    drop(unsafe { Box::from_raw(freed) });
    // SAFETY: none. This is the second mistake.
    black_box(unsafe { freed.read() });
}
