//! Configures the addresses that a server block listens on. The server opens the sockets.

use config::options::{Args, Manifest, Problem, Property, Usage};
use config::setup::{BindTarget, BlockSettings};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("bind", "set the addresses that a server block listens on", Config::default, |_, _| Ok(None))
        .without_handler()
        .repeated()
        .arguments("bind ADDRESS|INTERFACE...", |config, args| {
            config.on = targets(args)?;
            Ok(())
        })
        .properties(&[Property {
            usage: Usage("except ADDRESS|INTERFACE..."),
            default: "",
            doc: "Addresses, or the addresses of interfaces, to leave out of those that the line would listen on.",
            set: |config, args| {
                config.except.extend(targets(args)?);
                Ok(())
            },
        }])
        .settings(|config: &Config, settings: &mut BlockSettings| {
            settings.bind.extend(config.on.iter().cloned());
            settings.bind_except.extend(config.except.iter().cloned());
        });

/// Configuration of a `bind` line.
#[derive(Default)]
pub struct Config {
    on: Vec<BindTarget>,
    except: Vec<BindTarget>,
}

fn targets(args: &mut Args<'_>) -> Result<Vec<BindTarget>, Problem> {
    let words = args.take_rest().iter();
    Ok(words.map(|word| BindTarget { text: word.text.clone(), span: word.span }).collect())
}
