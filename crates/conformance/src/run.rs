//! The checks, made one after the other.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use wire::{Name, Rcode, Type};

use crate::Problem;
use crate::answer::{Answer, plain};
use crate::ask::{self, NoAnswer, Query};
use crate::expect::Expectation;
use crate::objects::{self, Values};
use crate::place::Place;
use crate::report::{Checked, Outcome};
use crate::script::{Check, Extra, Manner, Question, Step};

/// How long a change may take to be seen. The e2e tests of Kubernetes wait longer; a cache of the zone may hold what was
/// before for 30 s in the common configuration.
const SOON: Duration = Duration::from_secs(60);
/// How much later than a Service its endpoints may be known.
const BEHIND: Duration = Duration::from_secs(5);
/// The pause between two looks at whether it is seen.
const LOOK: Duration = Duration::from_millis(50);
/// How often in a row the last object must be known before the others are asked for: there may be several servers.
const SETTLED: u32 = 8;
/// Labels of the name of 255 octets that is asked for are this long.
const LONG_LABEL: usize = 50;
/// How many questions are asked on one connection.
const MANY: usize = 4;

/// Why a check ends before its last step.
enum End {
    Fail(String),
    NotApplicable(String),
    /// The checks cannot go on.
    Stop(Problem),
}

impl From<Problem> for End {
    fn from(problem: Problem) -> End {
        End::Stop(problem)
    }
}

/// What the checks are made with.
pub(crate) struct Runner<'a> {
    pub(crate) server: SocketAddr,
    pub(crate) place: &'a mut Place,
    pub(crate) values: Values,
    /// Why the server can know no endpoints, if that is so.
    pub(crate) without_endpoints: Option<String>,
}

impl Runner<'_> {
    /// Creates the objects.
    pub(crate) async fn create(&mut self, warn: &mut dyn FnMut(&str)) -> Result<(), Problem> {
        for object in objects::objects(&self.values).map_err(Problem::BuiltIn)? {
            let (kind, _) = objects::key(&object);
            match self.place.put(object).await {
                Ok(object) if kind == "Service" => self.values.learn(&object),
                Ok(_) => {}
                // One object that this API server does not know how to have.
                Err(Problem::Api { what, code: 422, message }) => warn(&format!("cannot {what}: {message}")),
                Err(problem) => return Err(problem),
            }
        }
        if let Place::File(file) = &mut self.place {
            file.begin()?;
        }
        if let Some(why) = self.place.endpoints_refused() {
            warn(&format!("there are no Endpoints, which kube-dns needs: {why}"));
        }
        self.place.look_around(&mut self.values).await;
        Ok(())
    }

    /// Waits until the server knows the object that was created last. Where Endpoints could not be made, a server that reads
    /// nothing else can know the Services only.
    pub(crate) async fn settle(&mut self) -> Result<(), Problem> {
        let Some(refusal) = self.place.endpoints_refused().map(str::to_owned) else {
            return self.wait_for("zz-last.$svc", "192.0.2.99", SOON).await;
        };
        self.wait_for("idle.$svc", "$idle-4", SOON).await?;
        if let Err(Problem::Unknown { .. }) = self.wait_for("zz-last.$svc", "192.0.2.99", BEHIND).await {
            let why = format!("the server knows Services but no EndpointSlices, and {refusal}");
            self.without_endpoints = Some(why);
        }
        Ok(())
    }

    /// Waits until the server knows that a name has this address alone.
    async fn wait_for(&self, name: &str, address: &str, patience: Duration) -> Result<(), Problem> {
        let [name, address] = [name, address].map(|text| self.values.fill(text).map_err(Problem::BuiltIn));
        let (name, known) = (name?, Expectation::Is(vec![address?]));
        let query = query(&name, Type::A, Extra::Nothing).map_err(Problem::BuiltIn)?;
        let begin = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < SETTLED {
            let answer =
                ask::udp(self.server, &query).await.map_err(|why| Problem::Server(self.server, why.to_string()))?;
            in_a_row = if known.judge(&name, Type::A, &answer).is_ok() { in_a_row + 1 } else { 0 };
            if in_a_row == 0 {
                if begin.elapsed() > patience {
                    return Err(Problem::Unknown { name, answer: answer.to_string(), is_given: !self.place.is_ours() });
                }
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Makes a check.
    pub(crate) async fn check(&mut self, check: &Check) -> Result<Checked, Problem> {
        let outcome = match self.steps(check).await {
            Ok(time) => Outcome::Pass(time),
            Err(End::Fail(why)) => Outcome::Fail(why),
            Err(End::NotApplicable(why)) => Outcome::NotApplicable(why),
            Err(End::Stop(problem)) => return Err(problem),
        };
        Ok(Checked { name: check.name, says: check.says, outcome })
    }

    /// All steps; gives the longest time that a change took to be seen.
    async fn steps(&mut self, check: &Check) -> Result<Option<Duration>, End> {
        if check.needs_cluster && !matches!(self.place, Place::Cluster(..)) {
            return Err(End::NotApplicable("there is no cluster".to_owned()));
        }
        if let Some(why) = self.without_endpoints.as_ref().filter(|_| check.needs_endpoints) {
            return Err(End::NotApplicable(why.clone()));
        }
        if let Some(name) = check.unless.filter(|name| self.values.get(name).is_some()) {
            return Err(End::NotApplicable(format!("there is ${name}")));
        }
        let mut longest = None;
        for step in &check.steps {
            longest = longest.max(self.step(step).await?);
        }
        Ok(longest)
    }

    async fn step(&mut self, step: &Step) -> Result<Option<Duration>, End> {
        match step {
            Step::Skip(why) => return Err(End::NotApplicable((*why).to_owned())),
            Step::Put { .. } | Step::Remove { .. } if !self.place.is_ours() => {
                return Err(End::NotApplicable("objects are not changed".to_owned()));
            }
            Step::Put { kind, name, rest } => self.put(kind, name, rest).await?,
            Step::Remove { kind, name } => self.place.remove(kind, name).await?,
            Step::Ask(manner, question) => return self.ask(*manner, question).await,
        }
        Ok(None)
    }

    async fn put(&mut self, kind: &str, name: &str, rest: &str) -> Result<(), End> {
        let object = objects::object(&self.values, kind, name, rest).map_err(Problem::BuiltIn)?;
        let object = self.place.put(object).await?;
        if kind == "Service" {
            self.values.learn(&object);
        }
        Ok(())
    }

    async fn ask(&self, manner: Manner, question: &Question) -> Result<Option<Duration>, End> {
        let unknown = |name: String| End::NotApplicable(format!("there is no ${name}"));
        let expectation = self.values.fill(question.expectation).map_err(unknown)?;
        let expectation = Expectation::read(&expectation).map_err(Problem::BuiltIn)?;
        let name = self.values.fill(question.name).map_err(unknown)?;
        if manner == Manner::Search {
            return self.search(&name, question, &expectation).await.map(|()| None);
        }
        let query = query(&name, question.qtype, question.extra).map_err(Problem::BuiltIn)?;
        match manner {
            Manner::Soon => return self.soon(&query, &expectation).await.map(Some),
            Manner::Pipeline => self.pipeline(&query, &expectation).await?,
            Manner::Ask | Manner::Try | Manner::Reach | Manner::Search => {
                self.both(&query, &expectation, ends_it(manner)).await?;
            }
        }
        Ok(None)
    }

    /// Asks over UDP, and over TCP, which must be the same. Codes in `ends` make it not applicable.
    async fn both(&self, query: &Query, expectation: &Expectation, ends: &[Rcode]) -> Result<(), End> {
        let answer = ask::udp(self.server, query).await;
        if let Ok(answer) = &answer
            && answer.answers.is_empty()
            && ends.contains(&answer.rcode)
        {
            return Err(End::NotApplicable(format!("{}: the server says {}", describe(query), answer.rcode)));
        }
        if !answer.as_ref().is_ok_and(|answer| answer.is_truncated) {
            self.judge("UDP", query, expectation, answer).await?;
        }
        for answer in self.over_tcp(std::slice::from_ref(query)).await? {
            self.judge("TCP", query, expectation, Ok(answer)).await?;
        }
        Ok(())
    }

    async fn pipeline(&self, query: &Query, expectation: &Expectation) -> Result<(), End> {
        for answer in self.over_tcp(&vec![query.clone(); MANY]).await? {
            self.judge("TCP", query, expectation, Ok(answer)).await?;
        }
        Ok(())
    }

    async fn over_tcp(&self, queries: &[Query]) -> Result<Vec<Answer>, End> {
        let answers = ask::tcp(self.server, queries).await;
        let asked = queries.first().map_or(String::new(), describe);
        answers.map_err(|why| End::Fail(format!("{asked} over TCP: {why}")))
    }

    async fn judge(
        &self,
        transport: &str,
        query: &Query,
        expectation: &Expectation,
        answer: Result<Answer, NoAnswer>,
    ) -> Result<(), End> {
        let asked = format!("{} over {transport}", describe(query));
        let answer = answer.map_err(|why| End::Fail(format!("{asked}: {why}")))?;
        if let Err(wanted) = expectation.judge(&plain(&query.name), query.qtype, &answer) {
            return Err(End::Fail(format!("{asked}: expected {wanted}; got {answer}")));
        }
        let Expectation::Targets(wanted) = expectation else { return Ok(()) };
        let wanted: BTreeSet<String> = wanted.iter().cloned().collect();
        let found = self.addresses_of_targets(&answer).await?;
        if found == wanted {
            return Ok(());
        }
        let [found, wanted] = [found, wanted].map(|set| set.into_iter().collect::<Vec<_>>().join(", "));
        Err(End::Fail(format!("{asked}: expected targets with {wanted}; they have {found}")))
    }

    /// The addresses of both families of all targets in SRV records.
    async fn addresses_of_targets(&self, answer: &Answer) -> Result<BTreeSet<String>, End> {
        let targets: BTreeSet<&str> =
            answer.answers.iter().filter_map(|record| Some(record.data.split_once('/')?.1)).collect();
        let mut found = BTreeSet::new();
        for target in targets {
            for qtype in [Type::A, Type::AAAA] {
                let query = query(target, qtype, Extra::Nothing).map_err(End::Fail)?;
                let answer = ask::udp(self.server, &query).await;
                let answer = answer.map_err(|why| End::Fail(format!("{}: {why}", describe(&query))))?;
                found.extend(
                    answer.answers.into_iter().filter(|record| record.rtype == qtype).map(|record| record.data),
                );
            }
        }
        Ok(found)
    }

    /// Asks until it is as expected; gives how long that took.
    async fn soon(&self, query: &Query, expectation: &Expectation) -> Result<Duration, End> {
        let begin = Instant::now();
        loop {
            let answer = ask::udp(self.server, query).await;
            match self.judge("UDP", query, expectation, answer).await {
                Ok(()) => return Ok(begin.elapsed()),
                Err(End::Fail(why)) if begin.elapsed() > SOON => {
                    return Err(End::Fail(format!("{why} after {} s", SOON.as_secs())));
                }
                Err(End::Fail(_)) => sleep(LOOK).await,
                Err(other) => return Err(other),
            }
        }
    }

    /// Asks as the resolver of a Pod does for a name that is not complete: with each domain of its search list, until one
    /// gives records. Any other answer than that there are none ends the search of some resolvers.
    async fn search(&self, name: &str, question: &Question, expectation: &Expectation) -> Result<(), End> {
        for domain in ["$svc", "svc.$zone", "$zone"] {
            let domain = self.values.fill(domain).map_err(Problem::BuiltIn)?;
            let query = query(&format!("{name}.{domain}"), question.qtype, question.extra).map_err(Problem::BuiltIn)?;
            let answer = ask::udp(self.server, &query).await;
            let is_none = answer.as_ref().is_ok_and(|answer| {
                answer.answers.is_empty() && matches!(answer.rcode, Rcode::NOERROR | Rcode::NXDOMAIN)
            });
            if !is_none {
                return self.judge("UDP", &query, expectation, answer).await;
            }
        }
        Err(End::Fail(format!("{name} {}: no domain of the search list leads to it", question.qtype)))
    }
}

/// The codes that make a question not applicable: of names that a server may but need not have, and of those for which it
/// asks others.
const fn ends_it(manner: Manner) -> &'static [Rcode] {
    match manner {
        Manner::Try => &[Rcode::NXDOMAIN],
        Manner::Reach => &[Rcode::SERVFAIL, Rcode::REFUSED],
        _ => &[],
    }
}

fn describe(query: &Query) -> String {
    let with = match query.extra {
        Extra::Nothing => "",
        Extra::Edns => " with EDNS",
        Extra::Version => " with EDNS 1",
        Extra::Option => " with an unknown EDNS option",
        Extra::DnssecOk => " with DO",
        Extra::NoRecursion => " without RD",
    };
    format!("{} {}{with}", query.name.to_string().trim_end_matches('.'), query.qtype)
}

/// A query for a name as the checks write it.
fn query(text: &str, qtype: Type, extra: Extra) -> Result<Query, String> {
    let bad = |text: &str| format!("{text} is no name");
    let name = match text.split_once(':') {
        Some(("ptr", address)) => wire::reverse_name(address.parse().map_err(|_| bad(text))?),
        Some(("longest", suffix)) => longest(suffix).ok_or_else(|| bad(text))?,
        _ => Name::from_text(text).map_err(|_| bad(text))?,
    };
    Ok(Query { name, qtype, extra })
}

/// The longest name there can be that ends in another.
fn longest(suffix: &str) -> Option<Name> {
    let suffix = Name::from_text(suffix).ok()?;
    let mut room = wire::NAME_MAX.checked_sub(suffix.octets().len())?;
    let mut name = Name::root();
    while room > 1 {
        // One octet that is left over would be no label.
        let length = if room <= LONG_LABEL + 1 { room - 1 } else { LONG_LABEL.min(room - 3) };
        name.push_label(&[b'x'; LONG_LABEL][..length]).ok()?;
        room -= length + 1;
    }
    name.append(suffix.as_ref()).ok()?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reversed_and_as_long_as_can_be() {
        let name = |text: &str| query(text, Type::PTR, Extra::Nothing).unwrap().name;
        assert_eq!(name("ptr:192.0.2.1").to_string(), "1.2.0.192.in-addr.arpa.");
        assert!(query("ptr:nonsense", Type::PTR, Extra::Nothing).is_err());
        for length in 1..60 {
            let suffix = format!("{}.test", "a".repeat(length));
            assert_eq!(name(&format!("longest:{suffix}")).octets().len(), wire::NAME_MAX, "{suffix}");
        }
    }
}
