//! Tests of pods that somebody asks to go, and of kubelets that end them in their own time: which ends an operator may
//! count, and when a proc may run again.

use super::plan::{Class, Order, Plan, What, When};
use super::processes::{Beside, Fated, HANDLERS};
use super::regressions::{goes_well, job, story};
use super::run::run;

/// The number of the handler that ignores SIGTERM.
pub const IGNORES: usize = 8;

/// A job of one proc that runs without end.
fn forever() -> Order {
    Order { job: 4, ..job(1) }
}

fn handler(n: usize) -> (When, What) {
    (When::At(0), What::Fated(Some(Fated::Handler(n))))
}

/// The ways in which somebody asks a pod to go.
fn asks() -> [What; 5] {
    [
        What::ApiEvict(0),
        What::TaintEvict(0),
        What::DeletePod(0, false),
        What::DeletePod(0, true),
        What::Drain(0, 0, 1),
    ]
}

/// With any handler, however long it takes, a program that was told to end has not done its work.
#[test]
fn what_ends_because_it_was_asked_to_is_run_again() {
    for n in 0..HANDLERS.len() - 1 {
        for ask in asks() {
            for at in [5000, 5500] {
                goes_well(story(1, forever(), vec![handler(n), (When::At(at), ask.clone())]));
            }
        }
    }
}

/// The node's clock differs from the server's. Even correct clocks may differ, since times are whole seconds.
#[test]
fn a_node_whose_clock_is_wrong_does_not_make_an_eviction_an_end() {
    for n in 0..7 {
        for wrong in [-45, -20, -3, -1, 1, 3, 20, 45] {
            let items =
                vec![handler(n), (When::At(0), What::Clock(0, wrong)), (When::At(5000), What::ApiEvict(0))];
            goes_well(story(1, forever(), items));
        }
    }
}

/// Somebody asks the pod to go, and it ends, while nobody leads.
#[test]
fn an_eviction_that_nobody_saw_is_none_of_the_programs_ends() {
    for n in 0..7 {
        for ask in asks() {
            let items = vec![
                handler(n),
                (When::At(0), What::Lag(PODS, 20_000, 60)),
                (When::At(5000), What::Kill(0)),
                (When::At(5000), ask.clone()),
            ];
            goes_well(story(1, forever(), items));
        }
    }
}

/// The number of the kind pods among those that operators watch.
const PODS: u8 = 1;

/// A program ends by itself at about the time when somebody asks its pod to go.
#[test]
fn an_end_about_when_it_is_asked_for_goes_either_way_and_the_proc_ends_once() {
    for seed in 0..4 {
        for ask in asks() {
            for at in (1500..12_000).step_by(1500) {
                let items = vec![(When::At(at), ask.clone()), (When::At(at), What::EndNow(0))];
                goes_well(Plan { seed, ..story(2, job(2), items) });
            }
        }
    }
}

/// A kubelet that already ends a pod ignores a shorter grace period (kubernetes#83916).
#[test]
fn a_program_that_ignores_term_runs_for_all_of_its_first_grace() {
    for again in [What::DeletePod(0, true), What::DeleteSooner(0, 0), What::DeleteSooner(0, 1)] {
        for after in [500, 4000] {
            let items = vec![
                handler(IGNORES),
                (When::At(0), What::NodeBack(1, 1)),
                (When::At(5000), What::ApiEvict(0)),
                (When::At(5000 + after), again.clone()),
            ];
            goes_well(story(1, forever(), items));
        }
    }
}

/// Somebody deletes a pod by force. The tracking finalizer keeps it, and it runs until its kubelet says that it has
/// ended.
#[test]
fn a_pod_that_is_deleted_by_force_is_waited_for() {
    for n in [0, 4, IGNORES] {
        for killed in [None, Some(5500), Some(6500)] {
            let mut items = vec![
                handler(n),
                (When::At(0), What::NodeBack(1, 1)),
                (When::At(5000), What::DeletePod(0, true)),
            ];
            items.extend(killed.map(|at| (When::At(at), What::Kill(0))));
            goes_well(story(1, forever(), items));
        }
    }
}

/// A kubelet whose Node somebody deletes works on, and ends its pods at the times that it was told.
#[test]
fn the_node_of_a_machine_that_is_on_is_deleted() {
    for n in [0, 4, 6, IGNORES] {
        for vacates in [None, Some(What::ApiEvict(0)), Some(What::Drain(0, 0, 1))] {
            for killed in [None, Some(12_000)] {
                let mut items = vec![
                    handler(n),
                    (When::At(0), What::NodeBack(1, 1)),
                    (When::At(9000), What::NodeDeleted(0)),
                    (When::At(9000), What::NodeDeleted(1)),
                    (When::At(9500), What::NodeBack(1, 1)),
                ];
                items.extend(vacates.clone().map(|what| (When::At(5000), what)));
                items.extend(killed.map(|at| (When::At(at), What::Kill(0))));
                goes_well(story(1, forever(), items));
            }
        }
    }
}

/// Somebody shortens the grace period of a pod whose Node is deleted. Neither the pod nor the next leader knows the first grace
/// period, to which the kubelet keeps.
#[test]
fn a_new_leader_waits_for_the_grace_period_that_a_pod_may_have_had() {
    for sooner in [1, 2] {
        for killed in [9600, 10_000, 12_000] {
            let items = vec![
                handler(IGNORES),
                (When::At(0), What::NodeBack(1, 1)),
                (When::At(5000), What::ApiEvict(0)),
                (When::At(9000), What::NodeDeleted(0)),
                (When::At(9000), What::NodeDeleted(1)),
                (When::At(9500), What::DeleteSooner(0, sooner)),
                (When::At(killed), What::Kill(0)),
            ];
            goes_well(story(1, forever(), items));
        }
    }
}

/// A node that lost containers makes up how they ended. No program exited so.
#[test]
fn a_node_that_starts_again_fails_no_proc() {
    for at in (4000..9000).step_by(500) {
        goes_well(story(4, Order { count: 4, ..forever() }, vec![(When::At(at), What::Reboot(0))]));
    }
}

/// A program that takes too much, or never ran, has not failed by itself. Once somebody edits the job, it runs.
#[test]
fn a_program_that_takes_too_much_or_is_not_there_has_not_failed() {
    for fate in [Fated::OutOfMemory, Fated::OutOfDisk, Fated::NoCommand] {
        let items = vec![
            (When::At(0), What::Fated(Some(fate))),
            // By then each program has ended so.
            (When::At(40_000), What::Fated(None)),
        ];
        goes_well(story(2, job(2), items));
    }
}

/// A proc that went over its memory runs again with more, whoever leads by then.
#[test]
fn a_proc_that_went_over_its_memory_has_more_under_each_leader() {
    const MORE_MEMORY: u8 = 9;
    let Order { job: number, .. } = job(2);
    let times = (8000..44_000).step_by(4000).map(When::At);
    // When the creation of a pod is under way, the job's status already records the next amount of memory, which no
    // pod has yet.
    let creations = (2..6).map(|nth| When::Before(Class::CreatePod, nth));
    for killed in times.chain(creations) {
        let items = vec![
            (When::At(0), What::Fated(Some(Fated::OutOfMemory))),
            (When::At(3000), What::Attributes(number, MORE_MEMORY)),
            (killed, What::Kill(0)),
            (When::At(75_000), What::Fated(None)),
        ];
        let outcome = run(&story(2, job(2), items), true);
        assert_eq!(outcome.violation, None, "{}", outcome.log.join("\n"));
        let more = outcome.log.iter().any(|line| line.contains("\"RequestMemory\":\"130\""));
        assert!(more, "a proc has more twice: {}", outcome.log.join("\n"));
    }
}

#[test]
fn a_failed_init_container_is_an_end_of_its_proc() {
    let items = vec![(When::At(0), What::Fated(Some(Fated::InitFails)))];
    let outcome = run(&story(1, job(1), items), true);
    assert_eq!(outcome.violation, None, "{}", outcome.log.join("\n"));
    let failed = outcome.log.iter().any(|line| line.contains("\"failedProcs\":\"0\""));
    assert!(failed, "{}", outcome.log.join("\n"));
}

/// The end of the main container is the end of its proc, whatever runs beside it.
#[test]
fn what_runs_beside_the_main_container_holds_no_proc() {
    for beside in [Beside::Container, Beside::Sidecar] {
        for retention in 0..3 {
            for killed in [None, Some(When::After(Class::JobStatus, 1)), Some(When::At(12_000))] {
                let mut items = vec![(When::At(0), What::Fated(Some(Fated::Beside(beside))))];
                items.extend(killed.map(|when| (when, What::Kill(0))));
                goes_well(story(2, Order { retention, ..job(3) }, items));
            }
        }
    }
}

/// A program ends while nobody leads, and a minute later somebody deletes its pod. The end may count, or the proc may
/// run again.
#[test]
fn an_end_from_long_before_is_booked_once_or_not_at_all() {
    let items = vec![
        (When::At(4000), What::Kill(0)),
        (When::At(4000), What::EndNow(0)),
        // No operator reaches the server for all that time.
        (When::At(4000), What::Cut(0, 100)),
        (When::At(75_000), What::DeletePod(0, false)),
    ];
    goes_well(Plan { ends: 150, ..story(1, job(1), items) });
}
