//! Questions of the clients.

use std::sync::LazyLock;

use specification::cluster::{ZONE, dashed, reverse_name};
use specification::record::{Question, Type, parent};

use crate::objects::{OUTSIDE, SLOTS, Slot, cluster_ip, outside};
use crate::random::Generator;

/// Types that are asked in the zones of the cluster.
const TYPES: [Type; 9] =
    [Type::A, Type::Aaaa, Type::Srv, Type::Txt, Type::Ptr, Type::Cname, Type::Ns, Type::Soa, Type::Any];
/// Labels below the name of a Service.
const LABELS: [&str; 8] = ["none", "_tcp", "_http._tcp", "_dns._udp", "_none._tcp", "x._http._tcp", "a", "b"];

/// Names of each place for a Service.
static NAMES: LazyLock<[Vec<String>; SLOTS]> = LazyLock::new(|| core::array::from_fn(|slot| names(Slot(slot))));
/// All questions of [`all_of_cluster`].
static ALL: LazyLock<Vec<Question>> = LazyLock::new(all);

/// Returns a random question for a name of the cluster.
pub(crate) fn of_cluster(random: &mut Generator) -> Question {
    let names = &NAMES[Slot::random(random).0];
    let name = names[random.index(names.len())].clone();
    let likely = if name.ends_with(".arpa.") { Type::Ptr } else { random.pick(&[Type::A, Type::Aaaa, Type::Srv]) };
    let qtype = if random.is(70) { likely } else { random.pick(&TYPES) };
    let name = if random.is(10) { name.to_ascii_uppercase() } else { name };
    Question { name, qtype }
}

/// Returns all questions of the likely types for all names of the cluster.
pub(crate) fn all_of_cluster() -> &'static [Question] {
    &ALL
}

fn all() -> Vec<Question> {
    let mut all = Vec::new();
    for name in NAMES.iter().flatten() {
        let types: &[Type] =
            if name.ends_with(".arpa.") { &[Type::Ptr] } else { &[Type::A, Type::Aaaa, Type::Srv, Type::Any] };
        all.extend(types.iter().map(|qtype| Question { name: name.clone(), qtype: *qtype }));
    }
    all.sort();
    all.dedup();
    all
}

/// Returns a random question for a name outside of the cluster.
pub(crate) fn outside_of_cluster(random: &mut Generator) -> Question {
    Question { name: outside(random.below(OUTSIDE)), qtype: random.pick(&[Type::A, Type::Aaaa]) }
}

/// Returns the names that may exist because of a place for a Service, and some others.
fn names(slot: Slot) -> Vec<String> {
    let (service, namespace) = slot.names();
    let mut names =
        vec![service.clone(), service.clone(), service.clone(), namespace.clone(), format!("none.{namespace}")];
    names.extend([format!("dns-version.{ZONE}"), format!("svc.{ZONE}"), ZONE.to_owned()]);
    names.extend(LABELS.iter().map(|label| format!("{label}.{service}")));
    let pods = format!("pod.{}", parent(parent(&service)).trim_start_matches("svc."));
    let pod_zone = format!("{}.{pods}", namespace.split('.').next().unwrap_or_default());
    names.push(pod_zone.clone());
    for number in 0..8 {
        for is_v4 in [true, false] {
            let address = slot.address(number, is_v4);
            names.extend([format!("{}.{service}", dashed(address)), reverse_name(address)]);
            names.push(reverse_name(cluster_ip(number, is_v4)));
        }
    }
    names.push(format!("10-1-2-3.{pod_zone}"));
    names
}
