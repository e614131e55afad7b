//! The beginning and the end of both programs.

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use cli::agent::{self, AgentArgs};
use cli::logging::{self, LogFormat};
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

/// The outcome of a command: an exit code, or why it could not do its work.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Lets rustls know which of the TLS libraries that are compiled in it is to use.
pub fn choose_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Runs the agent of a node, on one thread: enough, and less memory on each node.
pub fn agent(args: AgentArgs) -> Outcome {
    log_to_stderr("info,kube=warn,hyper=warn,tower=warn", args.log_format);
    run_on(&mut Builder::new_current_thread(), agent::run(args))
}

/// Runs a future to its end.
pub fn run_on<E: Error + 'static>(
    runtime: &mut Builder,
    future: impl Future<Output = Result<ExitCode, E>>,
) -> Outcome {
    runtime.enable_all().build()?.block_on(future).map_err(Into::into)
}

/// Logs to standard error by the filter `default`, unless `RUST_LOG` sets another. A filter of `RUST_LOG` that cannot be meant does not
/// count, and the first line of the log says so.
pub fn log_to_stderr(default: &str, format: LogFormat) {
    let asked = env::var("RUST_LOG").ok().filter(|asked| !asked.trim().is_empty());
    let (filter, wrong) = match asked.as_deref().map(filter) {
        None => (EnvFilter::new(default), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(why)) => (EnvFilter::new(default), Some(why)),
    };
    let colors = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colors).with_writer(io::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    if let Some(why) = wrong {
        tracing::error!(default, "RUST_LOG (in the chart: log) is not obeyed, and the default is: {why}");
    }
}

/// The filter that `RUST_LOG` says, or what is wrong with it.
fn filter(asked: &str) -> Result<EnvFilter, String> {
    logging::complaint(asked).map_or(Ok(()), Err)?;
    EnvFilter::try_new(asked).map_err(|error| error.to_string())
}

/// Says why a program ends, and returns its exit code. Nobody may be there to read it.
pub fn failed(program: &str, error: &dyn Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "{program}: {error}");
    ExitCode::from(2)
}
