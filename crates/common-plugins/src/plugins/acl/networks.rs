//! Lookup of policies by address in logarithmic time, so that thousands of networks are cheap, on one line or on many.
//!
//! The address space of each family is cut where a network starts or ends. Each span between two cuts has the list of
//! policies that apply to it, in order, up to the first one that applies to all types: the ones after it can never
//! decide.

use core::net::IpAddr;
use std::collections::BTreeSet;

use ipnet::IpNet;
use wire::Type;

use super::{Action, Policy};

/// Policy without its networks.
pub(super) struct Rule {
    pub(super) action: Action,
    /// Types that it applies to. Empty means all.
    types: Box<[Type]>,
    /// The line of the policy in the Corefile, for people.
    pub(super) text: Box<str>,
}

impl Rule {
    fn is_for(&self, qtype: Type) -> bool {
        self.types.is_empty() || self.types.contains(&qtype)
    }
}

/// Policies, looked up by address and type.
pub(super) struct Policies {
    rules: Vec<Rule>,
    v4: Spans,
    v6: Spans,
}

impl Policies {
    pub(super) fn new(policies: Vec<Policy>) -> Policies {
        let v4 = Spans::new(&policies, |network| match network {
            IpNet::V4(net) => Some((u128::from(net.network().to_bits()), u128::from(net.broadcast().to_bits()))),
            IpNet::V6(_) => None,
        });
        let v6 = Spans::new(&policies, |network| match network {
            IpNet::V6(net) => Some((net.network().to_bits(), net.broadcast().to_bits())),
            IpNet::V4(_) => None,
        });
        let rule = |policy: Policy| Rule { action: policy.action, types: policy.types.into(), text: policy.text };
        Policies { rules: policies.into_iter().map(rule).collect(), v4, v6 }
    }

    /// Returns true if clients with different addresses may get different decisions for a type.
    pub(super) fn reads_client(&self, qtype: Type) -> bool {
        let mut spans = self.v4.each().chain(self.v6.each()).map(|span| self.first_of(span, qtype));
        let first = spans.next();
        spans.any(|other| Some(other) != first)
    }

    /// Returns the index of the first policy of a span that applies to a type.
    fn first_of(&self, span: &[u32], qtype: Type) -> Option<u32> {
        span.iter().copied().find(|at| self.rules.get(*at as usize).is_some_and(|rule| rule.is_for(qtype)))
    }

    /// Returns the first policy that matches the address and the type, if any.
    pub(super) fn decide(&self, address: IpAddr, qtype: Type) -> Option<&Rule> {
        let candidates = match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.find(u128::from(v4.to_bits())),
            IpAddr::V6(v6) => self.v6.find(v6.to_bits()),
        };
        self.rules.get(self.first_of(candidates, qtype)? as usize)
    }
}

/// Address spans of one family. Each extends from its start to the next one's.
struct Spans {
    starts: Vec<u128>,
    /// Range of each span in `policies`.
    ranges: Vec<(u32, u32)>,
    policies: Vec<u32>,
}

/// Returns an index as it is stored.
fn index(at: usize) -> u32 {
    let index = u32::try_from(at);
    debug_assert!(index.is_ok(), "a Corefile has far less than 2^32 policies");
    index.unwrap_or(u32::MAX)
}

impl Spans {
    fn new(policies: &[Policy], bounds: impl Fn(&IpNet) -> Option<(u128, u128)>) -> Spans {
        let mut everywhere = BTreeSet::new();
        // Position, policy and change: how many networks of the policy start (1) or end (-1) there.
        let mut cuts: Vec<(u128, u32, i32)> = Vec::new();
        for (at, policy) in policies.iter().enumerate() {
            if policy.networks.is_empty() {
                everywhere.insert(index(at));
            }
            for (first, last) in policy.networks.iter().filter_map(&bounds) {
                cuts.push((first, index(at), 1));
                cuts.extend(last.checked_add(1).map(|after| (after, index(at), -1)));
            }
        }
        cuts.sort_unstable();
        let mut spans = Spans { starts: Vec::new(), ranges: Vec::new(), policies: Vec::new() };
        let mut holding = vec![0i32; policies.len()];
        let mut active = everywhere;
        spans.add(0, &active, policies);
        for same_place in cuts.chunk_by(|one, other| one.0 == other.0) {
            for (_, policy, change) in same_place {
                let count = &mut holding[*policy as usize];
                *count += change;
                if *count > 0 {
                    active.insert(*policy)
                } else {
                    active.remove(policy)
                };
            }
            spans.add(same_place[0].0, &active, policies);
        }
        spans
    }

    /// Starts a span, unless it has the same policies as the span before it.
    fn add(&mut self, start: u128, active: &BTreeSet<u32>, policies: &[Policy]) {
        let from = self.policies.len();
        for at in active {
            self.policies.push(*at);
            if policies.get(*at as usize).is_some_and(|policy| policy.types.is_empty()) {
                break;
            }
        }
        let same_as_before = self
            .ranges
            .last()
            .is_some_and(|(first, last)| self.policies[*first as usize..*last as usize] == self.policies[from..]);
        if same_as_before {
            self.policies.truncate(from);
            return;
        }
        // A network that starts at address 0 replaces the span that was started without any network.
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.ranges.pop();
        }
        self.starts.push(start);
        self.ranges.push((index(from), index(self.policies.len())));
    }

    /// Returns the policies of all spans.
    fn each(&self) -> impl Iterator<Item = &[u32]> {
        self.ranges.iter().map(|(from, to)| self.policies.get(*from as usize..*to as usize).unwrap_or_default())
    }

    /// Returns the policies for an address.
    fn find(&self, address: u128) -> &[u32] {
        let span = self.starts.partition_point(|start| *start <= address).checked_sub(1);
        let range = span.and_then(|span| self.ranges.get(span));
        range.and_then(|(from, to)| self.policies.get(*from as usize..*to as usize)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(action: Action, types: &[Type], networks: &[&str]) -> Policy {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Policy { action, types: types.to_vec(), networks, text: "".into() }
    }

    fn decided(policies: &Policies, address: &str, qtype: Type) -> Option<Action> {
        policies.decide(address.parse().unwrap(), qtype).map(|rule| rule.action)
    }

    #[test]
    fn the_first_matching_policy_decides() {
        let policies = Policies::new(vec![
            policy(Action::Allow, &[], &["10.1.0.0/16", "10.1.2.0/24"]),
            policy(Action::Filter, &[Type::AAAA], &["10.0.0.0/8", "::/0"]),
            policy(Action::Drop, &[], &["10.255.255.255/32", "255.255.255.255/32", "0.0.0.0/32"]),
            policy(Action::Block, &[Type::MX], &[]),
            policy(Action::Block, &[], &["10.0.0.0/8"]),
        ]);
        let cases = [
            ("10.1.2.3", Type::AAAA, Some(Action::Allow)),
            ("10.1.255.255", Type::A, Some(Action::Allow)),
            ("10.2.0.0", Type::AAAA, Some(Action::Filter)),
            ("10.2.0.0", Type::A, Some(Action::Block)),
            ("10.255.255.255", Type::A, Some(Action::Drop)),
            ("255.255.255.255", Type::A, Some(Action::Drop)),
            ("0.0.0.0", Type::A, Some(Action::Drop)),
            ("0.0.0.1", Type::A, None),
            ("11.0.0.0", Type::A, None),
            ("11.0.0.0", Type::MX, Some(Action::Block)),
            ("::ffff:10.2.0.0", Type::A, Some(Action::Block)),
            ("2001:db8::1", Type::AAAA, Some(Action::Filter)),
            ("2001:db8::1", Type::A, None),
        ];
        for (address, qtype, action) in cases {
            assert_eq!(decided(&policies, address, qtype), action, "{address} {qtype}");
        }
        assert_eq!(decided(&Policies::new(Vec::new()), "10.0.0.1", Type::A), None);
    }

    /// The same as looking at one policy after the other.
    #[test]
    fn spans_decide_like_a_linear_search() {
        let mut seed = 11u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for _ in 0..200 {
            let lines: Vec<(Action, Vec<Type>, Vec<IpNet>)> = (0..random(6))
                .map(|_| {
                    let action = [Action::Allow, Action::Block, Action::Filter][random(3)];
                    let types = [vec![], vec![Type::A], vec![Type::MX, Type::A]][random(3)].clone();
                    let network = |text: String| text.parse::<IpNet>().unwrap();
                    let networks = (0..random(4)).map(|_| network(format!("0.0.0.{}/{}", random(256), 24 + random(9))));
                    let networks = networks.map(|network| network.trunc()).collect();
                    (action, types, networks)
                })
                .collect();
            let policy = |(action, types, networks): &(Action, Vec<Type>, Vec<IpNet>)| Policy {
                action: *action,
                types: types.clone(),
                networks: networks.clone(),
                text: "".into(),
            };
            let policies = Policies::new(lines.iter().map(policy).collect());
            for last in 0..=255u8 {
                for qtype in [Type::A, Type::MX, Type::TXT] {
                    let address = IpAddr::from([0, 0, 0, last]);
                    let fits = |(_, types, networks): &&(Action, Vec<Type>, Vec<IpNet>)| {
                        let of_type = types.is_empty() || types.contains(&qtype);
                        of_type && (networks.is_empty() || networks.iter().any(|network| network.contains(&address)))
                    };
                    let expected = lines.iter().find(fits).map(|(action, ..)| *action);
                    assert_eq!(policies.decide(address, qtype).map(|rule| rule.action), expected);
                }
            }
        }
    }
}
