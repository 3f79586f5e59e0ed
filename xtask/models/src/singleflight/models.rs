//! Queries of several workers with the same key, of which one may be cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::future::block_on;
use loom::thread;

use super::*;
use crate::stubs::BlockId;

/// Asks like `engine::park`. Returns the outcome, or `None` if this query is cancelled while it leads.
fn ask(singleflight: &Singleflight, exchanges: &AtomicUsize, is_cancelled: bool) -> Option<usize> {
    let query = Query::default();
    loop {
        match singleflight.join(Key::new(BlockId(0), 0, &query), &query, "forward") {
            Join::Leader(_) if is_cancelled => return None,
            Join::Leader(leader) => {
                // A number of loom would add schedules that make no difference.
                let outcome = Resolved(exchanges.fetch_add(1, Ordering::Relaxed));
                leader.publish(&outcome, &query);
                return Some(outcome.0);
            }
            Join::Waiter(answer) => {
                if let Ok(reply) = block_on(answer) {
                    return Some(reply.resolved.0);
                }
            }
        }
    }
}

/// Runs three queries, of which the first may be cancelled, and returns the outcomes and the number of exchanges.
fn ask_three(is_cancelled: bool) -> (Vec<Option<usize>>, usize) {
    let (singleflight, exchanges) = (Arc::new(Singleflight::default()), Arc::new(AtomicUsize::new(0)));
    let others = [is_cancelled, false].map(|is_cancelled| {
        let (singleflight, exchanges) = (Arc::clone(&singleflight), Arc::clone(&exchanges));
        thread::spawn(move || ask(&singleflight, &exchanges, is_cancelled))
    });
    let own = ask(&singleflight, &exchanges, false);
    let mut outcomes = vec![own];
    outcomes.extend(others.map(|other| other.join().unwrap()));
    assert!(singleflight.waiting.lock().unwrap().is_empty(), "no exchange is left");
    (outcomes, exchanges.load(Ordering::Relaxed))
}

#[test]
fn each_query_gets_the_outcome_of_an_exchange() {
    loom::model(|| {
        let (outcomes, exchanges) = ask_three(false);
        assert!((1..=3).contains(&exchanges));
        assert!(outcomes.iter().all(|outcome| outcome.is_some_and(|number| number < exchanges)), "{outcomes:?}");
    });
}

#[test]
fn a_leader_that_is_cancelled_takes_no_other_query_along() {
    loom::model(|| {
        let (outcomes, exchanges) = ask_three(true);
        assert!((1..=3).contains(&exchanges));
        assert!(outcomes[0].is_some() && outcomes[2].is_some(), "{outcomes:?}");
    });
}
