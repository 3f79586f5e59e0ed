//! Answers of servers that go beyond the Kubernetes DNS specification, and are no mistakes. CoreDNS gives them, too.
//! Those who compare a whole server with the model permit them.

use crate::answer::{Answer, Authority, Rcode};
use crate::cluster::{Endpoint, State, ZONE, dashed, reverse_name};
use crate::record::{Data, Question, Record, Type, is_within};

/// Returns the PTR records of the ready endpoints of a Service that does not exist, or is an alias. `service` is its
/// name in the zone of the cluster. The Service may be on its way.
pub fn orphans<'e>(endpoints: impl IntoIterator<Item = &'e Endpoint>, service: &str) -> Vec<Record> {
    let ready = endpoints.into_iter().filter(|endpoint| matches!(endpoint.state, State::Ready | State::Unknown));
    let record = |endpoint: &Endpoint| {
        let host = endpoint.hostname.map_or_else(|| dashed(endpoint.address), str::to_owned);
        Record::new(reverse_name(endpoint.address), Data::Ptr(format!("{host}.{service}")))
    };
    ready.map(record).collect()
}

/// Permits in an expected answer what servers have besides: the records of [`orphans`], an SRV record for the address
/// of a pod, and the names `svc` and `pod` without a namespace. `ask` is the model.
pub fn permit(answer: &mut Answer, question: &Question, orphans: &[Record], ask: impl Fn(&Question) -> Answer) {
    let name = question.name.to_ascii_lowercase();
    let mut orphans = orphans.iter().filter(|record| record.owner == name).peekable();
    if orphans.peek().is_some() {
        answer.rcodes.push(Rcode::NoError);
        answer.authority = Authority::Open;
        answer.permitted.extend(orphans.cloned());
    }
    if ["svc", "pod"].into_iter().any(|label| name == format!("{label}.{ZONE}")) {
        answer.rcodes.push(Rcode::NoError);
    }
    if matches!(question.qtype, Type::Srv | Type::Any) && is_within(&name, &format!("pod.{ZONE}")) {
        let exists = [Type::A, Type::Aaaa].into_iter().any(|qtype| {
            let address = Question { name: name.clone(), qtype };
            !ask(&address).required.is_empty()
        });
        if exists {
            answer.permitted.push(Record::new(name.clone(), Data::Srv(0, name)));
            answer.authority = Authority::Open;
        }
    }
}
