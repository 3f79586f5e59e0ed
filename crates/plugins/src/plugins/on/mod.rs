//! Runs commands when the server starts, stops or renews certificates.

use config::options::Manifest;
use config::setup::{Command, LifecycleEvent, Part, Setup, SetupError};

pub static MANIFEST: Manifest<Option<Command>> =
    Manifest::new("on", "run commands when the server starts or stops", || None, build)
        .repeated()
        .without_handler()
        .arguments("on startup|shutdown|certrenew COMMAND [ARGUMENTS...]", |command, args| {
            let events = [
                ("startup", LifecycleEvent::Start),
                ("shutdown", LifecycleEvent::End),
                ("certrenew", LifecycleEvent::CertificatesRenewed),
            ];
            let when = args.choice(&events)?;
            let program = args.word()?.text.clone();
            let mut arguments: Vec<String> = args.take_rest().iter().map(|word| word.text.clone()).collect();
            let in_background = arguments.pop_if(|last| last == "&").is_some();
            *command = Some(Command { when, program, arguments, in_background });
            Ok(())
        });

fn build(commands: Vec<Option<Command>>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    setup.requests.commands.extend(commands.into_iter().flatten());
    Ok(None)
}
