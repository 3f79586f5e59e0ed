//! Random events on a mesh: the incremental result must equal that of a new reducer fed only the remaining objects.

use std::collections::BTreeMap;

use super::tests::KINDS;
use crate::Spec;
use crate::random_tests::numbers;
use crate::scenario::Stage;

const HOSTS: [&str; 6] = ["a.global", "*.global", "b.a.global", "*.a.global", "x.y.z.global", "z.global"];
const ASKED: [&str; 8] =
    ["a.global", "b.a.global", "c.a.global", "q.global", "x.y.z.global", "y.z.global", "z.global", "global"];
const CLIENTS: [&str; 3] = ["10.1.0.1", "10.1.0.2", "10.1.0.3"];

#[test]
fn incremental_updates_equal_a_rebuild_from_the_final_objects() {
    for seed in 1..=10 {
        let (mut number, mut objects) = (numbers(seed), BTreeMap::new());
        let mut stage = Stage::new(&Spec::new(&KINDS, &[]));
        for step in 0..300 {
            one_event(&mut stage, &mut objects, &mut number);
            if step % 10 == 0 {
                assert_eq!(all_of(&stage), all_of(&anew(&objects)), "seed {seed} step {step}: {objects:#?}");
            }
        }
        for (kind, path) in objects.keys() {
            stage.play(&format!("-{kind} {path}"));
        }
        assert_eq!(all_of(&stage), all_of(&anew(&BTreeMap::new())));
    }
}

/// Fields of each object, by kind and path.
type Objects = BTreeMap<(&'static str, String), String>;

fn one_event(stage: &mut Stage, objects: &mut Objects, number: &mut impl FnMut(usize) -> usize) {
    let kind = ["entry", "entry", "workload", "meshpod"][number(4)];
    let path = format!("{}/{}", ["a", "b"][number(2)], ["one", "two", "three"][number(3)]);
    if number(4) == 0 {
        stage.play(&format!("-{kind} {path}"));
        objects.remove(&(kind, path));
        return;
    }
    let fields = if kind == "entry" { entry(number) } else { workload(number) };
    stage.play(&format!("{kind} {path} {fields}"));
    objects.insert((kind, path), fields);
}

fn entry(number: &mut impl FnMut(usize) -> usize) -> String {
    let hosts = format!("hosts={},{}", HOSTS[number(6)], HOSTS[number(6)]);
    let addresses = ["", " addresses=10.0.0.1", " addresses=10.0.0.0/8", " allocated=240.0.0.1#a.global"][number(4)];
    let resolution = ["NONE", "STATIC", "STATIC", "DNS", "DYNAMIC_DNS"][number(5)];
    let endpoints = ["", " endpoints=10.2.0.1", " selects=app:x", " selects=app:y,tier:1", " selects="][number(5)];
    let exports = ["", " exports=.", " exports=b", " exports=*"][number(4)];
    format!("at={} {hosts}{addresses} resolution={resolution}{endpoints}{exports}", number(3))
}

fn workload(number: &mut impl FnMut(usize) -> usize) -> String {
    let labels = ["", "app:x", "app:y,tier:1", "app:y"][number(4)];
    let word = ["", " unhealthy", " unready", " host", " captured"][number(5)];
    format!("ip={} labels={labels}{word}", CLIENTS[number(3)])
}

/// Builds a reducer from the remaining objects only.
fn anew(objects: &Objects) -> Stage {
    let mut stage = Stage::new(&Spec::new(&KINDS, &[]));
    for ((kind, path), fields) in objects.iter().rev() {
        stage.play(&format!("{kind} {path} {fields}"));
    }
    stage
}

/// Evaluates all checks.
fn all_of(stage: &Stage) -> Vec<String> {
    let mut questions = vec!["hosts".to_owned()];
    for name in ASKED {
        questions.extend([format!("host {name}"), format!("below {name}")]);
        questions.extend(CLIENTS.map(|client| format!("seen {name} by {client}")));
    }
    questions.extend(CLIENTS.map(|client| format!("client {client}")));
    questions.iter().map(|question| format!("{question} = {}", stage.ask(question))).collect()
}
