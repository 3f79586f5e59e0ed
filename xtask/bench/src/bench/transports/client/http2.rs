//! DNS over HTTPS with HTTP/2 (RFC 9113): POST requests on streams of one connection.
//!
//! The first request enters its header fields into the dynamic table of the server (RFC 7541 §2.3.2), and the following
//! ones refer to them, as in other clients.

use std::collections::HashMap;

use super::super::super::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, INITIAL_WINDOW, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, has_status_200, number, put_frame, put_start, split,
};
use super::protocol::{Protocol, Taken};
use super::question;
use super::tally::Tally;
use xtask::Failed;

/// Client of one connection.
pub(crate) struct Http2 {
    query: Vec<u8>,
    next_stream: u32,
    /// Bytes of bodies that the server accepts.
    window: u32,
    /// Responses that are not complete, by stream.
    responses: HashMap<u32, Vec<u8>>,
}

impl Http2 {
    pub(crate) fn new() -> Http2 {
        Http2 { query: question::query(), next_stream: 1, window: INITIAL_WINDOW, responses: HashMap::new() }
    }

    /// Handles a frame. Returns true if it completes a response.
    fn handle(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>, tally: &Tally) -> Result<bool, Failed> {
        match frame.kind {
            HEADERS if !has_status_200(frame.payload) => return Err("the response has another status than 200".into()),
            DATA => self.responses.entry(frame.stream).or_default().extend_from_slice(frame.payload),
            SETTINGS if frame.flags & ACK == 0 => put_frame(out, SETTINGS, ACK, 0, &[]),
            PING if frame.flags & ACK == 0 => put_frame(out, PING, ACK, 0, frame.payload),
            WINDOW_UPDATE if frame.stream == 0 => self.window += number(frame.payload),
            RST_STREAM => return Err(format!("the server reset a stream with the code {}", number(frame.payload))),
            GOAWAY => {
                let code = frame.payload.get(4..).map_or(0, number);
                return Err(format!("the server ends the connection with the code {code}"));
            }
            _ => {}
        }
        let is_complete = matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0;
        if is_complete {
            tally.count(&self.responses.remove(&frame.stream).unwrap_or_default())?;
        }
        Ok(is_complete)
    }
}

impl Protocol for Http2 {
    fn start(&mut self, out: &mut Vec<u8>) {
        put_start(out, INITIAL_WINDOW);
    }

    fn ask(&mut self, out: &mut Vec<u8>) -> bool {
        // The query is short.
        let length = u32::try_from(self.query.len()).unwrap_or(u32::MAX);
        if self.window < length {
            return false;
        }
        let fields = if self.next_stream == 1 { first_fields(self.query.len()) } else { LATER_FIELDS.to_vec() };
        put_frame(out, HEADERS, END_HEADERS, self.next_stream, &fields);
        put_frame(out, DATA, END_STREAM, self.next_stream, &self.query);
        self.next_stream += 2;
        self.window -= length;
        true
    }

    fn take(&mut self, input: &[u8], out: &mut Vec<u8>, tally: &Tally) -> Result<Taken, Failed> {
        let (mut rest, mut answers) = (input, 0);
        while let Some((frame, after)) = split(rest) {
            answers += usize::from(self.handle(&frame, out, tally)?);
            rest = after;
        }
        Ok(Taken { bytes: input.len() - rest.len(), answers })
    }
}

/// Header fields of the first request: indexed fields of the static table, and literals that enter the dynamic table.
fn first_fields(length: usize) -> Vec<u8> {
    let literal = |index: u8, value: &str| {
        // No value has more than 127 bytes.
        [&[0x40 | index, u8::try_from(value.len()).unwrap_or(0)], value.as_bytes()].concat()
    };
    let message = "application/dns-message";
    [
        // `:method: POST` and `:scheme: https`.
        vec![0x83, 0x87],
        // `:path`, `:authority`, `content-type`, `accept` and `content-length`.
        literal(4, "/dns-query"),
        literal(1, "dns.example.org"),
        literal(31, message),
        literal(19, message),
        literal(28, &length.to_string()),
    ]
    .concat()
}

/// The same fields in the following requests. The dynamic table begins at 62 with the entry that was added last.
const LATER_FIELDS: [u8; 7] = [0x83, 0x87, 0x80 | 66, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62];

#[cfg(test)]
mod tests {
    use super::super::super::super::frames::STATUS_200;
    use super::*;

    fn response(stream: u32, fields: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_frame(&mut out, HEADERS, END_HEADERS, stream, fields);
        put_frame(&mut out, DATA, END_STREAM, stream, &question::answer());
        out
    }

    #[test]
    fn takes_complete_responses_and_acknowledges_settings() {
        let (mut client, mut out, tally) = (Http2::new(), Vec::new(), Tally::default());
        let mut input = Vec::new();
        put_frame(&mut input, SETTINGS, 0, 0, &[]);
        input.extend_from_slice(&response(1, &[0x20, STATUS_200, 0xc0]));
        let complete = input.len();
        input.extend_from_slice(&response(3, &[STATUS_200])[..20]);
        let taken = client.take(&input, &mut out, &tally);
        // The frame with the fields of the second response is complete, its data is not.
        assert_eq!(taken.map(|taken| (taken.bytes - complete, taken.answers)), Ok((10, 1)));
        assert_eq!((out, tally.answers()), (vec![0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0], 1));
    }

    #[test]
    fn refuses_other_statuses_and_resets() {
        let tally = Tally::default();
        let mut reset = Vec::new();
        put_frame(&mut reset, RST_STREAM, 0, 1, &[0, 0, 0, 7]);
        // `:status: 500` is entry 14 of the static table.
        for input in [response(1, &[0x8e]), reset] {
            assert!(Http2::new().take(&input, &mut Vec::new(), &tally).is_err());
        }
        assert_eq!(tally.answers(), 0);
    }

    #[test]
    fn asks_no_more_than_the_window_allows() {
        let (mut client, mut out) = (Http2::new(), Vec::new());
        let length = u32::try_from(question::query().len()).unwrap_or(0);
        let asked = std::iter::repeat_with(|| client.ask(&mut out)).take_while(|is_asked| *is_asked).count();
        assert_eq!(asked, usize::try_from(INITIAL_WINDOW / length).unwrap_or(0));
        let mut update = Vec::new();
        put_frame(&mut update, WINDOW_UPDATE, 0, 0, &length.to_be_bytes());
        assert!(client.take(&update, &mut out, &Tally::default()).is_ok());
        assert!(client.ask(&mut out));
    }
}
