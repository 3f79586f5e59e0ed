//! Input and output of the state machine. `P` is the type of positions, `C` that of the cursors between pages.

use core::time::Duration;

/// Event that the driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P, C> {
    /// The response to the request has begun.
    Opened,
    /// Part of the response has been read and applied.
    Read(Received<P, C>),
    /// The request failed before a response.
    OpenFailed(Failure),
    /// The response failed after its begin.
    ReadFailed(Failure),
    /// The pause is over.
    Woke,
}

/// Part of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received<P, C> {
    /// Objects or events.
    Data {
        /// Number of events.
        events: u64,
        /// Position after them, if they have one.
        position: Option<P>,
        /// True if the end of a streaming list is among them.
        ends_list: bool,
    },
    /// End of a complete page.
    PageEnd(Page<P, C>),
    /// End of the response.
    End,
    /// A relay that was looked for while the server is used has the position of the watch, and is current.
    RelayFound,
}

/// What follows a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page<P, C> {
    /// More pages, from this cursor.
    Next(C),
    /// Nothing: the list is complete up to this position.
    Last(P),
}

/// Instruction for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<P, C> {
    /// Send a request and wait for the begin of the response.
    Open(Request<P, C>),
    /// Read the next part of the response.
    Read {
        /// Time without data after which the response fails with [`FailureKind::Silent`].
        silence: Duration,
    },
    /// Sleep.
    Sleep(Duration),
}

/// Request to the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<P, C> {
    /// List as a stream, which continues as a watch.
    Stream {
        /// Position that the list must have reached. Only ordered sources need one.
        not_before: Option<P>,
    },
    /// Page of a list.
    Page {
        /// Start of the page, or `None` for the first one.
        cursor: Option<C>,
        /// True if the list may be older than the source's current state, because nothing is known yet.
        may_be_old: bool,
        /// Position that the list must have reached, for the first page. Only ordered sources need one.
        not_before: Option<P>,
    },
    /// Check that the source has this position.
    Check {
        /// Position to check.
        position: P,
    },
    /// Consistent read of the server, which fails with [`FailureKind::Restored`] if its storage is older than this
    /// position. Only ordered sources need it.
    Confirm {
        /// Known position.
        position: P,
    },
    /// Watch of all changes after a position.
    Watch {
        /// Position up to which everything is known.
        position: P,
    },
}

/// Action after an event, and what the event achieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<P, C> {
    /// What the source has to be told, in order.
    pub notices: Vec<Notice>,
    /// What to do next.
    pub action: Action<P, C>,
}

/// Message for the source: what to do with the objects, to count and to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A list begins. Objects that it does not contain are to be removed at [`Notice::Listed`].
    ListBegins,
    /// The list is complete.
    Listed(Transfer),
    /// The watch continues from the position of an earlier process. What that process knew is current, without a list.
    Resumed,
    /// The source does not know the kind of object. The collection counts as empty.
    AssumedEmpty,
    /// Permission is missing. The collection counts as listed, with the content that the configuration gives.
    AssumedListed {
        /// True if nothing was known before.
        is_first: bool,
        /// True if a list was complete before. Its content stays.
        is_known: bool,
    },
    /// Lists use pages from now on, because the source rejects streaming lists.
    UsesPages,
    /// A silent watch is replaced.
    Renewed,
    /// The position has been lost, and a new list follows. This is part of a watch's life.
    PositionLost,
    /// The next requests go to this source, because the last one failed. It may be the same one, with a new connection.
    Moved {
        /// Number of the source.
        source: usize,
    },
    /// The next requests go to this relay, which was found while the server was used.
    Returned {
        /// Number of the source.
        source: usize,
    },
    /// A request failed.
    Failed {
        /// True if the failure is to be logged: it is new, and it does not usually go away with the next attempt.
        is_news: bool,
    },
    /// Lists and watches work again, `after` this long. `None` if no failure was logged.
    Recovered {
        /// Duration of the outage.
        after: Option<Duration>,
    },
}

impl Notice {
    /// Returns true if the notice is about a failed request.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Notice::AssumedListed { .. } | Notice::PositionLost | Notice::Failed { .. })
    }
}

/// How a list was transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// As a stream.
    Stream,
    /// By pages.
    Pages,
}

/// Failure of a request, as far as the state machine needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Class of the failure.
    pub kind: FailureKind,
    /// Reason. An outage logs each reason once. The number tells servers apart.
    pub reason: (usize, &'static str),
    /// True if the next attempt is likely to succeed, since connections break now and then.
    pub is_transient: bool,
    /// Pause that the source asks for.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// Creates a failure that is not transient.
    #[must_use]
    pub const fn new(kind: FailureKind, reason: &'static str) -> Failure {
        Failure { kind, reason: (0, reason), is_transient: false, retry_after: None }
    }
}

/// Class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The position or the cursor has expired (410, compaction).
    Expired,
    /// The source does not have the position, although it was known: its storage was restored from a backup, or another
    /// server answers that lags behind.
    Ahead,
    /// The storage of the source was restored from a backup, and is older than the known position.
    Restored,
    /// The source has another number of objects at the position than its list and its events have told: it has left out
    /// events. See [`Tally`](crate::Tally).
    Incomplete,
    /// The source is unreachable, or the connection broke. Another server may answer next.
    Disconnected,
    /// The request could not be sent, for example because credentials are missing.
    NotSent,
    /// The source does not support this form of request (400, 422).
    Unsupported,
    /// The source does not know the kind of object (404).
    Unknown,
    /// Permission is missing (403).
    Forbidden,
    /// The source has a problem of its own (500).
    Internal,
    /// No data arrived in time.
    Silent,
    /// Any other failure.
    Other,
}

impl FailureKind {
    /// Returns true if the known position or cursor is not valid any more.
    #[must_use]
    pub(crate) const fn loses_position(self) -> bool {
        matches!(self, FailureKind::Expired | FailureKind::Ahead | FailureKind::Restored | FailureKind::Incomplete)
    }

    /// Returns true if the source was reached and did not deliver. Another form of the request (pages instead of a
    /// stream, or the reverse) may work then.
    #[must_use]
    pub const fn is_response(self) -> bool {
        !matches!(self, FailureKind::Disconnected | FailureKind::NotSent) && !self.loses_position()
    }

    /// Returns true if the source may refuse a cursor in particular. An overloaded one says so, and the list continues.
    #[must_use]
    pub(crate) const fn rejects_cursors(self) -> bool {
        matches!(self, FailureKind::Unsupported | FailureKind::Internal)
    }

    /// Returns true if the source does not support streaming lists. Once a stream has begun (`is_open`), this includes
    /// an internal error: the source supports them, but its storage does not (etcd before 3.4.31 or 3.5.13).
    #[must_use]
    pub(crate) const fn rejects_streams(self, is_open: bool) -> bool {
        matches!(self, FailureKind::Unsupported) || is_open && matches!(self, FailureKind::Internal)
    }
}
