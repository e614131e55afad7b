//! The processes of cron jobs: each run is a process group, which is killed as a whole.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, waitpgid};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::output::{Output, OutputAd};
use super::programs::INTERPRETERS;
use super::{memory, strays};
use api::NodeCronJob;

/// The rest of a program's PATH, after the directories of programs and of their interpreters. The agent's image has nothing in these
/// directories; a site's own image may.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How many bytes are read at once.
const CHUNK: usize = 4096;
/// The pause after a read. So a program that writes without end costs the agent little.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// How long a program has between SIGTERM and SIGKILL.
const TERM: Duration = Duration::from_secs(1);
/// How long the output is read after the process group was killed. A pipe's 64 KiB take 16 reads with their pauses. A process that has left
/// the group may write for ever.
pub(super) const REST: Duration = Duration::from_secs(3);
/// The most bytes of the output that the log repeats.
const MAX_LOGGED: usize = 1024;
/// How many events wait until the agent looks at them.
const WAITING: usize = 16;

/// A message about a job.
#[derive(Debug)]
pub(crate) enum Event {
    /// The job tells an ad.
    Told(String, OutputAd),
    /// The job's run has ended.
    Ended(String, Ending),
}

/// How a run has ended.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The exit code; none if a signal ended the run.
    pub(super) code: Option<i32>,
    /// The beginning of the output, for the log.
    pub(super) output: String,
    /// The problem of the job.
    pub(super) problem: Option<String>,
}

/// An order to a run.
#[derive(Debug)]
pub(super) enum Order {
    /// To end. The text says why, if that is a fault of the job's.
    Kill(Option<String>),
    /// To read its configuration again.
    Hup,
}

/// The runs.
#[derive(Debug)]
pub(super) struct Runner {
    events: mpsc::Receiver<Event>,
    tell: mpsc::Sender<Event>,
    runs: BTreeMap<String, Handle>,
    /// How much memory a program may have, in bytes; none if as much as there is.
    memory: Option<u64>,
    /// The tasks of the runs, which end with the runner.
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Handle {
    group: Arc<Group>,
    orders: mpsc::UnboundedSender<Order>,
}

/// The process group of a run, until the program is reaped: the group's number may then become another's.
#[derive(Debug)]
struct Group(Mutex<Option<Pid>>);

impl Group {
    /// Sends a signal to the program and its children. Nothing happens once the group has ended.
    fn signal(&self, signal: Signal) {
        // The lock is held, so that the group cannot end meanwhile.
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = *group {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Whether this is the group's program, which has not been reaped.
    fn is(&self, program: Pid) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) == Some(program)
    }

    /// Kills the group, and signals it no more. Returns its number; `None` if the group had ended before.
    fn end(&self) -> Option<Pid> {
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        group
    }
}

impl Runner {
    /// No runs yet. Each program may have this much memory, in bytes; without a number, as much as there is.
    pub(super) fn new(memory: Option<u64>) -> Self {
        let (tell, events) = mpsc::channel(WAITING);
        Self { events, tell, runs: BTreeMap::new(), memory, tasks: JoinSet::new() }
    }

    /// Waits for the next event.
    ///
    /// # Panics
    /// With the panic of a run: the run's job would otherwise never end.
    pub(super) async fn event(&mut self) -> Event {
        loop {
            // The runner has a sender itself, so that the channel is never closed.
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return event,
                Some(ended) = self.tasks.join_next() => {
                    if let Err(fault) = ended
                        && let Ok(panic) = fault.try_into_panic()
                    {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }

    /// Starts a program.
    ///
    /// # Errors
    /// Why the program cannot be started.
    pub(super) fn start(&mut self, job: &NodeCronJob, directory: &Path, path: &Path) -> Result<(), String> {
        let shown = |error: io::Error| format!("{} cannot be started: {error}", path.display());
        let child = command(job, directory, path).spawn().map_err(shown)?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = id.ok_or_else(|| shown(io::Error::other("it has no process id")))?;
        if let Some(bytes) = self.memory {
            memory::bind(id, bytes);
        }
        let (orders, given) = mpsc::unbounded_channel();
        let group = Arc::new(Group(Mutex::new(Some(id))));
        let (name, output) = (job.name.clone(), Output::new(&job.prefix));
        let run = Run { name, group: Arc::clone(&group), tell: self.tell.clone(), output, told: false };
        self.tasks.spawn(run.until_its_end(child, given));
        self.runs.insert(job.name.clone(), Handle { group, orders });
        Ok(())
    }

    /// Tells a run something. A run that has just ended hears nothing.
    pub(super) fn order(&self, name: &str, order: Order) {
        if let Some(run) = self.runs.get(name) {
            let _ = run.orders.send(order);
        }
    }

    /// The run of a job has ended.
    pub(super) fn forget(&mut self, name: &str) {
        self.runs.remove(name);
        if getpid().is_init() {
            strays::reap(Path::new("/proc"), getpid(), |pid| self.runs.values().any(|run| run.group.is(pid)));
        }
    }

    /// Kills all runs at once.
    pub(super) fn kill_all(&mut self) {
        for run in std::mem::take(&mut self.runs).into_values() {
            run.group.end();
        }
        self.tasks.abort_all();
    }
}

/// A runner that is dropped leaves no program behind.
impl Drop for Runner {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// The command that runs a job's program. The program sees nothing of the agent's environment. As in HTCondor, the job's name is
/// argument 0, which a script does not see: for a file with a first line `#!`, the kernel puts the file's path into its place.
fn command(job: &NodeCronJob, directory: &Path, path: &Path) -> Command {
    let mut command = Command::new(path);
    command.arg0(&job.name).args(&job.args).current_dir(job.cwd.as_deref().map_or(directory, Path::new));
    let interpreters = directory.join(INTERPRETERS);
    command.env_clear().env("PATH", format!("{}:{}:{PATH}", directory.display(), interpreters.display()));
    command.env("STARTD_INTERFACE_VERSION", "1").env("STARTD_CRON_NAME", "startd").envs(&job.env);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    command
}

/// One run.
struct Run {
    name: String,
    group: Arc<Group>,
    tell: mpsc::Sender<Event>,
    output: Output,
    /// Whether the run has told an ad.
    told: bool,
}

/// A happening of a run.
enum Happening {
    Wrote(io::Result<usize>),
    WroteErrors(io::Result<usize>),
    Ended(io::Result<ExitStatus>),
    Told(Order),
}

impl Run {
    async fn until_its_end(mut self, mut child: Child, orders: mpsc::UnboundedReceiver<Order>) {
        let ending = self.follow(&mut child, orders).await;
        let _ = self.tell.send(Event::Ended(self.name, ending)).await;
    }

    /// Reads the output until the program's end. Processes that are then left of its process group are killed.
    async fn follow(&mut self, child: &mut Child, mut orders: mpsc::UnboundedReceiver<Order>) -> Ending {
        let (mut out, mut errors) = (child.stdout.take(), child.stderr.take());
        let (mut chunk, mut other) = ([0; CHUNK], [0; CHUNK]);
        let (mut ending, mut killed) = (Ending::default(), true);
        let status = loop {
            let happening = tokio::select! {
                order = orders.recv() => Happening::Told(order.unwrap_or(Order::Kill(None))),
                read = read(&mut out, &mut chunk), if out.is_some() => Happening::Wrote(read),
                read = read(&mut errors, &mut other), if errors.is_some() => Happening::WroteErrors(read),
                status = child.wait() => Happening::Ended(status),
            };
            match happening {
                Happening::Wrote(Ok(count)) if count > 0 => {
                    if let Err(problem) =
                        self.wrote(chunk.get(..count).unwrap_or_default(), &mut ending).await
                    {
                        ending.problem = Some(problem);
                        break self.end(child).await;
                    }
                    sleep(PAUSE).await;
                }
                Happening::Wrote(_) => out = None,
                Happening::WroteErrors(Ok(count)) if count > 0 => {
                    ending.log(other.get(..count).unwrap_or_default());
                    sleep(PAUSE).await;
                }
                Happening::WroteErrors(_) => errors = None,
                Happening::Told(Order::Hup) => self.group.signal(Signal::HUP),
                Happening::Told(Order::Kill(why)) => {
                    ending.problem = why;
                    break self.end(child).await;
                }
                Happening::Ended(status) => {
                    killed = false;
                    break status.ok();
                }
            }
        };
        let group = self.group.end();
        if !killed {
            self.read_rest(out, &mut ending).await;
            if let Ok(Ok(count)) = timeout(PAUSE, read(&mut errors, &mut other)).await {
                ending.log(other.get(..count).unwrap_or_default());
            }
        }
        if let Some(group) = group {
            reap(group).await;
        }
        ending.code = status.and_then(|status| status.code());
        ending.problem = ending.problem.or_else(|| self.output.malformed().map(str::to_owned));
        if !killed && !self.told {
            ending.problem = ending.problem.or_else(|| failure(status?));
        }
        ending
    }

    /// Tells an ad.
    async fn tell(&mut self, ad: OutputAd) {
        self.told = true;
        let _ = self.tell.send(Event::Told(self.name.clone(), ad)).await;
    }

    /// Takes output, and tells the ads that have ended.
    async fn wrote(&mut self, bytes: &[u8], ending: &mut Ending) -> Result<(), String> {
        ending.log(bytes);
        for told in self.output.push(bytes)? {
            self.tell(told).await;
        }
        Ok(())
    }

    /// Reads what a program has written before it ended by itself, for [`REST`]. A program that was killed ends no ad.
    async fn read_rest(&mut self, mut out: Option<impl AsyncRead + Unpin>, ending: &mut Ending) {
        let mut chunk = [0; CHUNK];
        let rest = async {
            while ending.problem.is_none()
                && let Ok(count) = read(&mut out, &mut chunk).await
                && count > 0
            {
                let wrote = self.wrote(chunk.get(..count).unwrap_or_default(), ending).await;
                ending.problem = wrote.err();
                sleep(PAUSE).await;
            }
        };
        let _ = timeout(REST, rest).await;
        if ending.problem.is_some() {
            return;
        }
        match self.output.end() {
            Ok(Some(told)) => self.tell(told).await,
            Ok(None) => {}
            Err(problem) => ending.problem = Some(problem),
        }
    }

    /// Ends the program: SIGTERM, and a second later SIGKILL.
    async fn end(&self, child: &mut Child) -> Option<ExitStatus> {
        self.group.signal(Signal::TERM);
        if let Ok(status) = timeout(TERM, child.wait()).await {
            return status.ok();
        }
        self.group.signal(Signal::KILL);
        child.wait().await.ok()
    }
}

/// The problem of a run that has told no ad and has ended so; none if the run has succeeded. The message has none of the output, which
/// may be another text in each run: each other text would be a write to the API server.
fn failure(status: ExitStatus) -> Option<String> {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "badly".to_owned(),
    };
    Some(format!("a run ended {how} and told nothing: the agent's log has the beginning of its output"))
}

/// Takes leave of the program's children, which have become the agent's: in a container the agent is process 1.
async fn reap(group: Pid) {
    for _ in 0..20 {
        match waitpgid(group, WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => sleep(PAUSE).await,
            Err(_) => return,
        }
    }
}

impl Ending {
    fn log(&mut self, bytes: &[u8]) {
        let room = MAX_LOGGED.saturating_sub(self.output.len());
        self.output.extend(String::from_utf8_lossy(bytes).chars().take(room));
    }
}

/// Reads once, and returns the number of bytes. Returns 0 if there is no pipe to read.
async fn read(from: &mut Option<impl AsyncRead + Unpin>, chunk: &mut [u8]) -> io::Result<usize> {
    match from {
        Some(from) => from.read(chunk).await,
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests;
