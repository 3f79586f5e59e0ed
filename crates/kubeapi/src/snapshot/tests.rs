//! Failures of the disk, which are hard to cause from outside.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::snapshot::{Entry, Record};
use cluster::{Kind, Request, Source};
use metrics::Registry;

use super::compaction::Replacement;
use super::file::{self, Header};
use super::journal::Task;
use super::reader::Reader;
use super::{Journal, Restored, keep};
use crate::health::ViewHealth;
use crate::meter::Meter;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("portolan-journal-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("snapshot")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn request() -> Request {
    Request::new(Source::Endpoint { url: "http://127.0.0.1:1".to_owned(), tls: None })
}

fn journal(folder: &Folder, registry: &Arc<Registry>) -> Rc<Journal> {
    Journal::new(
        &folder.file(),
        &request(),
        &Rc::new(Meter::new(registry)),
        &Arc::new(ViewHealth::new(|| host::Instant::START)),
        crate::Timing::default().snapshot_growth,
    )
}

fn record(position: &str) -> Record<'_> {
    Record::Event { kind: Kind::Service, namespace: None, entry: Entry::Position(position) }
}

fn positions(file: &fs::File) -> Vec<String> {
    let mut reader = Reader::new(file, Header::LEN, file.metadata().unwrap().len());
    let mut positions = Vec::new();
    while let Some((_, _, record)) = reader.next().unwrap() {
        if let Record::Event { entry: Entry::Position(position) | Entry::Listed { position }, .. } = record {
            positions.push(position.to_owned());
        }
    }
    positions
}

#[test]
fn a_failed_append_closes_the_journal_and_lists_again() {
    let (folder, registry) = (Folder::new("failed"), Registry::new());
    let journal = journal(&folder, &registry);
    // Like a full disk, a file that is open for reads alone accepts no record.
    fs::write(folder.file(), "old").unwrap();
    journal.restart(fs::File::open(folder.file()).unwrap()).unwrap();
    journal.append(&record("1"), true);
    assert!(matches!(journal.task(), Some(Task::Open)));
    assert!(registry.render().contains("portolan_kubernetes_snapshot_errors_total 1\n"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listed = Rc::new(Cell::new(false));
    runtime.block_on(async {
        let (all, kept) = (Rc::clone(&listed), Rc::clone(&journal));
        let list_all = move || {
            // What the watches do then.
            kept.listed(0, false);
            kept.append(&record("2"), true);
            kept.listed(0, true);
            kept.complete([0].into_iter());
            all.set(true);
        };
        let keeping = keep(Rc::clone(&journal), Duration::from_millis(1), list_all);
        let published = async {
            while fs::read(folder.file()).unwrap() == b"old" {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! { () = keeping => {}, () = published => {} }
    });
    assert!(listed.get());
    assert_eq!(positions(&fs::File::open(folder.file()).unwrap()), ["2"]);
}

#[test]
fn a_list_that_began_before_the_file_does_not_complete_it() {
    let (folder, registry) = (Folder::new("begun"), Registry::new());
    let journal = journal(&folder, &registry);
    journal.start(&mut Restored::nothing(&request().watches()));
    journal.listed(0, true);
    journal.complete([0].into_iter());
    assert!(journal.task().is_none());
    journal.listed(0, false);
    journal.listed(0, true);
    journal.complete([0, 1].into_iter());
    assert!(journal.task().is_none(), "another watch has not been listed");
    journal.complete([0].into_iter());
    assert!(matches!(journal.task(), Some(Task::Publish(_))));
}

#[test]
fn records_that_arrive_during_a_compaction_are_in_the_new_file() {
    let (folder, registry) = (Folder::new("compaction"), Registry::new());
    let journal = journal(&folder, &registry);
    journal.start(&mut Restored::nothing(&request().watches()));
    journal.listed(0, false);
    for entry in [Entry::Listing, Entry::Listed { position: "1" }] {
        let record: Record<'_> = Record::Event { kind: Kind::Service, namespace: None, entry };
        journal.append(&record, true);
    }
    journal.listed(0, true);
    journal.complete([0].into_iter());
    let Some(Task::Publish(old)) = journal.task() else { panic!("complete") };
    file::publish(&folder.file(), &old).unwrap();
    journal.published(&old);
    journal.append(&record("2"), true);
    let replacement = Replacement::write(&folder.file(), &Header::new(&request()), &old).unwrap();
    journal.append(&record("3"), true);
    journal.replace(&old, replacement);
    journal.append(&record("4"), true);
    let file = fs::File::open(folder.file()).unwrap();
    assert!(!transport::files::is_at(&old, &folder.file()).unwrap_or(false));
    assert_eq!(positions(&file), ["2", "3", "4"]);
    let now = journal.file().unwrap();
    // Another process has cut the file, and with it records that may count.
    let replacement = Replacement::write(&folder.file(), &Header::new(&request()), &now).unwrap();
    let whole = fs::read(folder.file()).unwrap();
    fs::write(folder.file(), &whole[..whole.len() - 1]).unwrap();
    let refused = replacement.finish(&folder.file(), &now).unwrap_err();
    assert_eq!(refused.to_string(), "another process has cut the snapshot");
    fs::write(folder.file(), whole).unwrap();
    // Another process has taken the path: its file stays.
    let replacement = Replacement::write(&folder.file(), &Header::new(&request()), &now).unwrap();
    fs::remove_file(folder.file()).unwrap();
    fs::write(folder.file(), "another").unwrap();
    journal.replace(&now, replacement);
    assert_eq!(fs::read(folder.file()).unwrap(), b"another");
}

#[test]
fn reads_records_that_are_longer_than_a_part() {
    let folder = Folder::new("long");
    let file = file::create(&folder.file(), &Header::new(&request())).unwrap();
    let mut log = Vec::new();
    let long = "9".repeat(600 << 10);
    for position in ["1", &long, "3"] {
        record(position).append_to(&mut log).unwrap();
    }
    file.write_all_at(&log, Header::LEN).unwrap();
    assert_eq!(positions(&file), ["1", long.as_str(), "3"]);
    let mut reader = Reader::new(&file, Header::LEN, Header::LEN + log.len() as u64 - 1);
    let read = |reader: &mut Reader<'_>| -> io::Result<bool> { Ok(reader.next()?.is_some()) };
    assert_eq!((1..=3).map(|_| read(&mut reader).unwrap()).collect::<Vec<_>>(), [true, true, false]);
}
