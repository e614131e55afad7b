//! `kubectl slotwright`: the plugin, a thin front of the same library.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use plugin::Cli;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // Two libraries bring TLS; whichever is first would otherwise depend on the build.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match plugin::run(&Cli::parse(), &mut io::stdout(), &mut io::stderr()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kubectl slotwright: {error}");
            ExitCode::FAILURE
        }
    }
}
