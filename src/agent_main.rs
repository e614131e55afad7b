//! The `slotwright-agent` command: `slotwright agent` in a program of its own, which each node has in its memory. A page of a program
//! that is read brings its neighbors along, and in the large program these are of no use to an agent.

mod start;

use std::process::ExitCode;

use clap::Parser;
use cli::agent::AgentArgs;

/// The agent of a node: it senses the node's owner, and suspends and kills pods of the pool.
#[derive(Parser, Debug)]
#[command(name = "slotwright-agent", version)]
struct Cli {
    #[command(flatten)]
    args: AgentArgs,
}

fn main() -> ExitCode {
    start::choose_tls();
    start::agent(Cli::parse().args).unwrap_or_else(|error| start::failed("slotwright-agent", error.as_ref()))
}
