//! `slotwright negotiate`: runs one negotiation cycle over ads in files, without a cluster.
//!
//! | part | is |
//! | --- | --- |
//! | `slots` | reads the slots, and charges those in use to their users |
//! | `jobs` | reads the waiting jobs, and sorts them into requests |
//! | `accounts` | the accounts of submitters: what they use, and their priorities |
//! | `knobs` | the groups that a configuration names, and the knobs in it that have no effect |
//! | `policy` | reads the configuration, the groups and the priorities |
//! | `output` | writes the matches and the figures |

mod accounts;
mod jobs;
mod knobs;
mod output;
mod policy;
mod slots;

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use rustix::time::{ClockId, clock_gettime};

use crate::ads::Ads;
use crate::circumstances::Circumstances;
use crate::stop::{DONE, Stop, status, unusable};
use accounts::Accounts;
use classad::Env;
use jobs::{JobId, Queue};
use model::negotiator::autoclusters::{Autoclusters, Significant, slot_attributes};
use model::negotiator::{Cycle, Ready, Stopwatch, SubmitterInput, negotiate_with};
use output::Figures;
use policy::Policy;
use slots::{Slots, considered};

/// Run one negotiation cycle over ads in files.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 done, 2 unusable input.")]
pub struct NegotiateArgs {
    /// The ads of the slots, in either syntax; - is standard input
    #[arg(long, value_name = "FILE")]
    slots: PathBuf,
    /// The ads of the jobs
    #[arg(long, value_name = "FILE")]
    jobs: PathBuf,
    /// HTCondor configuration; several files are read in order, as if they were one
    #[arg(short = 'f', long = "file", value_name = "CONFIG")]
    config: Vec<PathBuf>,
    /// GroupQuota manifests
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Priorities of submitters, JSON: {"NAME": {"rup": 0.5, "factor": 1000, "floor": 0, "ceiling": null}}
    #[arg(long, value_name = "FILE")]
    priorities: Option<PathBuf>,
    /// Write a line of JSON for each match to this file; - prints the lines before the figures
    #[arg(long, value_name = "FILE")]
    matches: Option<PathBuf>,
    #[command(flatten)]
    circumstances: Circumstances,
    /// How to print the figures
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the command. Returns the exit status: 0 done, 2 unusable input, which `stderr` explains with file, line and
/// column. Fails if the output cannot be written.
pub fn run(
    args: &NegotiateArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> io::Result<u8> {
    let done = cycle(args, stdin, stdout, stderr).map(|()| DONE);
    status("negotiate", done, stderr)
}

fn cycle(
    args: &NegotiateArgs,
    stdin: &mut dyn BufRead,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<(), Stop> {
    let begun = processor_seconds();
    let env = args.circumstances.env();
    let policy = Policy::read(args, &env)?;
    for warning in &policy.warnings {
        writeln!(stderr, "slotwright negotiate: warning: {warning}")?;
    }
    let mut accounts = Accounts::default();
    let slots = Slots::read(&mut Ads::open(&args.slots, stdin)?, &policy, &mut accounts, &env)?;
    let (significant, signed) = timed(|| Significant::of(slots.ads(), &policy.exprs()));
    let queue = Queue::read(&mut Ads::open(&args.jobs, stdin)?, &significant, &policy, &mut accounts, &env)?;

    let mut figures = Figures {
        slots: slots.candidates.len(),
        claimed: slots.claimed,
        slot_classes: slot_classes(&slots, &queue, &policy),
        jobs: queue.len(),
        autoclusters: queue.ads().len(),
        ..Figures::default()
    };
    let (cycle, waiting) = cycle_of(policy, slots, queue, &accounts, &env);
    let read = processor_seconds() - begun - signed.cpu;

    let mut ready = Ready::default();
    let ((), prepared) = timed(|| ready.prepare(&cycle));
    // A stopped stopwatch never ends the cycle early, so that the same files give the same answer on every machine.
    let (outcome, negotiated) = timed(|| negotiate_with(&cycle, &mut ready, Stopwatch::STOPPED));
    figures.of_cycle(&cycle, &outcome);
    figures.why = output::left(&outcome, &cycle, &waiting, &env);
    figures.took(read, prepared.cpu, signed.wall + negotiated.wall, signed.cpu + negotiated.cpu);
    if let Some(path) = &args.matches {
        let mut write = || -> io::Result<()> {
            if path.as_os_str() == "-" {
                return output::matches(&outcome, &cycle, &waiting, &env, stdout);
            }
            let mut out = BufWriter::new(File::create(path)?);
            output::matches(&outcome, &cycle, &waiting, &env, &mut out)?;
            out.flush()
        };
        write().map_err(|error| unusable(path.display(), error))?;
    }
    match args.output {
        Format::Text => figures.print(stdout)?,
        Format::Json => writeln!(stdout, "{}", serde_json::to_string(&figures).map_err(io::Error::from)?)?,
    }
    Ok(())
}

/// The waiting jobs of a submitter, by request, each in the order of the queue.
struct Waiting {
    name: String,
    jobs: Vec<Vec<JobId>>,
}

/// Puts together the input of a cycle, and the waiting jobs of the submitters in it.
fn cycle_of(
    policy: Policy,
    slots: Slots,
    queue: Queue,
    accounts: &Accounts,
    env: &Env,
) -> (Cycle, Vec<Waiting>) {
    let priorities = accounts.priorities(&policy.priorities);
    let mut requests = queue.requests().into_iter();
    let mut own_usage = vec![0.0; policy.groups.groups().len()];
    let mut cycle = Cycle {
        now: env.now,
        seed: env.seed,
        slots: slots.candidates,
        pool_weight: slots.weight,
        limits: policy.limits(),
        ..Cycle::default()
    };
    for wants in &slots.limited {
        cycle.limits.used(wants);
    }
    let mut waiting = Vec::new();
    for (place, (name, priority)) in accounts.names().zip(&priorities).enumerate() {
        let (group, used) = (policy.groups.group_of(name), accounts.used(place));
        match group.and_then(|group| own_usage.get_mut(group)) {
            Some(sum) => *sum += used,
            None => cycle.ungrouped_used += used,
        }
        let (requests, jobs) =
            requests.next().unwrap_or_default().into_iter().map(|alike| (alike.request, alike.jobs)).unzip();
        let input = SubmitterInput {
            name: name.to_owned(),
            effective_priority: priority.effective(policy.factor(name)),
            weighted_used: used,
            running: accounts.running(place),
            floor: priority.floor,
            ceiling: priority.ceiling,
            // The file says what each submitter may have, as condor_userprio does.
            owner: None,
            group,
            requests,
        };
        if considered(policy.config.submitter_constraint.as_ref(), &input.ad(), env) {
            cycle.submitters.push(input);
            waiting.push(Waiting { name: name.to_owned(), jobs });
        } else {
            cycle.others.push(input);
        }
    }
    let oversubscription = policy.config.allow_quota_oversubscription;
    cycle.groups = policy.groups.inputs(cycle.pool_weight, oversubscription, &own_usage);
    cycle.config = policy.config;
    (cycle, waiting)
}

/// How many classes of slots there are. No job and no expression of the negotiator tells two slots of one class
/// apart.
fn slot_classes(slots: &Slots, queue: &Queue, policy: &Policy) -> usize {
    let mut classes = Autoclusters::new(&slot_attributes(queue.ads(), &policy.exprs()));
    for slot in slots.ads() {
        classes.number(slot);
    }
    classes.len()
}

/// How long something took, in seconds.
struct Took {
    wall: f64,
    cpu: f64,
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (began, before) = (Instant::now(), processor_seconds());
    let done = work();
    (done, Took { wall: began.elapsed().as_secs_f64(), cpu: processor_seconds() - before })
}

/// The processor time of this process so far, over all its threads, in seconds.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss, reason = "no process has had 2^52 seconds")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

#[cfg(test)]
mod tests;
