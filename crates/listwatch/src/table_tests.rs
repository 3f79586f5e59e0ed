//! Transitions of the state machine, as a table: after each event, the expected action and notices.
//!
//! Events: `opened`, `data N @P` (N events up to position P), `list end @P`, `page C` (the next page begins at C),
//! `last page @P`, `end`, `refused KIND` (no response), `broken KIND` (within a response), `woke`. `+MS` before an
//! event lets milliseconds pass. The jitter is 0.5. `start` or `resume [@P]` is the begin.

use core::time::Duration;

use host::Instant;

use crate::{
    Action, BackoffRule, Earlier, Event, Failure, FailureKind, Machine, Notice, Order, Page, Policy, Received, Request,
    Resume, Step, Transfer,
};

/// Name, policy, and events with the expected steps.
type Row = (&'static str, fn() -> Policy, &'static [(&'static str, &'static str)]);

const ROWS: &[Row] = &[
    (
        "a streaming list continues as a watch",
        streams,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("data 2", "read 15000"),
            ("list end @5", "read 50000: listed by stream"),
            ("data 1 @6", "read 50000"),
            ("+1000 end", "watch 6"),
            ("opened", "read 50000"),
            ("+1000 end", "watch 6"),
        ],
    ),
    (
        "pages continue as a watch",
        pages,
        &[
            ("start", "first page, maybe old"),
            ("opened", "read 15000: list begins"),
            ("data 2 @9", "read 15000"),
            ("page c", "page c"),
            ("opened", "read 15000"),
            ("last page @5", "watch 5: listed by pages"),
        ],
    ),
    (
        "a source without streaming lists is listed by pages from then on",
        streams,
        &[
            ("start", "stream"),
            ("refused unsupported", "first page, maybe old: uses pages"),
            ("opened", "read 15000: list begins"),
            ("last page @5", "watch 5: listed by pages"),
            ("refused expired", "sleep 200: position lost"),
            ("woke", "first page"),
        ],
    ),
    (
        "an internal error before the begin of a stream is a failure, and after it a rejection",
        streams,
        &[
            ("start", "stream"),
            ("refused internal", "sleep 600: failed, news"),
            ("woke", "first page, maybe old"),
            ("refused other", "sleep 600: failed, news"),
            ("woke", "stream"),
            ("opened", "read 15000: list begins"),
            ("broken internal", "first page, maybe old: uses pages"),
        ],
    ),
    (
        "a stream that ends before the end of the list is no complete list",
        streams,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("data 2 @3", "read 15000"),
            ("end", "sleep 600: failed, news"),
            ("woke", "first page, maybe old"),
        ],
    ),
    (
        "a page that ends without its end is repeated",
        pages,
        &[
            ("start", "first page, maybe old"),
            ("opened", "read 15000: list begins"),
            ("page c", "page c"),
            ("opened", "read 15000"),
            ("end", "sleep 600: failed, news"),
            ("woke", "page c"),
        ],
    ),
    (
        "a cursor that is refused begins a new list, and an overloaded source does not",
        pages,
        &[
            ("start", "first page, maybe old"),
            ("opened", "read 15000: list begins"),
            ("page c", "page c"),
            ("refused other", "sleep 600: failed, news"),
            ("woke", "page c"),
            ("refused internal", "sleep 600: failed, news"),
            ("woke", "first page, maybe old"),
        ],
    ),
    (
        "an expired page begins a new list",
        pages,
        &[
            ("start", "first page, maybe old"),
            ("opened", "read 15000: list begins"),
            ("page c", "page c"),
            ("refused expired", "sleep 200: position lost"),
            ("woke", "first page, maybe old"),
            ("refused expired", "sleep 600: position lost"),
        ],
    ),
    (
        "a source that has left out events is listed by pages, once",
        streams,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream"),
            ("broken incomplete", "sleep 600: failed, news"),
            ("woke", "first page"),
            ("opened", "read 15000: list begins"),
            ("last page @7", "watch 7: listed by pages, recovered after 600"),
            ("refused expired", "sleep 200: position lost"),
            ("woke", "stream"),
        ],
    ),
    (
        "a watch that ends at once is a failure, and with events it waits for its minimum lifetime",
        streams,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream"),
            ("end", "sleep 1000"),
            ("woke", "watch 5"),
            ("opened", "read 50000"),
            ("end", "sleep 600: failed"),
            ("woke", "check 5"),
            ("opened", "read 15000"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("data 1 @6", "read 50000: recovered"),
            ("+100 end", "sleep 900"),
            ("woke", "watch 6"),
            ("opened", "read 50000"),
            ("end", "sleep 600: failed"),
            ("woke", "check 6"),
            ("refused other", "sleep 600: failed, news"),
            ("woke", "check 6"),
            ("opened", "read 15000"),
            ("end", "watch 6"),
            ("opened", "read 1000"),
            ("+1000 broken silent", "read 50000: recovered after 2200"),
        ],
    ),
    (
        "a silent watch is replaced after a check",
        streams,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream"),
            ("broken silent", "check 5: renewed"),
            ("opened", "read 15000"),
            ("data 1 @2", "read 15000"),
            ("end", "watch 5"),
            ("opened", "read 50000"),
            ("broken silent", "check 5: renewed"),
            ("refused ahead", "sleep 600: position lost"),
            ("woke", "stream"),
        ],
    ),
    (
        "each failure of a watch leads to a check: the storage may have been restored during the pause",
        streams,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream"),
            ("broken disconnected", "sleep 600: failed"),
            ("woke", "check 5"),
            ("refused disconnected", "sleep 600: failed, news"),
            ("woke", "check 5"),
            ("opened", "read 15000"),
            ("end", "watch 5"),
            ("refused forbidden", "sleep 600: failed, news"),
            ("woke", "check 5"),
            ("refused forbidden", "sleep 600: failed"),
        ],
    ),
    (
        "a doubted position is listed again instead of checked",
        lists_if_doubted,
        &[
            ("start", "first page, maybe old"),
            ("opened", "read 15000: list begins"),
            ("last page @5", "watch 5: listed by pages"),
            ("opened", "read 50000"),
            ("broken silent", "first page: renewed"),
            ("opened", "read 15000: list begins"),
            ("last page @6", "watch 6: listed by pages"),
            ("refused other", "sleep 600: failed, news"),
            ("woke", "watch 6"),
            ("refused disconnected", "sleep 600: failed, news"),
            ("woke", "first page"),
        ],
    ),
    (
        "each server is tried before a pause, and every failure needs a new list",
        lists_always,
        &[
            ("start", "first page, maybe old"),
            ("refused disconnected", "first page, maybe old: failed, news"),
            ("opened", "read 15000: list begins"),
            ("last page @5", "watch 5"),
            ("refused other", "sleep 250: failed, news"),
            ("woke", "first page, maybe old"),
            ("opened", "read 15000: list begins"),
            ("last page @5", "watch 5"),
            ("opened", "read 50000: listed by pages, recovered after 250"),
            ("+31000 broken expired", "first page: failed, news"),
        ],
    ),
    (
        "an unknown kind is empty until it is known",
        absent_is_empty,
        &[
            ("start", "stream"),
            ("refused unknown", "sleep 30000: empty"),
            ("woke", "stream"),
            ("refused unknown", "sleep 30000"),
            ("woke", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream"),
            ("broken other", "sleep 600: failed, news"),
            ("woke", "check 5"),
            ("refused unknown", "sleep 600: failed, news"),
        ],
    ),
    (
        "a forbidden collection counts as listed, and keeps what is known",
        forbidden_is_listed,
        &[
            ("start", "stream"),
            ("refused forbidden", "sleep 300000: forbidden, first"),
            ("woke", "first page"),
            ("refused forbidden", "sleep 300000: forbidden"),
            ("woke", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream"),
            ("broken forbidden", "sleep 300000: forbidden, known"),
            ("woke", "check 5"),
        ],
    ),
    (
        "a resumed watch is checked, and counts after an event",
        streams,
        &[
            ("resume @5", "check 5"),
            ("opened", "read 15000"),
            ("data 1 @9", "read 15000"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("data 1 @6", "read 50000: resumed"),
            ("broken silent", "check 6: renewed"),
            ("refused ahead", "sleep 600: position lost"),
            ("woke", "stream"),
        ],
    ),
    (
        "a resumed watch counts after a silence",
        pages,
        &[
            ("resume @5", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("+1000 broken silent", "read 50000: resumed"),
            ("+1000 end", "watch 5"),
            ("refused expired", "sleep 200: position lost"),
            ("woke", "first page"),
        ],
    ),
    (
        "a resumed watch that ends at its minimum lifetime counts, and one that ends at once does not",
        streams,
        &[
            ("resume @5", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("end", "sleep 600: failed, news"),
            ("woke", "check 5"),
            ("opened", "read 15000"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("+1000 end", "watch 5: resumed"),
            ("opened", "read 1000"),
            ("data 1 @6", "read 50000: recovered after 1600"),
        ],
    ),
    (
        "an expired position is listed again, not from a cache",
        pages,
        &[
            ("resume @5", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("broken expired", "sleep 200: position lost"),
            ("woke", "first page"),
            ("opened", "read 15000: list begins"),
            ("last page @9", "watch 9: listed by pages"),
        ],
    ),
    (
        "storage that was restored is listed again",
        streams,
        &[
            ("resume @5", "check 5"),
            ("refused ahead", "sleep 600: position lost"),
            ("woke", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @2", "read 50000: listed by stream"),
        ],
    ),
    (
        "a server that is down at a resumption leads to a check again",
        streams,
        &[
            ("resume @5", "check 5"),
            ("refused disconnected", "sleep 600: failed, news"),
            ("woke", "check 5"),
            ("end", "watch 5"),
            ("broken disconnected", "sleep 600: failed"),
            ("woke", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("+1000 broken silent", "read 50000: resumed, recovered after 2200"),
        ],
    ),
    (
        "what is known without a position is listed, not from a cache",
        pages,
        &[
            ("resume", "first page"),
            ("opened", "read 15000: list begins"),
            ("last page @9", "watch 9: listed by pages"),
        ],
    ),
    (
        "a source whose positions cannot be checked is listed",
        lists_if_doubted,
        &[("resume @5", "first page"), ("refused other", "sleep 600: failed, news"), ("woke", "first page")],
    ),
    (
        "an unknown kind ends what was remembered",
        absent_is_empty,
        &[("resume @5", "check 5"), ("refused unknown", "sleep 30000: empty"), ("woke", "stream")],
    ),
    (
        "a collection that is forbidden at a resumption counts as listed",
        forbidden_is_listed,
        &[("resume @5", "check 5"), ("refused forbidden", "sleep 300000: forbidden, first"), ("woke", "first page")],
    ),
    (
        "a relay that fails is followed by the next one, from the same position",
        ordered,
        &[
            ("start", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 3000: listed by stream"),
            ("data 1 @6", "read 3000"),
            ("broken disconnected", "sleep 500: failed, moved to 1"),
            ("woke", "check 6"),
            ("opened", "read 15000"),
            ("end", "watch 6"),
            ("opened", "read 3000"),
            ("data 1 @6", "read 3000: recovered"),
        ],
    ),
    (
        "a silent relay is left, and all that are silent are given more time",
        ordered,
        &[
            ("resume @5", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 3000"),
            ("+3000 broken silent", "sleep 500: failed, news, moved to 1"),
            ("woke", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 3000"),
            ("+3000 broken silent", "sleep 500: failed, moved to 0"),
            ("woke", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 6000"),
            ("data 1 @5", "read 3000: resumed, recovered after 4000"),
        ],
    ),
    (
        "a list is not older than what is known, and a relay that is behind is left",
        ordered,
        &[
            ("resume @5", "check 5"),
            ("end", "watch 5"),
            ("refused expired", "sleep 200: position lost"),
            ("woke", "stream, not before 5"),
            ("refused ahead", "sleep 500: failed, news, moved to 1"),
            ("woke", "stream, not before 5"),
            ("refused unsupported", "first page, not before 5: uses pages"),
            ("opened", "read 15000: list begins"),
            ("page c", "page c"),
            ("broken disconnected", "sleep 500: failed, news, moved to 0"),
            ("woke", "stream, not before 5"),
        ],
    ),
    (
        "the server is asked after a time without a relay, and a relay that is found continues the watch",
        ordered,
        &[
            ("resume @5", "check 5"),
            ("refused disconnected", "sleep 500: failed, news, moved to 1"),
            ("+59000 woke", "check 5"),
            ("refused disconnected", "sleep 500: failed, moved to 0"),
            ("+59000 woke", "check 5"),
            ("refused disconnected", "sleep 600: failed, moved to 2"),
            ("woke", "check 5"),
            ("end", "watch 5"),
            ("opened", "read 1000"),
            ("data 1 @6", "read 50000: resumed, recovered after 119600"),
            ("relay found", "watch 6: returned to 0"),
            ("opened", "read 3000"),
        ],
    ),
    (
        "the server is asked whether its storage was restored, if all sources are behind",
        ordered,
        &[
            ("resume @5", "check 5"),
            ("refused ahead", "sleep 500: failed, news, moved to 1"),
            ("+90000 woke", "check 5"),
            ("refused ahead", "sleep 500: failed, moved to 2"),
            ("woke", "confirm 5"),
            ("opened", "read 15000"),
            ("broken restored", "sleep 200: position lost"),
            ("woke", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @2", "read 50000: listed by stream, recovered after 91200"),
        ],
    ),
    (
        "what is known without a position is listed at the server",
        ordered,
        &[
            ("resume", "stream: moved to 2"),
            ("refused disconnected", "sleep 600: failed, news, moved to 2"),
            ("woke", "stream"),
            ("opened", "read 15000: list begins"),
            ("list end @5", "read 50000: listed by stream, recovered after 600"),
            ("broken disconnected", "sleep 600: failed, moved to 1"),
            ("woke", "check 5"),
        ],
    ),
    (
        "a restoration that is not followed by a list is proved again",
        ordered,
        &[
            ("resume @5", "check 5"),
            ("refused restored", "sleep 200: position lost"),
            ("woke", "stream"),
            ("refused disconnected", "sleep 500: failed, news, moved to 1"),
            ("woke", "stream, not before 5"),
        ],
    ),
    (
        "a relay does not decide that a kind is unknown",
        ordered_absent_is_empty,
        &[
            ("start", "stream"),
            ("refused unknown", "sleep 500: failed, news, moved to 1"),
            ("+90000 woke", "first page, maybe old"),
            ("refused unknown", "sleep 500: failed, moved to 2"),
            ("woke", "stream"),
            ("refused unknown", "sleep 30000: empty, recovered after 91000"),
        ],
    ),
    (
        "an event that does not belong to the action repeats the request",
        pages,
        &[
            ("start", "first page, maybe old"),
            ("woke", "first page, maybe old"),
            ("page c", "page c"),
            ("woke", "page c"),
        ],
    ),
];

#[test]
fn follows_the_table() {
    for (name, policy, steps) in ROWS {
        let mut stage = Stage { machine: Machine::new(policy()), now: Instant::START };
        for (number, (event, expected)) in steps.iter().enumerate() {
            assert_eq!(stage.play(event), *expected, "{name}: step {number}, {event}");
        }
    }
}

fn streams() -> Policy {
    Policy::default()
}

fn pages() -> Policy {
    Policy { streams: false, ..Policy::default() }
}

fn lists_if_doubted() -> Policy {
    Policy { resume: Resume::ListIfDoubted, ..pages() }
}

fn lists_always() -> Policy {
    let (min, max, calm) = (Duration::from_millis(200), Duration::from_secs(10), Duration::from_secs(30));
    let backoff = BackoffRule::Doubling { min, max, calm, servers: 2 };
    Policy { resume: Resume::List, counts_from_watch: true, backoff, ..pages() }
}

/// Two relays and a server.
fn ordered() -> Policy {
    let seconds = Duration::from_secs;
    let order = Order {
        relays: 2,
        has_server: true,
        reconnect: seconds(1),
        silence: seconds(3),
        patience: seconds(30),
        spread: seconds(60),
        behind: seconds(60),
    };
    Policy { order: Some(order), ..streams() }
}

fn ordered_absent_is_empty() -> Policy {
    Policy { unknown_is_empty: true, ..ordered() }
}

fn absent_is_empty() -> Policy {
    Policy { unknown_is_empty: true, ..streams() }
}

fn forbidden_is_listed() -> Policy {
    Policy { forbidden_is_listed: true, ..streams() }
}

/// Machine with its clock.
struct Stage {
    machine: Machine<u64, String>,
    now: Instant,
}

impl Stage {
    /// Plays an event and describes the step.
    fn play(&mut self, event: &str) -> String {
        let (wait, event) = event.strip_prefix('+').and_then(|rest| rest.split_once(' ')).unwrap_or(("0", event));
        self.now = self.now + Duration::from_millis(wait.parse().unwrap());
        if event == "start" {
            return action(&self.machine.start(self.now));
        }
        if let Some(position) = event.strip_prefix("resume") {
            let earlier = match position.strip_prefix(" @") {
                Some(position) => Earlier::Complete(position.parse().unwrap()),
                None => Earlier::Partial(None),
            };
            let first = action(&self.machine.resume(earlier, self.now));
            let notices: Vec<String> = self.machine.take_notices().iter().map(notice).collect();
            return if notices.is_empty() { first } else { format!("{first}: {}", notices.join(", ")) };
        }
        let Step { action: next, notices } = self.machine.on(parse(event), self.now, 0.5);
        if let Action::Sleep(pause) = next {
            self.now = self.now + pause;
        }
        let notices: Vec<String> = notices.iter().map(notice).collect();
        if notices.is_empty() { action(&next) } else { format!("{}: {}", action(&next), notices.join(", ")) }
    }
}

fn parse(event: &str) -> Event<u64, String> {
    let (text, position) = event.split_once(" @").unwrap_or((event, ""));
    let at = position.parse().ok();
    match text.split(' ').collect::<Vec<_>>()[..] {
        ["opened"] => Event::Opened,
        ["woke"] => Event::Woke,
        ["end"] => Event::Read(Received::End),
        ["relay", "found"] => Event::Read(Received::RelayFound),
        ["data", events] => {
            let events = events.parse().unwrap();
            Event::Read(Received::Data { events, position: at, ends_list: false })
        }
        ["list", "end"] => Event::Read(Received::Data { events: 1, position: at, ends_list: true }),
        ["page", cursor] => Event::Read(Received::PageEnd(Page::Next(cursor.to_owned()))),
        ["last", "page"] => Event::Read(Received::PageEnd(Page::Last(at.unwrap()))),
        ["refused", reason] => Event::OpenFailed(failure(reason)),
        ["broken", reason] => Event::ReadFailed(failure(reason)),
        _ => panic!("{event}"),
    }
}

fn failure(reason: &str) -> Failure {
    let kinds = [
        ("expired", FailureKind::Expired),
        ("ahead", FailureKind::Ahead),
        ("incomplete", FailureKind::Incomplete),
        ("restored", FailureKind::Restored),
        ("disconnected", FailureKind::Disconnected),
        ("unsupported", FailureKind::Unsupported),
        ("unknown", FailureKind::Unknown),
        ("forbidden", FailureKind::Forbidden),
        ("internal", FailureKind::Internal),
        ("silent", FailureKind::Silent),
        ("other", FailureKind::Other),
    ];
    let (reason, kind) = kinds.into_iter().find(|(name, _)| *name == reason).unwrap();
    Failure { is_transient: kind == FailureKind::Disconnected, ..Failure::new(kind, reason) }
}

fn action(action: &Action<u64, String>) -> String {
    match action {
        Action::Open(Request::Stream { not_before }) => format!("stream{}", bound(not_before.as_ref())),
        Action::Open(Request::Page { cursor, may_be_old, not_before }) => {
            let page = cursor.as_ref().map_or("first page".to_owned(), |cursor| format!("page {cursor}"));
            let age = if *may_be_old { ", maybe old" } else { "" };
            format!("{page}{age}{}", bound(not_before.as_ref()))
        }
        Action::Open(Request::Check { position }) => format!("check {position}"),
        Action::Open(Request::Confirm { position }) => format!("confirm {position}"),
        Action::Open(Request::Watch { position }) => format!("watch {position}"),
        Action::Read { silence } => format!("read {}", silence.as_millis()),
        Action::Sleep(pause) => format!("sleep {}", pause.as_millis()),
    }
}

fn bound(not_before: Option<&u64>) -> String {
    not_before.map_or(String::new(), |position| format!(", not before {position}"))
}

fn notice(notice: &Notice) -> String {
    match notice {
        Notice::ListBegins => "list begins".to_owned(),
        Notice::Listed(Transfer::Stream) => "listed by stream".to_owned(),
        Notice::Listed(Transfer::Pages) => "listed by pages".to_owned(),
        Notice::Resumed => "resumed".to_owned(),
        Notice::AssumedEmpty => "empty".to_owned(),
        Notice::AssumedListed { is_first: true, .. } => "forbidden, first".to_owned(),
        Notice::AssumedListed { is_known: true, .. } => "forbidden, known".to_owned(),
        Notice::AssumedListed { .. } => "forbidden".to_owned(),
        Notice::UsesPages => "uses pages".to_owned(),
        Notice::Renewed => "renewed".to_owned(),
        Notice::Moved { source } => format!("moved to {source}"),
        Notice::Returned { source } => format!("returned to {source}"),
        Notice::PositionLost => "position lost".to_owned(),
        Notice::Failed { is_news } => format!("failed{}", if *is_news { ", news" } else { "" }),
        Notice::Recovered { after: None } => "recovered".to_owned(),
        Notice::Recovered { after: Some(after) } => format!("recovered after {}", after.as_millis()),
    }
}
