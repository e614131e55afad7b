//! Leader election by a Lease, as in client-go: one operator decides, the others wait.
//! A candidate judges whether a lease has expired by the time since it last saw the record change, never by another
//! machine's clock. A leader that cannot renew in time stops before any candidate may take over, and drops the calls that
//! are under way: the API server gives up a request whose client has gone.
//!
//! A lease that names this process is free to this process, whoever wrote the lease. So no other process that is alive may have the
//! same name in a lease: `Options::holder` makes these names.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Clock;
use answers::Item;
use answers::wire;
use api::labels::HIGHEST_CLUSTER;

/// How long a leader may be silent before another takes over. client-go's leaders have half of this time, and stop if a busy API server
/// does not answer for 10 s. A leader that stops makes the server busier: its successor lists everything.
const TTL: Duration = Duration::from_secs(30);
/// How often a leader renews the lease, and a candidate reads it.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// The pause after a renewal that was refused. An API server that refuses calls asks for a pause of a second.
const RENEW_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A leader that could not renew the lease for this long stops, and drops its calls. The rest of [`TTL`] is for the API server to
/// give up those calls.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
/// An attempt to take or renew the lease that takes longer counts as failed: its connection may be dead. A leader has time for two
/// such attempts.
const LIMIT: Duration = Duration::from_secs(8);

/// The highest ClusterId that any operator gave. The election keeps the number in an annotation of the Lease, so that the number outlasts
/// jobs and operators; the engine raises the number.
#[derive(Clone, Debug, Default)]
pub struct HighestClusterId(Arc<AtomicI64>);

impl HighestClusterId {
    /// The id; 0 if none was given.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes note of an id that was given.
    pub fn raise(&self, id: i64) {
        self.0.fetch_max(id, Ordering::Relaxed);
    }

    /// Takes note of what a lease says.
    fn read(&self, lease: &ObjectMeta) {
        let said = lease.annotations.as_ref().and_then(|all| all.get(HIGHEST_CLUSTER));
        self.raise(said.and_then(|id| id.parse().ok()).unwrap_or(0));
    }

    /// Writes the id on a lease.
    fn write(&self, lease: &mut Lease) {
        if self.get() > 0 {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(HIGHEST_CLUSTER.to_owned(), self.get().to_string());
        }
    }
}

/// One operator's part in the election: it stands for the lease, and renews the lease once it leads.
#[derive(Clone)]
pub struct Election {
    api: Api<Item<Lease>>,
    clock: Clock,
    name: String,
    me: String,
    highest: HighestClusterId,
}

/// A lease that this process has taken.
#[derive(Debug)]
pub struct Held {
    /// When this process asked for the lease the last time with success. Candidates count from the write, which came later.
    asked: Instant,
    sighting: Sighting,
}

/// Why a lease is not this process's yet, for [`Election::win_unless`].
#[derive(Debug)]
pub enum Waiting {
    /// Another holds the lease. A lease that nobody has renewed since this process first saw it may be that of an operator
    /// that is gone.
    Taken {
        /// The other.
        holder: String,
        /// Whether the lease was renewed or taken since this process first saw it.
        at_work: bool,
    },
    /// The lease cannot be read or written.
    Unreachable(String),
}

/// The record as the candidate last saw it change: holder, time of the renewal, and number of transitions; and when that
/// was.
#[derive(Debug)]
struct Sighting {
    record: Option<(Option<String>, Option<MicroTime>, Option<i32>)>,
    at: Instant,
    /// The lease that the next attempt writes over without reading it again: as this process last wrote it, or as this process
    /// found it before a write that has no answer, or that the API server refused for the moment.
    ours: Option<Box<Lease>>,
}

impl Sighting {
    /// Nothing was seen yet.
    fn none() -> Self {
        Self { record: None, at: Instant::now(), ours: None }
    }

    /// Who had the lease.
    fn holder(&self) -> Option<&str> {
        self.record.as_ref()?.0.as_deref()
    }
}

/// Whether a candidate may take the lease.
#[derive(Debug, PartialEq, Eq)]
enum LeaseState {
    /// Nobody has the lease, or its holder has been silent for too long, or this process has it.
    Free,
    /// Another operator has the lease.
    Taken,
}

/// The outcome of an attempt to renew a lease that is held.
enum Renewal {
    Renewed,
    /// Another operator holds the lease.
    Taken,
    Failed {
        why: String,
        /// The pause before the next attempt.
        again: Duration,
    },
}

/// The result of an attempt to take or renew the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// This process has the lease.
    Won,
    /// Somebody else holds it.
    Taken,
    /// The lease was written meanwhile: by another candidate, or by this process if an earlier renewal, given up for
    /// lost, took effect after all.
    Raced,
}

/// Whether a candidate may take the lease.
fn state(spec: Option<&LeaseSpec>, me: &str, unchanged_for: Duration) -> LeaseState {
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let ttl = spec
        .and_then(|spec| spec.lease_duration_seconds)
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(TTL, Duration::from_secs);
    if holder.is_empty() || holder == me || unchanged_for > ttl {
        LeaseState::Free
    } else {
        LeaseState::Taken
    }
}

impl Election {
    /// An election for the lease `name` in `namespace`, under the identity `me`. The lease keeps the highest ClusterId.
    pub fn new(
        client: Client,
        clock: Clock,
        (namespace, name): (&str, &str),
        me: &str,
        highest: HighestClusterId,
    ) -> Self {
        let (name, me) = (name.to_owned(), me.to_owned());
        Self { api: Api::namespaced(client, namespace), clock, name, me, highest }
    }

    /// Waits until this process leads. Returns `None` if `stop` came first.
    pub async fn win(&self, stop: &CancellationToken) -> Option<Held> {
        let mut told = None;
        let stands_by = |waiting: Waiting| {
            if let Waiting::Taken { holder: leader, .. } = waiting
                && told.as_ref() != Some(&leader)
            {
                tracing::info!(leader, identity = self.me, "another operator leads; this one stands by");
                told = Some(leader);
            }
            None::<Infallible>
        };
        match self.win_unless(stop, stands_by).await {
            Ok(won) => won,
            Err(never) => match never {},
        }
    }

    /// Waits until this process has the lease. Returns `None` if `stop` came first. After each attempt that fails, `refuse`
    /// is told why.
    ///
    /// # Errors
    /// As soon as `refuse` returns an error.
    pub async fn win_unless<E>(
        &self,
        stop: &CancellationToken,
        mut refuse: impl FnMut(Waiting) -> Option<E>,
    ) -> Result<Option<Held>, E> {
        let mut sighting = Sighting::none();
        let mut first = None;
        loop {
            let asked = Instant::now();
            let waiting = match timeout(LIMIT, self.try_acquire(&mut sighting)).await {
                Ok(Ok(Attempt::Won)) => return Ok(Some(Held { asked, sighting })),
                Ok(Ok(Attempt::Taken)) => sighting.holder().map(str::to_owned).map(|holder| {
                    let at_work = *first.get_or_insert_with(|| sighting.record.clone()) != sighting.record;
                    Waiting::Taken { holder, at_work }
                }),
                Ok(Ok(Attempt::Raced)) => None,
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease = self.name,
                        error = %answers::chain(&error),
                        "the lease cannot be read or written"
                    );
                    Some(Waiting::Unreachable(answers::chain(&error)))
                }
                Err(_) => {
                    tracing::warn!(lease = self.name, "the API server does not answer about the lease");
                    Some(Waiting::Unreachable("the API server does not answer".to_owned()))
                }
            };
            if let Some(error) = waiting.and_then(&mut refuse) {
                return Err(error);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(None),
                () = sleep(RENEW_EVERY) => {}
            }
        }
    }

    /// Renews the lease until `stop`, then gives up the lease. If renewing fails for [`GIVE_UP_AFTER`], or another
    /// operator has the lease, `lost` is cancelled.
    pub async fn keep(&self, held: Held, stop: CancellationToken, lost: CancellationToken) {
        let Held { asked: mut renewed, mut sighting } = held;
        let mut next = renewed + RENEW_EVERY;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(next) => {}
            }
            // Candidates count from the write, which comes after this.
            let asked = Instant::now();
            let until = (asked + LIMIT).min(renewed + GIVE_UP_AFTER);
            let renewal = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                renewal = self.renew(&mut sighting, until) => renewal,
            };
            match renewal {
                Renewal::Renewed => {
                    renewed = asked;
                    next = asked + RENEW_EVERY;
                }
                Renewal::Taken => {
                    lost.cancel();
                    return;
                }
                Renewal::Failed { why, again } => {
                    let left = GIVE_UP_AFTER.saturating_sub(renewed.elapsed());
                    if left.is_zero() {
                        tracing::error!(
                            lease = self.name,
                            why,
                            "the lease could not be renewed for {GIVE_UP_AFTER:?}; this operator stops"
                        );
                        lost.cancel();
                        return;
                    }
                    tracing::warn!(
                        lease = self.name,
                        why,
                        "the lease was not renewed; this operator tries again"
                    );
                    next = Instant::now() + again.min(left);
                }
            }
        }
        if let Ok(Ok(())) = timeout(LIMIT, self.resign()).await {
            tracing::info!(
                lease = self.name,
                identity = self.me,
                "this operator leads no longer: the lease is released"
            );
        }
    }

    /// Tries once to renew the lease that is held, until a time.
    async fn renew(&self, sighting: &mut Sighting, until: Instant) -> Renewal {
        let failed = |why: String| Renewal::Failed { why, again: RENEW_AGAIN_AFTER };
        match timeout_at(until, self.try_acquire(sighting)).await {
            Ok(Ok(Attempt::Won)) => Renewal::Renewed,
            Ok(Ok(Attempt::Raced)) => failed("somebody has written the lease meanwhile".to_owned()),
            Ok(Ok(Attempt::Taken)) => {
                let holder = sighting.holder();
                tracing::error!(
                    lease = self.name,
                    holder,
                    "another operator holds the lease; this one stops"
                );
                Renewal::Taken
            }
            Ok(Err(error)) => failed(answers::chain(&error)),
            // The next attempt begins at once: only an API server that answered may have asked for a pause.
            Err(_) => {
                Renewal::Failed { why: "the API server does not answer".to_owned(), again: Duration::ZERO }
            }
        }
    }

    /// One attempt to take or renew the lease. A lease that is this process's is written without being read again, as by
    /// client-go's leaders; the version that the write names shows whether anybody else has written the lease.
    async fn try_acquire(&self, sighting: &mut Sighting) -> Result<Attempt, kube::Error> {
        if let Some(ours) = sighting.ours.take() {
            match self.replace(ours, sighting).await {
                Ok(Attempt::Won) => return Ok(Attempt::Won),
                // Somebody else, or an earlier attempt whose answer was lost, has written or deleted the lease.
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let Some(found) = self.api.get_opt(&self.name).await? else {
            let lease = self.lease(None);
            let made = wire::make(&self.api, &PostParams::default(), &lease).await;
            return won(made, sighting).inspect_err(|error| {
                if matches!(error, kube::Error::Api(status) if status.is_not_found()) {
                    tracing::error!("the Lease's namespace does not exist; create it, or name another leader's by --leader-elect-namespace");
                }
            });
        };
        let found = found.object().map_err(|why| kube::Error::Service(why.into()))?;
        self.highest.read(&found.metadata);
        let record = found
            .spec
            .as_ref()
            .map(|s| (s.holder_identity.clone(), s.renew_time.clone(), s.lease_transitions));
        if sighting.record != record {
            (sighting.record, sighting.at) = (record, Instant::now());
        }
        if state(found.spec.as_ref(), &self.me, sighting.at.elapsed()) == LeaseState::Taken {
            return Ok(Attempt::Taken);
        }
        self.replace(Box::new(found), sighting).await
    }

    /// Writes the lease with this process as the holder, over the one that was found. If the API server refuses the write for
    /// now, or does not answer, the next attempt begins with this write: one call more might take too long.
    async fn replace(&self, found: Box<Lease>, sighting: &mut Sighting) -> Result<Attempt, kube::Error> {
        let lease = self.lease(Some(&found));
        // If the answer takes too long, this future ends here.
        sighting.ours = Some(found);
        let result = won(wire::replace(&self.api, &self.name, &lease).await, sighting);
        let is_refused_for_now = matches!(&result, Err(kube::Error::Api(status)) if status.code == 429);
        if !is_refused_for_now && !matches!(result, Ok(Attempt::Won)) {
            sighting.ours = None;
        }
        result
    }

    /// The lease with this process as the holder, to be written over the one that was found. The write replaces the whole object, so
    /// that everything else stays as it was found: labels, owners and finalizers are others'.
    fn lease(&self, found: Option<&Lease>) -> Lease {
        let now = MicroTime(self.clock.timestamp());
        let mut lease = found.cloned().unwrap_or_default();
        lease.metadata.name = Some(self.name.clone());
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.me) {
            spec.acquire_time = None;
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
        }
        spec.acquire_time.get_or_insert_with(|| now.clone());
        spec.holder_identity = Some(self.me.clone());
        spec.lease_duration_seconds = i32::try_from(TTL.as_secs()).ok();
        spec.renew_time = Some(now);
        self.highest.write(&mut lease);
        lease
    }

    /// Takes this process off the lease, so that the next leader starts at once.
    async fn resign(&self) -> Result<(), kube::Error> {
        let Some(found) = self.api.get_opt(&self.name).await? else { return Ok(()) };
        let Ok(mut lease) = found.object() else { return Ok(()) };
        if let Some(spec) =
            lease.spec.as_mut().filter(|spec| spec.holder_identity.as_deref() == Some(&self.me))
        {
            spec.holder_identity = None;
            self.highest.write(&mut lease);
            wire::replace(&self.api, &self.name, &lease).await?;
        }
        Ok(())
    }
}

/// The result of a write. The lease as it was written is remembered, if its answer can be read.
fn won(result: Result<Item<Lease>, kube::Error>, sighting: &mut Sighting) -> Result<Attempt, kube::Error> {
    match result {
        Ok(written) => {
            // Without a version, the next write would not notice what others have written.
            let written = written.object().ok().filter(|lease| lease.metadata.resource_version.is_some());
            sighting.ours = written.map(Box::new);
            Ok(Attempt::Won)
        }
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
            Ok(Attempt::Raced)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_lease_may_be_taken_when_its_holder_is_silent() {
        let spec = |holder: &str, seconds: i32| LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            ..LeaseSpec::default()
        };
        for (spec, unchanged, expected) in [
            (None, 0, LeaseState::Free),
            (Some(spec("", 15)), 0, LeaseState::Free),
            (Some(spec("me", 15)), 0, LeaseState::Free),
            (Some(spec("other", 15)), 15, LeaseState::Taken),
            (Some(spec("other", 15)), 16, LeaseState::Free),
            (Some(spec("other", 60)), 59, LeaseState::Taken),
        ] {
            assert_eq!(
                state(spec.as_ref(), "me", Duration::from_secs(unchanged)),
                expected,
                "{spec:?} {unchanged}"
            );
        }
    }

    /// The API server of a test has a Lease of this holder. The answers to calls are made by `answer`, from the number of the
    /// call and whether the call writes: a status code, and after how many seconds the answer comes.
    struct Server {
        election: Election,
        reads: Arc<AtomicI64>,
        is_mine: bool,
    }

    /// The calls by which this process wins the Lease are answered at once, and `answer` does not count them.
    fn server(
        holder: &'static str,
        answer: impl Fn(u32, bool) -> (u16, u64) + Send + Sync + 'static,
    ) -> Server {
        let calls_to_win = if holder == "me" { 2 } else { 0 };
        from_the_first_call(holder, move |call, writes| {
            call.checked_sub(calls_to_win).map_or((200, 0), |call| answer(call, writes))
        })
    }

    fn from_the_first_call(
        holder: &'static str,
        answer: impl Fn(u32, bool) -> (u16, u64) + Send + Sync + 'static,
    ) -> Server {
        let (calls, reads, answer) =
            (Arc::new(AtomicU32::new(0)), Arc::new(AtomicI64::new(0)), Arc::new(answer));
        let counted = Arc::clone(&reads);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let writes = request.method() == http::Method::PUT;
            let (code, after) = answer(calls.fetch_add(1, Ordering::Relaxed), writes);
            reads.fetch_add(i64::from(!writes), Ordering::Relaxed);
            async move {
                sleep(Duration::from_secs(after)).await;
                let lease = serde_json::json!({"metadata": {"name": "l", "resourceVersion": "1"},
                    "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}});
                let reason = if code == 409 { "Conflict" } else { "TooManyRequests" };
                let refusal = serde_json::json!({"kind": "Status", "status": "Failure", "code": code,
                    "message": "", "reason": reason});
                let text = if code == 200 { lease } else { refusal }.to_string();
                let body = kube::client::Body::from(text.into_bytes());
                Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap())
            }
        });
        let clock = Clock::set_to(jiff::Timestamp::UNIX_EPOCH);
        let client = Client::new(service, "ns");
        let election = Election::new(client, clock, ("ns", "l"), "me", HighestClusterId::default());
        Server { election, reads: counted, is_mine: holder == "me" }
    }

    /// For how many seconds a leader keeps the lease, of so many.
    async fn keeps(server: &Server, seconds: u64) -> u64 {
        let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
        let held = if server.is_mine {
            server.election.win(&stop).await.unwrap()
        } else {
            Held { asked: Instant::now(), sighting: Sighting::none() }
        };
        let began = Instant::now();
        let keeping = tokio::spawn({
            let (election, stop, lost) = (server.election.clone(), stop.clone(), lost.clone());
            async move { election.keep(held, stop, lost).await }
        });
        let _ = timeout(Duration::from_secs(seconds), lost.cancelled()).await;
        let kept = began.elapsed().as_secs();
        stop.cancel();
        let _ = keeping.await;
        kept
    }

    /// A renewal that the leader gave up may still take effect. The next renewal then gets a conflict.
    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_a_renewal_that_failed() {
        let one_in_three =
            |call: u32, writes| if writes && call.is_multiple_of(3) { (409, 0) } else { (200, 0) };
        assert_eq!(keeps(&server("me", one_in_three), 30).await, 30);
        assert_eq!(keeps(&server("other", |_, _| (200, 0)), 30).await, 2, "another holds the lease");
        let conflicts = server("me", |_, writes| if writes { (409, 0) } else { (200, 0) });
        assert_eq!(keeps(&conflicts, 30).await, 20, "before anybody else may take over");
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_bears_an_api_server_that_refuses_half_of_the_calls_or_is_slow() {
        // Half of the calls in an order without a period, by Thue and Morse.
        let half = |call: u32, _| if call.count_ones().is_multiple_of(2) { (200, 0) } else { (429, 0) };
        assert_eq!(keeps(&server("me", half), 3600).await, 3600);
        assert_eq!(
            keeps(&server("me", |call, _| (if call % 3 == 2 { 200 } else { 429 }, 0)), 3600).await,
            3600
        );
        assert_eq!(keeps(&server("me", |_, _| (200, 7)), 3600).await, 3600, "each write takes 7 s");
        let stalls = server("me", |call, _| (200, if call % 10 == 9 { 60 } else { 5 }));
        assert_eq!(keeps(&stalls, 3600).await, 3600, "calls take 5 s, and one answer of ten is lost");
        assert_eq!(keeps(&server("me", |_, _| (200, 60)), 30).await, 20, "no answer");
        assert_eq!(keeps(&server("me", |_, _| (429, 0)), 30).await, 20, "refusals alone");
        // The lease is read in 1 s and written in 6 s; then there is no answer.
        let silent =
            from_the_first_call("me", |call, _| (200, [1, 6].get(call as usize).copied().unwrap_or(60)));
        assert_eq!(
            keeps(&silent, 30).await,
            13,
            "candidates may count from what was asked 7 s before the answer"
        );
    }

    /// People and tools label the Lease, own the Lease by others, and protect the Lease from deletion.
    #[tokio::test(start_paused = true)]
    async fn a_renewal_changes_nothing_of_others() {
        let election = server("other", |_, _| (200, 0)).election;
        let found = serde_json::json!({
            "metadata": {"name": "l", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"c": "d"},
                         "finalizers": ["e/f"],
                         "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n"}]},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 2,
                     "acquireTime": "1969-01-01T00:00:00.000000Z", "preferredHolder": "x"},
        });
        let found: Lease = serde_json::from_value(found).unwrap();
        let taken = election.lease(Some(&found));
        assert_eq!(taken.metadata, found.metadata);
        let spec = taken.spec.as_ref().unwrap();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(3)));
        assert_eq!((&spec.acquire_time, spec.preferred_holder.as_deref()), (&spec.renew_time, Some("x")));
        assert_eq!(election.lease(Some(&taken)), taken, "a renewal is no other transition");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_is_one_call() {
        let server = server("me", |_, _| (200, 0));
        assert_eq!(keeps(&server, 3600).await, 3600);
        assert_eq!(
            server.reads.load(Ordering::Relaxed),
            1 + 1,
            "a lease is read before it is won, and before it is given up"
        );
    }
}
