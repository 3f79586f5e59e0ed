//! LOC records (RFC 1876), such as `51 30 12.748 N 0 7 39.611 W 10.00m 1m 10000m 10m`.

use super::error::ParseError;
use super::lex::Word;
use super::line::Line;

/// Thousandths of an arc second per degree.
const DEGREE: u32 = 3_600_000;
/// Encoded value of the equator and the prime meridian.
const MIDDLE: u32 = 1 << 31;
/// Offset of encoded altitudes in centimetres: they start 100,000 m below the reference (RFC 1876 §2).
const BASE: i64 = 10_000_000;
/// Default size and precisions: a sphere of 1 m, horizontally within 10,000 m, vertically within 10 m.
const SIZES: [u8; 3] = [0x12, 0x16, 0x13];

/// Parses a location. `first` is its first word.
pub(super) fn read(first: &Word<'_>, line: &mut Line<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
    let latitude = angle(*first, line, *b"NS", 90)?;
    let first = line.word("the degrees of a longitude")?;
    let longitude = angle(first, line, *b"EW", 180)?;
    let word = line.word("an altitude")?;
    let centimetres = centimetres(&word).ok_or_else(|| word.unexpected("an altitude in metres"))?;
    let altitude = u32::try_from(centimetres + BASE)
        .map_err(|_| word.unexpected("an altitude from -100000 m to 42849672.95 m"))?;
    let mut sizes = SIZES;
    for size in &mut sizes {
        let Some(word) = line.maybe()? else { break };
        *size = self::centimetres(&word).and_then(packed).ok_or_else(|| word.unexpected("a length in metres"))?;
    }
    data.push(0);
    data.extend(sizes);
    for number in [latitude, longitude, altitude] {
        data.extend(number.to_be_bytes());
    }
    Ok(())
}

/// Parses degrees, optional minutes and seconds, and a direction.
fn angle(first: Word<'_>, line: &mut Line<'_>, directions: [u8; 2], degrees_max: u32) -> Result<u32, ParseError> {
    let degrees: u32 = first.parse("degrees")?;
    let mut angle = degrees.checked_mul(DEGREE).ok_or_else(|| first.unexpected("degrees"))?;
    let mut unit = DEGREE / 60;
    loop {
        let word = line.word("a direction (N, S, E or W)")?;
        if let [letter] = word.raw
            && let Some(at) = directions.iter().position(|known| known.eq_ignore_ascii_case(letter))
        {
            let within = angle <= degrees_max * DEGREE;
            let turned = if at == 0 { MIDDLE.checked_add(angle) } else { MIDDLE.checked_sub(angle) };
            return turned
                .filter(|_| within)
                .ok_or_else(|| first.unexpected("at most 90 degrees of latitude or 180 degrees of longitude"));
        }
        let part = thousandths(word.raw, 3).filter(|part| *part < 60_000 && unit > 0);
        let part = part
            .and_then(|part| u32::try_from(part).ok())
            .ok_or_else(|| word.unexpected("minutes or seconds below 60"))?;
        angle = angle.saturating_add(part.saturating_mul(unit / 1000));
        unit /= 60;
        if unit < 1000 {
            unit = 0;
        }
    }
}

/// Parses a length in metres with an optional `m`. Returns centimetres.
fn centimetres(word: &Word<'_>) -> Option<i64> {
    let text = word.raw.strip_suffix(b"m").unwrap_or(word.raw);
    match text.strip_prefix(b"-") {
        Some(text) => Some(-thousandths(text, 2)?),
        None => thousandths(text, 2),
    }
}

/// Parses a decimal number and multiplies it by ten to the power of `places`. Cuts off further decimal places.
fn thousandths(text: &[u8], places: usize) -> Option<i64> {
    let dot = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = text.split_at(dot);
    let fraction = fraction.strip_prefix(b".").unwrap_or(fraction);
    let fraction = fraction.iter().chain(core::iter::repeat(&b'0')).take(places);
    let digits = whole.iter().chain(fraction);
    let number = digits.into_iter().try_fold(0i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    });
    number.filter(|_| !whole.is_empty())
}

/// Encodes a length as one digit and a power of ten (RFC 1876 §2).
fn packed(centimetres: i64) -> Option<u8> {
    let (mut digit, mut power) = (centimetres, 0);
    while digit > 9 {
        digit /= 10;
        power += 1;
    }
    let digit = u8::try_from(digit).ok()?;
    (power <= 9).then_some(digit << 4 | power)
}
