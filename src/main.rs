//! The `slotwright` command: reads the command line and hands over to the library.

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use slotwright::cli::{crds, demo};

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
    /// Run a pool on an embedded cluster: nodes, jobs, the operator, a summary.
    Demo(demo::DemoArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Crds(args) => crds::run(&args, &mut io::stdout().lock()),
        Command::Demo(args) => demo::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("slotwright: {error}");
        ExitCode::from(2)
    })
}
