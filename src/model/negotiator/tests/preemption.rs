//! Slots in use, and which jobs may preempt the jobs there.
//!
//! Source: the manual, "The Negotiation Cycle", "Preemption" and the knobs that it names.

use super::kit::{cycle, expr, jobs, jobs_with, rejections, slot, slot_with, slots, submitter};
use crate::negotiator::{
    Candidate, Cycle, GroupInput, Match, PreemptState, RejectReason, SubmitterInput, negotiate,
};

/// A slot of one core that `user` uses, with additional attributes in the long form.
fn used_by(user: &str, attributes: &str) -> Candidate {
    let said = format!(
        "RemoteUser = \"{user}\"\nRemoteOwner = \"{user}\"\nState = \"Claimed\"\nCurrentRank = 0.0\n{attributes}"
    );
    slot_with(1, &said)
}

/// Two users: `low` uses all slots, and `high` has jobs that wait.
fn pool(slots: Vec<Candidate>, requirements: Option<&str>) -> Cycle {
    let mut low = submitter("low", 4000.0, &[]);
    low.weighted_used = slots.iter().map(|slot| slot.weight).sum();
    let mut cycle = cycle(slots, vec![submitter("high", 500.0, &[jobs(9)]), low]);
    cycle.pool_weight = 10.0;
    cycle.config.preemption_requirements = requirements.map(expr);
    cycle
}

fn kinds(cycle: &Cycle) -> Vec<(usize, PreemptState)> {
    negotiate(cycle).matches.iter().map(|Match { slot, preempt, .. }| (*slot, *preempt)).collect()
}

const BETTER: &str = "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2";

/// "PREEMPTION_REQUIREMENTS ... must evaluate to true": by default it is false, and no user loses a slot by priority.
#[test]
fn preemption_requirements() {
    use PreemptState::Priority;
    type Case = (Option<&'static str>, &'static [(usize, PreemptState)]);
    let cases: [Case; 7] = [
        (Some("False"), &[]),
        (Some(BETTER), &[(0, Priority), (1, Priority)]),
        (Some("RemoteUserPrio < TARGET.SubmitterUserPrio"), &[]),
        (Some("undefined"), &[]),
        // Only true counts, and no other value.
        (Some("1"), &[]),
        (Some("TARGET.Owner =?= undefined"), &[(0, Priority), (1, Priority)]),
        (None, &[(0, Priority), (1, Priority)]),
    ];
    for (requirements, expected) in cases {
        let cycle = pool(vec![used_by("low", ""), used_by("low", "")], requirements);
        assert_eq!(kinds(&cycle), expected, "{requirements:?}");
        if expected.is_empty() {
            let reason = if requirements == Some("1")
                || requirements == Some("undefined")
                || requirements == Some("False")
            {
                // No job may have any of the slots.
                RejectReason::NoSlots
            } else {
                RejectReason::PreemptionPolicy
            };
            assert_eq!(rejections(&negotiate(&cycle)), [(0, 0, 9, reason)], "{requirements:?}");
        }
    }
}

/// A slot that ranks the waiting job higher than its own is preempted, whatever the priorities are. A slot that ranks
/// it lower never is. If both rank equally, PREEMPTION_REQUIREMENTS decides.
#[test]
fn startd_rank() {
    use PreemptState::{Priority, Rank};
    let slots = |rank: &str| vec![used_by("low", &format!("Rank = {rank}\nCurrentRank = 5.0"))];
    for (rank, requirements, expected) in [
        ("6.0", "False", Some(Rank)),
        ("6.0", BETTER, Some(Rank)),
        ("5.0", "False", None),
        ("5.0", BETTER, Some(Priority)),
        ("4.0", BETTER, None),
        ("TARGET.RequestCpus * 6", "False", Some(Rank)),
        ("undefined", BETTER, None),
    ] {
        let cycle = pool(slots(rank), Some(requirements));
        let found = kinds(&cycle).first().map(|(_, kind)| *kind);
        assert_eq!(found, expected, "{rank} under {requirements}");
    }
}

/// No user preempts their own jobs by priority, but the slot's rank may.
#[test]
fn of_ones_own() {
    let own = |rank: &str| {
        let mut cycle = pool(vec![used_by("high", &format!("Rank = {rank}"))], None);
        cycle.submitters[1].weighted_used = 0.0;
        kinds(&cycle)
    };
    assert_eq!(own("0.0"), []);
    assert_eq!(own("1.0"), [(0, PreemptState::Rank)]);
}

/// Among slots that the job ranks equally, the order is: unused slots; slots that rank the job higher than their own; then
/// slots of worse users. Among the last, the highest PREEMPTION_RANK comes first: by default that is the worst user's, and
/// among jobs of one user the job that has run the shortest time.
#[test]
fn who_is_thrown_out_first() {
    let slots = vec![
        used_by("low", "TotalJobRunTime = 500\nRemoteOwner = undefined"),
        used_by("low", "TotalJobRunTime = 20\nRemoteOwner = undefined"),
        used_by("lower", "TotalJobRunTime = 900\nRemoteOwner = undefined"),
        used_by("low", "Rank = 1.0\nRemoteOwner = undefined"),
        slot(1),
    ];
    let mut cycle = pool(slots, Some(BETTER));
    cycle.config.pre_job_rank = None;
    cycle.config.post_job_rank = None;
    cycle.submitters.push(submitter("lower", 9000.0, &[]));
    cycle.submitters[2].weighted_used = 1.0;
    let order: Vec<usize> = kinds(&cycle).iter().map(|(slot, _)| *slot).collect();
    assert_eq!(order, [4, 3, 2, 1, 0]);
}

/// A submitter above its share preempts nothing by priority. Slots that rank its jobs higher may be preempted all the
/// same.
#[test]
fn the_slice_limits_preemption_by_priority_only() {
    for (rank, expected) in [("0.0", 0), ("1.0", 8)] {
        let mut cycle =
            pool((0..8).map(|_| used_by("low", &format!("Rank = {rank}"))).collect(), Some("True"));
        cycle.pool_weight = 8.0;
        cycle.submitters[0].weighted_used = 8.0;
        assert_eq!(kinds(&cycle).len(), expected, "{rank}");
    }
}

/// NEGOTIATOR_CONSIDER_EARLY_PREEMPTION = False keeps slots whose job has retirement time left;
/// NEGOTIATOR_CONSIDER_PREEMPTION = False keeps all.
#[test]
fn what_is_looked_at() {
    let slots = || {
        vec![used_by("low", "RetirementTimeRemaining = 60"), used_by("low", "RetirementTimeRemaining = 0")]
    };
    let mut cycle = pool(slots(), Some("True"));
    assert_eq!(kinds(&cycle), [(1, PreemptState::Priority)]);
    cycle.config.consider_early_preemption = true;
    assert_eq!(kinds(&cycle).len(), 2);
    cycle.config.consider_preemption = false;
    assert_eq!(kinds(&cycle), []);
}

/// A claim that waits for a slot counts like the job that runs there, and the slot counts as its user's.
#[test]
fn a_preempting_claim_must_be_beaten() {
    let waiting = |rank: &str| {
        used_by(
            "low",
            &format!("PreemptingUser = \"next\"\nPreemptingRank = 5.0\nRank = {rank}\nCurrentRank = 1.0"),
        )
    };
    let cycle = pool(vec![waiting("3.0"), waiting("6.0")], Some("False"));
    assert_eq!(kinds(&cycle), [(1, PreemptState::Rank)]);
}

/// Attributes that PREEMPTION_REQUIREMENTS may read.
#[test]
fn ephemeral_attributes() {
    for (requirements, expected) in [
        ("MY.RemoteUserPrio == 4000.0", 2),
        ("MY.RemoteUserResourcesInUse == 2.0", 2),
        // Without groups, HTCondor says nothing of groups.
        ("MY.RemoteGroup =?= undefined && TARGET.SubmitterGroup =?= undefined", 2),
        ("MY.RemoteGroupQuota =?= undefined && TARGET.SubmitterGroupQuota =?= undefined", 2),
        (
            "MY.RemoteGroupResourcesInUse =?= undefined && TARGET.SubmitterGroupResourcesInUse =?= undefined",
            2,
        ),
        ("TARGET.SubmitterUserPrio == 500.0 && TARGET.SubmittorPrio == 500.0", 2),
        ("TARGET.SubmitterUserResourcesInUse == 0", 2),
        ("TARGET.SubmitterNegotiatingGroup == \"<none>\" && TARGET.SubmitterAutoregroup == false", 2),
    ] {
        let cycle = pool(vec![used_by("low", ""), used_by("low", "")], Some(requirements));
        assert_eq!(kinds(&cycle).len(), expected, "{requirements}");
    }
    // Attributes that change with each match are read again only if the expression is declared not to be stable.
    let mut cycle =
        pool((0..4).map(|_| used_by("low", "")).collect(), Some("TARGET.SubmitterUserResourcesInUse < 2"));
    assert_eq!(kinds(&cycle).len(), 4);
    cycle.config.preemption_requirements_stable = false;
    assert_eq!(kinds(&cycle).len(), 2);
}

/// The groups of the two users in the ads, in a pool of 10 of which the quota of `g` is 4: `<none>` has what the quotas leave
/// (`hgq_assign_quotas` in GroupEntry.cpp), and all of the pool if a group has autoregroup (`hgq_negotiate_with_all_groups`).
#[test]
fn groups_in_ads() {
    const LOW: &str = "g.low";
    for (autoregroup, requirements, expected) in [
        (false, "RemoteGroup == \"g\" && RemoteGroupQuota == 4 && RemoteGroupResourcesInUse == 2", 2),
        (false, "SubmitterGroup == \"<none>\" && SubmitterGroupQuota == 6", 2),
        (false, "SubmitterGroupResourcesInUse == 0 && SubmitterNegotiatingGroup == \"<none>\"", 2),
        (true, "RemoteGroupQuota == 4 && SubmitterGroupQuota == 10", 2),
    ] {
        let mut cycle = pool(vec![used_by(LOW, ""), used_by(LOW, "")], Some(requirements));
        let low = &mut cycle.submitters[1];
        (low.name, low.group) = (LOW.to_owned(), Some(0));
        cycle.groups = vec![GroupInput {
            name: "g".to_owned(),
            quota: 4.0,
            subtree_quota: 4.0,
            weighted_used: 2.0,
            autoregroup,
            ..GroupInput::default()
        }];
        assert_eq!(kinds(&cycle).len(), expected, "{requirements}");
    }
    // The user of the slots is of no group, and another group's quota is 4.
    let mut cycle = pool(vec![used_by("low", "")], Some("RemoteGroupQuota == 6"));
    cycle.groups = vec![GroupInput { quota: 4.0, subtree_quota: 4.0, ..GroupInput::default() }];
    assert_eq!(kinds(&cycle).len(), 1);
}

/// A rejected request says why; the preemption policy is named before all other reasons.
#[test]
fn reasons() {
    let request = jobs_with(1, "Requirements = TARGET.Arch == \"X\"");
    let mut cycle = pool(
        vec![used_by("low", "Arch = \"X\"\nCurrentRank = 7.0"), used_by("low", "Arch = \"Y\"\nRank = 1.0")],
        Some("True"),
    );
    cycle.submitters[0].requests = vec![request];
    assert_eq!(rejections(&negotiate(&cycle)), [(0, 0, 1, RejectReason::PreemptionRank)]);
    cycle.slots[0].ad.set("CurrentRank", 0.0);
    cycle.config.preemption_requirements = Some(expr("false"));
    assert_eq!(rejections(&negotiate(&cycle)), [(0, 0, 1, RejectReason::PreemptionPolicy)]);
    assert_eq!(slots(&negotiate(&cycle)), [] as [usize; 0]);
}

/// The facts about its user in a slot's ad, including the floor, whether or not the cycle serves the user.
#[test]
fn what_is_known_of_the_user_of_a_slot() {
    let known = |requirements: &str, floor: Option<f64>, served: bool| {
        let mut cycle = pool(vec![used_by("low", "")], Some(requirements));
        cycle.submitters[1].floor = floor;
        if !served {
            let low = cycle.submitters.remove(1);
            cycle.others.push(low);
        }
        kinds(&cycle).len()
    };
    for served in [true, false] {
        let beyond_floor = "RemoteUserResourcesInUse > RemoteUserFloor";
        assert_eq!(known(beyond_floor, Some(10.0), served), 0, "{served}");
        assert_eq!(known(beyond_floor, None, served), 1, "{served}");
        assert_eq!(known("RemoteUserPrio == 4000", None, served), 1, "{served}");
    }
}

/// Ranks may read whose job it is, even if no preemption is considered.
#[test]
fn slots_see_who_asks_without_preemption() {
    let mut slots = vec![slot(1), slot(1)];
    slots[1].ad.set("Memory", 2048);
    for (group, expected) in [("<none>", 1), ("physics", 0)] {
        let mut cycle = cycle(slots.clone(), vec![submitter("u", 500.0, &[jobs(1)])]);
        cycle.groups = vec![GroupInput { name: "physics".to_owned(), ..GroupInput::default() }];
        cycle.config.consider_preemption = false;
        let rank = format!("ifThenElse(TARGET.SubmitterGroup =?= \"{group}\", MY.Memory, -MY.Memory)");
        cycle.config.pre_job_rank = Some(expr(&rank));
        assert_eq!(super::kit::slots(&negotiate(&cycle)), [expected], "{group}");
    }
}

/// A group that uses all of its quota may still preempt its own jobs, by priority and by rank, because it then uses no
/// more. It may not preempt the jobs of another group. The quota of a group inside another is its own.
#[test]
fn a_full_group_preempts_within_itself() {
    let pool = |of: [&str; 2], rank: &str, requirements: &str| {
        let held = |name: &str| used_by(name, &format!("Rank = {rank}"));
        let slots: Vec<Candidate> = (0..8).map(|n| held(of[usize::from(n > 3)])).collect();
        let [alice, carol, bob] = [("g.alice", 9000.0, 0), ("h.carol", 9000.0, 1), ("g.bob", 500.0, 0)].map(
            |(name, priority, group)| SubmitterInput { group: Some(group), ..submitter(name, priority, &[]) },
        );
        let count = |name: &str| of.iter().filter(|user| **user == name).count();
        let mut cycle = cycle(slots, vec![SubmitterInput { requests: vec![jobs(4)], ..bob }, alice, carol]);
        for (place, name) in [(1, "g.alice"), (2, "h.carol")] {
            cycle.submitters[place].weighted_used = if count(name) == 1 { 4.0 } else { 0.0 };
        }
        cycle.pool_weight = 8.0;
        let group = |name: &str, used| GroupInput {
            name: name.to_owned(),
            quota: 4.0,
            subtree_quota: 4.0,
            weighted_used: used,
            ..GroupInput::default()
        };
        let used =
            |name| cycle.submitters.iter().find(|one| one.name == name).map_or(0.0, |one| one.weighted_used);
        cycle.groups = vec![group("g", used("g.alice")), group("h", used("h.carol"))];
        cycle.config.preemption_requirements = Some(expr(requirements));
        cycle
    };
    for (of, rank, requirements, expected) in [
        (["g.alice", "h.carol"], "0.0", "True", 3),
        (["g.alice", "h.carol"], "1.0", "False", 4),
        (["g.alice", "h.carol"], "0.0", "MY.RemoteGroup == \"h\"", 0),
        (["g.alice", "h.carol"], "0.0", "False", 0),
    ] {
        let cycle = pool(of, rank, requirements);
        let taken = slots(&negotiate(&cycle));
        assert_eq!(taken.len(), expected, "{rank} {requirements}: {taken:?}");
        assert!(taken.iter().all(|slot| *slot < 4), "of its own group only: {taken:?}");
    }
}
