//! `kubectl slotwright`: parses the command line and calls the crate `plugin`. Called by the name of one of HTCondor's
//! tools, such as condor_submit or condor_q, the program takes the command line of that tool.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use plugin::{Cli, Connection, Tool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Two TLS libraries are compiled in, and rustls needs to know which one to use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let called = Path::new(&name).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if called == plugin::complete::FOR_KUBECTL {
        let words = plugin::texts(words).unwrap_or_default();
        let done = plugin::complete::for_kubectl(&words, &mut io::stdout());
        return done.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if let Some(why) = plugin::unsupported(called) {
        let _ = writeln!(io::stderr(), "{why}");
        return ExitCode::FAILURE;
    }
    if let Some(tool) = Tool::named(called) {
        let words = match plugin::texts(words) {
            Ok(words) => words,
            Err(why) => {
                // Nobody may be there to read it.
                let _ = writeln!(io::stderr(), "{called}: {why}");
                return ExitCode::FAILURE;
            }
        };
        let (out, err) = (&mut io::stdout(), &mut io::stderr());
        let done = plugin::by_name(tool, &words, &Connection::default(), width(), out, err).await;
        return done.map_or(ExitCode::FAILURE, ExitCode::from);
    }
    match plugin::run(Cli::parse(), width(), &mut io::stdout(), &mut io::stderr()).await {
        Ok(()) => ExitCode::SUCCESS,
        // The plugin has already printed what was not done.
        Err(plugin::Error::NotDone) => ExitCode::FAILURE,
        Err(plugin::Error::Status(status)) => ExitCode::from(status),
        Err(error) => {
            // Nobody may be there to read it.
            let _ = writeln!(io::stderr(), "kubectl slotwright: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The width of the terminal to which the output goes; `None` if it goes elsewhere.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
