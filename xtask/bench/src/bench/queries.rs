//! Queries for the cluster of `bench::cluster`, in the proportions of real clusters.

use super::cluster::service_name;

/// Mix of queries.
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    /// Description for the report.
    pub(crate) what: &'static str,
    /// Builds the queries for a cluster with this many Services, each as `NAME TYPE`.
    pub(crate) make: fn(usize) -> Vec<String>,
}

/// Typical mix of a cluster.
pub(crate) const MIX: Mix = Mix {
    name: "mix",
    what: "35 % Service A, 20 % its AAAA, 30 % search path misses, 12 % external, 3 % SRV",
    make: mix,
};

/// All mixes.
pub(crate) const MIXES: [Mix; 7] = [
    Mix { name: "svc", what: "A of Services with a cluster IP", make: services },
    Mix { name: "headless", what: "A of headless Services with ten endpoints", make: headless },
    Mix { name: "srv", what: "SRV of Service ports", make: srv },
    Mix { name: "nx", what: "external names with a search domain appended", make: search_path_misses },
    Mix { name: "ptr", what: "PTR of cluster IPs", make: reverse },
    Mix { name: "ext", what: "external names, cached", make: external },
    MIX,
];

/// Number of queries in a list, large enough to vary the names and small enough to fit in memory.
const COUNT: usize = 8000;

fn is_headless(number: usize) -> bool {
    number % 10 == 9
}

fn services(count: usize) -> Vec<String> {
    let numbers = shuffled(count).filter(|number| !is_headless(*number));
    numbers.take(COUNT).map(|number| format!("{} A", service_name(number))).collect()
}

fn headless(count: usize) -> Vec<String> {
    let numbers = shuffled(count).filter(|number| is_headless(*number));
    numbers.take(COUNT).map(|number| format!("{} A", service_name(number))).collect()
}

fn srv(count: usize) -> Vec<String> {
    shuffled(count).take(COUNT).map(|number| format!("_http._tcp.{} SRV", service_name(number))).collect()
}

fn search_path_misses(_: usize) -> Vec<String> {
    let namespaces = (0..50).map(|number| format!("www.example.org.perf-{number}.svc.cluster.local. A"));
    let others = ["api.example.org.svc.cluster.local. A", "api.example.org.cluster.local. AAAA"].map(str::to_owned);
    namespaces.chain(others).collect()
}

fn reverse(_: usize) -> Vec<String> {
    (1..250).map(|last| format!("{last}.1.100.10.in-addr.arpa. PTR")).collect()
}

const EXTERNAL: [&str; 5] =
    ["www.example.org.", "api.example.org.", "mail.example.org.", "example.org.", "cdn.example.org."];

fn external(_: usize) -> Vec<String> {
    EXTERNAL.iter().flat_map(|name| ["A", "AAAA"].map(|rtype| format!("{name} {rtype}"))).collect()
}

/// Returns names of which each occurs once.
pub(crate) fn unique_names() -> Vec<String> {
    (0..200_000).map(|number| format!("n{number}.example.org. A")).collect()
}

fn mix(count: usize) -> Vec<String> {
    let mut random = Random(1);
    (0..COUNT)
        .map(|_| {
            let number = random.below(count);
            let name = service_name(number);
            let family = ["A", "AAAA"][random.below(2)];
            match random.below(100) {
                0..35 => format!("{name} A"),
                35..55 => format!("{name} AAAA"),
                55..85 => {
                    let external = EXTERNAL[random.below(3)];
                    let suffixes = [format!("perf-{}.svc.", number % 50), "svc.".to_owned(), String::new()];
                    format!("{external}{}cluster.local. {family}", suffixes[random.below(3)])
                }
                85..97 => format!("{} {family}", EXTERNAL[random.below(3)]),
                _ => format!("_http._tcp.{name} SRV"),
            }
        })
        .collect()
}

/// Returns the numbers below `count` in a fixed pseudo-random order.
fn shuffled(count: usize) -> impl Iterator<Item = usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    let mut random = Random(2);
    for at in (1..count).rev() {
        numbers.swap(at, random.below(at + 1));
    }
    numbers.into_iter()
}

/// Pseudo-random generator with a fixed sequence (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % bound.max(1) as u64).unwrap_or(0)
    }
}
