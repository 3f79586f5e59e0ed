//! `$GENERATE`: records that differ in a number, as BIND introduced it.
//!
//! `$GENERATE 1-127 $ CNAME $.0` and `$GENERATE 0-255/2 host-${1,3,d} 300 A 10.0.0.$`: in what follows the range, `$` is
//! the number, `${OFFSET,WIDTH,BASE}` the number with an offset, filled with zeros and in base d, o, x or X, and `\$` a
//! dollar sign.

use std::fmt::Write;

use wire::{Class, NameRef, Type};

use crate::text::{Entries, Entry, Error, Line, Word};

/// Numbers in the longest range.
const COUNT_MAX: u64 = 65_536;
/// Digits that a number is filled up to.
const WIDTH_MAX: usize = 63;
const RANGE: &str = "a range of at most 65536 numbers, START-STOP or START-STOP/STEP";
const TEMPLATE: &str = "a record with `$`, or `${OFFSET,WIDTH,BASE}` with base d, o, x or X, for the number";

/// Reads the rest of the directive and gives each of its records to `take`.
pub(crate) fn records(
    entries: &mut Entries<'_>,
    mut take: impl FnMut(NameRef<'_>, (Type, Class, u32), &[u8]),
) -> Result<(), Error> {
    let line: &mut Line<'_> = entries.line();
    let word = line.word(RANGE)?;
    let range = range(&word).ok_or_else(|| word.unexpected(RANGE))?;
    let template = line.rest().trim_ascii();
    for number in range {
        let Some(text) = fill(template, number) else { return Err(word_of(&word, template).unexpected(TEMPLATE)) };
        let mut one = Entries::new(text.as_bytes(), entries.origin());
        one.inherit(entries);
        // Whatever is wrong with a record is wrong with the line.
        let moved = |error: Error| Error { line: word.place.line, column: word.place.column, ..error };
        while let Some(entry) = one.next().map_err(moved)? {
            let Entry::Record { ttl, class, rtype } = entry else {
                return Err(word_of(&word, template).unexpected(TEMPLATE));
            };
            take(one.owner(), (rtype, class, ttl), one.rdata());
        }
    }
    Ok(())
}

fn word_of<'a>(range: &Word<'_>, template: &'a [u8]) -> Word<'a> {
    Word { raw: template, quoted: false, place: range.place }
}

fn range(word: &Word<'_>) -> Option<impl Iterator<Item = u64> + use<>> {
    let text = word.ascii()?;
    let (range, step) = text.split_once('/').unwrap_or((text, "1"));
    let (start, stop) = range.split_once('-')?;
    let (start, stop): (u64, u64) = (start.parse().ok()?, stop.parse().ok()?);
    let step: u64 = step.parse().ok().filter(|step| *step > 0)?;
    let fits = start <= stop && stop <= u64::from(u32::MAX) && (stop - start) / step < COUNT_MAX;
    fits.then(|| (start..=stop).step_by(usize::try_from(step).unwrap_or(usize::MAX)))
}

/// The template with the number in it; `None` if it is none.
fn fill(template: &[u8], number: u64) -> Option<String> {
    let mut rest = core::str::from_utf8(template).ok()?;
    let mut text = String::with_capacity(rest.len() + 16);
    while let Some(at) = rest.find(['$', '\\']) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        if let Some(escaped) = after.strip_prefix("\\") {
            let next = escaped.chars().next()?;
            // Other escapes are read with the record.
            if next != '$' {
                text.push('\\');
            }
            text.push(next);
            rest = &escaped[next.len_utf8()..];
        } else if let Some(form) = after.strip_prefix("${") {
            let (form, after) = form.split_once('}')?;
            write_number(&mut text, form, number)?;
            rest = after;
        } else {
            let _ = write!(text, "{number}");
            rest = &after[1..];
        }
    }
    text.push_str(rest);
    Some(text)
}

/// `OFFSET,WIDTH,BASE`; what is left out at the end is 0, 0 and d.
fn write_number(text: &mut String, form: &str, number: u64) -> Option<()> {
    let mut parts = form.split(',');
    let offset: i64 = parts.next()?.parse().ok()?;
    let width: usize = parts.next().map_or(Some(0), |width| width.parse().ok()).filter(|width| *width <= WIDTH_MAX)?;
    let base = parts.next().unwrap_or("d");
    let number = number.checked_add_signed(offset)?;
    let written = match base {
        "d" => write!(text, "{number:0width$}"),
        "o" => write!(text, "{number:0width$o}"),
        "x" => write!(text, "{number:0width$x}"),
        "X" => write!(text, "{number:0width$X}"),
        _ => return None,
    };
    written.ok().filter(|()| parts.next().is_none())
}
