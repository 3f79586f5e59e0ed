//! Log events: a level, a source and a message, from the place that reports them to the thread that writes them.
//!
//! A plugin reports an event with [`Worker::log`](crate::Worker::log) in a hook, or with
//! [`Io::log`](crate::Io::log) in a job. Events travel as bytes in an [`EventBuffer`], one buffer per
//! batch of queries, so that a query does not allocate. The writer decides on the format: [`Event`] displays as
//! CoreDNS's text form.
//!
//! ```
//! use engine::log::{EventBuffer, Level, Source};
//! let mut buffer = EventBuffer::new(1024);
//! buffer.push(Default::default(), Level::Warning, Source::Plugin("forward"), |text| text.extend_from_slice(b"down"));
//! let lines: Vec<String> = buffer.events().map(|event| event.to_string()).collect();
//! assert_eq!(lines, ["[WARNING] plugin/forward: down"]);
//! ```

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;

use host::invariant::{Expected as _, holds};

/// Severity of an event. A smaller one is more severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Part of the configured service does not work.
    Error,
    /// The service works, but something needs attention.
    Warning,
    /// Normal operation.
    Info,
    /// Detail for finding faults.
    Debug,
}

impl Level {
    const ALL: [Level; 4] = [Level::Error, Level::Warning, Level::Info, Level::Debug];

    /// Name in the text form, as CoreDNS writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "ERROR",
            Level::Warning => "WARNING",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
        }
    }
}

/// Part of the program that reports an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source<'a> {
    /// The server itself; its lines have no prefix.
    Server,
    /// A directive; its lines begin with `plugin/NAME: `.
    Plugin(&'a str),
    /// A line of the plugin *log*, in the format of its user; it has no prefix.
    Queries,
    /// A line of the startup banner; it has neither level nor prefix.
    Banner,
}

impl<'a> Source<'a> {
    /// Name of the part: `portolan`, or that of the directive.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Source::Server | Source::Banner => "portolan",
            Source::Plugin(name) => name,
            Source::Queries => "log",
        }
    }

    fn code(self) -> u8 {
        match self {
            Source::Server => 0,
            Source::Plugin(_) => 1,
            Source::Queries => 2,
            Source::Banner => 3,
        }
    }

    fn from_code(code: u8, name: &'a str) -> Source<'a> {
        match code {
            1 => Source::Plugin(name),
            2 => Source::Queries,
            3 => Source::Banner,
            _ => Source::Server,
        }
    }
}

/// An event, as it is read from a buffer. It displays as one line of text without a line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Wall-clock time since the Unix epoch.
    pub time: Duration,
    /// Severity.
    pub level: Level,
    /// Part of the program that reports it.
    pub source: Source<'a>,
    /// Message; normally UTF-8, but the bytes of a query may be in it.
    pub message: &'a [u8],
    /// Further members of the JSON form: the text between the braces of an object, or nothing.
    pub fields: &'a [u8],
}

impl Event<'_> {
    /// Appends the text form, without a line end.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        if self.source != Source::Banner {
            for part in ["[", self.level.name(), "] "] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if let Source::Plugin(name) = self.source {
            for part in ["plugin/", name, ": "] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        out.extend_from_slice(self.message);
    }

    /// The message as text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.message)
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write_text(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// Event reported by code without access to the log, such as a file watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Severity.
    pub level: Level,
    /// The directive.
    pub directive: &'static str,
    /// Message.
    pub message: String,
}

impl Notice {
    /// Creates a notice.
    pub fn new(level: Level, directive: &'static str, message: impl Into<String>) -> Notice {
        Notice { level, directive, message: message.into() }
    }

    /// Source of the event.
    #[must_use]
    pub fn source(&self) -> Source<'static> {
        Source::Plugin(self.directive)
    }
}

/// Bytes of an event before its name, its message and its fields: time, level, source, and the lengths of the three.
const HEAD: usize = 8 + 1 + 1 + 1 + 4 + 4;

/// Bounded buffer of encoded events.
#[derive(Debug)]
pub struct EventBuffer {
    bytes: Vec<u8>,
    events: u64,
    bytes_max: usize,
    dropped: u64,
}

impl EventBuffer {
    /// Creates a buffer of `bytes_max` bytes. It reserves them at once, so that adding an event does not allocate.
    #[must_use]
    pub fn new(bytes_max: usize) -> EventBuffer {
        EventBuffer { bytes: Vec::with_capacity(bytes_max), events: 0, bytes_max, dropped: 0 }
    }

    /// Appends an event, whose message `write` appends to the given bytes. If the buffer is full, the event is dropped
    /// and counted.
    pub fn push(&mut self, time: Duration, level: Level, source: Source<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.push_with(time, level, source, write, |_| {});
    }

    /// Appends an event like [`EventBuffer::push`], whose [`Event::fields`] `describe` appends.
    pub fn push_with(
        &mut self,
        time: Duration,
        level: Level,
        source: Source<'_>,
        write: impl FnOnce(&mut Vec<u8>),
        describe: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.bytes.len();
        let name = if let Source::Plugin(name) = source { name.as_bytes() } else { &[] };
        let name = &name[..name.len().min(usize::from(u8::MAX))];
        holds(start <= self.bytes_max, "the events of a buffer are within its bound");
        if start + HEAD + name.len() >= self.bytes_max {
            self.dropped += 1;
            return;
        }
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.bytes.extend_from_slice(&nanos.to_le_bytes());
        let name_len = u8::try_from(name.len()).unwrap_or(u8::MAX);
        self.bytes.extend_from_slice(&[level as u8, source.code(), name_len]);
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(name);
        let message = self.bytes.len();
        write(&mut self.bytes);
        let fields = self.bytes.len();
        describe(&mut self.bytes);
        // A message longer than the buffer would otherwise keep the additional memory allocated.
        holds(message == start + HEAD + name.len(), "a message follows its head and its name");
        holds(message <= fields && fields <= self.bytes.len(), "message and fields are appended");
        if self.bytes.len() > self.bytes_max {
            self.bytes.truncate(start);
            self.bytes.shrink_to(self.bytes_max);
            self.dropped += 1;
            return;
        }
        for (len, end) in [(fields - message, start + HEAD - 4), (self.bytes.len() - fields, start + HEAD)] {
            debug_assert!(u32::try_from(len).is_ok(), "`bytes_max` is less than 4 GiB");
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            self.bytes[end - 4..end].copy_from_slice(&len.to_le_bytes());
        }
        self.events += 1;
    }

    /// Appends all events of another buffer, or drops and counts them if they do not fit. Adds the count of events
    /// that `other` dropped.
    pub fn append(&mut self, other: &EventBuffer) {
        holds((other.events == 0) == other.bytes.is_empty(), "a buffer counts its events");
        self.dropped += other.dropped;
        if self.bytes.len() + other.bytes.len() > self.bytes_max {
            self.dropped += other.events;
            return;
        }
        self.bytes.extend_from_slice(&other.bytes);
        self.events += other.events;
        holds(self.bytes.len() <= self.bytes_max, "the events of a buffer are within its bound");
        debug_assert!(other.events().count() as u64 == other.events, "each event can be read");
    }

    /// Removes all events and resets the count of dropped ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.events, self.dropped) = (0, 0);
    }

    /// Returns true if the buffer has no events and dropped none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.dropped == 0
    }

    /// Returns and resets the number of dropped events.
    pub fn take_dropped(&mut self) -> u64 {
        core::mem::take(&mut self.dropped)
    }

    /// Iterates over the events, in the order in which they were reported.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events { bytes: &self.bytes }
    }
}

/// Iterator over the events of a buffer.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if self.bytes.is_empty() {
            return None;
        }
        let event = self.read().expected("a whole event");
        if event.is_none() {
            // Where the next one begins is not known.
            self.bytes = &[];
        }
        event
    }
}

impl<'a> Events<'a> {
    /// Reads the next event. `None` if the bytes are no whole event.
    fn read(&mut self) -> Option<Event<'a>> {
        let (nanos, rest) = self.bytes.split_first_chunk::<8>()?;
        let ([level, source, name_len], rest) = rest.split_first_chunk::<3>()?;
        let (message_len, rest) = rest.split_first_chunk::<4>()?;
        let (fields_len, rest) = rest.split_first_chunk::<4>()?;
        let len = |len: &[u8; 4]| usize::try_from(u32::from_le_bytes(*len)).ok();
        let (name, rest) = rest.split_at_checked(usize::from(*name_len))?;
        let (message, rest) = rest.split_at_checked(len(message_len)?)?;
        let (fields, rest) = rest.split_at_checked(len(fields_len)?)?;
        self.bytes = rest;
        Some(Event {
            time: Duration::from_nanos(u64::from_le_bytes(*nanos)),
            level: Level::ALL.into_iter().find(|known| *known as u8 == *level)?,
            source: Source::from_code(*source, core::str::from_utf8(name).unwrap_or_default()),
            message,
            fields,
        })
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
