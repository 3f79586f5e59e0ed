//! Randomises the order of addresses in responses.

mod order;
mod weights;

use core::error::Error;
use core::ops::Range;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use config::SETUP_WARNED;
use config::options::{Args, DirectiveContext, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{FileWatch, Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use ipnet::IpNet;
use wire::{Mark, Rcode};

use crate::shared::file_problems::FileProblems;
use crate::shared::last_good;
use crate::shared::open_error::OpenError;
use weights::Weights;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "loadbalance",
    "randomise the order of records in responses",
    Config::default,
    build,
)
.first_line_wins()
.arguments("loadbalance [POLICY [WEIGHTFILE]]", read_policy)
.properties(&[
    Property {
        usage: Usage("reload DURATION"),
        default: "30s",
        doc: "Interval at which WEIGHTFILE is checked for changes; `0s` disables checking. Only with `weighted`.",
        set: |config, args| {
            config.reload = Some(args.duration()?);
            Ok(())
        },
    },
    Property {
        usage: Usage("prefer CIDR..."),
        default: "",
        doc: "Networks whose addresses come first. Only with `round_robin`.",
        set: |config, args| {
            while let Some(word) = args.next_word() {
                let network = word.text.parse().map_err(|_| args.bad(word, "a network such as `10.0.0.0/8`"))?;
                config.preferred.push(network);
            }
            Ok(())
        },
    },
])
.check(check)
.role(|_| Role::new(Effect::OnAnswers, &[]));

const RELOAD: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct Config {
    weight_file: Option<String>,
    reload: Option<Duration>,
    preferred: Vec<IpNet>,
}

fn read_policy(config: &mut Config, args: &mut Args<'_>) -> Result<(), Problem> {
    if args.rest().is_empty() {
        return Ok(());
    }
    let weighted = args.choice(&[("round_robin", false), ("weighted", true)])?;
    match (weighted, args.next_word()) {
        (true, Some(file)) => config.weight_file = Some(file.text.clone()),
        (true, None) => return Err(args.problem("missing weight file argument")),
        (false, Some(word)) => return Err(args.bad(word, "needed: `round_robin` takes no arguments")),
        (false, None) => {}
    }
    Ok(())
}

fn check(context: &DirectiveContext<'_, Config>) -> Result<(), Problem> {
    let weighted = context.config.weight_file.is_some();
    if !weighted && context.config.reload.is_some() {
        return Err(
            context.problem_with("reload", "unknown property for round_robin: only `weighted` has a file to reload")
        );
    }
    if weighted && !context.config.preferred.is_empty() {
        return Err(context.problem_with("prefer", "unknown property for weighted: only weights decide there"));
    }
    Ok(())
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let weights = match &config.weight_file {
        Some(file) => Some(watch_weights(setup.path(file), config.reload.unwrap_or(RELOAD), setup)?),
        None => None,
    };
    Ok(Some(Part::new(LoadBalance { weights, preferred: config.preferred }, Hooks::UP)))
}

fn watch_weights(path: PathBuf, every: Duration, setup: &mut Setup<'_>) -> Result<Arc<Weights>, SetupError> {
    let read = setup.files.read(&path);
    let key = format!("loadbalance/{}", path.display());
    let loaded = last_good::load_or_keep(key.clone(), setup, |_| {
        let weights = Weights::default();
        let bytes = read.as_ref().map_err(|error| SetupError::new(host::errors::cannot_open(&path, error)))?;
        weights.read(bytes, &path).map_err(SetupError::from_error).map(|()| weights)
    });
    let (weights, warning) = match loaded {
        // The file may appear later. Until then all addresses have the same weight.
        Err(error) if read.is_err() => {
            (setup.reload_state.get_or_insert_with(key, Weights::default), Some(error.to_string()))
        }
        Ok((weights, Some(_))) if read.is_err() && !weights.are_read() => {
            // It was missing for another server block or in the last generation, so there is no content from before.
            let missing = read.as_ref().err().map(|error| host::errors::cannot_open(&path, error));
            (weights, missing)
        }
        loaded => loaded?,
    };
    let problems = Arc::<FileProblems>::default();
    warning.iter().for_each(|warning| setup.warn_of_followed(SETUP_WARNED, warning));
    problems.set(warning);
    setup.follow_files(Arc::clone(&problems) as _);
    let watched = Arc::clone(&weights);
    // If the file cannot be read or parsed, the weights do not change.
    let file = path.clone();
    let watch = FileWatch::of_file((MANIFEST.name, path), every, &read, move |_, bytes| {
        let bytes = bytes.map_err(|error| OpenError::new(&file, error).into());
        let read: Result<(), Box<dyn Error>> = bytes.and_then(|bytes| Ok(watched.read(&bytes, &file)?));
        problems.set(read.as_ref().err().map(ToString::to_string));
        read
    });
    setup.requests.file_watches.push(watch);
    Ok(weights)
}

struct LoadBalance {
    weights: Option<Arc<Weights>>,
    preferred: Vec<IpNet>,
}

impl Plugin for LoadBalance {
    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if response.rcode() != Rcode::NOERROR || query.qtype.is_transfer() {
            return Verdict::Pass;
        }
        match &self.weights {
            Some(weights) => weights.put_chosen_first(query, response, worker),
            None => self.shuffle(query, response, worker),
        }
        Verdict::Pass
    }
}

impl LoadBalance {
    /// Shuffles each RRset of addresses or MX records. Addresses in preferred networks come first.
    fn shuffle(&self, query: &Query, response: &mut Response, worker: &mut Worker) {
        let mut start = 0;
        while let Some(set) = order::set_at(response, start) {
            if order::is_shuffled(response.message.marks()[start].rtype) {
                order::shuffle(&set, query, response, worker);
                self.put_preferred_first(response, &set);
            }
            start = set.end;
        }
    }

    fn put_preferred_first(&self, response: &mut Response, set: &Range<usize>) {
        if self.preferred.is_empty() {
            return;
        }
        // Selection sort: there are few records and few networks.
        for place in set.clone() {
            let best = (place..set.end).min_by_key(|at| self.rank(response, response.message.marks()[*at]));
            if let Some(best) = best {
                response.message.swap_rdata(place, best);
            }
        }
    }

    /// Index of the first preferred network that contains the address. The number of networks if none does.
    fn rank(&self, response: &Response, mark: Mark) -> usize {
        let address = weights::address(response.message.bytes_at(mark.rdata_range()));
        let holds = |address| self.preferred.iter().position(|network| network.contains(&address));
        address.and_then(holds).unwrap_or(self.preferred.len())
    }
}
