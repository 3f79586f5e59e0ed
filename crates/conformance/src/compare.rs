//! Comparison of two servers: sends both the same query and reports differences.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wire::{Name, Rcode, Type};

use crate::client::{Query, QueryError, tcp, udp};
use crate::response::Response;
use crate::script::QueryExtra;

/// TTLs differ if one exceeds the other by more than this factor, because TTLs from a cache count down.
const TTL_FACTOR: u32 = 2;
/// Difference between TTLs, in seconds, that is always ignored.
const TTL_SLACK: u32 = 5;

/// Kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// One server or both did not respond.
    Silence,
    /// Response code.
    Code,
    /// Records.
    Records,
    /// TTL.
    Ttl,
}

impl DifferenceKind {
    /// Returns the word used in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            DifferenceKind::Silence => "silence",
            DifferenceKind::Code => "code",
            DifferenceKind::Records => "records",
            DifferenceKind::Ttl => "ttl",
        }
    }
}

/// A query that two servers answer differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name and type of the query.
    pub question: String,
    /// Kind of difference.
    pub differs: DifferenceKind,
    /// Response of the first server.
    pub old: String,
    /// Response of the second server.
    pub new: String,
}

/// Result of one query to two servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Name and type of the query.
    pub question: String,
    /// Response code of the first server, if it responded.
    pub rcode: Option<Rcode>,
    /// Latency of each server, if it responded.
    pub took: [Option<Duration>; 2],
    /// The difference, if there is one.
    pub difference: Option<Difference>,
}

impl Comparison {
    /// Returns true if both servers answered SERVFAIL. Then nothing is known about the answer, so they neither agree
    /// nor differ.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.difference.is_none() && self.rcode == Some(Rcode::SERVFAIL)
    }
}

/// Queries both servers and compares the responses, regardless of the order of records. TTLs are compared only with
/// `ttls`, because those of a cache count down. If neither server responds, that is a difference too, because nothing
/// is known about either.
pub async fn compare(servers: [SocketAddr; 2], name: &Name, qtype: Type, ttls: bool) -> Comparison {
    let query = Query { name: name.clone(), qtype, extra: QueryExtra::Edns };
    let [old, new] = servers;
    let ((old, old_took), (new, new_took)) = tokio::join!(timed(old, &query), timed(new, &query));
    let differs = match (&old, &new) {
        (Ok(old), Ok(new)) => differs(old, new).filter(|differs| ttls || *differs != DifferenceKind::Ttl),
        _ => Some(DifferenceKind::Silence),
    };
    let question = format!("{name} {qtype}");
    let difference = differs.map(|differs| {
        let question = question.clone();
        Difference { question, differs, old: said(&old, differs), new: said(&new, differs) }
    });
    let took = [old.is_ok().then_some(old_took), new.is_ok().then_some(new_took)];
    Comparison { question, rcode: old.ok().map(|old| old.rcode), took, difference }
}

async fn timed(server: SocketAddr, query: &Query) -> (Result<Response, QueryError>, Duration) {
    let begin = Instant::now();
    let response = ask(server, query).await;
    (response, begin.elapsed())
}

async fn ask(server: SocketAddr, query: &Query) -> Result<Response, QueryError> {
    let response = udp(server, query).await?;
    if !response.is_truncated {
        return Ok(response);
    }
    let whole = tcp(server, std::slice::from_ref(query)).await?;
    whole.into_iter().next().ok_or(QueryError::Silence)
}

fn differs(old: &Response, new: &Response) -> Option<DifferenceKind> {
    if old.rcode != new.rcode {
        return Some(DifferenceKind::Code);
    }
    let records = |response: &Response| -> BTreeSet<(String, u16, String)> {
        let records = response.answers.iter();
        host::sorting::set(records.map(|record| (record.owner.clone(), record.rtype.0, record.data.clone())))
    };
    if records(old) != records(new) {
        return Some(DifferenceKind::Records);
    }
    let (old, new) = (ttl(old), ttl(new));
    let (less, more) = (old.min(new), old.max(new));
    (more > less.saturating_mul(TTL_FACTOR).saturating_add(TTL_SLACK)).then_some(DifferenceKind::Ttl)
}

fn ttl(response: &Response) -> u32 {
    response.answers.iter().map(|record| record.ttl).min().unwrap_or(0)
}

fn said(response: &Result<Response, QueryError>, differs: DifferenceKind) -> String {
    match response {
        Err(error) => error.to_string(),
        Ok(response) if differs == DifferenceKind::Ttl => format!("{} s", ttl(response)),
        Ok(response) => response.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use wire::Rcode;

    use super::*;
    use crate::response::Record;

    fn response(rcode: Rcode, ttl: u32, data: &[&str]) -> Response {
        let record = |data: &&str| Record { owner: "a".into(), rtype: Type::A, ttl, data: (*data).to_owned() };
        let answers = data.iter().map(record).collect();
        Response { rcode, is_truncated: false, question_kept: true, has_opt: true, answers, authorities: Vec::new() }
    }

    #[test]
    fn ignores_record_order_and_aged_ttls() {
        let base = response(Rcode::NOERROR, 30, &["1.1.1.1", "2.2.2.2"]);
        for (other, wanted) in [
            (response(Rcode::NOERROR, 30, &["2.2.2.2", "1.1.1.1"]), None),
            (response(Rcode::NOERROR, 14, &["1.1.1.1", "2.2.2.2"]), None),
            (response(Rcode::NOERROR, 5, &["1.1.1.1", "2.2.2.2"]), Some(DifferenceKind::Ttl)),
            (response(Rcode::NOERROR, 30, &["1.1.1.1"]), Some(DifferenceKind::Records)),
            (response(Rcode::NXDOMAIN, 30, &[]), Some(DifferenceKind::Code)),
        ] {
            assert_eq!(differs(&base, &other), wanted, "{other}");
        }
    }
}
