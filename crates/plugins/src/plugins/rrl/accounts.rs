//! Accounts of response rates: a table of fixed size that needs no lock.
//!
//! A category of responses, such as the answers for one name to one network, has an account. It is credited with its
//! allowance per second up to that of one second, and debited with each response, also with one that is not sent. Its
//! debt is at most the allowance of the window, so that a client gets answers again after it has been quiet that long.
//!
//! The account is in one cell of each of two rows, chosen by a hash that nobody outside can compute. Categories may
//! share a cell. The limit applies if both cells are in debt, so that a flood hardly ever costs another category its
//! answers, and the table takes the same memory under any attack.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::hash::{BuildHasher, Hash, RandomState};

/// Bits of a cell that count the responses that were not sent since the last one that was sent truncated.
const SLIP_BITS: u32 = 4;
/// Start of time in microseconds, so that credits from before the start of the process are no negative times.
const EPOCH_MICROS: u64 = 1 << 45;
/// Largest credit, unless one response costs more.
const CREDIT_MAX: Duration = Duration::from_secs(1);

/// Price and limits of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Time in which the allowance grows by one response.
    pub(super) interval: Duration,
    /// Maximum debt, as the time in which it is paid.
    pub(super) window: Duration,
    /// One of this many responses in debt is sent truncated; 0 for none.
    pub(super) slip_ratio: u8,
}

/// Decision about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Send it.
    Send,
    /// Send it truncated, so that a client that is no victim asks over TCP.
    Slip,
    /// Do not send it.
    Drop,
}

/// Accounts of all categories.
pub(super) struct Accounts {
    /// Time from which responses are sent, in microseconds, shifted by [`SLIP_BITS`]; 0 if the cell was never used.
    rows: [Box<[AtomicU64]>; 2],
    hash: RandomState,
}

impl Accounts {
    pub(super) fn new(cells: usize) -> Accounts {
        let row = || (0..cells.max(1)).map(|_| AtomicU64::new(0)).collect();
        Accounts { rows: [row(), row()], hash: RandomState::new() }
    }

    /// Debits a response of a category.
    pub(super) fn debit(&self, category: impl Hash, terms: Terms, now: Duration) -> Decision {
        let hash = self.hash.hash_one(category);
        let [first, second] = [hash & u64::from(u32::MAX), hash >> 32];
        match [self.debit_cell(0, first, terms, now), self.debit_cell(1, second, terms, now)] {
            [Decision::Send, _] | [_, Decision::Send] => Decision::Send,
            [decision, _] => decision,
        }
    }

    fn debit_cell(&self, row: usize, hash: u64, terms: Terms, now: Duration) -> Decision {
        let cells = &self.rows[row];
        let cell = &cells[usize::try_from(hash % cells.len() as u64).unwrap_or(0)];
        let mut decision = Decision::Send;
        // Never fails, because the closure always returns a value.
        _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
            let (after, decided) = step(before, terms, now);
            decision = decided;
            Some(after)
        });
        decision
    }
}

/// Returns a cell after a response, and the decision.
fn step(cell: u64, terms: Terms, now: Duration) -> (u64, Decision) {
    let (interval, window) = (micros(terms.interval), micros(terms.window));
    let now = EPOCH_MICROS.saturating_add(micros(now));
    let credit_max = micros(CREDIT_MAX).max(interval);
    let earliest = now - credit_max.min(now);
    let sent_from = (cell >> SLIP_BITS).max(earliest) + interval;
    if sent_from <= now {
        return (sent_from << SLIP_BITS, Decision::Send);
    }
    let held_back = (cell & ((1 << SLIP_BITS) - 1)) + 1;
    let is_slip = terms.slip_ratio > 0 && held_back >= u64::from(terms.slip_ratio);
    let (held_back, decision) = if is_slip { (0, Decision::Slip) } else { (held_back, Decision::Drop) };
    let debt = sent_from.min(now.saturating_add(window));
    (debt << SLIP_BITS | held_back.min((1 << SLIP_BITS) - 1), decision)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX >> (SLIP_BITS + 1)).min(EPOCH_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { interval: Duration::from_millis(100), window: Duration::from_secs(15), slip_ratio: 0 };

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn sent(accounts: &Accounts, category: &str, number: u64, now: Duration) -> usize {
        (0..number).filter(|_| accounts.debit(category, TERMS, now) == Decision::Send).count()
    }

    #[test]
    fn the_allowance_of_a_second_is_sent_at_once() {
        let accounts = Accounts::new(1000);
        assert_eq!(sent(&accounts, "a", 10, at(0)), 10);
        assert_eq!(sent(&accounts, "a", 1, at(99)), 0);
        let quiet = Accounts::new(1000);
        assert_eq!(sent(&quiet, "a", 10, at(50_000)), 10, "no more after a long time");
        assert_eq!([sent(&quiet, "a", 1, at(50_099)), sent(&quiet, "b", 20, at(50_000))], [0, 10]);
    }

    #[test]
    fn a_steady_rate_below_the_allowance_is_always_sent() {
        let accounts = Accounts::new(1000);
        assert!((0..1000).all(|number| sent(&accounts, "a", 1, at(number * 100)) == 1));
    }

    #[test]
    fn a_flood_gets_nothing_until_it_has_been_quiet_for_the_window() {
        let accounts = Accounts::new(1000);
        assert_eq!(sent(&accounts, "a", 100_000, at(0)), 10);
        assert!((1..60).all(|second| sent(&accounts, "a", 1000, at(second * 1000)) == 0));
        assert_eq!(sent(&accounts, "a", 1, at(59_000 + 14_999)), 0);
        assert_eq!(sent(&accounts, "a", 1, at(59_000 + 14_999 + 15_100)), 1);
    }

    #[test]
    fn less_than_one_response_per_second_is_possible() {
        let (accounts, terms) = (Accounts::new(10), Terms { interval: Duration::from_secs(5), ..TERMS });
        let decisions = [0, 4, 10].map(|second| accounts.debit("a", terms, at(second * 1000)));
        assert_eq!(decisions, [Decision::Send, Decision::Drop, Decision::Send]);
    }

    #[test]
    fn every_nth_response_in_debt_slips() {
        for (slip_ratio, slips) in [(0, 0), (1, 60), (2, 30), (10, 6)] {
            let (accounts, terms) = (Accounts::new(10), Terms { slip_ratio, ..TERMS });
            let decisions: Vec<_> = (0..70).map(|_| accounts.debit("a", terms, at(0))).collect();
            assert!(decisions[..10].iter().all(|decision| *decision == Decision::Send));
            let counted = decisions.iter().filter(|decision| **decision == Decision::Slip).count();
            assert_eq!(counted, slips, "slip ratio {slip_ratio}");
        }
    }

    #[test]
    fn a_flood_of_many_categories_does_not_limit_others() {
        let accounts = Accounts::new(10_000);
        for number in 0..500 {
            sent(&accounts, &number.to_string(), 1000, at(0));
        }
        let others = (1000..2000).filter(|number| sent(&accounts, &number.to_string(), 1, at(0)) == 0).count();
        // Both cells of a category are in debt once in 400, and 2.5 in 1000 are expected.
        assert!(others <= 20, "{others} of 1000");
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let terms = Terms { interval: Duration::MAX, window: Duration::MAX, slip_ratio: u8::MAX };
        let accounts = Accounts::new(0);
        (0..20).for_each(|_| _ = accounts.debit("a", terms, Duration::MAX));
    }
}
