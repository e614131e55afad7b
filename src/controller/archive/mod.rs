//! The history: writes the final ads of procs, serves them to `condor_history`, and ships them to Elasticsearch.
//!
//! | file | is |
//! | --- | --- |
//! | `mod` | the thread that writes, and the engine's calls to the thread |
//! | `last` | the final ads of ends |
//! | `serve` | answers readers, in each replica |
//! | `ship` | sends ads to an Elasticsearch bulk endpoint, as condor_adstash does |
//! | `document` | an ad as a JSON document |
//!
//! Only the leader writes, which a lock in the directory enforces. Whoever can see the directory may read.

mod document;
mod last;
mod serve;
mod ship;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

pub use ::history::Limits;
use ::history::Store;
use classad::Ad;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use model::pool::{Batch, Ended};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::Clock;
use super::metrics::History as Figures;

pub use last::set_template;
pub use serve::{Token, router};
pub use ship::{Credentials, Elastic, ship};

/// How many times a write is tried, with [`PAUSE`] between.
const TRIES: u32 = 3;
/// How many times a write is tried while another process has the directory's lock: a leader that was cut off may keep the lock for
/// a while.
const TRIES_IF_LOCKED: u32 = 50;
const PAUSE: Duration = Duration::from_secs(1);

/// The history's directory and limits, the address of its readers, and the Elasticsearch that gets its ads.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the files.
    pub directory: PathBuf,
    /// How much is kept.
    pub limits: Limits,
    /// The address at which readers are answered, and the token that they must show; nobody is answered if unset.
    pub serve: Option<(SocketAddr, Option<Token>)>,
    /// The Elasticsearch that gets each ad, if any.
    pub elastic: Option<Elastic>,
}

/// How far the history has been written and shipped: numbers of ads.
#[derive(Clone, Debug)]
pub struct HistoryProgress {
    /// The last ad that was written.
    written: watch::Sender<u64>,
    /// The last ad that Elasticsearch has; `None` if no ads are shipped.
    shipped: watch::Sender<Option<u64>>,
}

impl HistoryProgress {
    /// The progress of a history in which nothing was written yet. `ships` says whether ads are shipped.
    pub fn new(ships: bool) -> Self {
        Self { written: watch::Sender::new(0), shipped: watch::Sender::new(ships.then_some(0)) }
    }
}

/// Ends on their way into the history, each with the template of its job's pods.
type Ends = Vec<(Arc<Ended>, Option<Arc<PodTemplateSpec>>)>;
/// Done once the ads of some ends are kept, or given up.
type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A place for final ads: the files of the history, or a place of a test.
#[derive(Clone)]
pub struct Shelf(Arc<dyn Fn(Ends) -> Writing + Send + Sync>);

impl Shelf {
    /// A shelf whose ads the caller keeps: `keep` returns a future that is done when the ads are kept.
    pub fn kept_by(keep: impl Fn(Vec<Ad>) -> Writing + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |ends| keep(ads(&ends))))
    }

    /// The files of a directory, written by a thread that ends when the shelf is dropped. A panic of the thread is passed on to a
    /// task that joins `tasks`. `None` if there can be no thread.
    fn of_files(
        options: &Options,
        clock: Clock,
        figures: Figures,
        progress: HistoryProgress,
        tasks: &mut JoinSet<()>,
    ) -> Option<Self> {
        let (work, asked) = mpsc::channel();
        let writer = Writer {
            directory: options.directory.clone(),
            limits: options.limits,
            store: None,
            clock,
            figures,
            progress,
            fails: false,
        };
        if let Err(error) = on_a_thread(move || writer.run(&asked), tasks) {
            tracing::error!(
                error = %answers::chain(&error),
                "the history cannot be written: there is no thread for it"
            );
            return None;
        }
        Some(Self(Arc::new(move |ends| {
            let (done, written) = oneshot::channel();
            // A thread that has panicked takes no work and never answers. Then this future does not end, and the operator
            // ends by the panic.
            let _ = work.send(Work { ends, done });
            Box::pin(async move {
                if written.await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        })))
    }
}

/// Does work on the thread of the history. If the work panics, so does a task that joins `tasks`: whoever waits for the tasks
/// learns of the fault, which the thread alone would keep to itself.
fn on_a_thread(work: impl FnOnce() + Send + 'static, tasks: &mut JoinSet<()>) -> io::Result<()> {
    let (tell, fault) = oneshot::channel();
    let thread = std::thread::Builder::new().name("history".to_owned());
    thread.spawn(move || {
        // Nothing that the work has changed is looked at after a panic.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            // Nobody listens if the operator ends anyway.
            let _ = tell.send(panic);
        }
    })?;
    tasks.spawn(async move {
        if let Ok(panic) = fault.await {
            resume_unwind(panic);
        }
    });
    Ok(())
}

/// Works on files on a thread for work that blocks: a volume that hangs must not stop the calls to the API server, the renewal of the
/// Lease among them.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

fn ads(ends: &Ends) -> Vec<Ad> {
    ends.iter().map(|(ended, template)| last::ad(ended, template.as_deref())).collect()
}

/// The engine's end of what writes the history: the shelf, and the batches that are under way, in their order. `None` without a
/// history.
pub struct Archive(Option<(Shelf, VecDeque<(u64, Writing)>)>);

impl Archive {
    /// An archive without a history.
    pub fn off() -> Self {
        Self(None)
    }

    /// An archive on a shelf.
    pub fn on(shelf: Shelf) -> Self {
        Self(Some((shelf, VecDeque::new())))
    }

    /// An archive in the files of a directory. A fault of the thread that writes the files becomes the fault of a task that joins
    /// `tasks`.
    pub fn begin(
        options: &Options,
        clock: Clock,
        figures: Figures,
        progress: HistoryProgress,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        Shelf::of_files(options, clock, figures, progress, tasks).map_or_else(Self::off, Self::on)
    }

    /// Whether there is a history.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Asks for a batch to be written. `template` finds the template of an end's job.
    pub fn write(&mut self, batch: &Batch, template: impl Fn(&Ended) -> Option<Arc<PodTemplateSpec>>) {
        let Some((Shelf(keep), under_way)) = &mut self.0 else { return };
        let ends = batch.ends.iter().map(|ended| (Arc::clone(ended), template(ended))).collect();
        under_way.push_back((batch.number, keep(ends)));
    }

    /// Waits until a batch is written or given up, and returns its number. Never returns without a history. Cancel safe.
    pub async fn written(&mut self) -> u64 {
        let first = self.0.as_mut().and_then(|(_, under_way)| under_way.front_mut());
        let Some((number, writing)) = first else { return std::future::pending().await };
        writing.await;
        let number = *number;
        if let Some((_, under_way)) = &mut self.0 {
            under_way.pop_front();
        }
        number
    }
}

/// Ends that the thread is to write, and the channel by which it tells the waiting engine that they are written.
struct Work {
    ends: Ends,
    done: oneshot::Sender<()>,
}

/// The thread that writes.
struct Writer {
    directory: PathBuf,
    limits: Limits,
    store: Option<Store>,
    clock: Clock,
    figures: Figures,
    progress: HistoryProgress,
    /// Whether the last ads could not be written.
    fails: bool,
}

impl Writer {
    fn run(mut self, asked: &mpsc::Receiver<Work>) {
        // People learn of a directory that cannot be used at the start, not at the first end.
        if let Err(error) = self.open() {
            tracing::error!(error = %answers::chain(&error), directory = %self.directory.display(), "the history cannot be opened");
        }
        while let Ok(Work { ends, done }) = asked.recv() {
            self.write(&ads(&ends));
            // The engine that asked may be gone.
            let _ = done.send(());
        }
    }

    fn open(&mut self) -> io::Result<&mut Store> {
        if self.store.is_none() {
            let store = Store::open(&self.directory, self.limits)?;
            if store.cut > 0 {
                tracing::warn!(
                    bytes = store.cut,
                    "the end of the history was not written whole, and was cut off"
                );
            }
            self.told(&store);
            self.store = Some(store);
        }
        self.store.as_mut().ok_or_else(|| io::Error::other("there is no store"))
    }

    fn told(&self, store: &Store) {
        self.figures.bytes(store.bytes());
        self.progress.written.send_replace(store.last());
    }

    /// Writes ads, with retries. If all attempts fail, the ads are missing in the history, and the next ads get one attempt.
    fn write(&mut self, ads: &[Ad]) {
        let mut tries = 0;
        while let Err(error) = self.append(ads) {
            tries += 1;
            tracing::warn!(error = %answers::chain(&error), tries, "the history was not written");
            self.store = None;
            let most = match error.kind() {
                _ if self.fails => 1,
                io::ErrorKind::WouldBlock => TRIES_IF_LOCKED,
                _ => TRIES,
            };
            if tries >= most {
                self.fails = true;
                self.figures.lost(ads.len() as u64);
                tracing::error!(ads = ads.len(), directory = %self.directory.display(), "final ads are missing in the history");
                return;
            }
            std::thread::sleep(PAUSE);
        }
        self.fails = false;
    }

    fn append(&mut self, ads: &[Ad]) -> io::Result<()> {
        let (now, read) = (self.clock.now().secs(), *self.progress.shipped.borrow());
        let appended = self.open()?.append(ads, now, read)?;
        self.figures.written(appended.written as u64);
        if appended.lost_unread > 0 {
            tracing::error!(
                ads = appended.lost_unread,
                "ads were removed before they were shipped: Elasticsearch has taken no ads for long"
            );
            self.figures.removed_unshipped(appended.lost_unread);
        }
        if let Some(store) = &self.store {
            self.told(store);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine would wait a minute for each batch, and nobody would know why.
    #[tokio::test]
    async fn a_panic_of_the_thread_is_a_fault_of_the_operator() {
        let mut tasks = JoinSet::new();
        on_a_thread(|| panic!("a fault"), &mut tasks).unwrap();
        let fault = tasks.join_next().await.unwrap().unwrap_err();
        assert_eq!(fault.into_panic().downcast_ref(), Some(&"a fault"));
        on_a_thread(|| (), &mut tasks).unwrap();
        tasks.join_next().await.unwrap().unwrap();
    }
}
