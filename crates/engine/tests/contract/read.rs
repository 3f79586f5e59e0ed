//! Reads a label after the answer, as *log* does. Enables labels for all names, as *metadata* does.

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::log::{Level, Source};
use engine::{Hooks, Label, Plugin, Query, Response, Verdict, Worker, Zones};

pub static MANIFEST: Manifest<String> = Manifest::new("read", "logs the value of a label", String::new, build)
    .arguments("read LABEL", |label, args| {
        *label = args.word()?.text.clone();
        Ok(())
    });

fn build(labels: Vec<String>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(label) = labels.into_iter().next() else { return Ok(None) };
    setup.labels().switch_on(Zones::all());
    Ok(Some(Part::new(Read { label: setup.labels().label(&label) }, Hooks::UP)))
}

struct Read {
    label: Label,
}

impl Plugin for Read {
    fn on_response(&self, query: &mut Query, _: &mut Response, worker: &mut Worker) -> Verdict {
        let value = self.label.value(query);
        worker.log_text(Level::Info, Source::Plugin("read"), format_args!("{}: {value:?}", query.name()));
        Verdict::Pass
    }
}
