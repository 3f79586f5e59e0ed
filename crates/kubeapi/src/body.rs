//! Body of a response, decompressed as it arrives if it is compressed.

use std::time::Duration;

use host::invariant::holds;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body_util::BodyExt;
use hyper::body::{Buf, Bytes};
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use crate::failure::{ApiError, connection_problem};
use crate::gzip::Gunzip;

/// Body of a response.
pub(crate) struct ResponseBody {
    body: Body,
    /// Decoder, and the bytes that it has not decoded yet.
    gzip: Option<(Gunzip, Bytes)>,
}

impl ResponseBody {
    /// Takes a body with the headers of its response.
    pub(crate) fn new(body: Body, headers: &HeaderMap) -> ResponseBody {
        let is_gzip =
            headers.get(CONTENT_ENCODING).is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"gzip"));
        ResponseBody { body, gzip: is_gzip.then(|| (Gunzip::default(), Bytes::new())) }
    }

    /// Returns the next chunk, or `None` at the end. Fails if nothing arrives within `silence`.
    pub(crate) async fn next(&mut self, silence: Duration) -> Result<Option<Bytes>, ApiError> {
        let deadline = Instant::now() + silence;
        loop {
            if let Some((gzip, input)) = &mut self.gzip {
                let mut rest = &input[..];
                let piece = gzip.next_piece(&mut rest).map_err(ApiError::Gzip)?;
                let used = input.len() - rest.len();
                input.advance(used);
                if !piece.is_empty() {
                    return Ok(Some(piece.into()));
                }
            }
            let frame = timeout_at(deadline, self.body.frame()).await.map_err(|_| ApiError::Silent(silence))?;
            match (frame, &mut self.gzip) {
                (None, Some((gzip, _))) if !gzip.is_between_members() => return Err(ApiError::Cut),
                (None, _) => return Ok(None),
                (Some(Err(error)), _) => return Err(ApiError::Connection(connection_problem(&error))),
                (Some(Ok(frame)), gzip) => match (frame.into_data(), gzip) {
                    (Ok(bytes), Some((_, input))) => *input = bytes,
                    (Ok(bytes), None) => return Ok(Some(bytes)),
                    (Err(_), _) => {}
                },
            }
        }
    }

    /// Reads the rest, at most this many bytes.
    pub(crate) async fn rest(mut self, bytes_max: usize, time: Duration) -> Vec<u8> {
        let (deadline, mut rest) = (Instant::now() + time, Vec::new());
        while rest.len() < bytes_max
            && let Ok(Some(bytes)) = self.next(deadline.saturating_duration_since(Instant::now())).await
        {
            rest.extend_from_slice(&bytes[..bytes.len().min(bytes_max - rest.len())]);
        }
        holds(rest.len() <= bytes_max, "the rest of a body is bounded");
        rest
    }

    /// Returns the body of a response that was not asked to be compressed.
    pub(crate) fn into_plain(self) -> Body {
        self.body
    }
}
