//! `portolan migrate --check`: compares the answers of two servers. Queries run concurrently; the results keep their
//! order.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::process::ExitCode;

use conformance::{Comparison, compare};
use tokio::task::JoinHandle;
use wire::{Name, Type};

use super::summary::Summary;
use super::{MigrateOptions, files, questions, read};
use crate::command_error::CommandError;

/// Maximum number of queries in flight: enough to hide timeouts, too few to flood a server.
const IN_FLIGHT_MAX: usize = 32;
/// Number of unanswered queries at the start after which the command gives up.
const UNANSWERED_MAX: usize = 10;

/// Sends the queries from the files to both servers and prints the differences.
///
/// # Errors
/// Fails if the files have no query or a server answers none of the first [`UNANSWERED_MAX`], or of all if there are
/// fewer.
pub(super) fn check(servers: [SocketAddr; 2], options: &MigrateOptions) -> Result<ExitCode, CommandError> {
    let questions = questions_of(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::Io)?;
    let mut summary = runtime.block_on(async {
        let mut comparisons = Comparisons::new(servers, questions, options.ttl);
        let mut first = Vec::new();
        while first.len() < UNANSWERED_MAX
            && let Some(comparison) = comparisons.next().await
        {
            first.push(comparison?);
        }
        check_servers_answer(servers, &first)?;
        let mut summary = Summary::new(servers, options.json);
        first.into_iter().for_each(|comparison| summary.take(comparison));
        while let Some(comparison) = comparisons.next().await {
            summary.take(comparison?);
        }
        Ok::<_, CommandError>(summary)
    })?;
    print!("{}", if options.json { format!("{:#}\n", summary.json()) } else { summary.text() });
    Ok(if summary.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the queries from all files, without duplicates.
fn questions_of(options: &MigrateOptions) -> Result<Vec<(Name, Type)>, CommandError> {
    let mut questions: Vec<(Name, Type)> = Vec::new();
    for path in files(options) {
        questions
            .extend(questions::read(&read(&path)?, &options.zone).map_err(|error| CommandError::Query(path, error))?);
    }
    let mut seen = HashSet::new();
    questions.retain(|(name, qtype)| seen.insert((name.to_string(), qtype.0)));
    if questions.is_empty() {
        return Err(CommandError::NoQueries);
    }
    Ok(questions)
}

/// Returns an error that names the server that has answered none of the first queries, if there is one.
fn check_servers_answer(servers: [SocketAddr; 2], first: &[Comparison]) -> Result<(), CommandError> {
    // Whatever the reason: a refused connection is no answer either.
    let never_answered = |server: usize| first.iter().all(|one| one.took[server].is_none());
    let [old, new] = servers;
    let who = match (never_answered(0), never_answered(1)) {
        (false, false) => return Ok(()),
        (true, false) => format!("the old server {old} has"),
        (false, true) => format!("the new server {new} has"),
        (true, true) => format!("both servers, {old} and {new}, have"),
    };
    Err(CommandError::Unanswered(who, first.len()))
}

/// Concurrent comparisons, whose results come in the order of the queries.
struct Comparisons {
    servers: [SocketAddr; 2],
    ttls: bool,
    waiting: std::vec::IntoIter<(Name, Type)>,
    in_flight: VecDeque<JoinHandle<Comparison>>,
}

impl Comparisons {
    fn new(servers: [SocketAddr; 2], questions: Vec<(Name, Type)>, ttls: bool) -> Comparisons {
        Comparisons { servers, ttls, waiting: questions.into_iter(), in_flight: VecDeque::with_capacity(IN_FLIGHT_MAX) }
    }

    /// Returns the comparison of the next query; `None` at the end.
    async fn next(&mut self) -> Option<Result<Comparison, CommandError>> {
        while self.in_flight.len() < IN_FLIGHT_MAX
            && let Some((name, qtype)) = self.waiting.next()
        {
            let (servers, ttls) = (self.servers, self.ttls);
            self.in_flight.push_back(tokio::spawn(async move { compare(servers, &name, qtype, ttls).await }));
        }
        let first = self.in_flight.pop_front()?;
        Some(first.await.map_err(CommandError::Task))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use conformance::{Difference, DifferenceKind};

    use super::*;

    /// Result of a query that the servers answered, or did not with this error.
    fn comparison(errors: [Option<&str>; 2]) -> Comparison {
        let [old, new] = errors.map(|error| error.unwrap_or("NOERROR").to_owned());
        let differs = DifferenceKind::Silence;
        Comparison {
            question: "a.test. A".to_owned(),
            rcode: None,
            took: errors.map(|error| error.is_none().then_some(Duration::ZERO)),
            difference: Some(Difference { question: "a.test. A".to_owned(), differs, old, new }),
        }
    }

    #[test]
    fn gives_up_on_a_server_that_refuses_connections() {
        let servers = ["192.0.2.1:53", "192.0.2.2:53"].map(|server| server.parse().unwrap());
        let gives_up = |first: &[Comparison]| {
            check_servers_answer(servers, first).err().map(|error| match error {
                CommandError::Unanswered(who, count) => (who, count),
                other => panic!("{other}"),
            })
        };
        let (refused, silent) = (Some("connection refused"), Some("no answer"));
        let dead = || comparison([None, refused]);
        assert_eq!(gives_up(&[dead()]), Some(("the new server 192.0.2.2:53 has".to_owned(), 1)));
        let both = gives_up(&[comparison([silent, refused]), comparison([refused, silent])]);
        assert_eq!(both, Some(("both servers, 192.0.2.1:53 and 192.0.2.2:53, have".to_owned(), 2)));
        assert_eq!(gives_up(&[dead(), comparison([refused, None])]), None);
    }
}
