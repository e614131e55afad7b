//! The `slotwright` command: parses the command line and calls the command's function in the crate `cli`.

mod start;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use cli::logging::LogFormat;
use cli::{
    agent, classad, complete, config, crds, demo, guard, knobs, link, lint, negotiate, operator, quota,
    simulate, submit, transform,
};
use start::{Outcome, log_to_stderr, run_on};
use tokio::runtime::Builder;

/// HTCondor's policy model on Kubernetes pods.
#[derive(Parser, Debug)]
#[command(name = "slotwright", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the operator on a cluster.
    Operator(Box<operator::OperatorArgs>),
    /// Run the agent of a node.
    Agent(agent::AgentArgs),
    /// Run the guard of a node, on the host, which keeps the agent's promise.
    Guard(guard::GuardArgs),
    /// Evaluate ClassAd expressions, or match two ads.
    Classad(classad::ClassadArgs),
    /// Check manifests and configuration text, as the API server and the operator would.
    Lint(lint::LintArgs),
    /// Read HTCondor configuration: print values, or all of it.
    Config(config::ConfigArgs),
    /// Print the custom resource definitions, or write them to a directory.
    Crds(crds::CrdsArgs),
    /// Say how much of a pool each accounting group would be given.
    Quota(quota::QuotaArgs),
    /// Say what HTCondor's configuration variables do in Slotwright.
    Knobs(knobs::KnobsArgs),
    /// Run one negotiation cycle over ads in files.
    Negotiate(negotiate::NegotiateArgs),
    /// Apply job transforms and submit requirements to job ads.
    Transform(transform::TransformArgs),
    /// Print what an HTCondor submit file makes: HTCJobs, or the ads of the jobs.
    Submit(Box<submit::SubmitArgs>),
    /// Try a policy on a workload in virtual time.
    Simulate(simulate::SimulateArgs),
    /// Run a pool on an embedded cluster: nodes, jobs, the operator, a summary.
    Demo(demo::DemoArgs),
    /// Print what a shell reads to complete slotwright.
    #[command(hide = true)]
    Completion(complete::CompletionArgs),
    /// Write manual pages.
    #[command(hide = true)]
    Man(complete::ManArgs),
}

fn main() -> ExitCode {
    start::choose_tls();
    if let Some(advice) = std::env::args_os().next().and_then(|program| link::advice(&program)) {
        return start::failed("slotwright", &io::Error::other(advice));
    }
    let outcome: Outcome = match Cli::parse().command {
        Command::Operator(args) => {
            log_to_stderr("info,kube=warn,hyper=warn,tower=warn", args.log_format);
            // The loop that decides has the main thread. One more thread makes all calls: two of them, which wake each other for each
            // answer, take a quarter more processor time and are slower (docs/reference/performance.md).
            run_on(Builder::new_multi_thread().worker_threads(1), operator::run(*args))
        }
        Command::Agent(args) => start::agent(args),
        Command::Guard(args) => {
            log_to_stderr("info", LogFormat::Text);
            guard::run(args).map(|never| match never {}).map_err(Into::into)
        }
        Command::Classad(args) => {
            classad::run(&args, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Lint(args) => {
            lint::run(&args, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Config(args) => {
            config::run(&args, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Quota(args) => {
            quota::run(&args, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Crds(args) => crds::run(&args, &mut io::stdout().lock()).map_err(Into::into),
        Command::Knobs(args) => knobs::run(&args, &mut io::stdout().lock()).map_err(Into::into),
        Command::Negotiate(args) => {
            negotiate::run(&args, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Transform(args) => {
            transform::run(&args, &mut io::stdin().lock(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Submit(args) => {
            // `queue ... from -` reads standard input, too: a lock held here would keep that reader waiting for ever.
            submit::run(*args, &mut io::stdin(), &mut io::stdout().lock(), &mut io::stderr().lock())
                .map(ExitCode::from)
                .map_err(Into::into)
        }
        Command::Simulate(args) => simulate::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock())
            .map(ExitCode::from)
            .map_err(Into::into),
        Command::Completion(args) => complete::completion(&args, Cli::command(), &mut io::stdout().lock())
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
        Command::Man(args) => {
            complete::man(&args, Cli::command()).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::Demo(args) => {
            log_to_stderr(args.log_filter(), LogFormat::Text);
            run_on(&mut Builder::new_multi_thread(), demo::run(args))
        }
    };
    outcome.unwrap_or_else(|error| {
        if is_closed_pipe(error.as_ref()) {
            return ExitCode::SUCCESS;
        }
        start::failed("slotwright", error.as_ref())
    })
}

/// Whether the reader of the output has closed the pipe, as in `slotwright crds | head`: the reader has what it wants.
fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(is_closed)
}
