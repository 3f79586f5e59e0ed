//! Decimal numbers in header fields.

/// Decimal number without an allocation.
pub(super) struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    pub(super) fn new(mut number: usize) -> Decimal {
        let (mut digits, mut start) = ([b'0'; 20], 20);
        loop {
            start -= 1;
            digits[start] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            if number == 0 {
                return Decimal { digits, start };
            }
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}
