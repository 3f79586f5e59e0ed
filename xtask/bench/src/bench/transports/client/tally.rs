//! Count of the answers of all connections, and the first failure.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Notify;

use super::question;
use xtask::Failed;

/// Count of the answers of all connections, and the first failure.
#[derive(Default)]
pub(crate) struct Tally {
    answers: Cell<u64>,
    failure: RefCell<Option<Failed>>,
    changed: Notify,
}

impl Tally {
    /// Counts an answer.
    ///
    /// # Errors
    /// Fails if the message does not answer the query.
    pub(crate) fn count(&self, message: &[u8]) -> Result<(), Failed> {
        question::check(message)?;
        self.answers.set(self.answers.get() + 1);
        self.changed.notify_one();
        Ok(())
    }

    pub(crate) fn answers(&self) -> u64 {
        self.answers.get()
    }

    /// Keeps the first failure of a connection.
    pub(crate) fn note(&self, ended: Result<(), Failed>) {
        if let Err(failure) = ended {
            self.failure.borrow_mut().get_or_insert(failure);
            self.changed.notify_one();
        }
    }

    /// Returns the first failure, if there was one.
    pub(crate) fn check(&self) -> Result<(), Failed> {
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Waits for the first failure.
    pub(crate) async fn failed(&self) {
        while self.check().is_ok() {
            self.changed.notified().await;
        }
    }

    /// Waits until there are this many answers.
    ///
    /// # Errors
    /// The first failure, or that the time is over.
    pub(crate) async fn wait_for(&self, answers: u64, patience: Duration) -> Result<(), Failed> {
        let arrived = async {
            while self.answers() < answers && self.check().is_ok() {
                self.changed.notified().await;
            }
        };
        let arrived = tokio::time::timeout(patience, arrived).await;
        self.check()?;
        arrived.map_err(|_| format!("no answer {answers} after {patience:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_first_failure() {
        let tally = Tally::default();
        tally.note(Ok(()));
        assert_eq!(tally.check(), Ok(()));
        tally.note(Err("first".to_owned()));
        tally.note(Err("second".to_owned()));
        assert_eq!(tally.check(), Err("first".to_owned()));
        assert_eq!(tally.answers(), 0);
    }
}
