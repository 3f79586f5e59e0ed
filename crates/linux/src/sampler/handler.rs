//! Signal handler that records stacks.
//!
//! Only the thread that swapped [`Session::is_busy`] from false to true may touch [`Session::content`]. [`stop`] takes
//! the session away and waits until no handler is inside, so that nothing reads freed memory.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::io;
use std::time::Duration;

use framehop::{CacheNative, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative};
use libc::{c_int, c_void, siginfo_t, ucontext_t};

use crate::sampler::modules::Module;
use crate::sampler::{BUFFER_BYTES, DEPTH_MAX, StartError};

/// Words of the buffer.
const WORDS: usize = BUFFER_BYTES / size_of::<u64>();

/// Session of the profile that is being taken.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());
/// Handlers that are running.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

struct Session {
    is_busy: AtomicBool,
    /// Samples that came while another thread was writing one.
    collided: AtomicUsize,
    content: UnsafeCell<Content>,
}

struct Content {
    unwinder: UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>,
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    stack: StackReader,
    /// Samples, each a [`head`] with its addresses.
    words: Vec<u64>,
    lost: u64,
}

/// Returns the first word of a sample.
pub(crate) const fn head(thread: u32, length: usize) -> u64 {
    debug_assert!(length <= DEPTH_MAX, "a stack is cut at this depth");
    (thread as u64) << 32 | length as u64
}

/// Returns the thread and the number of addresses of a sample.
pub(crate) fn parts(head: u64) -> (u32, usize) {
    let (thread, length) = (head >> 32, head & u64::from(u32::MAX));
    (u32::try_from(thread).unwrap_or(u32::MAX), usize::try_from(length).unwrap_or(usize::MAX))
}

/// Starts the timer, whose signals [`record`] handles from now on.
pub(crate) fn start(modules: &[Module], period: Duration) -> Result<(), StartError> {
    let mut stack = StackReader { page: 0, words: [0; PAGE_WORDS] };
    stack.load((&raw const stack).addr() as u64).map_err(StartError::System)?;
    let mut unwinder = UnwinderNative::new();
    modules.iter().for_each(|module| unwinder.add_module(module.to_unwind()));
    let content = Content { unwinder, cache: CacheNative::new_in(), stack, words: Vec::with_capacity(WORDS), lost: 0 };
    let session =
        Session { is_busy: AtomicBool::new(false), collided: AtomicUsize::new(0), content: UnsafeCell::new(content) };
    let session = Box::into_raw(Box::new(session));
    if SESSION.compare_exchange(ptr::null_mut(), session, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: `session` came from a box above, and nobody else has seen it.
        drop(unsafe { Box::from_raw(session) });
        return Err(StartError::Running);
    }
    let started = handle_signals().and_then(|()| set_timer(period));
    started.map_err(|error| {
        stop();
        StartError::System(error)
    })
}

/// Ends the timer and returns the words of the samples and the number of lost ones. Returns nothing without a session.
pub(crate) fn stop() -> Option<(Vec<u64>, u64)> {
    let session = SESSION.swap(ptr::null_mut(), Ordering::SeqCst);
    if session.is_null() {
        return None;
    }
    // The handler stays: a signal that is on its way would end the process without one.
    let _ = set_timer(Duration::ZERO);
    // A handler that has seen the session counts itself before. It runs for microseconds.
    while INSIDE.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    // SAFETY: `start` made the pointer from a box. This thread swapped it out, and no handler is inside.
    let session = unsafe { Box::from_raw(session) };
    let content = session.content.into_inner();
    Some((content.words, content.lost + session.collided.into_inner() as u64))
}

fn handle_signals() -> io::Result<()> {
    // SAFETY: all fields of `sigaction` may be zero.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = record as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    // Calls that a signal interrupts go on.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `action` outlives the call, and the handler is safe in a signal: it neither allocates nor waits.
    check(unsafe { libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) })
}

fn set_timer(period: Duration) -> io::Result<()> {
    let interval = libc::timeval {
        tv_sec: period.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_usec: period.subsec_micros().into(),
    };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: `timer` outlives the call.
    check(unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) })
}

fn check(outcome: c_int) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reader of stacks. The kernel copies a page at a time, because an address that a broken frame gives may be unmapped,
/// and a direct read there would end the process.
struct StackReader {
    /// Address of the page in `words`; 0 before the first one.
    page: u64,
    words: [u64; PAGE_WORDS],
}

/// Words of a page. If pages are larger, this is a part of one.
const PAGE_WORDS: usize = 4096 / size_of::<u64>();

impl StackReader {
    /// Returns the word at an address.
    fn word(&mut self, address: u64) -> Result<u64, ()> {
        let page = address & !4095;
        if !address.is_multiple_of(8) || page == 0 || (page != self.page && self.load(page).is_err()) {
            return Err(());
        }
        usize::try_from((address - page) / 8).ok().and_then(|at| self.words.get(at).copied()).ok_or(())
    }

    /// Reads the page that has an address.
    fn load(&mut self, address: u64) -> io::Result<()> {
        self.page = 0;
        let length = size_of_val(&self.words);
        let page = address & !4095;
        let local = libc::iovec { iov_base: self.words.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: page as *mut c_void, iov_len: length };
        // SAFETY: `words` has room for `length` bytes. The kernel checks the other address.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
        if usize::try_from(read) != Ok(length) {
            return Err(io::Error::last_os_error());
        }
        self.page = page;
        Ok(())
    }
}

/// Records the stack of the thread that a signal interrupted.
extern "C" fn record(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    // The interrupted code may be between a system call and its look at the error.
    // SAFETY: the C library gives each thread a place for it.
    let errno = unsafe { *libc::__errno_location() };
    let session = SESSION.load(Ordering::SeqCst);
    // SAFETY: `stop` frees a session only after it has seen no handler inside, and this one was counted before it
    // loaded the pointer. Both are sequentially consistent.
    if let Some(session) = unsafe { session.as_ref() } {
        if session.is_busy.swap(true, Ordering::Acquire) {
            session.collided.fetch_add(1, Ordering::Relaxed);
        } else {
            // SAFETY: this thread has set `is_busy`, so no other one has a reference. The kernel passes a context.
            unsafe { (*session.content.get()).add(&*context.cast::<ucontext_t>()) };
            session.is_busy.store(false, Ordering::Release);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    INSIDE.fetch_sub(1, Ordering::SeqCst);
}

impl Content {
    /// Appends a sample. Allocates nothing: `words` has room for all of it.
    fn add(&mut self, context: &ucontext_t) {
        if self.words.capacity() - self.words.len() <= DEPTH_MAX {
            self.lost += 1;
            return;
        }
        let (pc, registers) = registers(context);
        let at = self.words.len();
        self.words.push(0);
        // What it read before belongs to another time.
        self.stack.page = 0;
        let mut read = |address| self.stack.word(address);
        let mut frames = self.unwinder.iter_frames(pc, registers, &mut self.cache, &mut read);
        let mut length = 0;
        while length < DEPTH_MAX
            && let Ok(Some(frame)) = frames.next()
        {
            self.words.push(frame.address_for_lookup());
            length += 1;
        }
        // SAFETY: the call takes no arguments and cannot fail.
        let thread = unsafe { libc::gettid() };
        self.words[at] = head(thread.unsigned_abs(), length);
    }
}

/// Returns the address of the interrupted instruction, and the registers that the unwinder needs.
#[cfg(target_arch = "x86_64")]
fn registers(context: &ucontext_t) -> (u64, UnwindRegsNative) {
    let all = &context.uc_mcontext.gregs;
    let [pc, stack, frame] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(|register| {
        let value = all[usize::try_from(register).unwrap_or_default()];
        u64::from_ne_bytes(value.to_ne_bytes())
    });
    (pc, UnwindRegsNative::new(pc, stack, frame))
}

/// Returns the address of the interrupted instruction, and the registers that the unwinder needs.
#[cfg(target_arch = "aarch64")]
fn registers(context: &ucontext_t) -> (u64, UnwindRegsNative) {
    let all = &context.uc_mcontext;
    (all.pc, UnwindRegsNative::new(all.regs[30], all.sp, all.regs[29]))
}
