//! Which marks each kind of change sets: the table of `Pool::changed`, row by row.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::*;
use crate::pool::{
    Assignment, Capacity, Claim, ClaimId, Event, Group, JobKey, MachineFacts, NegotiatorId, Phase,
    PolicyName, Quota, Resources, Slot, SlotName, State, System, Time,
};

fn machine(name: &str) -> Event {
    Event::Machine(MachineFacts {
        name: name.into(),
        arch: "amd64".into(),
        os: "linux".into(),
        labels: Arc::default(),
        allocatable: Capacity { milli_cpu: 4000, memory: 8 << 30, ..Capacity::default() },
        ready: true,
        cordoned: false,
        taints: vec![],
        system: System::default(),
    })
}

fn slot(name: &str) -> Slot {
    let name = SlotName::parse(name).unwrap();
    let claim = Claim {
        id: ClaimId::new(&name, Time::default(), 1),
        submitter: "alice".into(),
        group: Some("physics.higgs".into()),
        negotiator: NegotiatorId::Unnamed,
        regrouped: false,
        weight: 1.0,
        limits: crate::pool::limits::Wants::default(),
        since: Time::default(),
        last: Assignment {
            job: JobKey { namespace: "alice".into(), name: "pi".into(), uid: "u-pi".into() },
            cluster_id: 1,
            proc: 0,
        },
    };
    Slot::new(
        name,
        Resources { cpus: 1, ..Resources::default() },
        claim,
        Phase::starting(State::Matched, Time::default()),
    )
}

fn group(object: &str, name: &str) -> Group {
    Group {
        owners: Some(vec!["*".to_owned()]),
        object: object.into(),
        generation: 1,
        created: None,
        name: name.into(),
        quota: Quota::Static(1.0),
        share_unused: false,
        accept_surplus: None,
        autoregroup: None,
        priority_factor: None,
    }
}

/// Two machines, a claimed slot on the first, and groups; nothing is marked.
fn pool() -> Pool {
    let mut pool = Pool::default();
    pool.apply(machine("n1"), Time::default());
    pool.apply(machine("n2"), Time::default());
    for (object, name) in [("g-physics", "physics"), ("g-higgs", "physics.higgs"), ("g-bio", "bio")] {
        pool.apply(Event::Group(group(object, name)), Time::default());
    }
    let claimed = slot("slot1_1@n1");
    pool.slots.insert(claimed.name().clone(), claimed);
    pool.edit_submitter(&"alice".into(), Time::default(), |_| ());
    pool.marks = Marks::default();
    pool
}

/// The marks that a change sets, a word for each kind of mark.
fn marks(change: Change) -> String {
    let mut pool = pool();
    pool.changed(change);
    let Marks {
        machines,
        slots,
        jobs,
        gatherings,
        drain_costs,
        policies,
        groups,
        negotiators,
        statuses,
        offers,
        cycle,
    } = pool.marks;
    let mut text = String::new();
    let mut say = |kind: &str, names: Vec<String>| {
        if !names.is_empty() {
            write!(text, "{kind} {}; ", names.join(" ")).unwrap();
        }
    };
    say("review", machines.iter().map(ToString::to_string).collect());
    say("step", slots.iter().map(ToString::to_string).collect());
    say("job", jobs.iter().map(ToString::to_string).collect());
    say("gathering", gatherings.iter().map(ToString::to_string).collect());
    say("cost", drain_costs.iter().map(ToString::to_string).collect());
    say("write", statuses.iter().map(|document| format!("{document:?}")).collect());
    for (set, word) in [
        (policies, "policies; "),
        (groups, "groups; "),
        (negotiators, "negotiators; "),
        (offers > 0, "offers; "),
        (cycle, "cycle; "),
    ] {
        text.push_str(if set { word } else { "" });
    }
    text.trim_end_matches("; ").to_owned()
}

#[test]
fn each_change_marks_what_follows() {
    let (n1, name) = ("n1".into(), SlotName::parse("slot1_1@n1").unwrap());
    let (job, alice, claimed) = ("u-pi".into(), "alice".into(), slot("slot1_1@n1"));
    let (lic, policy, drain): (Arc<str>, PolicyName, Arc<str>) = ("lic".into(), "desk".into(), "d1".into());
    let limits = BTreeSet::from([lic]);
    let tied = [policy.clone(), "other".into()];
    let document = Document::Slot(name.clone());
    let shown = BTreeSet::from([document.clone()]);
    let id = ClaimId::new(&name, Time::default(), 1);
    let higgs = "physics.higgs".into();
    let changes: Vec<(&str, Change)> = vec![
        ("Synced", Change::Synced),
        ("Node", Change::Node(&n1)),
        ("Machine", Change::Machine(&n1)),
        ("ToCarve", Change::ToCarve(&n1)),
        ("Agent", Change::Agent { machine: &n1, start: false, load: false }),
        ("Agent, load", Change::Agent { machine: &n1, start: false, load: true }),
        ("Agent, START", Change::Agent { machine: &n1, start: true, load: false }),
        ("Offer", Change::Offer(&n1)),
        ("Draining", Change::Draining(&n1)),
        ("DrainPace", Change::DrainPace(&n1)),
        ("Unfit", Change::Unfit(&n1)),
        ("PolicyOf", Change::PolicyOf { before: None, after: Some(&policy) }),
        ("Tied", Change::Tied { before: &[], after: &tied }),
        ("Layout", Change::Layout(&n1, &shown)),
        ("Latched", Change::Latched),
        ("Crossed", Change::Crossed),
        ("ClaimsOn", Change::ClaimsOn(&n1)),
        ("Forgotten", Change::Forgotten(&shown, Some(&policy))),
        ("MachineSlot", Change::MachineSlot { document: &document, idle: false }),
        ("MachineSlot, idle", Change::MachineSlot { document: &document, idle: true }),
        ("Kept", Change::Kept(&name)),
        ("Slot", Change::Slot(&name)),
        ("Started", Change::Started(&name)),
        ("Carved", Change::Carved(&claimed)),
        ("Returned", Change::Returned(&claimed)),
        ("Replaced", Change::Replaced(claimed.claim(), &claimed)),
        ("Rests", Change::Rests { slot: &name, seen: false, passing: false }),
        ("Rests, seen", Change::Rests { slot: &name, seen: true, passing: true }),
        ("SlotObject", Change::SlotObject(&name)),
        ("SlotObjectGoes", Change::SlotObjectGoes(&name)),
        ("Waits", Change::Waits(&name)),
        ("WaitsNoLonger", Change::WaitsNoLonger),
        ("Gathering", Change::Gathering(&id)),
        ("GatheringOver", Change::GatheringOver),
        ("NewJob", Change::NewJob(&job)),
        ("Job", Change::Job(&job)),
        ("Spec", Change::Spec(&job)),
        ("SpecInForce", Change::SpecInForce),
        ("Procs", Change::Procs(&job)),
        ("JobStatus", Change::JobStatus(&job)),
        ("Assigned", Change::Assigned(&name, &job, &alice)),
        ("Withdrawn", Change::Withdrawn(&job)),
        ("JobGone", Change::JobGone(&job)),
        ("Queue", Change::Queue(&alice, Some(&higgs))),
        ("Submitter", Change::Submitter(&alice)),
        ("SubmitterSet", Change::SubmitterSet(&alice)),
        ("Charge", Change::Charge(&alice)),
        ("Priorities", Change::Priorities),
        ("Groups", Change::Groups),
        ("Given", Change::Given(&drain)),
        ("Shares", Change::Shares),
        ("Limit", Change::Limit { objects: &limits, less: false }),
        ("Limit, less", Change::Limit { objects: &limits, less: true }),
        ("LimitFreed", Change::LimitFreed),
        ("Limits", Change::Limits { other: false }),
        ("Limits, other", Change::Limits { other: true }),
        ("Barred", Change::Barred),
        ("Policies", Change::Policies),
        ("SubmitPolicies", Change::SubmitPolicies),
        ("Negotiators", Change::Negotiators),
        ("Overlaps", Change::Overlaps),
        ("Cycle", Change::Cycle(Some(&drain))),
        ("Drain", Change::Drain { request: Some(&drain), machines: [Some(&n1), None] }),
        ("DrainStatus", Change::DrainStatus(&drain)),
        ("Time", Change::Time),
    ];
    let mut table = String::new();
    for (name, change) in changes {
        writeln!(table, "{name}: {}", marks(change)).unwrap();
    }
    insta::assert_snapshot!(table);
}

/// A decider that changes the pool through the editing methods sets the same marks without saying so.
#[test]
fn edits_mark_what_they_change_and_nothing_else() {
    let name = SlotName::parse("slot1_1@n1").unwrap();
    let mut pool = pool();
    pool.edit_slot(&name, |slot| slot.set_rank(7.0));
    assert_eq!(pool.next_slot(), None, "RANK is no step's business");
    pool.edit_slot(&name, Slot::assign_again);
    assert_eq!(pool.next_slot(), Some(name.clone()));
    pool.edit_machine(&"n1".into(), |machine| machine.utc_offset = 3600);
    assert_eq!((pool.offers(), pool.take_statuses()), (0, BTreeSet::new()));
    pool.edit_machine(&"n1".into(), |machine| machine.offer = crate::pool::Offer::Cordoned);
    assert_eq!((pool.offers(), pool.next_slot()), (1, Some(name)));
    assert!(!pool.take_cycle_wanted(), "less is offered, not more");
}
