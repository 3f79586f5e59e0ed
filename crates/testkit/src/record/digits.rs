//! Encoding of bytes in base 16, 32 and 64 (RFC 4648), and of types as bitmaps (RFC 4034 §4.1.2).

use wire::Type;

/// Alphabets of base 16, base 32 (extended hex) and base 64.
pub(super) const BASE16: &str = "0123456789abcdef";
pub(super) const BASE32: &str = "0123456789abcdefghijklmnopqrstuv";
pub(super) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes. Base 64 is padded.
pub(super) fn print(digits: &str, bytes: &[u8]) -> String {
    let width = digits.len().ilog2() as usize;
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let digit = |at: usize| {
        let bits = &bits[at..bits.len().min(at + width)];
        let number = usize::from_str_radix(&format!("{bits:0<width$}"), 2).unwrap_or_default();
        char::from(digits.as_bytes()[number])
    };
    let mut text: String = (0..bits.len()).step_by(width).map(digit).collect();
    while digits == BASE64 && !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// Decodes a text. Returns `None` if it is malformed.
pub(super) fn read(digits: &str, text: &str) -> Option<Vec<u8>> {
    let width = digits.len().ilog2() as usize;
    let number = |digit: char| digits.find(digit).map(|number| format!("{number:0width$b}"));
    let bits = text.trim_end_matches('=').chars().map(number).collect::<Option<String>>()?;
    let (whole, rest) = bits.split_at(bits.len() / 8 * 8);
    let byte = |at: usize| u8::from_str_radix(&whole[at..at + 8], 2).ok();
    (!rest.contains('1')).then(|| (0..whole.len()).step_by(8).map(byte).collect())?
}

/// Decodes type bitmaps.
pub(super) fn types(mut data: &[u8]) -> Option<Vec<Type>> {
    let mut types = Vec::new();
    while let Some(([window, length], rest)) = data.split_first_chunk() {
        let (bits, after) = rest.split_at_checked(usize::from(*length))?;
        let set = |low: &u8| bits.get(usize::from(low / 8)).is_some_and(|byte| byte & 0x80 >> (low % 8) != 0);
        types.extend((0..=u8::MAX).filter(set).map(|low| Type(u16::from_be_bytes([*window, low]))));
        data = after;
    }
    data.is_empty().then_some(types)
}

/// Adds a type to bitmaps. It must be greater than all types in them.
pub(super) fn push_type(rtype: Type, bitmaps: &mut Vec<u8>) -> Option<()> {
    let mut known = types(bitmaps)?;
    known.push(rtype);
    bitmaps.clear();
    for window in known.chunk_by(|one, other| one.0 >> 8 == other.0 >> 8) {
        let [number, last] = window.last()?.0.to_be_bytes();
        let mut bits = vec![0; usize::from(last / 8) + 1];
        for rtype in window {
            let [_, low] = rtype.0.to_be_bytes();
            *bits.get_mut(usize::from(low / 8))? |= 0x80 >> (low % 8);
        }
        bitmaps.extend([number, u8::try_from(bits.len()).ok()?]);
        bitmaps.extend(bits);
    }
    Some(())
}
