//! Runner that makes the checks one after the other.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use wire::{Name, Rcode, Type};

use crate::RunError;
use crate::built_in_error::{BuiltInError, PlaceholderError};
use crate::client::{self, Query, QueryError};
use crate::expect::Expectation;
use crate::objects::{self, Values};
use crate::report::{Checked, Outcome};
use crate::response::{Response, plain};
use crate::script::{Check, QueryExtra, QueryMode, QuerySpec, Step};
use crate::store::ObjectStore;

/// Time within which a change must take effect. Kubernetes' e2e tests wait longer; a cache may keep the old answer
/// for 30 s in the common configuration.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// Time by which endpoints may become known later than their Service.
const BEHIND: Duration = Duration::from_secs(5);
/// Interval between two queries while waiting for a change.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of consecutive successes after which the server is considered ready. There may be several servers behind
/// the address, each with its own state.
const SETTLED: u32 = 8;
/// Length of the labels in the name of 255 bytes.
const LONG_LABEL: usize = 50;
/// Number of queries sent over one TCP connection.
const MANY: usize = 4;

/// Reason to end a check before its last step.
enum StepEnd {
    Fail(String),
    NotApplicable(String),
    /// All checks must stop.
    Stop(RunError),
}

impl From<RunError> for StepEnd {
    fn from(error: RunError) -> StepEnd {
        StepEnd::Stop(error)
    }
}

/// State of a run.
pub(crate) struct Runner<'a> {
    pub(crate) server: SocketAddr,
    pub(crate) store: &'a mut ObjectStore,
    pub(crate) values: Values,
    /// Reason why the server cannot know endpoints, if so.
    pub(crate) without_endpoints: Option<String>,
}

impl Runner<'_> {
    /// Creates the objects.
    pub(crate) async fn create(&mut self, warn: &mut dyn FnMut(&str)) -> Result<(), RunError> {
        for object in objects::objects(&self.values).map_err(RunError::BuiltIn)? {
            let (kind, _) = objects::key(&object);
            match self.store.put(object).await {
                Ok(object) if kind == "Service" => self.values.learn(&object),
                Ok(_) => {}
                // This API server does not support the object, for example a dual-stack Service.
                Err(RunError::Api { action, code: 422, message }) => warn(&format!("cannot {action}: {message}")),
                Err(error) => return Err(error),
            }
        }
        if let ObjectStore::File(file) = &mut self.store {
            file.begin()?;
        }
        if let Some(reason) = self.store.endpoints_refused() {
            warn(&format!("Endpoints objects, which kube-dns needs, are missing: {reason}"));
        }
        self.store.look_around(&mut self.values).await;
        Ok(())
    }

    /// Waits until the server serves the last created object. If Endpoints could not be created, a server that reads
    /// only those will never serve endpoints; then waits for the Services only.
    pub(crate) async fn settle(&mut self) -> Result<(), RunError> {
        let Some(refusal) = self.store.endpoints_refused().map(str::to_owned) else {
            return self.wait_for("zz-last.$svc", "192.0.2.99", SOON).await;
        };
        self.wait_for("idle.$svc", "$idle-4", SOON).await?;
        if let Err(RunError::Unknown { .. }) = self.wait_for("zz-last.$svc", "192.0.2.99", BEHIND).await {
            let reason = format!("the server does not read EndpointSlices, and Endpoints are missing: {refusal}");
            self.without_endpoints = Some(reason);
        }
        Ok(())
    }

    /// Waits until a name has exactly this address.
    async fn wait_for(&self, name: &str, address: &str, timeout: Duration) -> Result<(), RunError> {
        let [name, address] = [name, address].map(|text| self.values.fill(text).map_err(BuiltInError::from));
        let (name, known) =
            (name.map_err(RunError::BuiltIn)?, Expectation::Is(vec![address.map_err(RunError::BuiltIn)?]));
        let query = query(&name, Type::A, QueryExtra::Nothing).map_err(RunError::BuiltIn)?;
        let begin = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < SETTLED {
            let response = client::udp(self.server, &query)
                .await
                .map_err(|reason| RunError::Server(self.server, reason.to_string()))?;
            in_a_row = if known.unmet(&name, Type::A, &response).is_none() { in_a_row + 1 } else { 0 };
            if in_a_row == 0 {
                if begin.elapsed() > timeout {
                    return Err(RunError::Unknown {
                        name,
                        response: response.to_string(),
                        is_given: !self.store.is_ours(),
                    });
                }
                sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Runs a check.
    pub(crate) async fn check(&mut self, check: &Check) -> Result<Checked, RunError> {
        let outcome = match self.steps(check).await {
            Ok(time) => Outcome::Pass(time),
            Err(StepEnd::Fail(reason)) => Outcome::Fail(reason),
            Err(StepEnd::NotApplicable(reason)) => Outcome::NotApplicable(reason),
            Err(StepEnd::Stop(error)) => return Err(error),
        };
        Ok(Checked { name: check.name, says: check.says, outcome })
    }

    /// Runs the steps of a check. Returns the longest time that a change took to take effect.
    async fn steps(&mut self, check: &Check) -> Result<Option<Duration>, StepEnd> {
        if check.needs_cluster && !matches!(self.store, ObjectStore::Cluster(..)) {
            return Err(StepEnd::NotApplicable("requires a cluster".to_owned()));
        }
        if let Some(reason) = self.without_endpoints.as_ref().filter(|_| check.needs_endpoints) {
            return Err(StepEnd::NotApplicable(reason.clone()));
        }
        if let Some(name) = check.unless.filter(|name| self.values.get(name).is_some()) {
            let (service, address) = objects::service_and_address(name);
            return Err(StepEnd::NotApplicable(format!("Service `{service}` has an {address}")));
        }
        let mut longest = None;
        for step in &check.steps {
            longest = longest.max(self.step(step).await?);
        }
        Ok(longest)
    }

    async fn step(&mut self, step: &Step) -> Result<Option<Duration>, StepEnd> {
        match step {
            Step::Skip(reason) => return Err(StepEnd::NotApplicable((*reason).to_owned())),
            Step::Put { .. } | Step::Remove { .. } if !self.store.is_ours() => {
                return Err(StepEnd::NotApplicable("requires creating or changing objects".to_owned()));
            }
            Step::Put { kind, name, rest } => self.put(kind, name, rest).await?,
            Step::Remove { kind, name } => self.store.remove(kind, name).await?,
            Step::Query(mode, question) => return self.ask(*mode, question).await,
        }
        Ok(None)
    }

    async fn put(&mut self, kind: &str, name: &str, rest: &str) -> Result<(), StepEnd> {
        let object = objects::object(&self.values, kind, name, rest).map_err(RunError::BuiltIn)?;
        let object = self.store.put(object).await?;
        if kind == "Service" {
            self.values.learn(&object);
        }
        Ok(())
    }

    async fn ask(&self, mode: QueryMode, question: &QuerySpec) -> Result<Option<Duration>, StepEnd> {
        let unknown = |PlaceholderError(name)| {
            let (service, address) = objects::service_and_address(&name);
            StepEnd::NotApplicable(format!("Service `{service}` has no {address}"))
        };
        let expectation = self.values.fill(question.expectation).map_err(unknown)?;
        let expectation = Expectation::read(&expectation).map_err(RunError::BuiltIn)?;
        let name = self.values.fill(question.name).map_err(unknown)?;
        if mode == QueryMode::Search {
            return self.search(&name, question, &expectation).await.map(|()| None);
        }
        let query = query(&name, question.qtype, question.extra).map_err(RunError::BuiltIn)?;
        match mode {
            QueryMode::Soon => return self.soon(&query, &expectation).await.map(Some),
            QueryMode::Pipeline => self.pipeline(&query, &expectation).await?,
            QueryMode::Ask | QueryMode::Try | QueryMode::Reach | QueryMode::Search => {
                self.both(&query, &expectation, ends_it(mode)).await?;
            }
        }
        Ok(None)
    }

    /// Queries over UDP and TCP, which must both meet the expectation. An empty response with a code in `ends` makes
    /// the check not applicable.
    async fn both(&self, query: &Query, expectation: &Expectation, ends: &[Rcode]) -> Result<(), StepEnd> {
        let response = client::udp(self.server, query).await;
        if let Ok(response) = &response
            && response.answers.is_empty()
            && ends.contains(&response.rcode)
        {
            return Err(StepEnd::NotApplicable(format!("{}: the server answered {}", describe(query), response.rcode)));
        }
        if !response.as_ref().is_ok_and(|response| response.is_truncated) {
            self.judge("UDP", query, expectation, response).await?;
        }
        for response in self.over_tcp(std::slice::from_ref(query)).await? {
            self.judge("TCP", query, expectation, Ok(response)).await?;
        }
        Ok(())
    }

    async fn pipeline(&self, query: &Query, expectation: &Expectation) -> Result<(), StepEnd> {
        for response in self.over_tcp(&vec![query.clone(); MANY]).await? {
            self.judge("TCP", query, expectation, Ok(response)).await?;
        }
        Ok(())
    }

    async fn over_tcp(&self, queries: &[Query]) -> Result<Vec<Response>, StepEnd> {
        let answers = client::tcp(self.server, queries).await;
        let asked = queries.first().map_or(String::new(), describe);
        answers.map_err(|reason| StepEnd::Fail(format!("{asked} over TCP: {reason}")))
    }

    async fn judge(
        &self,
        transport: &str,
        query: &Query,
        expectation: &Expectation,
        response: Result<Response, QueryError>,
    ) -> Result<(), StepEnd> {
        let asked = format!("{} over {transport}", describe(query));
        let response = response.map_err(|reason| StepEnd::Fail(format!("{asked}: {reason}")))?;
        if let Some(wanted) = expectation.unmet(&plain(&query.name), query.qtype, &response) {
            return Err(StepEnd::Fail(format!("{asked}: expected {wanted}; got {response}")));
        }
        let Expectation::Targets(wanted) = expectation else { return Ok(()) };
        let wanted: BTreeSet<String> = host::sorting::set(wanted.iter().cloned());
        let found = self.addresses_of_targets(&response).await?;
        if found == wanted {
            return Ok(());
        }
        let [found, wanted] = [found, wanted].map(|set| set.into_iter().collect::<Vec<_>>().join(", "));
        Err(StepEnd::Fail(format!("{asked}: expected targets at {wanted}; they resolve to {found}")))
    }

    /// Returns the IPv4 and IPv6 addresses of all SRV targets.
    async fn addresses_of_targets(&self, response: &Response) -> Result<BTreeSet<String>, StepEnd> {
        let targets: BTreeSet<&str> =
            host::sorting::set(response.answers.iter().filter_map(|record| Some(record.data.split_once('/')?.1)));
        let mut found = BTreeSet::new();
        for target in targets {
            for qtype in [Type::A, Type::AAAA] {
                let query =
                    query(target, qtype, QueryExtra::Nothing).map_err(|error| StepEnd::Fail(error.to_string()))?;
                let response = client::udp(self.server, &query).await;
                let response = response.map_err(|reason| StepEnd::Fail(format!("{}: {reason}", describe(&query))))?;
                found.extend(
                    response.answers.into_iter().filter(|record| record.rtype == qtype).map(|record| record.data),
                );
            }
        }
        Ok(found)
    }

    /// Repeats a query until the response meets the expectation. Returns the time that took.
    async fn soon(&self, query: &Query, expectation: &Expectation) -> Result<Duration, StepEnd> {
        let begin = Instant::now();
        loop {
            let response = client::udp(self.server, query).await;
            match self.judge("UDP", query, expectation, response).await {
                Ok(()) => return Ok(begin.elapsed()),
                Err(StepEnd::Fail(reason)) if begin.elapsed() > SOON => {
                    return Err(StepEnd::Fail(format!("{reason} after {} s", SOON.as_secs())));
                }
                Err(StepEnd::Fail(_)) => sleep(POLL_INTERVAL).await,
                Err(other) => return Err(other),
            }
        }
    }

    /// Resolves a relative name like the resolver of a Pod: appends each domain of the search list until one yields
    /// records. Any response other than NODATA and NXDOMAIN ends the search, as in some resolvers.
    async fn search(&self, name: &str, question: &QuerySpec, expectation: &Expectation) -> Result<(), StepEnd> {
        for domain in ["$svc", "svc.$zone", "$zone"] {
            let domain = self.values.fill(domain).map_err(|error| RunError::BuiltIn(error.into()))?;
            let query =
                query(&format!("{name}.{domain}"), question.qtype, question.extra).map_err(RunError::BuiltIn)?;
            let response = client::udp(self.server, &query).await;
            let is_none = response.as_ref().is_ok_and(|response| {
                response.answers.is_empty() && matches!(response.rcode, Rcode::NOERROR | Rcode::NXDOMAIN)
            });
            if !is_none {
                return self.judge("UDP", &query, expectation, response).await;
            }
        }
        Err(StepEnd::Fail(format!("{name} {}: no domain of the search list yields records", question.qtype)))
    }
}

/// Returns the response codes that make a check not applicable: for names that a server may serve but need not, and
/// for names that it forwards.
const fn ends_it(mode: QueryMode) -> &'static [Rcode] {
    match mode {
        QueryMode::Try => &[Rcode::NXDOMAIN],
        QueryMode::Reach => &[Rcode::SERVFAIL, Rcode::REFUSED],
        _ => &[],
    }
}

fn describe(query: &Query) -> String {
    let with = match query.extra {
        QueryExtra::Nothing => "",
        QueryExtra::Edns => " with EDNS",
        QueryExtra::Version => " with EDNS 1",
        QueryExtra::Option => " with an unknown EDNS option",
        QueryExtra::DnssecOk => " with DO",
        QueryExtra::NoRecursion => " without RD",
    };
    format!("{} {}{with}", query.name.to_string().trim_end_matches('.'), query.qtype)
}

/// Builds a query for a name in the notation of the checks.
fn query(text: &str, qtype: Type, extra: QueryExtra) -> Result<Query, BuiltInError> {
    let bad = |text: &str| BuiltInError::Name(text.to_owned());
    let name = match text.split_once(':') {
        Some(("ptr", address)) => wire::reverse_name(address.parse().map_err(|_| bad(text))?),
        Some(("longest", suffix)) => longest(suffix).ok_or_else(|| bad(text))?,
        _ => Name::from_text(text).map_err(|_| bad(text))?,
    };
    Ok(Query { name, qtype, extra })
}

/// Returns the longest possible name with the given suffix.
fn longest(suffix: &str) -> Option<Name> {
    let suffix = Name::from_text(suffix).ok()?;
    let mut room = wire::NAME_MAX.checked_sub(suffix.as_bytes().len())?;
    let mut name = Name::root();
    while room > 1 {
        // A single remaining byte would not fit a label.
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
    fn builds_reverse_names_and_names_of_maximum_length() {
        let name = |text: &str| query(text, Type::PTR, QueryExtra::Nothing).unwrap().name;
        assert_eq!(name("ptr:192.0.2.1").to_string(), "1.2.0.192.in-addr.arpa.");
        assert!(query("ptr:nonsense", Type::PTR, QueryExtra::Nothing).is_err());
        for length in 1..60 {
            let suffix = format!("{}.test", "a".repeat(length));
            assert_eq!(name(&format!("longest:{suffix}")).as_bytes().len(), wire::NAME_MAX, "{suffix}");
        }
    }
}
