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
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

pub use ::history::Limits;
use ::history::Store;
use classad::Ad;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use model::pool::{Batch, Ended};
use tokio::sync::{mpsc, watch};

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
pub struct Marks {
    /// The last ad that was written.
    written: watch::Sender<u64>,
    /// The last ad that Elasticsearch has; `None` if no ads are shipped.
    shipped: watch::Sender<Option<u64>>,
}

impl Marks {
    /// The marks of a history in which nothing was written yet. `ships` says whether ads are shipped.
    pub fn new(ships: bool) -> Self {
        Self { written: watch::Sender::new(0), shipped: watch::Sender::new(ships.then_some(0)) }
    }
}

/// Ends to write, each with the template of its job's pods.
struct Work {
    number: u64,
    ends: Vec<(Arc<Ended>, Option<Arc<PodTemplateSpec>>)>,
}

/// Final ads on their way into a [`Shelf`].
type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A place for final ads that is no directory: tests hand in their own.
#[derive(Clone)]
pub struct Shelf(Arc<dyn Fn(Vec<Ad>) -> Writing + Send + Sync>);

impl Shelf {
    /// A shelf whose ads the caller keeps: `keep` returns a future that is done when the ads are kept.
    pub fn kept_by(keep: impl Fn(Vec<Ad>) -> Writing + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }
}

/// Where final ads go.
enum Place {
    /// Nowhere: there is no history.
    Nowhere,
    /// To a thread, which writes them in files and answers with the number of the batch.
    Thread(blocking::Sender<Work>, mpsc::UnboundedReceiver<u64>),
    /// To a shelf; the batches that are under way, in their order.
    Shelf(Shelf, VecDeque<(u64, Writing)>),
}

/// The engine's end of what writes the history.
pub struct Archive(Place);

impl Archive {
    /// An archive without a history.
    pub fn off() -> Self {
        Self(Place::Nowhere)
    }

    /// An archive on a shelf.
    pub fn on(shelf: Shelf) -> Self {
        Self(Place::Shelf(shelf, VecDeque::new()))
    }

    /// Begins the thread, which ends when this value is dropped.
    pub fn begin(options: &Options, clock: Clock, figures: Figures, marks: Marks) -> Self {
        let (work, asked) = blocking::channel();
        let (done, written) = mpsc::unbounded_channel();
        let writer = Writer {
            directory: options.directory.clone(),
            limits: options.limits,
            store: None,
            clock,
            figures,
            marks,
            fails: false,
        };
        let thread = std::thread::Builder::new().name("history".to_owned());
        if let Err(error) = thread.spawn(move || writer.run(&asked, &done)) {
            tracing::error!(
                error = &error as &dyn Error,
                "the history cannot be written: there is no thread for it"
            );
            return Self::off();
        }
        Self(Place::Thread(work, written))
    }

    /// Whether there is a history.
    pub fn is_on(&self) -> bool {
        !matches!(self.0, Place::Nowhere)
    }

    /// Asks for a batch to be written. `template` finds the template of an end's job.
    pub fn write(&mut self, batch: &Batch, template: impl Fn(&Ended) -> Option<Arc<PodTemplateSpec>>) {
        let ends = batch.ends.iter().map(|ended| (Arc::clone(ended), template(ended)));
        match &mut self.0 {
            Place::Nowhere => {}
            Place::Thread(work, _) => {
                // A thread that has panicked takes nothing; the pool does not wait for ever.
                let _ = work.send(Work { number: batch.number, ends: ends.collect() });
            }
            Place::Shelf(Shelf(keep), under_way) => {
                let ads = ends.map(|(ended, template)| last::ad(&ended, template.as_deref())).collect();
                under_way.push_back((batch.number, keep(ads)));
            }
        }
    }

    /// Waits until a batch is written or given up, and returns its number. Never returns without a history. Cancel safe.
    pub async fn written(&mut self) -> u64 {
        let written = match &mut self.0 {
            Place::Nowhere => None,
            Place::Thread(_, written) => written.recv().await,
            Place::Shelf(_, under_way) => match under_way.front_mut() {
                Some((number, writing)) => {
                    writing.await;
                    let number = *number;
                    under_way.pop_front();
                    Some(number)
                }
                None => None,
            },
        };
        match written {
            Some(number) => number,
            None => std::future::pending().await,
        }
    }
}

/// The thread that writes.
struct Writer {
    directory: PathBuf,
    limits: Limits,
    store: Option<Store>,
    clock: Clock,
    figures: Figures,
    marks: Marks,
    /// Whether the last ads could not be written.
    fails: bool,
}

impl Writer {
    fn run(mut self, asked: &blocking::Receiver<Work>, done: &mpsc::UnboundedSender<u64>) {
        // People learn of a directory that cannot be used at the start, not at the first end.
        if let Err(error) = self.open() {
            tracing::error!(error = &error as &dyn Error, directory = %self.directory.display(), "the history cannot be opened");
        }
        while let Ok(work) = asked.recv() {
            let ads: Vec<Ad> =
                work.ends.iter().map(|(ended, template)| last::ad(ended, template.as_deref())).collect();
            self.write(&ads);
            if done.send(work.number).is_err() {
                return;
            }
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
        self.marks.written.send_replace(store.last());
    }

    /// Writes ads. If the disk fails, they are missing in the history, and the next ads are tried once.
    fn write(&mut self, ads: &[Ad]) {
        let mut tries = 0;
        while let Err(error) = self.append(ads) {
            tries += 1;
            tracing::warn!(error = &error as &dyn Error, tries, "the history was not written");
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
        let (now, read) = (self.clock.now().secs(), *self.marks.shipped.borrow());
        let appended = self.open()?.append(ads, now, read)?;
        self.figures.written(appended.written as u64);
        if appended.lost_unread > 0 {
            tracing::error!(
                ads = appended.lost_unread,
                "ads were removed before they were shipped: Elasticsearch has taken no ads for long"
            );
            self.figures.unshipped(appended.lost_unread);
        }
        if let Some(store) = &self.store {
            self.told(store);
        }
        Ok(())
    }
}
