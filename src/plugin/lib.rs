//! `kubectl slotwright`: shows jobs, slots and priorities as HTCondor's tools do, and submits submit files.
//!
//! A command lists objects from the API server, makes lines of them, and prints the lines as a table or as JSON. Making
//! and printing lines is pure.
//!
//! Invariant: the plugin writes nothing to the API server but what the user asks for by name (the HTCJobs that `submit` creates,
//! with ConfigMaps of their files, the acts that `act` writes on HTCJobs, what condor_prio, condor_qedit and condor_drain edit).
//! The plugin asks the operator for nothing but the history. Beside the history, the plugin knows only the facts that the objects
//! have.
//!
//! | file | is |
//! | --- | --- |
//! | `lib` | the command line, and the commands |
//! | `cluster` | connects to the cluster, lists objects, explains failures |
//! | `q` | jobs, like `condor_q` |
//! | `status` | slots, like `condor_status` |
//! | `ads` | whole ads of slots, like `condor_status -l` |
//! | `userprio` | submitters and priorities, like `condor_userprio` |
//! | `submit` | HTCJobs of a submit file, like `condor_submit` |
//! | `tool` | HTCondor's tools by their own names: which there are, and what to use instead of others |
//! | `condor` | those tools, with their own options |
//! | `act` | hold, release, rm and vacate-job, like `condor_hold` and the like |
//! | `complete` | completions of shells, and manual pages |
//! | `userlog` | the job event logs of submit files |
//! | `output` | what procs printed, and how they ended |
//! | `text` | times and long texts in tables |

pub mod act;
mod ads;
mod cluster;
pub mod complete;
pub mod condor;
mod output;
mod patient;
mod q;
mod status;
pub mod submit;
mod text;
mod tool;
pub mod userlog;
mod userprio;
mod warnings;

use std::io::{self, Write};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use k8s_openapi::api::core::v1::Node;
use serde::Serialize;
use thiserror::Error;

use api::{HTCJob, Negotiator, PartitionableSlot, Slot, Submitter};
use cluster::Cluster;
pub use cluster::Connection;
use model::pool::Time;
pub use tool::{Tool, by_name, texts, unsupported};

/// Show jobs, slots and priorities as HTCondor's tools do, and submit submit files.
#[derive(Parser, Debug)]
#[command(name = "kubectl-slotwright", bin_name = "kubectl slotwright", version)]
pub struct Cli {
    #[command(flatten)]
    connection: Connection,
    /// How to print
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table
    Table,
    /// A table in which nothing is shortened
    Wide,
    /// A JSON array, with an object for each line of the table
    Json,
    /// The same in YAML
    Yaml,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show jobs, like condor_q
    Q(QArgs),
    /// Show slots, like condor_status
    Status(StatusArgs),
    /// Show submitters and their priorities, like condor_userprio
    Userprio(UserprioArgs),
    /// Create the HTCJobs of an HTCondor submit file, like condor_submit
    Submit(Box<submit::SubmitArgs>),
    /// Print what procs printed, and how they ended
    Output(output::OutputArgs),
    /// Bring job event logs (log in a submit file) up to date
    Userlog(userlog::UserlogArgs),
    /// Hold jobs and procs, like condor_hold
    Hold(Box<act::HoldArgs>),
    /// Release jobs and procs that are held, like condor_release
    Release(Box<act::ActArgs>),
    /// Remove jobs and procs, like condor_rm
    Rm(Box<act::ActArgs>),
    /// Send procs out of their slots, like condor_vacate_job
    VacateJob(Box<act::VacateArgs>),
    /// Print what a shell reads to complete kubectl-slotwright
    #[command(hide = true)]
    Completion(complete::CompletionArgs),
    /// Write manual pages
    #[command(hide = true)]
    Man(complete::ManArgs),
    /// A tool of HTCondor by its own name and with its own options, such as condor_q -nobatch
    #[command(external_subcommand)]
    Condor(Vec<String>),
}

#[derive(Args, Debug)]
struct QArgs {
    /// The namespace [default: the context's]
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Show the jobs of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Show one job with its running procs, given by its name, its ClusterId, or ClusterId.ProcId
    job: Option<String>,
}

#[derive(Args, Debug)]
struct StatusArgs {
    /// Show only the slots of this node
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Print whole ads instead of a table: everything that policy and matchmaking see of the slots
    #[arg(short, long)]
    long: bool,
    /// Show only these slots: a slot, such as slot1@node7, or all slots of a node
    #[arg(value_name = "SLOT|NODE")]
    names: Vec<String>,
}

#[derive(Args, Debug)]
struct UserprioArgs {
    /// Show the accounts of this Negotiator [default: the first by name]
    #[arg(long, value_name = "NEGOTIATOR")]
    name: Option<String>,
    /// Show the priorities at this time, in seconds since 1970, if usage stays as it is [default: now]
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The cluster cannot be reached, or refuses.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// There is no such job.
    #[error(
        "no job {wanted} in {place}: neither a name nor a ClusterId; see all with: kubectl slotwright q -A"
    )]
    NoSuchJob {
        /// The job that the user asked for.
        wanted: String,
        /// The namespaces that were searched.
        place: String,
    },
    /// The job is in another namespace.
    #[error(
        "no job {wanted} in {place}, but in namespace {namespace}: kubectl slotwright q -n {namespace} {wanted}"
    )]
    JobElsewhere {
        /// The job that the user asked for.
        wanted: String,
        /// The namespaces that were searched.
        place: String,
        /// The job's namespace.
        namespace: String,
    },
    /// The job has no such proc.
    #[error("job {cluster} ({job}) has no proc {proc}: its procs are 0 to {last}")]
    NoSuchProc {
        /// Its ClusterId.
        cluster: i64,
        /// Its namespace and name.
        job: String,
        /// The number of the proc that the user asked for.
        proc: i64,
        /// The number of its last proc.
        last: i64,
    },
    /// There is no such slot or node.
    #[error("{0}; see all with: kubectl slotwright status")]
    NoSuchSlot(String),
    /// There is no such Negotiator.
    #[error("no Negotiator {wanted}; see all with: kubectl get negotiators")]
    NoSuchNegotiator {
        /// The negotiator that the user asked for.
        wanted: String,
    },
    /// There is no such command.
    #[error("{}", tool::suggestion(.0))]
    NoSuchCommand(String),
    /// The submit file has errors, or was not submitted.
    #[error(transparent)]
    Submit(#[from] submit::Error),
    /// Nothing was acted on, or not everything.
    #[error(transparent)]
    Act(#[from] act::Error),
    /// A job event log was not brought up to date.
    #[error(transparent)]
    Userlog(#[from] userlog::Error),
    /// A tool of HTCondor's failed with this exit status, and has told the user why.
    #[error("exit status {0}")]
    Status(u8),
    /// The command did not do everything that it was asked to do, and has told the user what is not done.
    #[error("not everything was done")]
    NotDone,
    /// The answer cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// The answer of a command, and notes that its reader should know.
struct Answer {
    text: String,
    notes: Vec<String>,
}

/// Runs the command. The answer goes to `out`, notes about the answer to `err`. `width` is that of the terminal that `out` is,
/// in characters, if it is one.
///
/// # Errors
/// When the cluster cannot be reached or refuses, there is no such job or Negotiator, or the output cannot be written.
pub async fn run(
    cli: Cli,
    width: Option<usize>,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let Cli { connection, output, command } = cli;
    match command {
        Command::Q(args) => {
            let cluster = Cluster::connect(&connection).await?;
            tell(&q(&cluster, &args, output, width).await?, out, err)
        }
        Command::Status(args) => {
            let cluster = Cluster::connect(&connection).await?;
            tell(&status(&cluster, &args, output).await?, out, err)
        }
        Command::Userprio(args) => {
            let cluster = Cluster::connect(&connection).await?;
            tell(&userprio(&cluster, &args, output).await?, out, err)
        }
        Command::Submit(args) => {
            let place = submit::Place::here()?;
            Ok(submit::run(&args.request(), &connection, &place, &mut io::stdin(), out, err).await?)
        }
        Command::Output(args) => {
            let cluster = Cluster::connect(&connection).await?;
            match output::run(&args, &cluster, out, err).await {
                Ok(whole) => done(whole),
                // The reader has closed the pipe, as in `kubectl slotwright output 12 | head`.
                Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                Err(error) => Err(error),
            }
        }
        Command::Userlog(args) => done(userlog::run(&args, &connection, err).await?),
        Command::Hold(args) => act(&args.request(), &connection, out, err).await,
        Command::Release(args) => act(&args.request(act::Verb::Release), &connection, out, err).await,
        Command::Rm(args) => act(&args.request(act::Verb::Remove), &connection, out, err).await,
        Command::VacateJob(args) => act(&args.request(), &connection, out, err).await,
        Command::Completion(args) => Ok(complete::completion(&args, Cli::command(), out)?),
        Command::Man(args) => Ok(complete::man(&args, Cli::command())?),
        Command::Condor(words) => condor_tool(&words, &connection, width, out, err).await,
    }
}

/// The outcome of a command that has told the user what is not done.
const fn done(whole: bool) -> Result<(), Error> {
    if whole { Ok(()) } else { Err(Error::NotDone) }
}

async fn act(
    request: &act::Request,
    connection: &Connection,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<(), Error> {
    done(act::run(request, connection, now(), out, err).await? == 0)
}

/// Runs a tool of HTCondor that was called as a subcommand.
async fn condor_tool(
    words: &[String],
    connection: &Connection,
    width: Option<usize>,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let (name, words) = words.split_first().map_or(("", words), |(name, words)| (name.as_str(), words));
    let tool = Tool::named(name).ok_or_else(|| Error::NoSuchCommand(name.to_owned()))?;
    match by_name(tool, words, connection, width, out, err).await? {
        0 => Ok(()),
        status => Err(Error::Status(status)),
    }
}

fn tell(answer: &Answer, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Error> {
    match print_answer(answer, out, err) {
        // The reader has closed the pipe, as in `kubectl slotwright status | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn print_answer(answer: &Answer, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    for note in &answer.notes {
        writeln!(err, "{note}")?;
    }
    out.write_all(answer.text.as_bytes())?;
    out.flush()
}

async fn q(cluster: &Cluster, args: &QArgs, output: Output, width: Option<usize>) -> Result<Answer, Error> {
    let namespace = (!args.all_namespaces).then(|| args.namespace.as_deref().unwrap_or(&cluster.namespace));
    let place = namespace.map_or_else(|| "any namespace".to_owned(), |name| format!("namespace {name}"));
    let mut jobs: Vec<HTCJob> = cluster.list(namespace).await?;
    let (mut notes, mut everywhere) = (Vec::new(), args.all_namespaces);
    let lines = match &args.job {
        None => q::lines(&jobs),
        Some(wanted) => {
            if q::select(&jobs, wanted).0.is_empty() {
                jobs = of_other_namespaces(cluster, args.namespace.is_some(), wanted, &place).await?;
                everywhere = true;
            }
            let (meant, proc) = q::select(&jobs, wanted);
            if let Some((job, proc)) = meant.first().zip(proc) {
                q::check_proc(job, proc)?;
            }
            let slots: Option<Vec<Slot>> = if_allowed(cluster.list_all().await, &mut notes)?;
            meant.into_iter().map(|job| q::detailed(job, slots.as_deref(), proc)).collect()
        }
    };
    if lines.is_empty() {
        notes.push(format!("No jobs in {place}."));
    }
    // Reasons are not shortened if only one job is shown.
    let whole = output == Output::Wide || args.job.is_some();
    let width = if whole { None } else { width };
    let text = print(output, &lines, || q::render(&lines, everywhere, width))?;
    Ok(Answer { text, notes })
}

/// Returns jobs that include the wanted job: those of the namespace; or those of all namespaces, if `wanted` is the
/// ClusterId of a job elsewhere and the user named no namespace.
async fn found_jobs(cluster: &Cluster, namespace: Option<&str>, wanted: &str) -> Result<Vec<HTCJob>, Error> {
    let place = namespace.unwrap_or(&cluster.namespace);
    let jobs: Vec<HTCJob> = cluster.list(Some(place)).await?;
    if q::select(&jobs, wanted).0.is_empty() {
        let place = format!("namespace {place}");
        return of_other_namespaces(cluster, namespace.is_some(), wanted, &place).await;
    }
    Ok(jobs)
}

/// Returns the jobs of all namespaces, if `wanted` is the ClusterId of one of them and the user named no namespace: a
/// ClusterId belongs to one job of the whole pool. If the user meant a job elsewhere in another way, the error says
/// in which namespace the job is.
async fn of_other_namespaces(
    cluster: &Cluster,
    names_namespace: bool,
    wanted: &str,
    place: &str,
) -> Result<Vec<HTCJob>, Error> {
    let (wanted, place) = (wanted.to_owned(), place.to_owned());
    // If the user may not list all namespaces, the job counts as not found.
    let all: Vec<HTCJob> = if_allowed(cluster.list_all().await, &mut Vec::new())?.unwrap_or_default();
    let Some(job) = q::select(&all, &wanted).0.first().copied() else {
        return Err(Error::NoSuchJob { wanted, place });
    };
    let (name, namespace) = (job.metadata.name.as_ref(), job.metadata.namespace.clone().unwrap_or_default());
    if names_namespace || name == Some(&wanted) {
        return Err(Error::JobElsewhere { wanted, place, namespace });
    }
    Ok(all)
}

async fn status(cluster: &Cluster, args: &StatusArgs, output: Output) -> Result<Answer, Error> {
    let mut notes = Vec::new();
    if args.long {
        let ads =
            ads::Objects::read(cluster, &mut notes).await?.ads(&args.names, args.node.as_deref(), now());
        if ads.is_empty() {
            notes.extend(no_slots(args)?);
        }
        let text = if matches!(output, Output::Json | Output::Yaml) {
            print(output, &ads::json(&ads), String::new)?
        } else {
            ads::long(&ads)
        };
        return Ok(Answer { text, notes });
    }
    let partitionable: Vec<PartitionableSlot> = cluster.list_all().await?;
    let slots: Vec<Slot> = cluster.list_all().await?;
    let machines = if_allowed(cluster.list_metadata::<Node>().await, &mut notes)?.unwrap_or_default();
    let platforms = status::platforms(machines);
    let lines = status::lines(&partitionable, &slots, &platforms, &args.names, args.node.as_deref());
    if lines.is_empty() {
        notes.extend(no_slots(args)?);
    }
    for name in args.names.iter().filter(|name| !lines.iter().any(|line| line.is_called(name))) {
        notes.push(format!("No slots named {name}."));
    }
    let text = print(output, &lines, || status::render(&lines))?;
    Ok(Answer { text, notes })
}

/// The answer if no slot is shown: an error if the user asked for particular slots.
fn no_slots(args: &StatusArgs) -> Result<Option<String>, Error> {
    if args.names.is_empty() && args.node.is_none() {
        return Ok(Some("No slots.".to_owned()));
    }
    let named = match args.names.as_slice() {
        [] => String::new(),
        names => format!(" named {}", names.join(" or ")),
    };
    let node = args.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
    Err(Error::NoSuchSlot(format!("no slots{named}{node}")))
}

fn now() -> Time {
    Time::from_millis(jiff::Timestamp::now().as_millisecond())
}

async fn userprio(cluster: &Cluster, args: &UserprioArgs, output: Output) -> Result<Answer, Error> {
    let mut notes = Vec::new();
    let submitters: Vec<Submitter> = cluster.list_all().await?;
    let negotiators: Vec<Negotiator> = cluster.list_all().await?;
    let unknown = || Error::NoSuchNegotiator { wanted: args.name.clone().unwrap_or_default() };
    let (asked, guess) =
        userprio::choose_negotiator(&negotiators, args.name.as_deref()).ok_or_else(unknown)?;
    notes.extend(guess);
    let now = args.now.map_or_else(now, Time::from_secs);
    let lines = userprio::lines(&submitters, &asked, now);
    let text = print(output, &lines, || userprio::render(&lines, &asked.config, now))?;
    Ok(Answer { text, notes })
}

/// Objects without which the answer is still useful: if the user may not list them, that is a note, not an error.
fn if_allowed<T>(
    found: Result<T, cluster::Error>,
    notes: &mut Vec<String>,
) -> Result<Option<T>, cluster::Error> {
    match found {
        Err(error @ cluster::Error::Forbidden { .. }) => {
            notes.push(format!("note: {error}"));
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// The lines as JSON or as a table; without lines the table is empty text.
fn print<T: Serialize>(output: Output, lines: &[T], table: impl FnOnce() -> String) -> io::Result<String> {
    match output {
        Output::Json => Ok(serde_json::to_string_pretty(lines).map_err(io::Error::other)? + "\n"),
        Output::Yaml => {
            // The lines go by way of JSON, so that YAML and JSON have the same fields.
            let values = serde_json::to_value(lines).map_err(io::Error::other)?;
            let text = serde_saphyr::to_string(&values).map_err(io::Error::other)?;
            Ok(text.trim_end().to_owned() + "\n")
        }
        _ if lines.is_empty() => Ok(String::new()),
        _ => Ok(table()),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn tools_are_named_in_both_spellings() {
        for name in condor::TOOLS {
            assert_eq!(Tool::named(name), Some(Tool::Other(name)));
        }
        assert_eq!(Tool::named("condor-q"), Some(Tool::Other("condor_q")));
        assert_eq!(Tool::named("condor_submit"), Some(Tool::Submit));
        for verb in ["condor_hold", "condor-release", "condor_rm", "condor_vacate_job"] {
            assert!(matches!(Tool::named(verb), Some(Tool::Act(_))), "{verb}");
        }
        assert_eq!(Tool::named("condor_nonsense"), None);
    }

    #[test]
    fn what_is_forbidden_is_noted_and_what_fails_is_an_error() {
        let resource = || "nodes".to_owned();
        let forbidden =
            cluster::Error::Forbidden { resource: resource(), message: "no".to_owned(), role: "a role" };
        let mut notes = Vec::new();
        assert!(matches!(if_allowed::<()>(Err(forbidden), &mut notes), Ok(None)));
        assert_eq!(notes, ["note: not allowed to list nodes: no; ask an admin for a role"]);
        let absent = cluster::Error::NotInstalled { resource: resource() };
        assert!(if_allowed::<()>(Err(absent), &mut notes).is_err());
        assert!(matches!(if_allowed(Ok(1), &mut notes), Ok(Some(1))));
        assert_eq!(notes.len(), 1);
    }
}
