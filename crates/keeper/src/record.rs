//! Records between the keeper and its child. Each is one packet of [`RECORD_SIZE`] bytes: a kind, three numbers, and a
//! text.

use std::time::Duration;

use host::invariant::{Expected as _, holds};

/// Size of a record in bytes.
pub const RECORD_SIZE: usize = 192;
/// Maximum number of sockets that come with a record: those of one worker at one address.
pub const SOCKETS_MAX: usize = 2;
/// Size of the fields before the text: kind, length of the text, numbers.
const HEAD: usize = 16;
/// Maximum length of the text.
pub const TEXT_MAX: usize = RECORD_SIZE - HEAD;

// One byte holds the length of a text.
const _: () = assert!(TEXT_MAX <= u8::MAX as usize);

/// Record between the keeper and its child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Child: writes its log as JSON, or as text.
    LogFormat {
        /// True for JSON.
        is_json: bool,
    },
    /// Both: sockets of one worker at an address, which are the descriptors of this packet. The text is `LABEL
    /// ADDRESS`.
    Sockets(String),
    /// Child: no longer serves the sockets with this label.
    Closed(String),
    /// Child: its startup is complete, and it has sent all sockets that it serves. The keeper closes all others.
    Serving,
    /// Child: the operator wants crashes to end the process (directive *debug*), or not.
    CrashesWanted(bool),
    /// Child: still works, except for a thread that has not responded for this time, if that is not zero. Otherwise,
    /// the thread is the one that sends this record.
    Beat {
        /// ID of the thread that sends the beats.
        sender: u32,
        /// ID of the thread that has not responded.
        thread: u32,
        /// Time since the last response of the thread.
        stalled: Duration,
    },
    /// Child: begins its shutdown, and is not to be started again.
    Ending,
    /// Keeper: exits of earlier children.
    Exits {
        /// Number since the start of the keeper.
        total: u32,
        /// Number in the last hour.
        in_last_hour: u32,
        /// Reason of the last one, in words. Empty if there was none.
        reason: String,
    },
    /// Keeper: all sockets that it holds have been sent.
    End,
    /// Keeper: has closed its sockets, after [`Record::Ending`].
    Released,
}

impl Record {
    /// Encodes the record. A text beyond [`TEXT_MAX`] is cut.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_SIZE] {
        let (kind, numbers, text) = match self {
            Record::LogFormat { is_json } => (1, [u32::from(*is_json), 0, 0], ""),
            Record::Sockets(text) => (2, [0, 0, 0], text.as_str()),
            Record::Closed(label) => (3, [0, 0, 0], label.as_str()),
            Record::Serving => (4, [0, 0, 0], ""),
            Record::CrashesWanted(are_wanted) => (5, [u32::from(*are_wanted), 0, 0], ""),
            Record::Beat { sender, thread, stalled } => {
                (6, [*thread, u32::try_from(stalled.as_millis()).unwrap_or(u32::MAX), *sender], "")
            }
            Record::Ending => (7, [0, 0, 0], ""),
            Record::Exits { total, in_last_hour, reason } => (8, [*total, *in_last_hour, 0], reason.as_str()),
            Record::End => (9, [0, 0, 0], ""),
            Record::Released => (10, [0, 0, 0], ""),
        };
        let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_MAX)];
        let mut bytes = [0; RECORD_SIZE];
        bytes[0] = kind;
        holds(text.len() <= TEXT_MAX, "a text fits in its record");
        bytes[1] = u8::try_from(text.len()).ok().expected("the length of a text").unwrap_or(0);
        for (field, number) in bytes[4..HEAD].chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_ne_bytes());
        }
        bytes[HEAD..HEAD + text.len()].copy_from_slice(text);
        bytes
    }

    /// Decodes a record; `None` if these bytes are not one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        let bytes: &[u8; RECORD_SIZE] = bytes.try_into().ok()?;
        let number = |at: usize| bytes.get(at..)?.first_chunk().map(|four| u32::from_ne_bytes(*four));
        let (first, second, third) = (number(4)?, number(8)?, number(12)?);
        let text = || {
            let text = bytes.get(HEAD..HEAD + usize::from(bytes[1]))?;
            Some(std::str::from_utf8(text).ok()?.to_owned())
        };
        Some(match bytes[0] {
            1 => Record::LogFormat { is_json: first != 0 },
            2 => Record::Sockets(text()?),
            3 => Record::Closed(text()?),
            4 => Record::Serving,
            5 => Record::CrashesWanted(first != 0),
            6 => Record::Beat { sender: third, thread: first, stalled: Duration::from_millis(second.into()) },
            7 => Record::Ending,
            8 => Record::Exits { total: first, in_last_hour: second, reason: text()? },
            9 => Record::End,
            10 => Record::Released,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_what_it_encodes() {
        for record in [
            Record::LogFormat { is_json: true },
            Record::Sockets("dns://:53 [::]:53".to_owned()),
            Record::Closed("dns://:53".to_owned()),
            Record::Serving,
            Record::CrashesWanted(true),
            Record::Beat { sender: 4_194_303, thread: 4_194_304, stalled: Duration::from_millis(3100) },
            Record::Ending,
            Record::Exits { total: 3, in_last_hour: 2, reason: "killed by signal 9 (SIGKILL)".to_owned() },
            Record::End,
            Record::Released,
        ] {
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn cuts_a_long_text_between_characters() {
        let long = "ä".repeat(TEXT_MAX);
        let Some(Record::Closed(text)) = Record::decode(&Record::Closed(long.clone()).encode()) else { panic!() };
        assert!(text.len() == TEXT_MAX && long.starts_with(&text), "{text}");
    }

    #[test]
    fn refuses_bytes_that_are_no_record() {
        let good = Record::Closed("a".to_owned()).encode();
        assert_eq!(Record::decode(&good[1..]), None, "too short");
        assert_eq!(Record::decode(&[]), None);
        for (at, byte) in [(0, 0), (0, 99), (1, 255), (HEAD, 0xff)] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Record::decode(&bad), None, "{at} {byte}");
        }
    }
}
