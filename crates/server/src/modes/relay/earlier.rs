//! Changes before the first list: a watch of the API server from a version that subscribers ask for.

use std::rc::Rc;
use std::time::Duration;

use kubeapi::decode::{RawEvent, RawEvents};
use kubeapi::{RawClient, RawError};
use relay::{EARLIER_MAX, Earlier, EventType, Kind, ObjectError};
use tokio::time::{sleep, timeout};

use super::LOG;
use super::hub::{Hub, now};
use super::url::url;

/// Interval between looks at what subscribers ask for.
const LOOK: Duration = Duration::from_millis(100);
/// `timeoutSeconds` of the watch. The API server sends a bookmark 2 s before its end, which shows that a kind without
/// further changes has no more of them.
const WATCH_SECONDS: &str = "3";

/// Reason why the changes cannot be had.
#[derive(Debug, thiserror::Error)]
enum EarlierError {
    #[error("the API server does not say whether there are more")]
    Silent,
    #[error("the watch has ended before the last change")]
    Ended,
    #[error("there are too many")]
    TooMany,
    #[error(transparent)]
    Failed(#[from] RawError),
    #[error(transparent)]
    Invalid(#[from] ObjectError),
    /// The API server's own words.
    #[error("{0}")]
    Refused(String),
}

/// Reads the changes when subscribers need them. Returns when they cannot need them any more.
pub(super) async fn read(hub: Rc<Hub>, client: Rc<RawClient>, kind: Kind) {
    while hub.relay.borrow().may_need_earlier(kind) {
        sleep(LOOK).await;
        let earlier = hub.relay.borrow_mut().begin_earlier(kind, now());
        let Some(mut earlier) = earlier else { continue };
        let (resource, from) = (kind.resource(), earlier.from());
        let watched = timeout(EARLIER_MAX, watch(&client, kind, &mut earlier)).await;
        if let Err(reason) = watched.unwrap_or(Err(EarlierError::Silent)) {
            earlier.fail();
            tracing::info!(target: LOG, "Cannot get the changes of {resource} since version {from}: {reason}");
        } else {
            tracing::info!(target: LOG, "Got the changes of {resource} since version {from}");
        }
        hub.change(|relay| relay.end_earlier(earlier, now()));
    }
}

/// Reads a watch until it has all changes.
async fn watch(client: &RawClient, kind: Kind, earlier: &mut Earlier) -> Result<(), EarlierError> {
    let from = earlier.from().to_string();
    let parameters = [
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", WATCH_SECONDS),
        ("resourceVersion", from.as_str()),
    ];
    let mut response = client.get(&url(kind, &parameters)).await?;
    let mut decoder = RawEvents::default();
    while !earlier.is_complete() {
        let chunk = response.next(EARLIER_MAX).await?;
        let chunk = chunk.ok_or(EarlierError::Ended)?;
        let mut added = Ok(());
        decoder
            .feed(&chunk, &mut |event| {
                if added.is_ok() {
                    added = add(earlier, event);
                }
            })
            .map_err(RawError::from)?;
        added?;
        if earlier.is_too_large() {
            return Err(EarlierError::TooMany);
        }
    }
    Ok(())
}

fn add(earlier: &mut Earlier, event: RawEvent<'_>) -> Result<(), EarlierError> {
    match event {
        RawEvent::Added(object) => earlier.add(EventType::Added, object)?,
        RawEvent::Modified(object) => earlier.add(EventType::Modified, object)?,
        RawEvent::Deleted(object) => earlier.add(EventType::Deleted, object)?,
        RawEvent::Bookmark { version, .. } => earlier.note_bookmark(version.parse().unwrap_or_default()),
        RawEvent::Refused { message, .. } => return Err(EarlierError::Refused(message.to_owned())),
        RawEvent::Unreadable(reason) => return Err(EarlierError::Refused(reason.to_owned())),
    }
    Ok(())
}
