//! Adds the server's identifier to responses for clients that request it (NSID, RFC 5001).

use config::options::Manifest;
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use wire::OptionCode;

use crate::shared::option_helpers::HostName;

pub static MANIFEST: Manifest<Option<String>> =
    Manifest::new("nsid", "identify the server in responses (NSID)", || None, build).arguments(
        "nsid [DATA...]",
        |data, args| {
            let words: Vec<&str> = args.take_rest().iter().map(|word| word.text.as_str()).collect();
            *data = (!words.is_empty()).then(|| words.join(" "));
            Ok(())
        },
    );

fn build(configs: Vec<Option<String>>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let data = configs.into_iter().flatten().next().unwrap_or_else(|| HostName::of(setup));
    Ok(Some(Part::new(Nsid { data: data.into_bytes() }, Hooks::UP.with_updates())))
}

struct Nsid {
    data: Vec<u8>,
}

impl Plugin for Nsid {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        if query.opt().is_some() && query.options().any(|(code, _)| code == OptionCode::NSID) {
            response.set_option(OptionCode::NSID, self.data.clone());
        }
        Verdict::Pass
    }
}
