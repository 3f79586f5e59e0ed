//! Logs errors that occurred while a query was processed.

mod consolidate;

use config::options::{Manifest, Property, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::log::Source;
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};

use crate::shared::option_helpers::no_arguments;
use std::sync::Arc;

use consolidate::{Rule, Rules};

const SOURCE: Source<'_> = Source::Plugin("errors");

pub static MANIFEST: Manifest<Config> =
    Manifest::new("errors", "log errors that occur while processing queries", Config::default, build)
        .arguments("errors [stdout]", |_, args| {
            args.next_word().map_or(Ok(()), |word| match word.text.as_str() {
                "stdout" => Ok(()),
                _ => Err(args.bad(word, "`stdout`, the only place that errors are written to")),
            })
        })
        .properties(&[
            Property {
                usage: Usage("stacktrace"),
                default: "off",
                doc: "Accepted for compatibility with CoreDNS. A panic is always logged with its source location.",
                set: no_arguments,
            },
            Property {
                usage: Usage("consolidate DURATION REGEXP [LEVEL] [show_first]"),
                default: "",
                doc: "Count errors that match REGEXP and log their number after DURATION, at LEVEL: `error` (default), \
              `warning`, `info` or `debug`. With `show_first` the first error is logged at once, at LEVEL too.",
                set: |config, args| {
                    config.rules.push(Rule::read(args)?);
                    Ok(())
                },
            },
        ]);

#[derive(Default)]
pub struct Config {
    rules: Vec<Rule>,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let rules = Rules::new(configs.into_iter().flat_map(|config| config.rules).collect());
    let rules = Arc::new(rules);
    if !rules.is_empty() {
        let rules = Arc::clone(&rules);
        setup.requests.jobs.push(Box::new(move |io| Box::pin(consolidate::report(rules, io))));
    }
    // The engine logs a refused update with its zone, key and client.
    Ok(Some(Part::new(Errors { rules }, Hooks::UP)))
}

struct Errors {
    rules: Arc<Rules>,
}

impl Plugin for Errors {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if let Some(failure) = response.failure().filter(|failure| !failure.cause.is_empty())
            && let Some(level) = self.rules.level(&failure.cause, worker.now())
        {
            let (rcode, name, qtype, cause) = (failure.rcode.0, query.key(), query.qtype, &failure.cause);
            worker.log_text(level, SOURCE, format_args!("{rcode} {name} {qtype}: {cause}"));
        }
        Verdict::Pass
    }

    fn rehearse_response(&self, _: &mut Query, _: &mut Response, _: &mut Worker) -> Verdict {
        Verdict::Pass
    }
}
