//! Text of an explanation for people.

use core::fmt::{self, Write};

use super::{
    Asked, Cached, Client, Differing, DnsPolicy, Explained, NotReady, NotReadyEndpoint, Place, Search, Step, Upstream,
};
use crate::text::{count, duration, harmless};

/// Maximum width of the column with results. Longer ones move the columns after them.
const RESULT_WIDTH_MAX: usize = 44;
/// Check of `portolan doctor` that compares the cluster domain of the kubelets.
const CHECK: &str = "PD-K02";
/// Number of steps from which earlier ones of the search path share a line if they have nothing to tell.
const SHOWN_RECORDS_MAX: usize = 1;
/// Maximum number of endpoints that are not ready on a line.
const NOT_READY_SHOWN_MAX: usize = 8;

impl fmt::Display for Explained {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}  {}", harmless(&self.question.name), self.question.qtype)?;
        if let Some(client) = &self.from {
            write!(out, "  from {client}")?;
        }
        if let Some(search) = &self.search {
            write!(out, "   search {search}")?;
        }
        writeln!(out)?;
        let names = self.steps.iter().map(|step| harmless(&step.name).chars().count());
        let width = names.max().unwrap_or(0);
        let results: Vec<String> = self.steps.iter().map(Step::result).collect();
        let result_width = results.iter().map(|text| text.chars().count()).max().unwrap_or(0).min(RESULT_WIDTH_MAX);
        for (step, result) in self.steps.iter().zip(&results) {
            let name = harmless(&step.name);
            let line = format!("  {name:<width$}  {result:<result_width$}   {}", step.origin());
            writeln!(out, "{}", line.trim_end())?;
            write_details(step, out)?;
        }
        self.notes().iter().try_for_each(|note| writeln!(out, "  note  {}", harmless(note)))?;
        writeln!(out, "  why   {} [{}]", harmless(&self.why.text), self.why.code)?;
        match &self.advice {
            Some(advice) => writeln!(out, "  do    {}", harmless(advice)),
            None => Ok(()),
        }
    }
}

impl Explained {
    /// Returns what limits the answer: rules that could not be judged, and results that hold for another client.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.from.iter().filter_map(Client::note).collect();
        notes.extend(self.search.iter().filter_map(Search::note));
        if self.search.is_none() {
            let known = self.from.iter().filter(|client| client.address.is_some());
            let reason = known.filter_map(|client| client.unknown.as_ref());
            notes.extend(
                reason.map(|reason| format!("the Pod of the client and its search path are not known: {reason}")),
            );
        }
        let rules: Vec<String> = self.unjudged.iter().map(|rule| format!("{} ({})", rule.plugin, rule.place)).collect();
        if !rules.is_empty() {
            let rules = rules.join(", ");
            notes
                .push(format!("rules by address could not be judged: {rules}; name the address with `--from ADDRESS`"));
            let reason = self.from.iter().find_map(|client| client.unknown.as_ref());
            notes.extend(reason.map(|reason| format!("the address is not known: {reason}")));
        }
        for Differing { address, name, result } in &self.differing {
            notes.push(format!("from {address}, another address of the client, {name} is {result}"));
        }
        notes.extend(self.asked_from.as_ref().map(|address| {
            format!(
                "asked from {address}: plugins that look at the client, such as acl and view, may answer differently"
            )
        }));
        notes
    }
}

/// Domains, `ndots`, and what they are taken from. Only the Pod and the kubelet know the true ones.
impl fmt::Display for Search {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domains: Vec<String> = self.domains.iter().map(|domain| harmless(domain)).collect();
        let domains = if domains.is_empty() { "without domains".to_owned() } else { domains.join(" ") };
        write!(out, "{domains} · ndots {} (", self.ndots)?;
        match (self.policy.map(DnsPolicy::name), self.assumed) {
            (None, _) => write!(out, "assumed, see {CHECK})"),
            (Some(policy), _) if self.host_network => write!(out, "dnsPolicy {policy}, by hostNetwork)"),
            (Some(policy), false) => write!(out, "dnsPolicy {policy})"),
            (Some(policy), true) => write!(out, "dnsPolicy {policy}; cluster domain assumed, see {CHECK})"),
        }
    }
}

impl Search {
    /// Says which servers the Pod asks in place of this one, or why a part of the path is assumed.
    fn note(&self) -> Option<String> {
        match self.policy {
            None => self.unknown.as_ref().map(|reason| format!("the search path is assumed: {reason}")),
            Some(DnsPolicy::ClusterFirst) => {
                self.unknown.as_ref().map(|reason| format!("the cluster domain is assumed: {reason}"))
            }
            Some(DnsPolicy::None) => Some(self.note_of_own_nameservers()),
            Some(DnsPolicy::Default) => Some(self.note_of_node()),
        }
    }

    /// Describes the nameservers of a Pod with `dnsPolicy: None`.
    fn note_of_own_nameservers(&self) -> String {
        let all = self.nameservers.join(", ");
        match (self.rank_of_cluster_dns(), self.cluster_dns.is_empty()) {
            (Some(0), _) if self.nameservers.len() == 1 => {
                format!("the Pod asks the cluster DNS, {all}, by its dnsConfig")
            }
            (Some(0), _) => format!(
                "the Pod asks the nameservers of its dnsConfig in this order: {all}; the first is the cluster DNS"
            ),
            (Some(rank), _) => format!(
                "the Pod asks the nameservers of its dnsConfig in this order: {all}; it asks the cluster DNS, {}, only \
                 if those before it do not respond",
                self.nameservers[rank]
            ),
            (None, true) => {
                format!("the Pod asks the nameservers of its dnsConfig: {all}; this server only if it is one of them")
            }
            (None, false) => format!(
                "the Pod asks the nameservers of its dnsConfig: {all}; the cluster DNS, {}, is not among those that \
                 its resolver uses",
                self.cluster_dns.join(", ")
            ),
        }
    }

    /// Describes the nameservers of a Pod that asks those of its node.
    fn note_of_node(&self) -> String {
        let node = if self.host_network {
            "the Pod is on the network of its node (hostNetwork), where dnsPolicy ClusterFirst has the effect of \
             Default; ClusterFirstWithHostNet would ask the cluster DNS: "
        } else {
            "dnsPolicy Default: "
        };
        let node = format!("{node}it asks the nameservers of its node, with the search domains of the node");
        let rest = match (self.nameservers.as_slice(), self.rank_of_cluster_dns()) {
            ([], _) => ", and this server only if they forward to it".to_owned(),
            (own, None) => format!(", and then those of its dnsConfig: {}", own.join(", ")),
            (own, Some(rank)) => format!(
                ", and then those of its dnsConfig: {}; it asks the cluster DNS, {}, only if those before it do not \
                 respond",
                own.join(", "),
                own[rank]
            ),
        };
        node + &rest
    }
}

impl Client {
    /// Says that there is no such pod.
    fn note(&self) -> Option<String> {
        let (namespace, pod) = (self.namespace.as_ref()?, self.pod.as_ref()?);
        let text = || {
            format!("there is no pod `{pod}` with an address in {namespace}: rules that look at the client see 0.0.0.0")
        };
        self.missing.then(text)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address.as_deref();
        match (&self.namespace, &self.pod, address) {
            (Some(namespace), Some(pod), Some(address)) => {
                write!(out, "{namespace}/{pod} ({address}")?;
                self.other_addresses.iter().try_for_each(|other| write!(out, ", {other}"))?;
                out.write_char(')')
            }
            (Some(namespace), Some(pod), None) => {
                let (namespace, pod) = (harmless(namespace), harmless(pod));
                let reason = if self.missing { "no known pod" } else { "address unknown" };
                write!(out, "{namespace}/{pod} ({reason}, rules see 0.0.0.0)")
            }
            (Some(namespace), None, Some(address)) => write!(out, "{address} (namespace {namespace})"),
            (_, _, address) => write!(out, "{} (no known pod)", address.unwrap_or("?")),
        }
    }
}

impl Step {
    /// Returns the result: response code and records.
    #[must_use]
    pub fn result(&self) -> String {
        let Some(rcode) = &self.rcode else {
            return match &self.asked {
                Some(asked) => format!("asked: {asked}"),
                None if self.dropped => "no response".to_owned(),
                None => "not asked".to_owned(),
            };
        };
        let mut text = outcome(rcode, &self.records);
        if self.truncated {
            text.push_str(", truncated");
        }
        if let Some(ede) = self.ede {
            _ = write!(text, "  EDE {ede}");
        }
        text
    }

    /// Returns the origin of the answer: server block, plugin, its line, and the data.
    #[must_use]
    pub fn origin(&self) -> String {
        let mut text = String::new();
        if let Some(block) = &self.block {
            text.push_str(&block.keys);
        }
        if let Some(plugin) = &self.plugin {
            _ = write!(text, " › {plugin}");
        }
        if let Some(place) = &self.place {
            _ = write!(text, "   {place}");
        }
        if !self.text.is_empty() {
            _ = write!(text, "   {}", harmless(&self.text));
        }
        if let Some(cache) = &self.cache {
            _ = write!(text, ", {cache}");
        }
        text
    }
}

/// Returns a response code with the record, or the number of records.
fn outcome(rcode: &str, records: &[String]) -> String {
    match records {
        [] if rcode == "NOERROR" => format!("{rcode}, no record"),
        [] => rcode.to_owned(),
        records if records.len() > SHOWN_RECORDS_MAX => format!("{rcode}  {} records", records.len()),
        [record, ..] => {
            // Owner, TTL, class and type precede the data.
            let data = record.splitn(5, ' ').nth(4).unwrap_or(record);
            format!("{rcode}  {}", harmless(data))
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.rcode, &self.error) {
            (Some(rcode), _) => out.write_str(&outcome(&harmless(rcode), &self.records))?,
            (None, Some(error)) => out.write_str(&harmless(error))?,
            (None, None) => out.write_str("no answer")?,
        }
        write!(out, " in {}", duration(self.seconds))?;
        match (self.ede, &self.ede_text) {
            (Some(ede), Some(text)) => write!(out, "  EDE {ede} ({})", harmless(text)),
            (Some(ede), None) => write!(out, "  EDE {ede}"),
            _ => Ok(()),
        }
    }
}

fn write_details(step: &Step, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for passage in &step.trail {
        writeln!(out, "    {} {}   {}", passage.plugin, passage.place, harmless(&passage.did))?;
    }
    let asked = step.asked.as_ref().filter(|_| step.rcode.is_none());
    let records = asked.map_or(&step.records, |asked| &asked.records);
    if records.len() > SHOWN_RECORDS_MAX {
        records.iter().try_for_each(|record| writeln!(out, "    {}", harmless(record)))?;
    }
    if let Some(asked) = step.asked.as_ref().filter(|_| step.rcode.is_some()) {
        writeln!(out, "    asked: {asked}")?;
    }
    if let Some(not_ready) = &step.not_ready {
        writeln!(out, "    {not_ready}")?;
    }
    step.upstreams.iter().try_for_each(|upstream| writeln!(out, "    {upstream}"))
}

impl fmt::Display for NotReady {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.endpoints.len().min(NOT_READY_SHOWN_MAX);
        let texts: Vec<String> = self.endpoints.iter().take(shown).map(ToString::to_string).collect();
        write!(out, "not ready  {}", texts.join(" · "))?;
        match self.count.saturating_sub(shown as u64) {
            0 => Ok(()),
            rest => write!(out, " · and {} more", count(rest)),
        }
    }
}

impl fmt::Display for NotReadyEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pod) = &self.pod {
            write!(out, "{} ", harmless(pod))?;
        }
        out.write_str(&harmless(&self.address))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", harmless(&self.file), self.line)
    }
}

impl fmt::Display for Cached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (age, left) = (self.age_seconds, self.ttl_seconds - self.age_seconds);
        if left > 0.0 {
            return write!(out, "{} old, {} left", duration(age), duration(left));
        }
        let stale = (self.stale_seconds + left).max(0.0);
        write!(out, "expired {} ago, served stale for {} more", duration(-left), duration(stale))
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}  {}  {}", self.address, self.transport, self.state)?;
        if let Some(seconds) = self.down_seconds {
            write!(out, " for {}", duration(seconds))?;
        }
        if let Some(error) = &self.error {
            write!(out, ": {}", harmless(error))?;
        }
        match (self.failed_seconds, &self.failure) {
            (Some(seconds), Some(error)) => {
                write!(out, ", last failed query {} ago: {}", duration(seconds), harmless(error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_first_endpoints_that_are_not_ready_and_the_number_of_the_others() {
        let endpoint = |at: usize| NotReadyEndpoint {
            pod: (at > 0).then(|| format!("web-{at}\u{202e}")),
            address: format!("10.1.0.{at}"),
        };
        let not_ready = |count| NotReady { count, endpoints: (0..16).map(endpoint).collect() };
        let text = not_ready(1_234).to_string();
        assert!(text.starts_with("not ready  10.1.0.0 · web-1\\u{202e} 10.1.0.1 · "), "{text}");
        assert!(text.ends_with(" 10.1.0.7 · and 1,226 more"), "{text}");
        assert!(NotReady { count: 0, endpoints: Vec::new() }.to_string().starts_with("not ready"));
    }
}
