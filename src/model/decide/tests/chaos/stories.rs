//! What the chaos found, each as the shortest story that shows it.

use super::World;
use super::people::{Action, Order};
use super::rng::Rng;
use super::server::{Fate, Phase};
use crate::pool::SlotName;

/// A node of so many CPUs, and a job.
fn begin(cpus: i64, job: &str, count: i64) -> World {
    let mut world = World::new();
    world.act(&Action::Node { node: 0, cpus, gpus: 0 }, 0);
    world.operator.stuck.clear();
    world.act(&Action::Submit(Order::simple(job, count)), 0);
    world
}

impl World {
    fn later(&mut self, seconds: u64) {
        self.pass(seconds, &mut Rng::new(0));
    }

    fn fates(&mut self, line: &str, fates: &[Fate]) {
        self.operator.fates.insert(line.to_owned(), fates.iter().copied().collect());
    }

    /// How many pods were made: the job took the first number.
    fn pods_made(&self) -> u64 {
        self.server.uids - 1
    }

    fn evict(&mut self, pod: &str) {
        self.server.pod(pod, |pod| (pod.alive, pod.phase) = (false, Phase::Refused("Evicted")));
    }

    fn let_go(&mut self) {
        self.operator.stuck.clear();
        self.operator.unheard.clear();
        self.settle();
    }
}

/// A world before its job is seen, in which something about it can be arranged.
fn arranged(count: i64, arrange: impl FnOnce(&mut World)) -> World {
    let mut world = World::new();
    world.act(&Action::Node { node: 0, cpus: 1, gpus: 0 }, 0);
    arrange(&mut world);
    world.act(&Action::Submit(Order::simple("fold", count)), 0);
    world
}

#[test]
fn an_answer_about_an_earlier_pod_is_not_about_the_next() {
    for fate in [Fate::Done, Fate::Lost] {
        let mut world = arranged(2, |world| {
            world.operator.unheard.insert("pod fold-0".to_owned());
            world.operator.stuck.insert("pod fold-1".to_owned());
            world.fates("pod fold-0", &[fate]);
        });
        world.later(100);
        world.operator.unheard.clear();
        world.settle();
        world.let_go();
        world.finish();
        assert_eq!(world.pods_made(), 2, "{fate:?}");
    }
}

#[test]
fn a_proc_that_ended_well_without_a_claim_is_not_run_again() {
    let mut world = arranged(1, |world| world.fates("pod fold-0", &[Fate::Lost, Fate::Stuck]));
    world.later(2);
    // It ends when the proc has another claim already, and waits for its next pod.
    let ends = world.now + std::time::Duration::from_secs(40);
    world.server.pod("fold-0", |pod| pod.ends = ends);
    world.later(60);
    world.let_go();
    world.finish();
    assert_eq!(world.pods_made(), 1);
}

#[test]
fn a_pod_that_could_not_be_let_go_is_let_go_later() {
    for fate in [Fate::Failed, Fate::Half, Fate::Lost] {
        let mut world = arranged(1, |world| world.fates("pod fold-0", &[Fate::Done, fate]));
        world.later(1);
        // It is evicted: its name has to become free for the next.
        world.evict("fold-0");
        world.finish();
    }
}

#[test]
fn a_crash_between_letting_go_and_deleting_leaves_no_pod_in_the_way() {
    let mut world = arranged(1, |world| world.fates("pod fold-0", &[Fate::Done, Fate::Half]));
    world.later(1);
    world.operator.unheard.insert("pod fold-0".to_owned());
    world.evict("fold-0");
    world.settle();
    world.act(&Action::DeleteSlot(0), 1);
    world.act(&Action::Restart, 0);
    world.finish();
}

#[test]
fn a_pod_without_a_claim_is_deleted_until_it_is_gone() {
    let mut world = begin(1, "forever", 1);
    world.later(1);
    world.act(&Action::EditSlot { pick: 0, how: 0 }, 1);
    world.fates("pod forever-0", &[]);
    world.act(&Action::Restart, 1);
    world.fates("pod forever-0", &[Fate::Failed]);
    world.later(20);
    world.finish();
}

#[test]
fn a_slot_that_could_not_be_deleted_is_deleted_later() {
    let mut world = arranged(1, |world| world.fates("slot slot1_1@n0", &[Fate::Done, Fate::Failed]));
    world.later(60);
    assert!(world.server.slots.is_empty());
    world.finish();
}

#[test]
fn a_slot_that_was_written_though_the_answer_says_no_does_not_stay() {
    let mut world = arranged(1, |world| world.fates("slot slot1_1@n0", &[Fate::Lost]));
    world.later(1);
    assert!(world.server.slots.is_empty(), "{:?}", world.server.slots);
    world.finish();
    assert_eq!(world.pods_made(), 1);
}

#[test]
fn a_new_operator_ends_the_pods_of_a_job_that_is_being_deleted() {
    let mut world = begin(1, "forever", 1);
    world.later(3);
    for uid in world.server.jobs.keys().cloned().collect::<Vec<_>>() {
        world.server.job(&uid, |facts| facts.removing = true);
    }
    world.act(&Action::Restart, 0);
    world.later(5);
    assert!(world.server.jobs.is_empty() && world.server.pods.is_empty() && world.server.slots.is_empty());
}

#[test]
fn a_new_operator_ends_the_pods_of_a_job_that_is_gone_before_it_gives_the_slot_back() {
    let mut world = begin(1, "forever", 1);
    world.later(3);
    for uid in world.server.jobs.keys().cloned().collect::<Vec<_>>() {
        world.server.job(&uid, |facts| (facts.removing, facts.held) = (true, false));
    }
    world.act(&Action::Restart, 0);
    world.later(5);
    assert!(world.server.pods.is_empty() && world.server.slots.is_empty());
    world.finish();
}

#[test]
fn an_end_counts_while_the_jobs_spec_is_not_understood() {
    let mut world = begin(1, "fold", 1);
    world.later(1);
    world.act(&Action::Edit(Order { requirements: 1, ..Order::simple("fold", 1) }), 0);
    world.server.slots.clear();
    world.act(&Action::Restart, 0);
    world.server.pod("fold-0", |pod| (pod.alive, pod.phase) = (false, Phase::Exited(0)));
    world.settle();
    assert!(world.server.jobs.values().all(|(_, facts)| facts.succeeded.contains(0)));
    world.finish();
}

#[test]
fn a_job_submitted_while_nobody_looked_gets_a_number_of_its_own() {
    let mut world = begin(1, "sweep", 1);
    world.later(1);
    Action::Submit(Order::simple("scan", 1)).perform(&mut world.server, world.now);
    world.act(&Action::Restart, 0);
    let mut numbers: Vec<i64> = world.operator.pool.jobs().values().map(|cluster| cluster.cluster).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    world.finish();
}

#[test]
fn a_claim_that_somebody_took_off_is_written_again() {
    let mut world = begin(1, "forever", 1);
    world.later(3);
    for how in 0..3 {
        world.act(&Action::EditSlot { pick: 0, how }, 0);
        let claim = world.server.slots.values().next().unwrap().1.clone();
        assert_eq!(
            claim,
            world.operator.pool.slots().values().next().map(|slot| slot.claim.clone()),
            "{how}"
        );
    }
    world.finish();
}

#[test]
fn a_slot_deleted_before_the_answer_came_is_written_again() {
    let mut world = arranged(1, |world| {
        world.operator.unheard.insert("slot slot1_1@n0".to_owned());
    });
    world.act(&Action::DeleteSlot(0), 0);
    world.let_go();
    assert_eq!(world.server.slots.len(), 1);
    world.finish();
}

#[test]
fn a_slot_that_somebody_made_up_holds_no_proc() {
    for (machine, dynamic) in [("n0", None), ("n0", Some(2)), ("a0", Some(1))] {
        let mut world = begin(2, "forever", 1);
        world.later(3);
        let name = SlotName { machine: machine.into(), slot: 1, dynamic };
        let (resources, claim) = world.server.slots.values().next().unwrap().clone();
        world.server.slot(&name, resources, claim);
        world.act(&Action::Restart, 0);
        world.later(5);
        assert_eq!(world.server.slots.len(), 1, "{name}");
        assert_eq!(world.pods_made(), 1, "{name}");
        world.finish();
    }
}

#[test]
fn what_is_refused_at_once_is_not_asked_without_end() {
    let mut world = arranged(1, |world| {
        let refusals = std::iter::repeat_n(Fate::Failed, 1000);
        let fates = std::iter::once(Fate::Done).chain(refusals).collect();
        world.operator.fates.insert("pod fold-0".to_owned(), fates);
    });
    world.later(100);
    let left = world.operator.fates.get("pod fold-0").map_or(0, std::collections::VecDeque::len);
    assert!(left > 975, "{left}");
    world.operator.fates.clear();
    world.finish();
}
