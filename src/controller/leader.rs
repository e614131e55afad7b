//! Leader election by a Lease, as in client-go: one operator decides, the others wait.
//! A candidate judges whether a lease has expired by the time since it last saw the record change, never by another
//! machine's clock. A leader that cannot renew in time stops before any candidate may take over, and drops the calls that
//! are under way: the API server gives up a request whose client has gone.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::decode::Item;
use super::wire;
use api::labels::HIGHEST_CLUSTER;

/// How long a leader may be silent before another takes over.
const TTL: Duration = Duration::from_secs(15);
/// How often a leader renews the lease, and a candidate reads it. A leader that must stop notices that at most 13 s after
/// its last renewal: [`GIVE_UP_AFTER`], one pause, and one call that takes all of [`CALL_LIMIT`].
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// A leader that could not renew the lease for this long stops, and drops its calls. The rest of [`TTL`] is for the API server to
/// give up those calls.
const GIVE_UP_AFTER: Duration = Duration::from_secs(8);
/// A call that takes longer counts as failed.
const CALL_LIMIT: Duration = Duration::from_secs(3);

/// The highest ClusterId that was given: the election reads and writes it with the lease, so that it outlasts jobs and
/// operators. The engine raises it.
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
}

impl Sighting {
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

    /// Waits until this process leads. Returns false if `stop` came first.
    pub async fn win(&self, stop: &CancellationToken) -> bool {
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

    /// Waits until this process has the lease. Returns false if `stop` came first. After each attempt that fails, `refuse`
    /// is told why.
    ///
    /// # Errors
    /// As soon as `refuse` returns an error.
    pub async fn win_unless<E>(
        &self,
        stop: &CancellationToken,
        mut refuse: impl FnMut(Waiting) -> Option<E>,
    ) -> Result<bool, E> {
        let mut sighting = Sighting { record: None, at: Instant::now() };
        let mut first = None;
        loop {
            let waiting = match timeout(CALL_LIMIT, self.try_acquire(&mut sighting)).await {
                Ok(Ok(Attempt::Won)) => return Ok(true),
                Ok(Ok(Attempt::Taken)) => sighting.holder().map(str::to_owned).map(|holder| {
                    let at_work = *first.get_or_insert_with(|| sighting.record.clone()) != sighting.record;
                    Waiting::Taken { holder, at_work }
                }),
                Ok(Ok(Attempt::Raced)) => None,
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease = self.name,
                        error = &error as &dyn std::error::Error,
                        "the lease cannot be read or written"
                    );
                    Some(Waiting::Unreachable(error.to_string()))
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
                () = stop.cancelled() => return Ok(false),
                () = sleep(RENEW_EVERY) => {}
            }
        }
    }

    /// Renews the lease until `stop`, then gives up the lease. If renewing fails for [`GIVE_UP_AFTER`], or another
    /// operator has the lease, `lost` is cancelled.
    pub async fn keep(&self, stop: CancellationToken, lost: CancellationToken) {
        let mut renewed = Instant::now();
        let mut sighting = Sighting { record: None, at: Instant::now() };
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep(RENEW_EVERY) => {}
            }
            // Candidates count from the write, which comes after this.
            let asked = Instant::now();
            match timeout(CALL_LIMIT, self.try_acquire(&mut sighting)).await {
                Ok(Ok(Attempt::Won)) => renewed = asked,
                Ok(Ok(Attempt::Raced)) => {
                    tracing::warn!(
                        lease = self.name,
                        "the lease was not renewed: somebody has written it meanwhile"
                    );
                }
                Ok(Ok(Attempt::Taken)) => {
                    let holder = sighting.holder();
                    tracing::error!(
                        lease = self.name,
                        holder,
                        "another operator holds the lease; this one stops"
                    );
                    lost.cancel();
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease = self.name,
                        error = &error as &dyn std::error::Error,
                        "the lease was not renewed"
                    );
                }
                Err(_) => tracing::warn!(
                    lease = self.name,
                    "the lease was not renewed: the API server does not answer"
                ),
            }
            if renewed.elapsed() > GIVE_UP_AFTER {
                tracing::error!(
                    lease = self.name,
                    "the lease could not be renewed for {GIVE_UP_AFTER:?}; this operator stops"
                );
                lost.cancel();
                return;
            }
        }
        if let Ok(Ok(())) = timeout(CALL_LIMIT, self.resign()).await {
            tracing::info!(
                lease = self.name,
                identity = self.me,
                "this operator leads no longer: the lease is released"
            );
        }
    }

    /// One attempt to take or renew the lease.
    async fn try_acquire(&self, sighting: &mut Sighting) -> Result<Attempt, kube::Error> {
        let Some(found) = self.api.get_opt(&self.name).await? else {
            let lease = self.lease(None, 0);
            return won(wire::make(&self.api, &PostParams::default(), &lease).await).inspect_err(|error| {
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
            *sighting = Sighting { record, at: Instant::now() };
        }
        if state(found.spec.as_ref(), &self.me, sighting.at.elapsed()) == LeaseState::Taken {
            return Ok(Attempt::Taken);
        }
        let transitions = found.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
        let lease = self.lease(Some(&found), transitions);
        won(wire::replace(&self.api, &self.name, &lease).await)
    }

    /// The lease with this process as the holder, to be written over the one that was found.
    fn lease(&self, found: Option<&Lease>, transitions: i32) -> Lease {
        let now = MicroTime(self.clock.timestamp());
        let ours = found
            .and_then(|lease| lease.spec.as_ref())
            .filter(|spec| spec.holder_identity.as_deref() == Some(&self.me));
        let mut lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: found.and_then(|lease| lease.metadata.resource_version.clone()),
                annotations: found.and_then(|lease| lease.metadata.annotations.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.me.clone()),
                lease_duration_seconds: i32::try_from(TTL.as_secs()).ok(),
                acquire_time: ours.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(transitions.saturating_add(i32::from(ours.is_none()))),
                ..LeaseSpec::default()
            }),
        };
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

fn won(result: Result<Item<Lease>, kube::Error>) -> Result<Attempt, kube::Error> {
    match result {
        Ok(_) => Ok(Attempt::Won),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
            Ok(Attempt::Raced)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
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

    /// The API server of a test: a Lease of this holder, whose replacement is answered with the next of these codes.
    fn election(holder: &'static str, codes: Vec<u16>) -> Election {
        let codes = std::sync::Arc::new(std::sync::Mutex::new(codes.into_iter()));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let codes = std::sync::Arc::clone(&codes);
            async move {
                let replaces = request.method() == http::Method::PUT;
                let code = if replaces { codes.lock().unwrap().next().unwrap_or(200) } else { 200 };
                let lease = serde_json::json!({"metadata": {"name": "l", "resourceVersion": "1"},
                    "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}});
                let conflict = serde_json::json!({"kind": "Status", "status": "Failure", "code": code,
                    "message": "", "reason": "Conflict"});
                let answer = if code == 200 { lease } else { conflict }.to_string();
                let body = kube::client::Body::from(answer.into_bytes());
                Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
            }
        });
        let clock = Clock::set_to(jiff::Timestamp::UNIX_EPOCH);
        Election::new(Client::new(service, "ns"), clock, ("ns", "l"), "me", HighestClusterId::default())
    }

    /// For how many seconds a leader keeps the lease, of thirty.
    async fn keeps(election: Election) -> u64 {
        let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
        let began = Instant::now();
        let keeping = tokio::spawn({
            let (stop, lost) = (stop.clone(), lost.clone());
            async move { election.keep(stop, lost).await }
        });
        let _ = timeout(Duration::from_secs(30), lost.cancelled()).await;
        let kept = began.elapsed().as_secs();
        stop.cancel();
        let _ = keeping.await;
        kept
    }

    /// A renewal that was given up may come through, and the next one then meets it.
    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_a_renewal_that_failed() {
        assert_eq!(keeps(election("me", vec![])).await, 30);
        assert_eq!(keeps(election("me", vec![200, 409, 200, 409, 409, 200])).await, 30);
        assert_eq!(keeps(election("other", vec![])).await, 2, "another holds it");
        let kept = keeps(election("me", vec![409; 20])).await;
        assert!((8..13).contains(&kept), "before anybody else may take over: {kept}");
    }
}
