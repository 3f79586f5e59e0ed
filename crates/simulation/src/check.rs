//! Checks of answers against the model of the cluster.

use specification::answer::Answer;
use specification::cluster::{Records, records};
use specification::compare::differences;
use specification::message::{self, Response};
use specification::record::{Data, Question, Type};

use crate::mirror::Mirrors;
use crate::objects;
use crate::outside;

/// What is right when a question is asked.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    question: Question,
    answer: Answer,
    /// False if the server does not know the cluster yet, so that it may fail.
    is_known: bool,
    /// True while a list is on its way, whose end shows what was deleted.
    is_listing: bool,
    /// True if the name has records in the cluster as it is at the API server.
    is_there: bool,
}

/// Model of what was delivered.
pub(crate) struct Model {
    cluster: specification::cluster::Cluster,
    records: Records,
    is_known: bool,
    is_listing: bool,
    current: (specification::cluster::Cluster, Records),
}

impl Model {
    /// Creates the model of what was delivered, and of the cluster as it is.
    pub(crate) fn new(mirrors: &Mirrors, current: &[objects::Objects; 3]) -> Model {
        let cluster = mirrors.cluster();
        let now = objects::cluster(current.iter().flat_map(|objects| objects.values().map(|object| &**object)));
        let (is_known, is_listing) = (mirrors.is_listed(), mirrors.is_listing());
        let current = (now.clone(), records(&now));
        Model { records: records(&cluster), cluster, is_known, is_listing, current }
    }

    /// Returns what is right for a question.
    pub(crate) fn expect(&self, question: &Question) -> Expected {
        let (answer, _) = self.records.answer(&self.cluster, question);
        let (current, _) = self.current.1.answer(&self.current.0, question);
        let Model { is_known, is_listing, .. } = *self;
        let question = question.clone();
        Expected { question, answer, is_known, is_listing, is_there: !current.required.is_empty() }
    }
}

/// Checks the response to a question for a name of the cluster. Returns the records of aliases that lead out of it.
///
/// # Errors
/// What is wrong.
pub(crate) fn check(expected: &Expected, bytes: &[u8]) -> Result<bool, String> {
    let Expected { question, answer, is_known, is_listing, is_there } = expected;
    let mut response = message::read(bytes, question).map_err(|error| error.to_string())?;
    let leads_out = leads_out(answer);
    response.sections[0].retain(|record| outside::number_of(&record.owner).is_none());
    if response.rcode == specification::answer::Rcode::ServFail && (!is_known || leads_out) {
        return Ok(leads_out);
    }
    if !is_known && response.rcode == specification::answer::Rcode::NxDomain && *is_there {
        return Err(format!("{question:?}: NXDOMAIN for a name that exists, before the cluster is known"));
    }
    let found = differences(answer, &response);
    let found: Vec<String> =
        found.into_iter().filter(|found| !is_open(found, leads_out, *is_listing, question)).collect();
    if found.is_empty() { Ok(leads_out) } else { Err(explain(&found, expected, &response)) }
}

/// Returns true for a difference that the state permits.
fn is_open(found: &str, leads_out: bool, is_listing: bool, question: &Question) -> bool {
    // The rest of the answer is that of an upstream.
    let is_of_upstream = leads_out && (found.contains("authority") || found.contains("AA"));
    // Within a list, an address can have its former Service and its next one. One of them is enough.
    is_of_upstream || is_listing && question.qtype == Type::Ptr && found == "answer lacks PTR"
}

/// Returns true if an answer ends with an alias to a name outside of the cluster.
fn leads_out(answer: &Answer) -> bool {
    let mut targets = answer.required.iter().filter_map(|record| match &record.data {
        Data::Cname(target) => Some(target),
        _ => None,
    });
    targets.any(|target| outside::number_of(target).is_some())
}

fn explain(found: &[String], expected: &Expected, response: &Response) -> String {
    let Expected { question, answer, is_known, is_listing, .. } = expected;
    format!(
        "{} {}: {}\nexpected {answer:?}\nresponse {response:?}\nknown {is_known}, listing {is_listing}",
        question.name,
        question.qtype,
        found.join(", "),
    )
}
