//! Collects the content of the page from the other endpoints.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use config::setup::NamePrivacy;
use control::query::Parameters;
use control::top::{By, Window};

use super::super::super::context::Context;
use super::super::super::history::{RATE_WINDOW, Totals};
use super::super::super::{Loaded, Warning};
use super::super::{explain, status};
use super::corefile::{SourceFile, SourceLine};
use super::flow::{Flow, Share};
use super::{Content, Question};
use crate::explain::SiteLabels;
use host::time::rfc3339;

/// Number of rows of the tables with clients and names.
const ROWS: usize = 8;
/// Number of failures that are read. Those from the cache are grouped, so this is more than are shown.
const FAILURES: usize = 200;
/// Response code of answers that count as failures of a plugin.
const FAILURE: &str = "SERVFAIL";
/// Name for answers that the server gave itself: SERVFAIL after a failure, REFUSED if no plugin answered.
const NO_PLUGIN: &str = "no plugin, or a failed one";

/// Collects the content.
pub(super) async fn content(context: &Rc<Context>, parameters: Parameters) -> Content {
    let question = question(context, parameters).await;
    let loaded = context.view.loaded();
    let status = status::status(context);
    let pods = context.watch.top(&loaded, By::Pod, Window::Medium, ROWS);
    let names = context.watch.top(&loaded, By::Name, Window::Medium, ROWS);
    let mut failures = context.watch.failures(&loaded, FAILURES);
    failures.reverse();
    let answered = answered(context, &loaded);
    let flow = Flow::new(&pods, &blocks(&loaded), &answered, &status);
    let history = context.history.borrow().points();
    Content {
        time: rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        history,
        flow,
        pods,
        names,
        failures,
        shows_names: loaded.names == NamePrivacy::Shown,
        files: files(&loaded, &answered),
        question,
        status,
    }
}

/// Keys of the server blocks.
fn blocks(loaded: &Loaded) -> Vec<String> {
    loaded.outline.blocks().map(|(_, block)| block.keys.clone()).collect()
}

/// Returns the answers of the last minute by server block and plugin.
fn answered(context: &Context, loaded: &Loaded) -> Vec<Share> {
    let now = Totals::read(&context.view.registry);
    let history = context.history.borrow();
    let before = history.before(now.at, RATE_WINDOW).unwrap_or(&now);
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let mut shares: BTreeMap<(usize, String), (u64, u64)> = BTreeMap::new();
    for (labels, count) in &now.answerers {
        let count = count - before.answerers.get(labels).unwrap_or(&0);
        let [server, zone, view, plugin, rcode] = labels.clone();
        let site: SiteLabels = [server, zone, view];
        let Some(block) = loaded.outline.block_of(&site).filter(|_| count > 0) else { continue };
        let plugin = if plugin.is_empty() { NO_PLUGIN.to_owned() } else { plugin };
        let (answers, failures) = shares.entry((block.0, plugin)).or_default();
        *answers += count;
        *failures += if rcode == FAILURE { count } else { 0 };
    }
    let share = |((block, plugin), (answers, failures))| {
        let per_second = |count: u64| if seconds > 0.0 { whole(count) / seconds } else { 0.0 };
        Share { block, plugin, per_second: per_second(answers), failing_per_second: per_second(failures) }
    };
    shares.into_iter().map(share).collect()
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn whole(count: u64) -> f64 {
    count as f64
}

/// Returns the files of the Corefile with what is known about their lines.
fn files(loaded: &Loaded, answered: &[Share]) -> Vec<SourceFile> {
    let mut hits: BTreeMap<(&str, u64), f64> = BTreeMap::new();
    let blocks: Vec<_> = loaded.outline.blocks().map(|(id, _)| id).collect();
    for share in answered {
        let Some(id) = blocks.get(share.block) else { continue };
        // Directives of the same name in a block are counted together, at the first.
        if let Some(place) = loaded.outline.first_directive(*id, &share.plugin) {
            *hits.entry((&place.file, place.line)).or_default() += share.per_second;
        }
    }
    let mut warnings: BTreeMap<(&str, u64), Vec<String>> = BTreeMap::new();
    let current = loaded.current_warnings();
    for Warning { place, text } in &current {
        warnings.entry((&place.file, place.line)).or_default().push(text.clone());
    }
    let line = |file: &str, at: usize, text: &str| {
        let place = (file, at as u64 + 1);
        SourceLine {
            text: text.to_owned(),
            per_second: hits.get(&place).copied(),
            warnings: warnings.get(&place).cloned().unwrap_or_default(),
        }
    };
    SourceFile::cut(&loaded.files, line)
}

/// Returns the fields of the form, with an explanation if there is a name.
async fn question(context: &Context, parameters: Parameters) -> Question {
    let parameters = parameters.without_empty();
    let field = |name: &str| parameters.get(name).unwrap_or_default().to_owned();
    let answer = match parameters.get("name") {
        Some(_) => {
            let located = explain::locate(context, &parameters).await;
            Some(explain::explain(context, &parameters, located))
        }
        None => None,
    };
    Question { name: field("name"), qtype: field("type"), from: field("from"), answer }
}
