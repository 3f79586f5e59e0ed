//! Fuzz target for SkyDNS records in a store, valid or not.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use ::skydns::{Event, Index, Pair, Reducer, Request, StoreHandle, Stores, name_of};
use host::FollowError;
use testkit::Server;
use wire::{Class, Flags, Header, MessageBuf, Name, NameRef, Opt, Type};

/// Maximum number of keys per input. Fuzzing uses small stores.
const KEYS_MAX: usize = 64;
/// Prefix of the keys.
const PATH: &[u8] = b"/skydns/";
const TYPES: [Type; 10] =
    [Type::A, Type::AAAA, Type::TXT, Type::SRV, Type::MX, Type::CNAME, Type::PTR, Type::NS, Type::SOA, Type::ANY];

/// Lines with a key and a value, or with `-` and a key to delete. The index built from the events must equal that
/// built from a list, and names in it must be answered with valid messages.
pub fn skydns(input: &[u8]) {
    thread_local! {
        static FIXTURE: RefCell<Fixture> = RefCell::new(Fixture::new());
    }
    FIXTURE.with_borrow_mut(|fixture| fixture.play(input));
}

/// A server and the store that it answers from.
struct Fixture {
    server: Server,
    request: Request,
    reducer: Reducer,
    index: Arc<Index>,
}

impl Fixture {
    fn new() -> Fixture {
        let zones = ["test", "in-addr.arpa"].map(|zone| Name::from_text(zone).expect("a zone")).into();
        let path = "/skydns".to_owned();
        let request = Request { endpoints: Vec::new(), path, zones, credentials: None, tls: None }.canonical();
        let (reducer, index) = Reducer::new(&request);
        reducer.set_listed();
        let mut server = Server::new(plugins::DIRECTIVES);
        let stores: Rc<dyn Stores> = Rc::new(Held(Arc::clone(&index)));
        server.process.provide(stores);
        server.load("test in-addr.arpa {\n    etcd\n}\n").expect("the Corefile is right");
        Fixture { server, request, reducer, index }
    }

    fn play(&mut self, input: &[u8]) {
        self.list(&BTreeMap::new());
        assert_eq!(self.index.counts().records, 0);
        let mut keys = BTreeMap::new();
        for line in input.split(|byte| *byte == b'\n').take(KEYS_MAX) {
            self.change(line, &mut keys);
        }
        let heard = self.contents(&keys);
        self.list(&keys);
        assert_eq!(heard, self.contents(&keys), "list and events yield different records");
        for name in names(&keys) {
            for qtype in TYPES {
                crate::ask(&mut self.server, &query(&name, qtype));
            }
        }
    }

    fn change(&mut self, line: &[u8], keys: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
        if let Some(key) = line.strip_prefix(b"-") {
            let key = [PATH, key].concat();
            self.reducer.apply(&[Event::Delete(&key)], 1, &mut |_, _| {});
            keys.remove(&key);
            return;
        }
        let mut parts = line.splitn(2, |byte| *byte == b' ');
        let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let key = [PATH, key].concat();
        // The store sends no events for keys outside the zones.
        if !self.request.ranges().iter().any(|range| range.from <= key && key < range.to) {
            return;
        }
        self.reducer.apply(&[Event::Put(Pair { key: &key, value, lease: 0 })], 1, &mut |_, _| {});
        keys.insert(key, value.to_vec());
    }

    fn list(&mut self, keys: &BTreeMap<Vec<u8>, Vec<u8>>) {
        for range in self.request.ranges() {
            let pairs = keys.range(range.from.clone()..range.to.clone());
            let pairs: Vec<Pair<'_>> = pairs.map(|(key, value)| Pair { key, value, lease: 0 }).collect();
            self.reducer.list(&range, &pairs, 1, &mut |_, _| {});
        }
    }

    /// Returns the record of each name.
    fn contents(&self, keys: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<String> {
        let view = self.index.view();
        let text = |name: &Name| format!("{:?}", view.exactly(name.as_ref()));
        names(keys).iter().map(text).chain([self.index.counts().records.to_string()]).collect()
    }
}

/// Returns the names of the keys, their ancestors, and wildcards next to them, each once.
fn names(keys: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<Name> {
    let own = keys.keys().filter_map(|key| name_of(key.strip_prefix(PATH)?, 0));
    let mut names = BTreeMap::new();
    let mut add = |name: Name| {
        names.insert(name.as_bytes().to_vec(), name);
    };
    add(Name::from_text("none.test").expect("a name"));
    for name in own.map(Name::into_lowercase) {
        name.as_ref().ancestors().map(NameRef::to_name).for_each(&mut add);
        let mut wildcard = Name::from_text("*").expect("a name");
        if name.as_ref().parent().is_some_and(|parent| wildcard.append(parent).is_ok()) {
            add(wildcard);
        }
    }
    names.into_values().collect()
}

fn query(name: &Name, qtype: Type) -> Vec<u8> {
    let header = Header { id: 7, flags: Flags::default().with_recursion_desired(true), ..Header::default() };
    let mut message = MessageBuf::new();
    message.start(header, Some((name.as_ref(), qtype, Class::IN)));
    let opt = Opt { udp_size: 1232, extended_rcode: 0, version: 0, dnssec_ok: false };
    message.finish(Some(opt), std::iter::empty()).to_vec()
}

/// A store whose index is written by the target.
struct Held(Arc<Index>);

impl Stores for Held {
    fn follow(&self, _: &Request) -> Result<Arc<dyn StoreHandle>, FollowError> {
        Ok(Arc::new(Held(Arc::clone(&self.0))))
    }
}

impl StoreHandle for Held {
    fn index(&self) -> &Arc<Index> {
        &self.0
    }
}
