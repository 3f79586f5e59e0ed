//! Number of distinct keys in a stream, with a fixed amount of memory: HyperLogLog (Flajolet et al., 2007).
//!
//! Each key chooses a register by one part of its hash. The register keeps the longest run of zeros that the other
//! part began with: a run of `n` zeros is seen once in 2ⁿ keys. With 1,024 registers, the standard error is 3.2 %.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Number of bits of the hash that choose a register.
const INDEX_BITS: u32 = 10;
const REGISTERS: usize = 1 << INDEX_BITS;

/// Counter of distinct keys.
#[derive(Clone)]
pub(super) struct Distinct {
    /// One more than the longest run of zeros; 0 without a key.
    registers: Box<[u8; REGISTERS]>,
}

impl Distinct {
    pub(super) fn new() -> Distinct {
        Distinct { registers: Box::new([0; REGISTERS]) }
    }

    pub(super) fn count(&mut self, key: &str) {
        let hash = FixedState::default().hash_one(key);
        let rank = (hash << INDEX_BITS).leading_zeros().min(u64::BITS - INDEX_BITS) + 1;
        let Ok(at) = usize::try_from(hash >> (u64::BITS - INDEX_BITS)) else { return };
        if let (Some(register), Ok(rank)) = (self.registers.get_mut(at), u8::try_from(rank)) {
            *register = rank.max(*register);
        }
    }

    /// Adds the keys that another counter has seen.
    pub(super) fn merge(&mut self, other: &Distinct) {
        for (own, others) in self.registers.iter_mut().zip(&*other.registers) {
            *own = (*own).max(*others);
        }
    }

    /// Estimates the number of distinct keys.
    pub(super) fn estimate(&self) -> u64 {
        #[allow(clippy::cast_precision_loss, reason = "1,024")]
        let registers = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|rank| f64::from(*rank)).map(|rank| (-rank).exp2()).sum();
        // The factor corrects the bias of the harmonic mean.
        let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        // While many registers are empty, their number is the better measure (linear counting).
        let estimate = match u32::try_from(empty).unwrap_or_default() {
            1.. if raw <= 2.5 * registers => {
                registers * (registers / f64::from(u32::try_from(empty).unwrap_or(1))).ln()
            }
            _ => raw,
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
        let whole = estimate.round() as u64;
        whole
    }

    #[cfg(test)]
    pub(super) const fn memory() -> usize {
        REGISTERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: std::ops::Range<u32>) -> Distinct {
        let mut distinct = Distinct::new();
        for key in keys {
            distinct.count(&format!("n{key}.test."));
            distinct.count(&format!("n{key}.test."));
        }
        distinct
    }

    #[test]
    fn estimates_the_number_of_keys() {
        assert_eq!(of(0..0).estimate(), 0);
        assert_eq!(of(0..1).estimate(), 1);
        // Three standard errors.
        for number in [40, 100, 1_000, 4_000, 5_500, 20_000, 300_000] {
            let error = of(0..number).estimate().abs_diff(u64::from(number));
            assert!(error * 1000 <= u64::from(number) * 97, "{number}: {error}");
        }
    }

    #[test]
    fn merging_counts_common_keys_once() {
        let mut merged = of(0..3_000);
        merged.merge(&of(2_000..5_000));
        assert_eq!(merged.estimate(), of(0..5_000).estimate());
    }
}
