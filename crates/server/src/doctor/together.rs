//! Runs futures at the same time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Future whose result has a type.
pub(super) type Job<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

/// Runs futures at the same time, and returns their results in order.
pub(super) async fn together<'f, T, F>(futures: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + 'f,
    T: 'f,
{
    let mut jobs: Vec<(Option<Job<'f, T>>, Option<T>)> =
        futures.into_iter().map(|future| (Some(Box::pin(future) as Job<'f, T>), None)).collect();
    // Polls all of them at each wake-up, which is cheap for the few that a gatherer has.
    poll_fn(|context| {
        for (job, result) in &mut jobs {
            if let Some(running) = job
                && let Poll::Ready(value) = running.as_mut().poll(context)
            {
                (*job, *result) = (None, Some(value));
            }
        }
        if jobs.iter().all(|(job, _)| job.is_none()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    jobs.into_iter().filter_map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn runs_at_the_same_time_and_keeps_the_order() {
        let start = tokio::time::Instant::now();
        let wait = async |seconds: u64| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            seconds
        };
        assert_eq!(together([3, 1, 2].map(wait)).await, [3, 1, 2]);
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        assert!(together(Vec::<std::future::Ready<u8>>::new()).await.is_empty());
    }
}
