//! Follows one store until dropped: lists it, watches it from there, and continues with the next member after a
//! failure.
//!
//! [`listwatch`] decides on the requests, and [`Follower`] is its source. A list has pages for each range. After a
//! failure, the ranges are always listed completely, even where a watch could resume. The reason is that a store that
//! was emptied or restored from a backup may count its revisions differently. Compaction thus needs no special
//! handling. The reducer only applies the differences.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host::Clock;
use host::invariant::{Expected as _, holds};
use listwatch::{Failure, Notice, Page, Received, Source, Transfer};
use rand::RngExt;
use rand::rngs::StdRng;
use skydns::{Event, Pair, Range, RecordError, Reducer, Request};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};
use transport::MonotonicClock;

use crate::client::{Client, Messages};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::EtcdError;
use crate::meter::Meter;
use crate::proto::{KeyValue, RangeResponse, WatchEvent, WatchResponse};
use crate::{LOG, Timing};

/// Keys per page of a list, as long as they fit into a message.
const PAGE: i64 = 2000;
const PAGE_STEP: i64 = 8;
/// Maximum number of leases to look up in a row. The requests are sent one at a time.
const LEASES: usize = 256;
/// Event type of a deletion.
const DELETION: i32 = 1;

/// Follows one store.
pub(crate) struct Follower {
    request: Request,
    ranges: Vec<Range>,
    endpoints: Vec<Endpoint>,
    /// Index of the current member.
    member: usize,
    store: Rc<Store>,
    timing: Rc<Timing>,
    random: StdRng,
    start: Instant,
    client: Option<Client>,
    reading: Option<Reading>,
}

/// Copy of the store.
struct Store {
    reducer: RefCell<Reducer>,
    meter: Rc<Meter>,
    /// Notified when there may be new leases to look up.
    leases: Notify,
    /// Interval between checks for leases to look up.
    interval: Duration,
}

/// Ranges with the first revision to watch.
type Position = Vec<(Range, i64)>;

/// Start of a page.
#[derive(Clone)]
pub(crate) struct Cursor {
    /// Ranges that are listed.
    listed: Position,
    /// Index of the range that is being listed.
    range: usize,
    /// Start of the page, if it is not that of the range.
    from: Option<Vec<u8>>,
    /// Revision of the list of this range, or 0 before its first page.
    revision: i64,
    /// Number of keys to request.
    limit: i64,
}

impl Cursor {
    fn first() -> Cursor {
        Cursor { listed: Vec::new(), range: 0, from: None, revision: 0, limit: PAGE }
    }
}

/// Response that is being read.
enum Reading {
    Page {
        /// Part of the range that was listed, with its keys, unless it is left out.
        listed: Option<(Range, Vec<KeyValue>)>,
        next: Page<Position, Cursor>,
    },
    Watch {
        events: Messages,
        /// Looks up the remaining time of leases. It ends with an error of the connection.
        leases: Pin<Box<dyn Future<Output = EtcdError>>>,
    },
}

impl Follower {
    /// Creates a follower of a store with at least one endpoint.
    pub(crate) fn new(
        request: Request,
        endpoints: Vec<Endpoint>,
        reducer: Reducer,
        timing: &Rc<Timing>,
        meter: &Rc<Meter>,
    ) -> Follower {
        let (reducer, meter, interval) = (RefCell::new(reducer), Rc::clone(meter), timing.leases);
        Follower {
            ranges: request.ranges(),
            request,
            endpoints,
            member: 0,
            store: Rc::new(Store { reducer, meter, leases: Notify::new(), interval }),
            timing: Rc::clone(timing),
            random: rand::make_rng(),
            start: Instant::now(),
            client: None,
            reading: None,
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        if !self.endpoints.is_empty() {
            let policy = self.timing.policy(self.endpoints.len());
            listwatch::run(&mut self, policy).await;
        }
    }

    fn endpoint(&self) -> &Endpoint {
        holds(self.member < self.endpoints.len(), "the member in use is one of the endpoints");
        &self.endpoints[self.member]
    }

    /// Connects to the current member.
    async fn connect(&self) -> Result<Client, EtcdError> {
        let connection = Connection::open(self.endpoint(), self.request.tls.as_ref(), &self.timing).await?;
        Client::new(connection, self.endpoint(), self.request.credentials.clone(), &self.timing).await
    }

    /// Requests a page. If the zone's own key cannot be read, the page leaves it out: a permission for the keys below a
    /// zone does not include the key of the zone.
    async fn page(&mut self, mut cursor: Cursor) -> Result<Reading, EtcdError> {
        let Some(range) = self.ranges.get(cursor.range).cloned() else {
            return Ok(Reading::Page { listed: None, next: Page::Last(cursor.listed) });
        };
        let from = cursor.from.take().unwrap_or_else(|| range.from.clone());
        let rest = Range { from, ..range.clone() };
        let RangeResponse { header, kvs, more } = match self.request_page(&rest, &mut cursor).await {
            Err(EtcdError::Forbidden(_)) if range.is_single => {
                return Ok(Reading::Page { listed: None, next: self.next_range(cursor, None) });
            }
            response => response?,
        };
        if cursor.revision == 0 {
            cursor.revision = header.map_or(0, |header| header.revision);
        }
        let next = kvs.last().filter(|_| more).map(|last| [&last.key[..], b"\0"].concat());
        let to = next.clone().unwrap_or_else(|| range.to.clone());
        let next = match next {
            Some(next) => Page::Next(Cursor { from: Some(next), ..cursor }),
            None => self.next_range(cursor, Some(range)),
        };
        Ok(Reading::Page { listed: Some((Range { to, ..rest }, kvs)), next })
    }

    /// Requests the keys of a range, fewer if they do not fit into a message.
    async fn request_page(&mut self, range: &Range, cursor: &mut Cursor) -> Result<RangeResponse, EtcdError> {
        loop {
            match self.client()?.range(range, cursor.limit, cursor.revision).await {
                Err(EtcdError::TooLong) if cursor.limit > 1 => cursor.limit = (cursor.limit / PAGE_STEP).max(1),
                response => return response,
            }
        }
    }

    fn client(&mut self) -> Result<&mut Client, EtcdError> {
        self.client.as_mut().ok_or_else(EtcdError::ended)
    }

    /// Returns the start of the next range, or the position if all are listed. `done` is the current range, unless it
    /// is left out.
    fn next_range(&self, cursor: Cursor, done: Option<Range>) -> Page<Position, Cursor> {
        let Cursor { mut listed, range, revision, .. } = cursor;
        listed.extend(done.map(|done| (done, revision + 1)));
        let range = range + 1;
        holds(listed.len() <= range && range <= self.ranges.len(), "each range is listed once");
        if range < self.ranges.len() {
            Page::Next(Cursor { listed, range, ..Cursor::first() })
        } else {
            Page::Last(listed)
        }
    }

    async fn watch(&mut self, position: &Position) -> Result<Reading, EtcdError> {
        let client = self.client()?;
        let events = client.watch(position.iter().map(|(range, revision)| (range, *revision))).await?;
        let client = client.clone();
        let leases = Box::pin(query_leases(Rc::clone(&self.store), client));
        Ok(Reading::Watch { events, leases })
    }

    /// Logs a failure and continues with the next member.
    fn failed(&mut self, failure: &EtcdError, is_news: bool) {
        self.store.reducer.borrow().set_lost();
        self.store.meter.failure(failure);
        let endpoint = self.endpoint();
        match failure {
            _ if !is_news => {}
            EtcdError::Tls(_) | EtcdError::Credentials(_) | EtcdError::Forbidden(_) => {
                error!(target: LOG, "Failed to follow {endpoint}: {failure}");
            }
            _ => warn!(target: LOG, "Failed to follow {endpoint}: {failure}"),
        }
        self.member = (self.member + 1) % self.endpoints.len();
    }
}

impl Source for Follower {
    type Position = Position;
    type Cursor = Cursor;
    type Error = EtcdError;

    async fn open(&mut self, request: listwatch::Request<Position, Cursor>) -> Result<(), EtcdError> {
        self.reading = None;
        self.reading = Some(match request {
            listwatch::Request::Page { cursor: Some(cursor), .. } => self.page(cursor).await?,
            listwatch::Request::Page { cursor: None, .. } | listwatch::Request::Stream { .. } => {
                self.client = None;
                self.client = Some(self.connect().await?);
                self.page(Cursor::first()).await?
            }
            listwatch::Request::Watch { position }
            | listwatch::Request::Check { position }
            | listwatch::Request::Confirm { position } => self.watch(&position).await?,
        });
        Ok(())
    }

    /// Reads the next part. Pings of the connection find silence, so that no other timeout is needed.
    async fn read(&mut self, _: Duration) -> Result<Received<Position, Cursor>, EtcdError> {
        if let Some(Reading::Watch { events, leases }) = &mut self.reading {
            let response = tokio::select! {
                response = events.next::<WatchResponse>() => response?,
                failure = leases => return Err(failure),
            };
            return self.store.apply_response(response);
        }
        let reading = self.reading.take().expected("a response that is read");
        let Some(Reading::Page { listed, next }) = reading else { return Ok(Received::End) };
        if let Some((range, kvs)) = listed {
            self.store.apply_page(&range, &kvs);
        }
        Ok(Received::PageEnd(next))
    }

    async fn sleep(&mut self, pause: Duration) {
        (self.reading, self.client) = (None, None);
        sleep(pause).await;
    }

    fn now(&self) -> host::Instant {
        host::Instant::START + self.start.elapsed()
    }

    fn jitter(&mut self) -> f64 {
        self.random.random()
    }

    fn classify(&self, error: &EtcdError) -> Failure {
        Failure { reason: (self.member, error.label()), ..Failure::new(error.kind(), error.label()) }
    }

    fn notify(&mut self, notice: Notice, error: Option<&EtcdError>) {
        match notice {
            Notice::Listed(Transfer::Pages | Transfer::Stream) => {
                self.store.reducer.borrow().set_listed();
                self.store.meter.list();
            }
            Notice::Failed { is_news } => {
                let ended = EtcdError::ended();
                self.failed(error.unwrap_or(&ended), is_news);
            }
            Notice::Recovered { after: Some(after) } => {
                info!(target: LOG, "Following {} after {:.1} s", self.endpoint(), after.as_secs_f32());
            }
            _ => {}
        }
    }
}

impl Store {
    fn apply_page(&self, range: &Range, kvs: &[KeyValue]) {
        let pairs: Vec<Pair<'_>> = kvs.iter().map(pair).collect();
        self.reducer.borrow_mut().list(range, &pairs, now_seconds(), &mut |key, error| self.on_error(key, error));
        self.leases.notify_one();
    }

    /// Applies a response to a watch, or returns the reason for its end.
    fn apply_response(&self, response: Option<WatchResponse>) -> Result<Received<Position, Cursor>, EtcdError> {
        let response = response.ok_or_else(EtcdError::ended)?;
        if response.canceled {
            return Err(canceled(response));
        }
        if !response.events.is_empty() {
            self.take(&response.events);
        }
        Ok(Received::Data { events: response.events.len() as u64, position: None, ends_list: false })
    }

    fn take(&self, events: &[WatchEvent]) {
        let changes: Vec<Event<'_>> = events.iter().filter_map(event).collect();
        self.reducer.borrow_mut().apply(&changes, now_seconds(), &mut |key, error| self.on_error(key, error));
        self.meter.events(changes.len());
        self.leases.notify_one();
    }

    fn on_error(&self, key: &[u8], error: &RecordError) {
        self.meter.refused(key, error);
    }
}

/// Looks up the remaining time of leases as they become due, until the connection fails.
async fn query_leases(store: Rc<Store>, mut client: Client) -> EtcdError {
    loop {
        let Err(failure) = query_due_leases(&store, &mut client).await else { continue };
        return failure;
    }
}

async fn query_due_leases(store: &Store, client: &mut Client) -> Result<(), EtcdError> {
    let due = store.reducer.borrow_mut().leases_due(now_nanos(), LEASES);
    for id in &due {
        let left = match client.lease(*id).await {
            // Without a response, assume that the lease may end at any moment. This is the safe choice.
            Err(EtcdError::Forbidden(_) | EtcdError::Refused(_)) => None,
            left => left?,
        };
        store.reducer.borrow_mut().set_lease(*id, left, now_nanos());
    }
    if due.len() < LEASES {
        // Check again after the interval or a notification.
        let _ = tokio::time::timeout(store.interval, store.leases.notified()).await;
    }
    Ok(())
}

fn pair(kv: &KeyValue) -> Pair<'_> {
    Pair { key: &kv.key, value: &kv.value, lease: kv.lease }
}

fn event(event: &WatchEvent) -> Option<Event<'_>> {
    let kv = event.kv.as_ref()?;
    Some(if event.kind == DELETION { Event::Delete(&kv.key) } else { Event::Put(pair(kv)) })
}

/// Converts a canceled watch to an error.
fn canceled(response: WatchResponse) -> EtcdError {
    match response.cancel_reason {
        _ if response.compact_revision > 0 => EtcdError::Compacted,
        reason if reason.contains("permission denied") => EtcdError::Forbidden(reason),
        reason if reason.contains("auth token") => EtcdError::Credentials(reason),
        reason => EtcdError::Refused(format!("it ended the watch: {reason}")),
    }
}

fn now_nanos() -> u64 {
    MonotonicClock.now().nanos()
}

fn now_seconds() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
