//! Memory budget that the regular expressions of one configuration share.
//!
//! While a [`Budget`] exists, each expression that its thread compiles draws from it, wherever the expression is
//! written. A limit for single expressions would not be enough: a configuration may have thousands of them.

use core::cell::Cell;
use core::marker::PhantomData;

use regex::Regex;

use super::error::RegexpError;

/// Memory of all compiled expressions of a configuration in bytes: enough for the longest repetition, 1000 letters of
/// any script. It is also the limit of one expression that is compiled without a budget.
pub const BUDGET_MAX: usize = 64 << 20;
/// Smallest budget in bytes, for small memory limits: thousands of ordinary expressions.
pub const BUDGET_MIN: usize = 4 << 20;
/// Part of the memory limit that the expressions may take. A reload holds those of two configurations.
const LIMIT_SHARE: u64 = 8;
/// First size to try. The crate `regex` takes a limit but does not tell a size. Each further size is half as large
/// again, so an expression counts for at most 1.5 times its size, and finding that takes three times its compilation.
const SIZE_MIN: usize = 4 << 10;

thread_local! {
    static CURRENT: Cell<Option<Account>> = const { Cell::new(None) };
}

/// State of a budget.
#[derive(Clone, Copy)]
struct Account {
    total: usize,
    used: usize,
    /// Size that one more expression may have.
    next_max: usize,
}

/// Budget for the expressions that this thread compiles. Ends on drop.
pub struct Budget {
    outer: Option<Account>,
    /// A budget belongs to its thread, so it is not `Send`.
    of_thread: PhantomData<*const ()>,
}

impl Budget {
    /// Begins a budget for a process with this memory limit in bytes, if it has one.
    #[must_use = "the budget ends on drop"]
    pub fn begin(memory_limit: Option<u64>) -> Budget {
        let share = memory_limit.and_then(|limit| usize::try_from(limit / LIMIT_SHARE).ok()).unwrap_or(BUDGET_MAX);
        let total = share.clamp(BUDGET_MIN, BUDGET_MAX);
        Budget { outer: CURRENT.replace(Some(Account { total, used: 0, next_max: total })), of_thread: PhantomData }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        CURRENT.set(self.outer);
    }
}

/// Compiles an expression with `build`, which gets the memory limit in bytes, and counts its size.
pub(super) fn draw(build: &mut dyn FnMut(usize) -> Result<Regex, regex::Error>) -> Result<Regex, RegexpError> {
    let Some(account) = CURRENT.get() else { return build(BUDGET_MAX).map_err(|_| RegexpError::TooLarge) };
    let Account { total, used, next_max } = account;
    let mut size = SIZE_MIN.min(next_max);
    loop {
        match build(size) {
            Ok(regex) => {
                let used = used + size;
                CURRENT.set(Some(Account { used, next_max: next_max.min(total - used), ..account }));
                return Ok(regex);
            }
            Err(regex::Error::CompiledTooBig(_)) if size < next_max => size = (size + size / 2).min(next_max),
            Err(regex::Error::CompiledTooBig(_)) => break,
            Err(_) => return Err(RegexpError::TooLarge),
        }
    }
    // Each failure costs the time of compiling up to the limit. Halving it bounds the time of all failures, and still
    // accepts the small expressions after a large one, so that only large ones are reported.
    CURRENT.set(Some(Account { next_max: next_max / 2, ..account }));
    Err(RegexpError::OverBudget { more_than: size, used, total })
}
