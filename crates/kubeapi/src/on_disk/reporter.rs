//! Reports of manifests to the log and the metrics. Subscriptions to the same files find the same mistakes, so that
//! each mistake is reported by the first of them only.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tracing::warn;

use super::folder::Report;
use crate::LOG;
use crate::meter::Meter;

/// Maximum number of texts to remember. Above it, they are forgotten, and mistakes may be reported twice.
const TEXTS_MAX: usize = 10_000;

/// How often each text was reported, by all subscriptions together.
#[derive(Default)]
pub(crate) struct ReportLog(RefCell<HashMap<String, u32>>);

/// Reporter of one subscription.
pub(crate) struct Reporter {
    log: Rc<ReportLog>,
    meter: Rc<Meter>,
    /// How often this subscription found each text.
    found: HashMap<String, u32>,
}

impl Reporter {
    pub(crate) fn new(log: &Rc<ReportLog>, meter: &Rc<Meter>) -> Reporter {
        Reporter { log: Rc::clone(log), meter: Rc::clone(meter), found: HashMap::new() }
    }

    /// Reports a mistake, unless another subscription has reported it already.
    pub(super) fn report(&mut self, report: &Report) {
        if !self.is_news(&report.text) {
            return;
        }
        if let Some(reason) = report.reason {
            self.meter.manifest_error(reason);
        }
        warn!(target: LOG, "{}", report.text);
    }

    fn is_news(&mut self, text: &str) -> bool {
        let mut log = self.log.0.borrow_mut();
        if log.len() >= TEXTS_MAX {
            log.clear();
            self.found.clear();
        }
        let reported = log.entry(text.to_owned()).or_default();
        // A new subscription finds what others reported before it.
        let found = self.found.entry(text.to_owned()).or_insert_with(|| reported.saturating_sub(1));
        *found = found.saturating_add(1);
        let is_news = *found > *reported;
        *reported = (*reported).max(*found);
        is_news
    }
}
