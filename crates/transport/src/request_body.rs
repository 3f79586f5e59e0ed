//! Bodies of HTTP requests that are refused before they have been read.
//!
//! A server that responds early and drops the rest of the body resets the stream or the connection. The reset overtakes
//! the response, so that many clients never see its status. Therefore the rest is read first, up to a bound.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use hyper::header::{EXPECT, HeaderMap};
use tokio::time::{Instant, timeout_at};

/// Maximum number of bytes of a body that are read only to be discarded, the same as in Go. It is four times what a DNS
/// message can have.
pub const DISCARDED_MAX: usize = 256 << 10;

/// Result of [`discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// The body has ended, or the rest of it had no time to arrive.
    Rest,
    /// The body is longer than [`DISCARDED_MAX`]. The client may not see the response.
    Cut,
}

/// Reads the rest of a body and discards it, until it ends, [`DISCARDED_MAX`] bytes have arrived or the time is over.
///
/// A client with `Expect: 100-continue` has not begun to send its body. It sees the response without this.
pub async fn discard<B: Body<Data = Bytes> + Unpin>(headers: &HeaderMap, body: &mut B, until: Instant) -> Discarded {
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return Discarded::Rest;
    }
    let reading = async {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > DISCARDED_MAX {
                return Discarded::Cut;
            }
        }
        Discarded::Rest
    };
    // The response is sent in any case.
    timeout_at(until, reading).await.unwrap_or(Discarded::Rest)
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;
    use core::pin::Pin;
    use core::task::{Context, Poll};
    use core::time::Duration;

    use hyper::body::Frame;
    use hyper::header::HeaderValue;

    use super::*;

    /// Body of chunks with 1,000 bytes, after which nothing arrives.
    struct Chunks {
        left: usize,
        taken: usize,
    }

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Pending;
            }
            self.left -= 1;
            self.taken += 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1000])))))
        }
    }

    async fn taken_of(left: usize, headers: &HeaderMap) -> (Discarded, usize, Duration) {
        let (mut body, start) = (Chunks { left, taken: 0 }, Instant::now());
        let discarded = discard(headers, &mut body, start + Duration::from_secs(5)).await;
        (discarded, body.taken, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn ends_at_the_bound_and_at_the_deadline() {
        let (discarded, taken, _) = taken_of(1_000_000, &HeaderMap::new()).await;
        assert_eq!((discarded, taken), (Discarded::Cut, DISCARDED_MAX / 1000 + 1));
        let (discarded, taken, time) = taken_of(3, &HeaderMap::new()).await;
        assert_eq!((discarded, taken, time.as_secs()), (Discarded::Rest, 3, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn does_not_ask_for_a_body_that_has_not_been_sent() {
        let headers = HeaderMap::from_iter([(EXPECT, HeaderValue::from_static("100-continue"))]);
        assert_eq!(taken_of(3, &headers).await, (Discarded::Rest, 0, Duration::ZERO));
    }
}
