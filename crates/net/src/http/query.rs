//! Call into the engine for a request.

use engine::{Progress, Transaction};
use tokio::sync::oneshot;

use crate::connected::Client;

impl Client {
    /// Runs a query and encodes the answer. Returns `None` if the query gets no answer.
    pub(crate) async fn ask<T: 'static>(&self, query: &[u8], encode: fn(&[u8]) -> T) -> Option<T> {
        match self.ask_or_wait(query, encode) {
            Ok(answer) => answer,
            Err(waiting) => waiting.await.ok().flatten(),
        }
    }

    /// Returns the answer to a query, or the channel that will deliver it.
    fn ask_or_wait<T: 'static>(
        &self,
        query: &[u8],
        encode: fn(&[u8]) -> T,
    ) -> Result<Option<T>, oneshot::Receiver<Option<T>>> {
        let finish = move |transaction: &mut Transaction, progress| {
            let Transaction { query, response, .. } = transaction;
            (progress == Progress::Answered).then(|| encode(response.finish(query)))
        };
        let (seen, mut transaction, progress) = self.receive(query);
        let answer = if progress == Progress::Waiting {
            let (sender, answer) = oneshot::channel();
            self.shared.park(&seen.generation, transaction, move |transaction, progress| {
                drop(sender.send(finish(transaction, progress)));
            });
            Err(answer)
        } else {
            let answer = finish(&mut transaction, progress);
            self.shared.worker.borrow_mut().give_transaction(transaction);
            Ok(answer)
        };
        self.shared.end_batch(&seen.generation, 0);
        answer
    }
}
