use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::path::{Path, PathBuf};

use ::zone::load;
use engine::Instant;
use wire::{Class, Flags, Header, MessageBuf, Opcode, Owner, Section, Type};

use super::*;
use crate::plugins::dynupdate::rules::Rule;

const SEED: &str = "$TTL 60\n@ SOA ns host 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.53\n";

type Work = Box<dyn FnOnce() + Send>;

/// Storage with one file in memory.
#[derive(Default)]
struct Disk {
    file: Arc<Mutex<Vec<u8>>>,
    fails: Arc<AtomicBool>,
    replaced: Arc<AtomicUsize>,
    appended: Arc<AtomicUsize>,
    place: Arc<Mutex<FilePlace>>,
    /// Work that no thread has run yet, if it is held back.
    held_back: Mutex<Option<Vec<Work>>>,
    lines: Mutex<Vec<String>>,
}

struct DiskFile {
    file: Arc<Mutex<Vec<u8>>>,
    fails: Arc<AtomicBool>,
    replaced: Arc<AtomicUsize>,
    appended: Arc<AtomicUsize>,
    place: Arc<Mutex<FilePlace>>,
}

impl Disk {
    fn opened(&self) -> Box<dyn ZoneFile> {
        Box::new(DiskFile {
            file: Arc::clone(&self.file),
            fails: Arc::clone(&self.fails),
            replaced: Arc::clone(&self.replaced),
            appended: Arc::clone(&self.appended),
            place: Arc::clone(&self.place),
        })
    }

    fn run_held_back(&self) {
        let work = lock(&self.held_back).take().unwrap();
        work.into_iter().for_each(|work| work());
    }
}

impl ZoneStorage for Disk {
    fn open(&self, _: &Path, _: u64) -> io::Result<Option<OpenedZoneFile>> {
        let contents = lock(&self.file).clone();
        Ok((!contents.is_empty()).then(|| OpenedZoneFile { file: self.opened(), contents }))
    }

    fn create(&self, _: &Path, contents: &[u8]) -> io::Result<Box<dyn ZoneFile>> {
        *lock(&self.file) = contents.to_vec();
        Ok(self.opened())
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        one == other
    }

    fn run(&self, work: Work) {
        match &mut *lock(&self.held_back) {
            Some(held_back) => held_back.push(work),
            None => work(),
        }
    }

    fn now(&self) -> Instant {
        Instant::START
    }

    fn log(&self, _: Level, message: &str) {
        lock(&self.lines).push(message.to_owned());
    }
}

impl ZoneFile for DiskFile {
    fn append(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = lock(&self.file);
        file.truncate(usize::try_from(at).unwrap());
        // A write that fails leaves a part of the bytes.
        let fails = self.fails.load(Relaxed);
        file.extend(&bytes[..if fails { bytes.len() / 2 } else { bytes.len() }]);
        self.appended.fetch_add(1, Relaxed);
        if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn place(&self) -> io::Result<FilePlace> {
        Ok(*lock(&self.place))
    }

    fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        if self.fails.load(Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.replaced.fetch_add(1, Relaxed);
        *lock(&self.file) = contents.to_vec();
        *lock(&self.place) = FilePlace::Own;
        Ok(())
    }

    fn keep(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

fn origin() -> Name {
    Name::from_text("example.org.").unwrap()
}

const LIMITS: UpdateLimits = UpdateLimits { records: 1000, bytes: 100_000 };

/// Zone with a database, as after its first start.
fn started(disk: &Arc<Disk>) -> Arc<DynamicZone> {
    let host = Arc::clone(disk) as Arc<dyn ZoneStorage>;
    let zone = DynamicZone::new(&origin(), Some(PathBuf::from("zone.db")), host, ZoneMemory::default());
    if !zone.load(LIMITS).unwrap() {
        let read = load(origin().as_ref(), Path::new("seed"), &mut |_| Ok(SEED.as_bytes().to_vec()));
        zone.start_with(read.unwrap().zone);
    }
    zone.create_journal();
    Arc::new(zone)
}

/// Message that replaces the TXT record of a name.
fn message(name: &str, text: &str) -> Vec<u8> {
    let mut message = MessageBuf::new();
    let flags = Flags::default().with_opcode(Opcode::UPDATE);
    message.start(Header { flags, ..Header::default() }, Some((origin().as_ref(), Type::SOA, Class::IN)));
    let name = Name::from_text(name).unwrap();
    let owner = || Owner::Name(name.as_ref());
    message.push_data(Section::Authority, owner(), (Type::TXT, Class::ANY, 0), &[]).unwrap();
    let data = [&[u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    message.push_data(Section::Authority, owner(), (Type::TXT, Class::IN, 60), &data).unwrap();
    message.finish(None, core::iter::empty()).to_vec()
}

fn submit(zone: &Arc<DynamicZone>, packet: Vec<u8>) -> Option<oneshot::Receiver<UpdateOutcome>> {
    let rules = Rules { zone: origin(), rules: vec![Rule::of_everything("k.")], limits: LIMITS, update_records: 10 };
    let (done, outcome) = oneshot::channel();
    let key = Name::from_text("k.").unwrap();
    let pending = Pending { packet, key, client: IpAddr::from([192, 0, 2, 1]), rules: Arc::new(rules), done };
    zone.submit(pending).then_some(outcome)
}

fn rcode(outcome: Option<oneshot::Receiver<UpdateOutcome>>) -> Rcode {
    outcome.unwrap().try_recv().unwrap().unwrap().rcode
}

fn serial(zone: &DynamicZone) -> u32 {
    zone.held.soa().unwrap().serial
}

/// A disk that is full costs the updates of that time. What is served stays, and what comes later is stored.
#[test]
fn a_failed_write_changes_nothing() {
    let disk = Arc::new(Disk::default());
    let zone = started(&disk);
    assert_eq!(rcode(submit(&zone, message("a.example.org.", "one"))), Rcode::NOERROR);
    disk.fails.store(true, Relaxed);
    for _ in 0..2 {
        assert_eq!(rcode(submit(&zone, message("b.example.org.", "two"))), Rcode::SERVFAIL);
        assert_eq!(serial(&zone), 2);
        assert_eq!(serial(&started(&disk)), 2, "after a restart");
    }
    disk.fails.store(false, Relaxed);
    assert_eq!(rcode(submit(&zone, message("b.example.org.", "three"))), Rcode::NOERROR);
    assert_eq!((serial(&zone), serial(&started(&disk))), (3, 3));
    // What is behind a failed write is unknown, so the file was replaced.
    assert_eq!(disk.replaced.load(Relaxed), 1);
}

/// A journal that was removed is written again before the next acknowledgement, and at a reload.
#[test]
fn a_removed_journal_is_written_again() {
    let disk = Arc::new(Disk::default());
    let zone = started(&disk);
    let remove = || {
        lock(&disk.file).clear();
        *lock(&disk.place) = FilePlace::Removed;
    };
    remove();
    assert_eq!(rcode(submit(&zone, message("a.example.org.", "one"))), Rcode::NOERROR);
    assert_eq!((serial(&started(&disk)), disk.replaced.load(Relaxed)), (2, 1));
    let removed = |line: &String| line.ends_with("database zone.db was removed while in use: writing a new one");
    assert_eq!(lock(&disk.lines).iter().filter(|line| removed(line)).count(), 1);
    remove();
    zone.create_journal();
    assert_eq!((serial(&started(&disk)), disk.replaced.load(Relaxed)), (2, 2));
    // A reload leaves a journal in its place as it is.
    zone.create_journal();
    assert_eq!(disk.replaced.load(Relaxed), 2);
}

/// A file that has taken the place of the journal may be that of another process.
#[test]
fn updates_fail_while_another_file_has_the_place_of_the_journal() {
    let disk = Arc::new(Disk::default());
    let zone = started(&disk);
    *lock(&disk.place) = FilePlace::Taken;
    assert_eq!(zone.problem(), None);
    assert_eq!(rcode(submit(&zone, message("a.example.org.", "one"))), Rcode::SERVFAIL);
    let writes = || (disk.replaced.load(Relaxed), disk.appended.load(Relaxed));
    assert_eq!((serial(&zone), writes()), (1, (0, 0)));
    let wanted = "zone example.org.: updates fail, because database zone.db cannot be written: another file has taken";
    assert!(zone.problem().is_some_and(|problem| problem.starts_with(wanted)), "{:?}", zone.problem());
    *lock(&disk.place) = FilePlace::Own;
    assert_eq!(rcode(submit(&zone, message("a.example.org.", "one"))), Rcode::NOERROR);
    assert_eq!((zone.problem(), writes()), (None, (0, 1)));
}

/// Updates that wait for each other are written together, and fail together.
#[test]
fn waiting_updates_share_a_write() {
    let disk = Arc::new(Disk::default());
    let zone = started(&disk);
    *lock(&disk.held_back) = Some(Vec::new());
    let waiting: Vec<_> = (0..5).map(|at| submit(&zone, message("a.example.org.", &at.to_string()))).collect();
    disk.run_held_back();
    assert!(waiting.into_iter().all(|one| rcode(one) == Rcode::NOERROR));
    assert_eq!((serial(&zone), disk.appended.load(Relaxed)), (6, 1));
    *lock(&disk.held_back) = Some(Vec::new());
    // The second changes nothing, but only if the first is stored.
    let waiting: Vec<_> = (0..2).map(|_| submit(&zone, message("b.example.org.", "x"))).collect();
    disk.fails.store(true, Relaxed);
    disk.run_held_back();
    assert!(waiting.into_iter().all(|one| rcode(one) == Rcode::SERVFAIL));
    assert_eq!(serial(&zone), 6);
}

/// A disk that stalls costs a bounded amount of memory.
#[test]
fn the_queue_is_bounded() {
    let disk = Arc::new(Disk::default());
    let zone = started(&disk);
    *lock(&disk.held_back) = Some(Vec::new());
    let packet = [message("a.example.org.", "x"), vec![0; 60_000]].concat();
    let waiting: Vec<_> = core::iter::from_fn(|| submit(&zone, packet.clone())).collect();
    assert_eq!(waiting.len(), QUEUE_BYTES_MAX / packet.len());
    let refused = "update of zone example.org. by key k. from 192.0.2.1: SERVFAIL: too many updates wait for this zone";
    assert_eq!(*lock(&disk.lines), [refused]);
    disk.run_held_back();
    assert!(waiting.into_iter().all(|one| rcode(Some(one)) == Rcode::NOERROR));
    assert_eq!(rcode(submit(&zone, packet)), Rcode::NOERROR);
}

/// A zone that never stops changing keeps a journal of bounded length.
#[test]
fn the_journal_is_replaced_when_it_has_grown() {
    let disk = Arc::new(Disk::default());
    let zone = started(&disk);
    let (mut longest, mut count) = (0, 0);
    while disk.replaced.load(Relaxed) < 3 {
        count += 1;
        let text = format!("{count} {}", "x".repeat(200));
        assert_eq!(rcode(submit(&zone, message("a.example.org.", &text))), Rcode::NOERROR);
        longest = longest.max(lock(&disk.file).len());
    }
    assert!(longest < 3 * HISTORY_MAX, "{longest}");
    let again = started(&disk);
    assert_eq!(serial(&again), count + 1);
    // Recent changes are still there for transfers.
    assert!(again.history().since(count - 10, usize::MAX).is_some());
}
