//! DNS over HTTPS with HTTP/1.1: one POST after the other.

use super::protocol::{Protocol, Taken};
use super::question;
use super::tally::Tally;
use xtask::Failed;

/// Client of one connection.
pub(crate) struct Http1 {
    request: Vec<u8>,
}

impl Http1 {
    pub(crate) fn new() -> Http1 {
        let query = question::query();
        let head = format!(
            "POST /dns-query HTTP/1.1\r\nHost: dns.example.org\r\nAccept: application/dns-message\r\n\
             Content-Type: application/dns-message\r\nContent-Length: {}\r\n\r\n",
            query.len()
        );
        Http1 { request: [head.as_bytes(), &query].concat() }
    }
}

impl Protocol for Http1 {
    fn ask(&mut self, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.request);
        true
    }

    fn take(&mut self, input: &[u8], _: &mut Vec<u8>, tally: &Tally) -> Result<Taken, Failed> {
        let (mut rest, mut answers) = (input, 0);
        while let Some((message, after)) = split(rest)? {
            tally.count(message)?;
            (rest, answers) = (after, answers + 1);
        }
        Ok(Taken { bytes: input.len() - rest.len(), answers })
    }
}

/// Body of a response, and what follows it. `None` if the response is not complete.
type Split<'a> = Option<(&'a [u8], &'a [u8])>;

/// Splits off the body of the first response.
fn split(input: &[u8]) -> Result<Split<'_>, Failed> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = input.windows(END.len()).position(|part| part == END) else { return Ok(None) };
    let head = String::from_utf8_lossy(&input[..end]);
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        return Err(format!("the response is `{status}`"));
    }
    let length =
        lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: Option<usize> = length.and_then(|(_, value)| value.trim().parse().ok());
    let length = length.ok_or("the response has no length")?;
    Ok(input[end + END.len()..].split_at_checked(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_complete_responses_with_the_status_200() {
        let body = question::answer();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nDate: x\r\n\r\n", body.len());
        let (response, tally) = ([head.as_bytes(), &body].concat(), Tally::default());
        let take = |input: &[u8]| Http1::new().take(input, &mut Vec::new(), &tally);
        assert_eq!(take(&response), Ok(Taken { bytes: response.len(), answers: 1 }));
        assert_eq!(take(&response[..response.len() - 1]), Ok(Taken { bytes: 0, answers: 0 }));
        assert_eq!(take(&head.as_bytes()[..30]), Ok(Taken { bytes: 0, answers: 0 }));
        let refused = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(take(refused), Err("the response is `HTTP/1.1 503 Service Unavailable`".to_owned()));
        assert!(take(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert_eq!(tally.answers(), 1);
    }
}
