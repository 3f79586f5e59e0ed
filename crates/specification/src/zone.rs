//! Model of an authoritative server with one zone: RFC 1034 §4.3.2 as RFC 2308, 4592, 6604, 6672 and 8020 change it.
//!
//! The model reads the list of records from its start for every step. Nothing is prepared for speed.

use crate::answer::{Answer, Authority, Rcode};
use crate::branch::Branch;
use crate::record::{Data, Question, Record, Type, is_within, parent, wire_len};

/// Maximum length of a name in bytes (RFC 1035 §3.1).
const NAME_MAX: usize = 255;

/// Zone: its origin, and its records in any order, with SOA and NS at the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Name of the apex.
    pub origin: String,
    /// Records.
    pub records: Vec<Record>,
}

impl Zone {
    /// Returns the records of a name.
    fn at<'z>(&'z self, name: &str) -> impl Iterator<Item = &'z Record> {
        self.records.iter().filter(move |record| record.owner == name)
    }

    /// Returns true if a name has a record of a type.
    fn has(&self, name: &str, rtype: Type) -> bool {
        self.at(name).any(|record| record.data.rtype() == rtype)
    }

    /// Returns true if a name exists: it, or a name below it, has records (RFC 4592 §2.2.2, RFC 8020 §2).
    fn exists(&self, name: &str) -> bool {
        self.records.iter().any(|record| is_within(&record.owner, name))
    }
}

/// Returns the expected answer to a question, and the branches that lead to it.
#[must_use]
pub fn answer(zone: &Zone, question: &Question) -> (Answer, Vec<Branch>) {
    // RFC 4343 §3: names are compared without regard to case.
    let name = question.name.to_ascii_lowercase();
    let mut walk = Walk {
        zone,
        qtype: question.qtype,
        names: vec![name],
        renames: Vec::new(),
        answer: Answer::new(),
        branches: Vec::new(),
        is_strict: true,
    };
    while let Some(target) = walk.step() {
        if !walk.follow(target) {
            break;
        }
    }
    (walk.answer, walk.branches)
}

/// State of the algorithm.
struct Walk<'z> {
    zone: &'z Zone,
    qtype: Type,
    /// QNAME, and the targets of the aliases that were followed.
    names: Vec<String>,
    /// Owners of DNAME records that were applied, and the length of the name each time.
    renames: Vec<(String, usize)>,
    answer: Answer,
    branches: Vec<Branch>,
    /// False if what follows is permitted and not required.
    is_strict: bool,
}

impl Walk<'_> {
    fn reach(&mut self, branch: Branch) {
        self.branches.push(branch);
    }

    fn name(&self) -> String {
        self.names.last().cloned().unwrap_or_default()
    }

    fn is_first(&self) -> bool {
        self.names.len() == 1
    }

    /// Adds a record to the answer section.
    fn add(&mut self, record: Record) {
        if self.is_strict {
            self.answer.require(record);
        } else if !self.answer.required.contains(&record) && !self.answer.permitted.contains(&record) {
            self.answer.permitted.push(record);
        }
    }

    /// Goes on with the target of an alias: RFC 1034 §4.3.2 steps 3a and 3c, "go back to step 1".
    fn follow(&mut self, target: String) -> bool {
        if self.names.contains(&target) {
            // RFC 1034 §3.6.2: a loop is signalled as an error. No code is named, and no end of the chain.
            self.reach(Branch::AliasLoop);
            self.end_openly();
            return false;
        }
        self.names.push(target);
        true
    }

    /// Permits each end of an answer that a server may stop at, and SERVFAIL.
    fn end_openly(&mut self) {
        self.answer.allow(Rcode::NoError);
        self.answer.allow(Rcode::ServFail);
        self.answer.authoritative = None;
        self.answer.authority = Authority::Open;
    }

    /// Sets the end of the answer, or permits it.
    fn end(&mut self, rcode: Rcode, authority: Authority) {
        if self.is_strict {
            self.answer.rcodes = vec![rcode];
            self.answer.authority = authority;
        } else {
            self.answer.allow(rcode);
        }
    }

    /// Ends an answer that has records.
    fn end_positive(&mut self) {
        self.end(Rcode::NoError, Authority::Positive(self.zone.origin.clone()));
    }

    /// Looks up the current name. Returns the target of its alias, if that is to be followed.
    fn step(&mut self) -> Option<String> {
        let (zone, name) = (self.zone, self.name());
        if !is_within(&name, &zone.origin) {
            self.leave();
            return None;
        }
        let mut encloser = zone.origin.clone();
        for above in path_down(&zone.origin, &name) {
            if !zone.exists(above) {
                return self.miss(&encloser, &name);
            }
            // RFC 4035 §3.1.4.1: DS belongs to the parent's side of the cut.
            let is_own_ds = above == name && self.qtype == Type::Ds;
            if above != zone.origin && zone.has(above, Type::Ns) {
                if !is_own_ds {
                    self.refer(above);
                    return None;
                }
                self.reach(Branch::DsAtCut);
            }
            above.clone_into(&mut encloser);
        }
        self.exact(&name)
    }

    /// RFC 1034 §4.3.2 step 2: no zone of the server contains the name.
    fn leave(&mut self) {
        if self.is_first() {
            self.reach(Branch::Outside);
            self.answer.authoritative = Some(false);
            self.end(Rcode::Refused, Authority::Open);
        } else {
            self.reach(Branch::AliasOut);
            self.end_positive();
        }
    }

    /// RFC 1034 §4.3.2 step 3a: the whole of the name is matched.
    fn exact(&mut self, name: &str) -> Option<String> {
        let reached = [Branch::Exact, Branch::Cname, Branch::CnameAsked, Branch::Any, Branch::NoData];
        self.at_node(name, name, reached, Branch::EmptyNonTerminal)
    }

    /// Answers from the records of a node for the owner name `name`.
    fn at_node(
        &mut self,
        node: &str,
        name: &str,
        [found, alias, alias_asked, any, no_data]: [Branch; 5],
        empty: Branch,
    ) -> Option<String> {
        let all: Vec<Data> = self.zone.at(node).map(|record| record.data.clone()).collect();
        let matching: Vec<&Data> = all.iter().filter(|data| data.rtype() == self.qtype).collect();
        if all.is_empty() {
            self.reach(empty);
            self.deny(Rcode::NoError);
        } else if self.qtype == Type::Any {
            // RFC 8482 §4.1, §4.2: a subset of the records, or an HINFO record.
            self.reach(any);
            self.answer.permitted.extend(all.into_iter().map(|data| Record::new(name, data)));
            self.answer.permitted.push(Record::new(name, Data::Other(HINFO)));
            self.answer.is_some = true;
            self.end_positive();
        } else if !matching.is_empty() {
            self.reach(if self.qtype == Type::Cname { alias_asked } else { found });
            matching.into_iter().for_each(|data| self.add(Record::new(name, data.clone())));
            self.end_positive();
        } else if let Some(Data::Cname(target)) = all.iter().find(|data| data.rtype() == Type::Cname) {
            self.reach(alias);
            self.add(Record::new(name, Data::Cname(target.clone())));
            return Some(target.clone());
        } else {
            self.reach(no_data);
            self.deny(Rcode::NoError);
        }
        None
    }

    /// RFC 1034 §4.3.2 step 3b: a referral. AA is about the first owner name in the answer (RFC 6604 §2.1).
    fn refer(&mut self, cut: &str) {
        self.reach(if self.is_first() { Branch::Referral } else { Branch::ReferralBelowAlias });
        let servers: Vec<Record> =
            self.zone.at(cut).filter(|record| record.data.rtype() == Type::Ns).cloned().collect();
        for server in &servers {
            let Data::Ns(target) = &server.data else { continue };
            // RFC 9471 §3.1: all addresses of name servers in the domain.
            let is_address = |record: &&Record| matches!(record.data, Data::A(_) | Data::Aaaa(_));
            let glue = self.zone.at(target).filter(is_address).filter(|record| is_within(&record.owner, cut));
            if self.is_strict {
                self.answer.glue.extend(glue.cloned());
            }
        }
        if !self.answer.glue.is_empty() {
            self.reach(Branch::Glue);
        }
        if self.is_first() {
            self.answer.authoritative = Some(false);
        }
        self.end(Rcode::NoError, Authority::Referral(servers));
    }

    /// RFC 1034 §4.3.2 step 3c, RFC 6672 §3.2 step 3C: the label below `encloser` does not exist.
    fn miss(&mut self, encloser: &str, name: &str) -> Option<String> {
        let dname = self.zone.at(encloser).find(|record| record.data.rtype() == Type::Dname);
        if let Some(Record { data: Data::Dname(target), .. }) = dname {
            return self.rename(encloser, target, name);
        }
        let wildcard = format!("*.{encloser}");
        if self.zone.exists(&wildcard) {
            let reached = [
                Branch::WildcardMatch,
                Branch::WildcardCname,
                Branch::WildcardCnameAsked,
                Branch::WildcardAny,
                Branch::WildcardNoData,
            ];
            return self.at_node(&wildcard, name, reached, Branch::WildcardEmpty);
        }
        self.reach(if self.is_first() { Branch::NameError } else { Branch::NameErrorBelowAlias });
        self.deny(Rcode::NxDomain);
        None
    }

    /// RFC 6672 §2.2: replaces the suffix `owner` of a name by the target of the DNAME.
    fn rename(&mut self, owner: &str, target: &str, name: &str) -> Option<String> {
        self.reach(if owner == self.zone.origin { Branch::DnameApex } else { Branch::Dname });
        // RFC 6672 §3.1: the DNAME record is in all such answers.
        self.add(Record::new(owner, Data::Dname(target.to_owned())));
        let renamed = format!("{}{target}", &name[..name.len() - owner.len()]);
        if wire_len(&renamed) > NAME_MAX {
            self.reach(Branch::TooLong);
            self.end(Rcode::YxDomain, Authority::Open);
            return None;
        }
        if self.renames.iter().any(|(before, length)| before == owner && *length < name.len()) {
            // RFC 1034 §3.6.2: an error, as a loop. The chain ends somewhere, at the latest with YXDOMAIN.
            self.reach(Branch::AliasGrows);
            self.end_openly();
            self.answer.allow(Rcode::YxDomain);
            self.answer.is_open = true;
            return None;
        }
        self.renames.push((owner.to_owned(), name.len()));
        self.add(Record::new(name, Data::Cname(renamed.clone())));
        if matches!(self.qtype, Type::Cname | Type::Any) && self.is_strict {
            // RFC 1034 §4.3.2 step 3a does not follow the alias, RFC 6672 §3.2 goes back to step 1: both are right.
            self.reach(Branch::DnameCnameAsked);
            self.is_strict = false;
            self.answer.authority = Authority::Open;
        }
        Some(renamed)
    }

    /// Denies the name or the type with the SOA record of the zone (RFC 2308 §3).
    fn deny(&mut self, rcode: Rcode) {
        self.end(rcode, Authority::Soa(self.zone.origin.clone()));
    }
}

/// Code of HINFO records (RFC 8482 §4.2).
const HINFO: u16 = 13;

/// Returns the names on the path from the apex down to a name, with both.
fn path_down<'n>(origin: &str, name: &'n str) -> Vec<&'n str> {
    let mut path = vec![name];
    while let Some(last) = path.last().filter(|last| **last != origin) {
        path.push(parent(last));
    }
    path.reverse();
    path
}
