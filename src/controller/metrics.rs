//! The operator's metrics, for Prometheus: docs/reference/metrics.md.

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use std::time::Duration;

use model::pool::{Pool, Time};
use model::schedd;

/// The media type of [`Metrics::text`]: the text format of OpenMetrics 1.0.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The operator's metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// The metrics of the leader alone: an operator that stands by would say that there are no machines and no jobs.
    of_leader: Registry,
    leader: Gauge,
    machines: Gauge,
    agents: Gauge,
    suspended_pods: Gauge,
    claimed_slots: Gauge,
    jobs: Gauge,
    procs: Family<ByStatus, Gauge>,
    procs_to_match: Gauge,
    submitters: Gauge,
    orphan_pods: Gauge,
    negotiation_cycles: Counter,
    killing_timeouts: Counter,
    events_dropped: Counter,
    failed_calls: FailedCalls,
    watch_stale_seconds: Family<ByKind, Gauge>,
    undecodable_objects: Family<ByKind, Gauge>,
    history: History,
}

/// The counters and gauges of the history.
#[derive(Clone, Debug, Default)]
pub struct History {
    written: Counter,
    lost: Counter,
    bytes: Gauge,
    shipped: Counter,
    refused: Counter,
    waiting: Gauge,
    removed_unshipped: Counter,
}

impl History {
    fn register(registry: &mut Registry) -> Self {
        let own = Self::default();
        let mut counter =
            |name: &str, help: &str, counter: &Counter| registry.register(name, help, counter.clone());
        counter("history_ads_written", "Final ads that were written in the history", &own.written);
        counter("history_ads_lost", "Final ads that could not be written", &own.lost);
        counter("adstash_ads_shipped", "Final ads that Elasticsearch has taken", &own.shipped);
        counter("adstash_ads_refused", "Final ads that Elasticsearch will never take", &own.refused);
        counter(
            "adstash_ads_removed",
            "Final ads that were removed from the history before Elasticsearch took them",
            &own.removed_unshipped,
        );
        registry.register("history_bytes", "Bytes of the history's files", own.bytes.clone());
        registry.register("adstash_ads_waiting", "Final ads that are to be shipped", own.waiting.clone());
        own
    }

    /// Counts ads that were written.
    pub fn written(&self, ads: u64) {
        self.written.inc_by(ads);
    }

    /// Counts ads that could not be written.
    pub fn lost(&self, ads: u64) {
        self.lost.inc_by(ads);
    }

    /// Notes the size of the history.
    pub fn bytes(&self, bytes: u64) {
        self.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Counts ads that were shipped.
    pub fn shipped(&self, ads: u64) {
        self.shipped.inc_by(ads);
    }

    /// Counts ads that Elasticsearch will never take.
    pub fn refused(&self, ads: u64) {
        self.refused.inc_by(ads);
    }

    /// Counts ads that were removed before they were shipped.
    pub fn removed_unshipped(&self, ads: u64) {
        self.removed_unshipped.inc_by(ads);
    }

    /// Notes how many ads are to be shipped.
    pub fn waiting(&self, ads: u64) {
        self.waiting.set(i64::try_from(ads).unwrap_or(i64::MAX));
    }
}

/// Counts the calls of the writer that failed.
#[derive(Clone, Debug, Default)]
pub struct FailedCalls(Family<[(&'static str, String); 1], Counter>);

impl FailedCalls {
    /// Counts a call with the code of its answer; `None` if there was no answer.
    pub fn count(&self, code: Option<u16>) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        self.0.get_or_create_owned(&[("code", code)]).inc();
    }
}

/// The label `kind`: a kind's plural.
type ByKind = [(&'static str, &'static str); 1];
/// The label `status`: a part of HTCondor's JobStatus.
type ByStatus = [(&'static str, &'static str); 1];

impl Default for Metrics {
    fn default() -> Self {
        let (mut registry, mut of_leader) =
            (Registry::with_prefix("slotwright"), Registry::with_prefix("slotwright"));
        // The library puts the full stop behind each text, `_total` behind the name of a counter, and `_info` behind that of an Info.
        registry.register(
            "build",
            "The operator's version",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        let leader = Gauge::default();
        registry.register("leader", "Whether this operator leads", leader.clone());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            of_leader.register(name, help, gauge.clone());
            gauge
        };
        let machines = gauge("machines", "Machines of the pool");
        let agents = gauge("agents", "Machines whose agent is at work");
        let suspended_pods = gauge("suspended_pods", "Pods whose processes an agent holds still");
        let claimed_slots = gauge("claimed_slots", "Claimed slots, dynamic and static");
        let jobs = gauge("jobs", "HTCJobs, also those that are complete");
        let submitters = gauge("submitters", "Submitters");
        let orphan_pods = gauge("orphan_pods", "Pods of the pool without a claim");
        let procs_to_match =
            gauge("procs_to_match", "Idle procs for which negotiation cycles look for slots");
        let procs = Family::<ByStatus, Gauge>::default();
        of_leader.register("procs", "Procs that are not done, by status", procs.clone());
        let negotiation_cycles = Counter::default();
        of_leader.register(
            "negotiation_cycles",
            "Negotiation cycles since the start",
            negotiation_cycles.clone(),
        );
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let killing_timeouts = counter(
            "killing_timeouts",
            "Pods that a kubelet had not ended within KILLING_TIMEOUT, so that the agent was asked",
        );
        let events_dropped = counter(
            "events_dropped",
            "Kubernetes events that were not written, since many about the same object waited",
        );
        let failed_calls = FailedCalls::default();
        registry.register(
            "failed_calls",
            "Calls to change something that failed, by the code of the answer",
            failed_calls.0.clone(),
        );
        let mut by_kind = |name: &str, help: &str| {
            let family = Family::<ByKind, Gauge>::default();
            registry.register(name, help, family.clone());
            family
        };
        let watch_stale_seconds =
            by_kind("watch_stale_seconds", "For how long a watch has not told everything; 0 while it has");
        let undecodable_objects = by_kind(
            "undecodable_objects",
            "Objects that cannot be decoded, and are left as they were last known",
        );
        Self {
            leader,
            machines,
            agents,
            suspended_pods,
            claimed_slots,
            jobs,
            procs,
            procs_to_match,
            submitters,
            orphan_pods,
            negotiation_cycles,
            killing_timeouts,
            events_dropped,
            failed_calls,
            watch_stale_seconds,
            undecodable_objects,
            history: History::register(&mut registry),
            registry,
            of_leader,
        }
    }
}

impl Metrics {
    /// The counters and gauges of the history.
    pub fn history(&self) -> History {
        self.history.clone()
    }

    /// The counter of calls that failed.
    pub fn failed_calls(&self) -> FailedCalls {
        self.failed_calls.clone()
    }

    /// Notes that this operator leads.
    pub fn leads(&self) {
        self.leader.set(1);
    }

    /// Counts what the pool has.
    pub fn count(&self, pool: &Pool) {
        set(&self.machines, pool.machines().len());
        set(&self.claimed_slots, pool.slots().len());
        set(&self.jobs, pool.jobs().len());
        set(&self.submitters, pool.submitters().len());
        set(&self.orphan_pods, pool.orphans().len());
        self.count_cycles(pool.schedule().cycles);
    }

    /// Counts the agents, the pods that they have suspended, and procs, which takes a look at each machine and job.
    pub fn count_all(&self, pool: &Pool, now: Time) {
        set(&self.agents, pool.machines().values().filter(|machine| machine.agent).count());
        set(
            &self.suspended_pods,
            pool.reports().values().map(|report| report.suspended.len()).sum::<usize>(),
        );
        let jobs = || pool.jobs().values();
        let of_status = |status| self.procs.get_or_create_owned(&[("status", status)]);
        set(&of_status("idle"), jobs().map(|job| job.idle.len()).sum::<u64>());
        set(&of_status("running"), jobs().map(|job| job.active.len()).sum::<usize>());
        set(&of_status("held"), jobs().map(|job| job.on_hold.len()).sum::<usize>());
        let starts = jobs().filter(|job| schedd::may_start(pool, job));
        set(&self.procs_to_match, starts.map(|job| job.unmatched(now)).sum::<u64>());
    }

    /// Notes for how long the watch of a kind has not told everything, and how many objects of the kind cannot be decoded.
    pub fn watch(&self, kind: &'static str, stale: Duration, undecodable: usize) {
        let (label, set) = ([("kind", kind)], |count: u64| i64::try_from(count).unwrap_or(i64::MAX));
        self.watch_stale_seconds.get_or_create(&label).set(set(stale.as_secs()));
        self.undecodable_objects.get_or_create(&label).set(set(undecodable as u64));
    }

    /// `cycles` is how many cycles there were since the start.
    fn count_cycles(&self, cycles: u64) {
        raise(&self.negotiation_cycles, cycles);
    }

    /// `events` is how many events were dropped since the start.
    pub fn dropped(&self, events: u64) {
        raise(&self.events_dropped, events);
    }

    /// Counts a pod that a kubelet has not ended within `KILLING_TIMEOUT`.
    pub fn overdue_kill(&self) {
        self.killing_timeouts.inc();
    }

    /// All metrics, as [`MEDIA_TYPE`] says. Those that describe the pool are the leader's.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registries = [Some(&self.registry), (self.leader.get() == 1).then_some(&self.of_leader)];
        // Encoding fails only if a write fails, and no write to a String fails.
        for registry in registries.into_iter().flatten() {
            let _ = text::encode_registry(&mut text, registry);
        }
        let _ = text::encode_eof(&mut text);
        text
    }
}

/// Brings a counter up to a total: a counter takes what has come since it was read last.
fn raise(counter: &Counter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

fn set(gauge: &Gauge, count: impl TryInto<i64>) {
    gauge.set(count.try_into().unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_prometheus_text() {
        let metrics = Metrics::default();
        metrics.leads();
        metrics.count_all(&Pool::default(), Time::from_secs(0));
        metrics.watch("htcjobs", Duration::ZERO, 0);
        metrics.failed_calls().count(Some(429));
        metrics.failed_calls().count(None);
        // The library has the samples of a family in no order.
        let text = metrics.text();
        let mut lines: Vec<&str> = text.lines().collect();
        for samples in lines.chunk_by_mut(|a, b| !a.starts_with('#') && !b.starts_with('#')) {
            samples.sort_unstable();
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn an_operator_that_stands_by_says_nothing_of_the_pool() {
        let metrics = Metrics::default();
        metrics.count_all(&Pool::default(), Time::from_secs(0));
        let families = |metrics: &Metrics| metrics.text().matches("# TYPE ").count();
        let text = metrics.text();
        assert!(text.contains("\nslotwright_leader 0\n") && text.ends_with("# EOF\n"), "{text}");
        for of_pool in ["machines", "jobs", "procs", "orphan_pods", "negotiation_cycles"] {
            assert!(!text.contains(&format!("slotwright_{of_pool}")), "{text}");
        }
        let before = families(&metrics);
        metrics.leads();
        assert_eq!(families(&metrics), before + 10);
    }

    #[test]
    fn a_counter_never_counts_a_cycle_twice() {
        let metrics = Metrics::default();
        metrics.leads();
        for cycles in [2, 2, 5] {
            metrics.count_cycles(cycles);
            let line = format!("\nslotwright_negotiation_cycles_total {cycles}\n");
            assert!(metrics.text().contains(&line), "{}", metrics.text());
        }
    }
}
