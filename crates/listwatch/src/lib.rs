//! List and watch: keeps a copy of a remote collection up to date by listing it once and following its changes.
//!
//! [`Machine`] decides what to do next. It does no I/O and has no clock: [`Machine::on`] takes an [`Event`] and the
//! time, and returns an [`Action`] with [`Notice`]s about what has been achieved. [`run`] is the driver. It performs
//! the actions on a [`Source`], which sends the requests, applies the objects, counts and logs. The API server and etcd
//! are sources.
//!
//! ```text
//!            ┌─────────── rejected, silent, cut off ─────────┐
//!            │  ┌─────────────────────────────────────────┐  │
//!            │  │                                         ▼  ▼
//!  start ─► Listing ── end of the list ──► Following ◄── last page ── Paging ◄─┐
//!            ▲                              │ ▲ │                      ▲ └─────┘ a page
//!            │                              │ └─┘ an event, the end    │
//!            │                              │     of a watch, silence  │
//!            └──────── position lost ───────┴──────────────────────────┘
//!
//!  Each of them ── failure ──► Waiting ── pause ──► the same state, or the one that the failure asks for.
//!  Listing or Paging ── unknown to the source ──► Absent ── pause ──► Listing
//! ```
//!
//! A process that knows the objects of an earlier one starts with [`resume`]: the position is checked, and the watch
//! continues from it. It counts as soon as it brings an event, or has been open for [`Policy::watch_min`] without an
//! error. If the position is lost, a list follows. It is never the cached one of a first list, which could be older
//! than what is known.
//!
//! A *position* is the point in the source's history up to which everything is known: a resource version of
//! Kubernetes, or revisions of etcd. It is only useful if the source has it. A source whose storage was restored from
//! an older backup would accept a watch from it and never send an event. Therefore a position is doubted after a broken
//! connection or a long silence, and after other failures if a check costs little. [`Resume`] says how it is checked.
//!
//! A source may also leave out events and continue. A [`Tally`] finds that out, and [`FailureKind::Incomplete`] leads
//! to a new list.
//!
//! # Example
//!
//! ```
//! use core::time::Duration;
//!
//! use host::Instant;
//! use listwatch::{Action, Event, Failure, FailureKind, Machine, Page, Policy, Received, Request};
//!
//! let mut machine: Machine<u64, String> = Machine::new(Policy { streams: false, ..Policy::default() });
//! let (now, jitter) = (Instant::START, 0.5);
//! assert_eq!(machine.start(now), Action::Open(Request::Page { cursor: None, may_be_old: true, not_before: None }));
//! machine.on(Event::Opened, now, jitter);
//! // The last page is complete: watch from its position.
//! let step = machine.on(Event::Read(Received::PageEnd(Page::Last(7))), now, jitter);
//! assert_eq!(step.action, Action::Open(Request::Watch { position: 7 }));
//! // The source does not have the position any more: list again after a pause.
//! let failure = Failure::new(FailureKind::Expired, "gone");
//! let step = machine.on(Event::OpenFailed(failure), now, jitter);
//! assert_eq!(step.action, Action::Sleep(Duration::from_millis(200)));
//! let step = machine.on(Event::Woke, now, jitter);
//! assert_eq!(step.action, Action::Open(Request::Page { cursor: None, may_be_old: false, not_before: None }));
//! ```

mod backoff;
mod driver;
mod event;
mod health;
mod machine;
mod policy;
mod sources;
mod tally;

pub use backoff::{Backoff, BackoffRule};
pub use driver::{Source, resume, run};
pub use event::{Action, Event, Failure, FailureKind, Notice, Page, Received, Request, Step, Transfer};
pub use health::Health;
pub use machine::{Earlier, Machine, State, Watch};
pub use policy::{Policy, Resume};
pub use sources::Order;
pub use tally::{Comparison, Tally};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod sources_simulation;
#[cfg(test)]
mod table_tests;
