//! The `slotwright` command: reads the command line and hands over to the library.

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use slotwright::cli::crds;

/// HTCondor's policy model on Kubernetes pods.
#[derive(Parser, Debug)]
#[command(name = "slotwright", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Print the custom resource definitions, or write them to a directory.
    Crds(crds::CrdsArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Crds(args) => crds::run(&args, &mut io::stdout().lock()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("slotwright: {error}");
        ExitCode::from(2)
    })
}
