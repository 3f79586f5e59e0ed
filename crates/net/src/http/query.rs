//! Call into the engine for a request.

use std::sync::Arc;

use engine::{Progress, Transaction};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver};
use tokio::task::AbortHandle;

use crate::connected::Client;
use crate::connections::Reserved;

/// Encoded answer with the reservation for its bytes, made before it was encoded.
pub(crate) type Answer<T> = Result<(T, Reserved), NoAnswer>;

/// Reason why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The query gets no answer.
    Dropped,
    /// The budget for buffers has no room for the answer.
    NoRoom,
}

impl Client {
    /// Runs a query, reserves the bytes of the answer, and encodes it. Dropping the future cancels the query.
    pub(crate) async fn ask<T: 'static>(&self, query: &[u8], encode: fn(&[u8]) -> T) -> Answer<T> {
        match self.ask_or_wait(query, encode) {
            Ok(answer) => answer,
            Err(waiting) => waiting.answer().await,
        }
    }

    /// Returns the answer to a query, or the query if it waits for one.
    fn ask_or_wait<T: 'static>(&self, query: &[u8], encode: fn(&[u8]) -> T) -> Result<Answer<T>, WaitingQuery<T>> {
        let connection = Arc::clone(&self.connection);
        let finish = move |transaction: &mut Transaction, progress| {
            if progress != Progress::Answered {
                return Err(NoAnswer::Dropped);
            }
            let Transaction { query, response, .. } = transaction;
            let message = response.finish(query);
            // Many queries may get their answers before the first of their requests continues.
            let reserved = connection.reserved(message.len()).ok_or(NoAnswer::NoRoom)?;
            Ok((encode(message), reserved))
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
    answer: Receiver<Answer<T>>,
    task: Option<AbortHandle>,
}

impl<T> WaitingQuery<T> {
    async fn answer(mut self) -> Answer<T> {
        let answer = (&mut self.answer).await;
        // After its answer, a task may refresh the cache.
        self.task = None;
        answer.unwrap_or(Err(NoAnswer::Dropped))
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
