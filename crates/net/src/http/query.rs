//! Call into the engine for a request.

use engine::{Progress, Transaction};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver};
use tokio::task::AbortHandle;

use crate::connected::Client;

impl Client {
    /// Runs a query and encodes the answer. Returns `None` if the query gets no answer. Dropping the future cancels the
    /// query.
    pub(crate) async fn ask<T: 'static>(&self, query: &[u8], encode: fn(&[u8]) -> T) -> Option<T> {
        match self.ask_or_wait(query, encode) {
            Ok(answer) => answer,
            Err(waiting) => waiting.answer().await,
        }
    }

    /// Returns the answer to a query, or the query if it waits for one.
    fn ask_or_wait<T: 'static>(&self, query: &[u8], encode: fn(&[u8]) -> T) -> Result<Option<T>, WaitingQuery<T>> {
        let finish = move |transaction: &mut Transaction, progress| {
            let Transaction { query, response, .. } = transaction;
            (progress == Progress::Answered).then(|| encode(response.finish(query)))
        };
        let (seen, mut transaction, progress) = self.receive(query);
        let answer = if progress == Progress::Waiting {
            let (sender, answer) = oneshot::channel();
            let task = self.shared.park(&seen.generation, transaction, move |transaction, progress| {
                drop(sender.send(finish(transaction, progress)));
            });
            Err(WaitingQuery { answer, task })
        } else {
            let answer = finish(&mut transaction, progress);
            self.shared.worker.borrow_mut().give_transaction(transaction);
            Ok(answer)
        };
        self.shared.end_batch(&seen.generation, 0);
        answer
    }
}

/// Query that waits for an upstream. Dropping it before the answer arrives cancels the query.
struct WaitingQuery<T> {
    answer: Receiver<Option<T>>,
    task: Option<AbortHandle>,
}

impl<T> WaitingQuery<T> {
    async fn answer(mut self) -> Option<T> {
        let answer = (&mut self.answer).await;
        // After its answer, a task may refresh the cache.
        self.task = None;
        answer.ok().flatten()
    }
}

impl<T> Drop for WaitingQuery<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take()
            && matches!(self.answer.try_recv(), Err(TryRecvError::Empty))
        {
            task.abort();
        }
    }
}
