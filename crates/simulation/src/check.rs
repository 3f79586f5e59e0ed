//! Checks of answers against the model of the cluster.

use specification::answer::{Answer, Rcode};
use specification::cluster::{Records, records};
use specification::compare::differences;
use specification::extensions;
use specification::message::{self, Response, UDP_SIZE};
use specification::record::{self, Data, Question, Record, Type};

use crate::mirror::Mirrors;
use crate::objects;
use crate::outside;

/// Length of a header and an OPT record without options, in bytes.
const HEADER_AND_OPT: usize = 12 + 11;

/// Expected answer, derived from the state at the time of the query.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    question: Question,
    answer: Answer,
    /// False if the server does not know the cluster yet, so that it may fail.
    is_known: bool,
    /// True if objects may be known that were deleted: while a list is on its way, whose end shows it, and after a
    /// server has left out events.
    may_have_deleted: bool,
    /// True if no object that is known lets the name be denied.
    is_there: bool,
}

/// Model of what was delivered.
pub(crate) struct Model {
    cluster: specification::cluster::Cluster,
    records: Records,
    orphans: Vec<Record>,
    is_known: bool,
    may_have_deleted: bool,
    /// The same, with what is at the API server in place of what is not known yet. `None` if everything is known.
    merged: Option<(specification::cluster::Cluster, Records)>,
}

impl Model {
    /// Creates the model of what was delivered. `current` is at the API server, which may have left out events if
    /// `has_omissions`.
    pub(crate) fn new(mirrors: &Mirrors, current: &[objects::Objects; 3], has_omissions: bool) -> Model {
        let cluster = mirrors.cluster();
        let (is_known, may_have_deleted) = (mirrors.is_listed(), mirrors.is_listing() || has_omissions);
        let merged = (!is_known).then(|| {
            let merged = mirrors.0.iter().zip(current).flat_map(|(mirror, current)| {
                let objects = if mirror.is_listed { &mirror.objects } else { current };
                objects.values().map(|object| &**object)
            });
            let merged = objects::cluster(merged);
            let records = records(&merged);
            (merged, records)
        });
        let orphans = objects::orphans(&mirrors.objects());
        Model { records: records(&cluster), cluster, orphans, is_known, may_have_deleted, merged }
    }

    /// Returns what is right for a question.
    pub(crate) fn expect(&self, question: &Question) -> Expected {
        let (mut answer, _) = self.records.answer(&self.cluster, question);
        extensions::permit(&mut answer, question, &self.orphans, |asked| self.records.answer(&self.cluster, asked).0);
        let is_there = self.merged.as_ref().is_some_and(|(cluster, records)| {
            let (answer, _) = records.answer(cluster, question);
            !answer.rcodes.contains(&Rcode::NxDomain)
        });
        let Model { is_known, may_have_deleted, .. } = *self;
        let question = question.clone();
        Expected { question, answer, is_known, may_have_deleted, is_there }
    }
}

/// Checks the response to a question for a name of the cluster. With `may_be_truncated`, an answer that does not fit in
/// a response over UDP may have some of its records.
///
/// # Errors
/// Returns a description of the differences.
pub(crate) fn check(expected: &Expected, bytes: &[u8], may_be_truncated: bool) -> Result<(), String> {
    let Expected { question, answer, is_known, may_have_deleted, is_there } = expected;
    let mut response = message::read(bytes, question).map_err(|error| error.to_string())?;
    let leads_out = leads_out(answer);
    response.sections[0].retain(|record| outside::number_of(&record.owner).is_none());
    let may_fail = match response.rcode {
        Rcode::ServFail => !is_known || leads_out,
        // Too many queries wait for upstreams.
        Rcode::Refused => leads_out,
        _ => false,
    };
    if may_fail {
        return Ok(());
    }
    if !is_known && response.rcode == Rcode::NxDomain && *is_there {
        return Err(format!("{question:?}: NXDOMAIN for a name that exists, before the cluster is known"));
    }
    let is_cut = response.truncated && may_be_truncated && wire_len(question, answer) > usize::from(UDP_SIZE);
    let mut found = differences(answer, &response);
    found.retain(|found| !is_open(found, leads_out, *may_have_deleted, question));
    found.retain(|found| !(is_cut && (found == "truncated" || found.starts_with("answer lacks"))));
    if found.is_empty() { Ok(()) } else { Err(explain(&found, expected, &response)) }
}

/// Returns true for a difference that the state permits.
fn is_open(found: &str, leads_out: bool, may_have_deleted: bool, question: &Question) -> bool {
    // The rest of the answer is that of an upstream.
    let is_of_upstream = leads_out && (found.contains("authority") || found.contains("AA") || found == "truncated");
    // An address can have its former Service and its next one then. One of them is enough.
    is_of_upstream || may_have_deleted && question.qtype == Type::Ptr && found == "answer lacks PTR"
}

/// Returns the length of a response whose names are not compressed, in bytes, with its OPT record. A response with them
/// compressed is not longer.
fn wire_len(question: &Question, answer: &Answer) -> usize {
    let of_name = record::wire_len;
    let of_record = |record: &Record| {
        let data = match &record.data {
            Data::A(_) => 4,
            Data::Aaaa(_) => 16,
            Data::Srv(_, target) => 6 + of_name(target),
            Data::Cname(target) | Data::Ptr(target) => of_name(target),
            _ => 0,
        };
        of_name(&record.owner) + 10 + data
    };
    let of_question = of_name(&question.name) + 4;
    HEADER_AND_OPT + of_question + answer.required.iter().chain(&answer.permitted).map(of_record).sum::<usize>()
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
    let Expected { question, answer, is_known, may_have_deleted, .. } = expected;
    format!(
        "{} {}: {}\nexpected {answer:?}\nresponse {response:?}\nknown {is_known}, may have deleted {may_have_deleted}",
        question.name,
        question.qtype,
        found.join(", "),
    )
}
