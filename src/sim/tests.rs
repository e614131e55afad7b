//! Laws of every simulation: the same seed gives the same bytes, the workload is the same under every policy, procs
//! are neither lost nor doubled, and no core is given twice.

#![allow(clippy::float_cmp, reason = "what is counted is whole")]

mod agents;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use classad::Expr;
use model::pool::{
    Capacity, Event, ExtendedResources, Group, MachineFacts, Policy, PolicyFacts, Quota, Request, Selection,
    SlotConfig, StartdConfig, Time,
};
use model::schedd::Submission;

const HOUR: u64 = 3600;

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * HOUR)
}

fn machines(name: &str, count: u32, cpus: i64) -> MachineGroup {
    let allocatable = Capacity {
        milli_cpu: cpus * 1000,
        memory: (cpus * 4) << 30,
        disk: 1 << 40,
        extended: ExtendedResources::new(),
    };
    let facts = MachineFacts {
        name: name.into(),
        arch: "amd64".into(),
        os: "linux".into(),
        labels: Arc::default(),
        allocatable,
        ready: true,
        cordoned: false,
        taints: Vec::new(),
        system: model::pool::System::default(),
    };
    MachineGroup { name: name.into(), count, facts, owner: None, absence: None }
}

fn source(name: &str, arrivals: Arrivals) -> Source {
    let request = Request { cpus: 1, memory_mib: 1024, disk_kib: 1024, ..Request::default() };
    Source {
        name: name.into(),
        template: Submission { owner: name.into(), namespace: name.into(), request, ..Submission::default() },
        arrivals,
        from: Duration::ZERO,
        to: None,
        most: None,
        count: Spread::uniform(1.0, 4.0).unwrap(),
        runtime: Spread::lognormal(1800.0, 1.0).unwrap().at_most(4.0 * 3600.0).unwrap(),
        cpus: None,
        memory_mib: None,
        disk_kib: None,
        gpus: None,
    }
}

/// A Monday.
fn monday() -> Time {
    Time::from_secs(1_767_571_200)
}

fn scenario(machines: Vec<MachineGroup>, sources: Vec<Source>) -> Scenario {
    Scenario {
        name: "test".into(),
        start: monday(),
        length: hours(24),
        sample: Duration::from_mins(10),
        seed: 7,
        timing: Timing {
            call: Duration::from_millis(20),
            status: Duration::from_secs(1),
            pod_start: Spread::uniform(1.0, 3.0).unwrap(),
            pod_end: Spread::always(1.0),
        },
        objects: Vec::new(),
        machines,
        sources,
    }
}

fn small() -> Scenario {
    let poisson = |every| Arrivals::Poisson { every };
    scenario(
        vec![machines("a", 2, 4), machines("b", 1, 8)],
        vec![source("alice", poisson(600.0)), source("bob", poisson(900.0))],
    )
}

fn run(scenario: &Scenario) -> Report {
    simulate(scenario, &mut |_| true)
}

fn bytes(report: &Report) -> String {
    let tables: Vec<String> = report.tables.iter().map(Table::csv).collect();
    format!("{}{}{:?}", tables.concat(), report.jobs_csv(), report.summary)
}

/// The procs that a submitter submitted, without their outcomes.
fn workload(report: &Report, submitter: &str) -> Vec<(Arc<str>, u32, i64, String)> {
    let of = report.jobs.iter().filter(|record| &*record.submitter == submitter);
    of.map(|r| (r.job.clone(), r.proc, r.cpus, format!("{} {}", r.submitted, r.runtime))).collect()
}

fn policy(start: &str) -> Event {
    let policy = Policy { start: Some(Expr::parse(start).unwrap()), ..Policy::default() };
    let config: StartdConfig = SlotConfig { policy, ..SlotConfig::default() }.into();
    Event::Policy(PolicyFacts {
        name: "policy".into(),
        uid: "uid".into(),
        generation: 1,
        selection: Selection::default(),
        config: Ok(Arc::new(config)),
        warnings: None,
        spec: "".into(),
        recorded: None,
    })
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_others() {
    let scenario = small();
    let first = bytes(&run(&scenario));
    assert!(first == bytes(&run(&scenario)), "two runs of one scenario differ");
    assert!(first != bytes(&run(&Scenario { seed: 8, ..scenario })), "the seed means nothing");
}

#[test]
fn a_change_of_policy_or_of_others_leaves_the_workload() {
    let before = run(&small());
    let mut changed = small();
    changed.objects = vec![policy("TARGET.Owner == \"bob\" && false")];
    changed.sources.insert(0, source("carol", Arrivals::Poisson { every: 1800.0 }));
    changed.machines.pop();
    let after = run(&changed);
    assert!(before.summary.all.done > 0 && after.summary.all.done == 0);
    for name in ["alice", "bob"] {
        assert_eq!(workload(&before, name), workload(&after, name));
    }
}

#[test]
fn a_machine_that_leaves_costs_its_jobs_their_work_and_they_run_again() {
    let mut scenario = scenario(
        vec![machines("flaky", 1, 2), machines("steady", 1, 1)],
        vec![Source {
            count: Spread::always(3.0),
            runtime: Spread::always(3600.0),
            ..source("alice", Arrivals::Listed(vec![at(0)]))
        }],
    );
    let absence = Absence { after: Spread::always(1800.0), away: Spread::always(86_400.0) };
    scenario.machines[0].absence = Some(absence);
    let report = run(&scenario);
    let all = &report.summary.all;
    assert_eq!((all.submitted, all.done, all.evictions), (3, 3, 2), "{all:?}");
    let lost: f64 = report.jobs.iter().map(|record| record.lost).sum();
    // The two ran from a few seconds after the start until the machine left at half an hour.
    assert!((3580.0..3600.0).contains(&lost), "{lost}");
    assert!((all.badput_core_hours - lost / 3600.0).abs() < 1e-9);
    assert!((all.goodput_core_hours - 3.0).abs() < 1e-9);
    assert!(report.jobs.iter().all(|record| record.ended.is_some()));
    assert_eq!(report.jobs.iter().map(|record| record.runs).sum::<u32>(), 5);
}

/// A proc that is held or removed is neither done nor evicted, and is counted.
#[test]
fn procs_that_are_held_and_removed_are_counted_as_such() {
    let with = |name: &str, attribute: &str| {
        let mut source = source(name, Arrivals::Listed(vec![at(0)]));
        source.count = Spread::always(3.0);
        source.runtime = Spread::always(7200.0);
        let attributes = [(attribute.to_owned(), "JobStatus == 2 && time() - JobStartDate > 600".to_owned())];
        source.template.attributes = attributes.into();
        source
    };
    let report = run(&scenario(
        vec![machines("a", 2, 4)],
        vec![with("held", "PeriodicHold"), with("removed", "PeriodicRemove")],
    ));
    let counts = |tally: &Tally| {
        (tally.submitted, tally.done, tally.running, tally.idle, tally.held, tally.removed, tally.evictions)
    };
    let all: Vec<_> = report.summary.submitters.iter().map(counts).collect();
    assert_eq!(all, [(3, 0, 0, 0, 3, 0, 0), (3, 0, 0, 0, 0, 3, 0)]);
    assert_eq!((report.summary.all.held, report.summary.all.removed), (3, 3));
    assert!(report.summary.all.badput_core_hours >= 1.0);
    let pool = report.table("pool").unwrap();
    assert_eq!(pool.series("held")[0].1.last().unwrap().1, 3.0);
    assert_eq!(pool.series("removed")[0].1.iter().map(|(_, removed)| removed).sum::<f64>(), 3.0);
}

fn at(seconds: u64) -> Listed {
    Listed { at: Duration::from_secs(seconds), count: None, runtime: None, request: None, priority: None }
}

#[test]
fn start_keeps_jobs_off_a_machine_until_its_owner_has_been_away_for_long_enough() {
    // The manual's classic: "KeyboardIdle > 15 * $(MINUTE)".
    let nine_to_five = (0..5).map(|day| Window::of_day(day, 9 * 3600, 17 * 3600)).collect();
    let mut scenario = scenario(
        vec![machines("desk", 1, 4)],
        vec![Source {
            count: Spread::always(1.0),
            runtime: Spread::always(60.0),
            ..source("alice", Arrivals::Poisson { every: 300.0 })
        }],
    );
    scenario.objects = vec![policy("KeyboardIdle > 15 * 60 && LoadAvg < 0.3")];
    scenario.machines[0].owner = Some(OwnerActivity {
        windows: nine_to_five,
        vary: 0.0,
        visits: None,
        load: 0.5,
        pods: Capacity::default(),
    });
    let report = run(&scenario);
    let started: Vec<f64> = report.jobs.iter().filter_map(|record| record.first_started).collect();
    let within = |from: f64, to: f64| started.iter().filter(|at| (from..to).contains(*at)).count();
    let hour = 3600.0;
    assert!(within(0.0, 9.0 * hour) > 50, "nobody is there at night");
    // A claim that was made before nine may still start its proc.
    assert_eq!(
        within(9.0 * hour + 60.0, 17.25 * hour),
        0,
        "the owner is there, or was a quarter of an hour ago"
    );
    assert!(within(17.25 * hour, 17.5 * hour) > 50, "what had to wait runs");
}

#[test]
fn pods_of_an_owner_take_cores_while_they_are_there() {
    let mut scenario = small();
    scenario.sources.clear();
    let windows = vec![Window::of_day(0, 9 * 3600, 17 * 3600)];
    let pods = Capacity { milli_cpu: 3000, ..Capacity::default() };
    for group in &mut scenario.machines {
        group.owner = Some(OwnerActivity {
            windows: windows.clone(),
            vary: 0.0,
            visits: None,
            load: 1.0,
            pods: pods.clone(),
        });
    }
    let report = run(&scenario);
    let slots = report.table("slots").unwrap();
    let [(_, foreign)] = slots.series("foreign").try_into().unwrap();
    let [(_, unclaimed)] = slots.series("unclaimed").try_into().unwrap();
    for ((at, foreign), (_, unclaimed)) in foreign.into_iter().zip(unclaimed) {
        let there = (9.0 * 3600.0..17.0 * 3600.0).contains(&at);
        assert_eq!((foreign, unclaimed), if there { (9.0, 7.0) } else { (0.0, 16.0) }, "at {at}");
    }
}

#[test]
fn groups_get_no_more_than_their_quota() {
    let mut scenario = small();
    let quota = Quota::Static(3.0);
    scenario.objects = vec![Event::Group(Group {
        owners: Some(vec!["*".to_owned()]),
        object: "physics".into(),
        generation: 1,
        created: None,
        name: "physics".into(),
        quota,
        share_unused: false,
        accept_surplus: None,
        autoregroup: None,
        priority_factor: None,
    })];
    for source in &mut scenario.sources {
        source.template.group = Some("physics".into());
    }
    let report = run(&scenario);
    let groups = report.table("groups").unwrap();
    let rows: Vec<(f64, f64)> = groups.rows().map(|row| (row.values[0], row.values[1])).collect();
    assert!(rows.iter().all(|(deserved, got)| *deserved == 3.0 && got <= deserved), "{rows:?}");
    assert!(rows.iter().any(|(_, got)| *got == 3.0));
    assert_eq!(report.summary.submitters[0].name, "physics.alice");
}

#[test]
fn cores_in_which_nothing_that_waits_fits_are_unusable() {
    let big = Source {
        count: Spread::always(3.0),
        cpus: Some(Spread::always(3.0)),
        runtime: Spread::always(3600.0),
        ..source("alice", Arrivals::Listed(vec![at(0)]))
    };
    let report = run(&scenario(vec![machines("n", 2, 4)], vec![big]));
    let pool = report.table("pool").unwrap();
    let at_ten_minutes = pool.rows().nth(1).unwrap();
    let named = |name: &str| {
        let column = pool.columns.iter().position(|column| column.name == name).unwrap();
        at_ten_minutes.values[column]
    };
    let got = ["free_cores", "largest_free", "unusable_cores", "idle", "running"].map(named);
    assert_eq!(got, [2.0, 1.0, 2.0, 1.0, 2.0]);
}

fn any_group() -> impl Strategy<Value = MachineGroup> {
    (1..4_u32, 1..9_i64, any::<bool>(), any::<bool>()).prop_map(|(count, cpus, owned, leaves)| {
        let mut group = machines(&format!("m{cpus}-"), count, cpus);
        group.owner = owned.then(|| OwnerActivity {
            windows: vec![Window::of_day(0, 6 * 3600, 3 * 3600)],
            vary: 1800.0,
            visits: Some(Visits {
                away: Spread::exponential(7200.0).unwrap(),
                present: Spread::exponential(1200.0).unwrap(),
            }),
            load: 1.0,
            pods: Capacity { milli_cpu: 1500, ..Capacity::default() },
        });
        group.absence = leaves.then(|| Absence {
            after: Spread::exponential(4.0 * 3600.0).unwrap(),
            away: Spread::exponential(1800.0).unwrap(),
        });
        group
    })
}

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        (300.0..3600.0_f64).prop_map(|every| Arrivals::Poisson { every }),
        (10.0..100.0_f64).prop_map(|per_day| Arrivals::Diurnal { per_day, profile: Profile::default() }),
        (1.0..20.0_f64).prop_map(|jobs| Arrivals::Bursts {
            every: Spread::exponential(3.0 * 3600.0).unwrap(),
            jobs: Spread::uniform(0.0, jobs).unwrap(),
            spacing: Spread::uniform(0.0, 20.0).unwrap(),
        }),
        prop::collection::vec(0..80_000_u64, 0..20).prop_map(|mut times| {
            times.sort_unstable();
            Arrivals::Listed(times.into_iter().map(at).collect())
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn procs_are_neither_lost_nor_doubled_and_no_core_is_given_twice(
        groups in prop::collection::btree_map(0..2_u8, any_group(), 1..3),
        arrivals in prop::collection::vec((any_arrivals(), 1..5_u32), 1..4),
        seed in any::<u64>(),
    ) {
        let machines: Vec<MachineGroup> =
            groups.into_iter().map(|(n, group)| MachineGroup { name: format!("{n}-"), ..group }).collect();
        let sources = arrivals.into_iter().enumerate().map(|(n, (arrivals, cpus))| Source {
            cpus: Some(Spread::uniform(1.0, f64::from(cpus)).unwrap()),
            ..source(&format!("u{n}"), arrivals)
        });
        let scenario = Scenario { seed, ..scenario(machines, sources.collect()) };
        let report = run(&scenario);
        let cores: f64 = scenario.machines.iter()
            .map(|group| f64::from(group.count) * owner::cores(&group.facts.allocatable)).sum();
        let mut done = 0.0;
        for row in report.table("pool").unwrap().rows() {
            let columns = report.table("pool").unwrap().columns;
            let value = |name: &str| row.values[columns.iter().position(|c| c.name == name).unwrap()];
            done += value("done");
            let submitted = report.jobs.iter().filter(|record| record.submitted <= row.at).count();
            let known = done + value("idle") + value("running");
            prop_assert_eq!(number::real(submitted as u64), known, "at {}", row.at);
            prop_assert!(value("claimed_cores") <= cores);
        }
        for record in &report.jobs {
            // A proc that completed ran once to its end, for its whole run time.
            if let (Some(started), Some(ended)) = (record.started, record.ended) {
                prop_assert!((ended - started - record.runtime).abs() < 1e-6, "{:?}", record);
            }
        }
        let all = &report.summary.all;
        prop_assert_eq!(all.submitted, all.done + all.running + all.idle);
        // A proc that was evicted before it started has no run.
        let runs: u64 = report.jobs.iter().map(|record| u64::from(record.runs)).sum();
        let ends = report.jobs.iter().filter(|record| record.ended.is_some()).count() as u64;
        prop_assert!(runs >= ends && runs <= ends + all.evictions + all.running);
    }
}
