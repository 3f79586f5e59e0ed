//! `$GENERATE` directive, a BIND extension: generates records that differ in a number.
//!
//! Examples are `$GENERATE 1-127 $ CNAME $.0` and `$GENERATE 0-255/2 host-${1,3,d} 300 A 10.0.0.$`. In the text after
//! the range, `$` is the number. `${OFFSET,WIDTH,BASE}` is the number plus an offset, padded with zeros, in base d, o,
//! x or X. `\$` is a dollar sign.

use std::fmt::Write;

use wire::{Class, NameRef, Type};

use crate::text::{Entries, Entry, Line, ParseError, Word};

/// Maximum number of values in a range.
const COUNT_MAX: u64 = 65_536;
/// Maximum width to which a number is padded.
const WIDTH_MAX: usize = 63;
const RANGE: &str = "a range START-STOP or START-STOP/STEP of at most 65536 numbers";
const TEMPLATE: &str = "a record with `$` or `${OFFSET,WIDTH,BASE}` for the number, with base d, o, x or X";

/// Parses the rest of the directive and passes each generated record to `take`.
pub(crate) fn records(
    entries: &mut Entries<'_>,
    mut take: impl FnMut(NameRef<'_>, (Type, Class, u32), &[u8]),
) -> Result<(), ParseError> {
    let line: &mut Line<'_> = entries.line();
    let word = line.word(RANGE)?;
    let range = range(&word).ok_or_else(|| word.unexpected(RANGE))?;
    let template = line.rest().trim_ascii();
    for number in range {
        let Some(text) = fill(template, number) else { return Err(word_of(&word, template).unexpected(TEMPLATE)) };
        let mut one = Entries::new(text.as_bytes(), entries.origin());
        one.inherit(entries);
        // Errors in a generated record point at the directive, because the record is not in the file.
        let moved = |error: ParseError| ParseError { line: word.position.line, column: word.position.column, ..error };
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
    Word { raw: template, quoted: false, position: range.position }
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

/// Replaces the placeholders in the template by the number. Returns `None` if the template is invalid.
fn fill(template: &[u8], number: u64) -> Option<String> {
    let mut rest = core::str::from_utf8(template).ok()?;
    let mut text = String::with_capacity(rest.len() + 16);
    while let Some(at) = rest.find(['$', '\\']) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        if let Some(escaped) = after.strip_prefix("\\") {
            let next = escaped.chars().next()?;
            // The record parser decodes all other escapes.
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

/// Appends a number in the form `OFFSET,WIDTH,BASE`. Missing fields at the end default to 0 and `d`.
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
