//! Clients that count unanswered queries while servers come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Client threads that send queries until the end of the test and count those without an answer.
pub(crate) struct Asker {
    ends: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    missed: Arc<AtomicUsize>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Asker {
    /// Starts a thread per function. A function sends one query and returns true if it was answered.
    pub(crate) fn start(asks: Vec<Box<dyn FnMut() -> bool + Send>>) -> Asker {
        let (ends, asked, missed) = Default::default();
        let mut asker = Asker { ends, asked, missed, threads: Vec::new() };
        for mut ask in asks {
            let (ends, asked, missed) = (Arc::clone(&asker.ends), Arc::clone(&asker.asked), Arc::clone(&asker.missed));
            asker.threads.push(std::thread::spawn(move || {
                while !ends.load(Ordering::SeqCst) {
                    asked.fetch_add(1, Ordering::SeqCst);
                    if !ask() {
                        missed.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }));
        }
        asker
    }

    /// Ends the threads. Returns the numbers of queries and of those without an answer.
    pub(crate) fn end(self) -> (usize, usize) {
        self.ends.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        (self.asked.load(Ordering::SeqCst), self.missed.load(Ordering::SeqCst))
    }
}
