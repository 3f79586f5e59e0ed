//! Memory that a configuration may take: a reload must not end the process that serves the configuration before it.

use std::sync::Arc;

/// Memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Resident bytes.
    pub used: u64,
    /// Maximum number of bytes that the process may use.
    pub limit: u64,
}

/// Capability to look at the memory of the process while a configuration is planned and built. The function returns
/// `None` if the memory has no limit.
#[derive(Clone)]
pub struct MemoryGuard(pub Arc<dyn Fn() -> Option<MemoryUse> + Send + Sync>);

/// Growth of the process since a configuration was begun.
pub(crate) struct MemoryGrowth<'a> {
    guard: Option<&'a MemoryGuard>,
    begin: u64,
}

impl MemoryGrowth<'_> {
    /// Begins a configuration. Without a guard, it may take any memory.
    pub(crate) fn begin(guard: Option<&MemoryGuard>) -> MemoryGrowth<'_> {
        MemoryGrowth { begin: guard.and_then(|guard| (guard.0)()).map_or(0, |memory| memory.used), guard }
    }

    /// Returns the reason if the configuration cannot take `more` bytes: it would leave less than a quarter of the
    /// limit free for queries and clients, and grow the process by more than an eighth of the limit. The second
    /// condition lets a process that is large for other reasons read its configuration again.
    pub(crate) fn refusal(&self, more: usize) -> Option<String> {
        let MemoryUse { used, limit } = (self.guard?.0)()?;
        let wanted = used.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        (wanted > limit / 4 * 3 && wanted - self.begin.min(wanted) > limit / 8).then(|| {
            let limit = limit >> 20;
            format!("the process may use {limit} MiB, and a quarter of that must stay free for queries")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_quarter_of_the_limit_stays_free() {
        let used = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&used);
        let guard = MemoryGuard(Arc::new(move || {
            Some(MemoryUse { used: shown.load(Ordering::Relaxed) << 20, limit: 160 << 20 })
        }));
        // Before, now, wanted, and whether that is too much.
        for (before, now, more, is_refused) in
            [(30, 100, 20, false), (30, 100, 21, true), (30, 121, 0, true), (130, 150, 0, false), (130, 150, 1, true)]
        {
            used.store(before, Ordering::Relaxed);
            let growth = MemoryGrowth::begin(Some(&guard));
            used.store(now, Ordering::Relaxed);
            assert_eq!(growth.refusal(more << 20).is_some(), is_refused, "{before} {now} {more}");
        }
        assert_eq!(MemoryGrowth::begin(Some(&MemoryGuard(Arc::new(|| None)))).refusal(usize::MAX), None, "no limit");
        assert_eq!(MemoryGrowth::begin(None).refusal(usize::MAX), None);
    }
}
