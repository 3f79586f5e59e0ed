use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::connections::{ConnectionTable, TableLimits};

const LIMITS: TableLimits = TableLimits { open_max: 100, per_address_max: 100, buffered_max: 1 << 20 };

/// Times of CoreDNS: 3 s to read, 5 s to write, 10 s idle.
fn activity(is_http1: bool) -> Rc<Activity> {
    let (connection, _) = ConnectionTable::new(LIMITS).admit(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Activity::new(&Arc::new(connection), StreamLimits::default(), is_http1)
}

/// Returns the seconds until the next deadline, rounded, and what it means.
fn next(activity: &Activity) -> (f64, Stop) {
    let now = Instant::now();
    let (at, stop) = activity.next_deadline(now);
    ((at - now).as_secs_f64().round(), stop)
}

fn ago(seconds: u64) -> Instant {
    Instant::now() - Duration::from_secs(seconds)
}

#[test]
fn an_idle_connection_ends_after_the_idle_time() {
    let activity = activity(false);
    activity.last.set(ago(9));
    assert_eq!(next(&activity), (1.0, Stop::Idle));
    drop(OpenRequest::new(&activity));
    assert_eq!(next(&activity).1, Stop::Stalled, "deadlines that do not run yet are looked at before");
    assert_eq!(activity.last.get().elapsed().as_secs(), 0);
}

#[test]
fn a_request_has_a_deadline_from_its_first_byte() {
    let activity = activity(true);
    activity.began.set(Some(ago(2)));
    assert_eq!(next(&activity), (1.0, Stop::Stalled), "the first request begins with the connection");
    let open = OpenRequest::new(&activity);
    assert_eq!((open.whole_by - Instant::now()).as_secs_f64().round(), 1.0, "the body has the rest of the time");
    drop(open);
    assert_eq!(activity.began.get(), None);
    activity.has_read(1);
    assert!(activity.began.get().is_some());
}

#[test]
fn an_open_request_keeps_the_connection() {
    let activity = activity(true);
    activity.last.set(ago(60));
    assert_eq!(next(&activity).1, Stop::Idle);
    let _open = OpenRequest::new(&activity);
    activity.has_read(1);
    assert_eq!(next(&activity), (3.0, Stop::Stalled), "nothing is due");
    assert_eq!(activity.began.get(), None, "bytes of the body do not begin a request");
}

#[test]
fn a_client_that_does_not_read_has_a_deadline() {
    let activity = activity(false);
    let _open = OpenRequest::new(&activity);
    activity.has_written(false);
    activity.blocked.set(Some(ago(4)));
    activity.has_written(false);
    assert_eq!(next(&activity), (1.0, Stop::Stalled));
    activity.has_written(true);
    activity.add_unread();
    activity.add_unread();
    activity.taken.set(ago(4));
    assert_eq!(next(&activity), (1.0, Stop::Stalled));
    activity.remove_unread();
    assert_eq!(next(&activity), (3.0, Stop::Stalled), "each answer that is read starts the time again");
}
