//! Several dynamic slots make room for one job: `ALLOW_PSLOT_PREEMPTION`.
//!
//! Source: the manual, "Dynamic Provisioning: Partitionable and Dynamic Slots".

use proptest::prelude::*;

use super::kit::{cycle, expr, jobs_with, rejections, slot_with, submitter, weights};
use crate::negotiator::{Candidate, Cycle, PreemptState, RejectReason, Request, negotiate};

/// The size of a slot: cores and MiB.
type Size = (i64, i64);

const REQUIREMENTS: &str = "TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory";

/// A partitionable slot with this much left.
fn pslot(left: Size) -> Candidate {
    let said = format!(
        "PartitionableSlot = true\nMemory = {}\nDisk = 1000000\nSlotWeight = Cpus\n\
         MachineResources = \"Cpus Memory Disk Swap GPUs\"\nRequirements = {REQUIREMENTS}",
        left.1
    );
    slot_with(left.0, &said)
}

/// A dynamic slot of the partitionable slot at place `parent`, with additional attributes in the long form.
fn dslot(parent: usize, (cpus, memory): Size, user: &str, attributes: &str) -> Candidate {
    let said = format!(
        "DynamicSlot = true\nMemory = {memory}\nDisk = 1000\nState = \"Claimed\"\nCurrentRank = 0.0\n\
         RemoteUser = \"{user}\"\nRemoteOwner = \"{user}\"\nRequirements = {REQUIREMENTS}\n{attributes}"
    );
    Candidate { parent: Some(parent), ..slot_with(cpus, &said) }
}

/// A request for `count` jobs of this size.
fn wanting(count: u64, (cpus, memory): Size) -> Request {
    jobs_with(count, &format!("RequestCpus = {cpus}\nRequestMemory = {memory}\nRequestDisk = 100"))
}

/// The user `high` has jobs that wait, and `low` has the slots in use. The user with the better priority preempts.
fn pool(slots: Vec<Candidate>, requests: &[Request]) -> Cycle {
    let in_use = slots.iter().filter(|slot| slot.parent.is_some());
    let mut low = submitter("low", 4000.0, &[]);
    low.weighted_used = in_use.map(|slot| slot.weight).sum();
    let mut cycle = cycle(slots, vec![submitter("high", 500.0, requests), low]);
    cycle.pool_weight = 100.0;
    cycle.config.allow_pslot_preemption = true;
    cycle.config.preemption_requirements = Some(expr("RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"));
    cycle
}

/// The matches: the slot, the dynamic slots that are preempted, and the reason for the preemption.
fn matches(cycle: &Cycle) -> Vec<(usize, Vec<usize>, PreemptState)> {
    let matches = negotiate(cycle).matches.into_iter();
    matches.map(|each| (each.slot, each.dynamic, each.preempt)).collect()
}

/// "The resources of each dynamic slot are added to those of the partitionable slot, one dynamic slot at a time", until
/// there is enough.
#[test]
fn a_wide_job_gets_several_narrow_slots_at_once() {
    use PreemptState::{None, Priority};
    let slots = |left: i64| {
        let narrow = (0..4).map(|_| dslot(0, (1, 1024), "low", ""));
        std::iter::once(pslot((left, 1024))).chain(narrow).collect::<Vec<_>>()
    };
    let of = |left: i64, cpus: i64| matches(&pool(slots(left), &[wanting(1, (cpus, 512))]));
    assert_eq!(of(0, 1), [(0, vec![1], Priority)]);
    assert_eq!(of(0, 3), [(0, vec![1, 2, 3], Priority)]);
    assert_eq!(of(0, 4), [(0, vec![1, 2, 3, 4], Priority)]);
    assert_eq!(of(0, 5), [], "all of the machine is not enough");
    assert_eq!(of(2, 4), [(0, vec![1, 2], Priority)], "beside what is left");
    assert_eq!(of(4, 4), [(0, vec![], None)], "nobody goes where there is enough");
}

/// A node that has shrunk gets back less than its dynamic slots hold: pods outside the pool have the rest.
#[test]
fn what_the_slot_is_overdrawn_is_nobodys() {
    let slots = |overdrawn: f64| {
        let shrunk = Candidate { overdrawn: [("Cpus".to_owned(), overdrawn)].into(), ..pslot((0, 1024)) };
        let narrow = (0..4).map(|_| dslot(0, (1, 1024), "low", ""));
        std::iter::once(shrunk).chain(narrow).collect::<Vec<_>>()
    };
    let of = |overdrawn: f64, requests: &[Request]| {
        let matches = matches(&pool(slots(overdrawn), requests)).into_iter();
        matches.map(|(_, preempted, _)| preempted).collect::<Vec<_>>()
    };
    assert_eq!(of(1.0, &[wanting(1, (1, 512))]), [vec![1, 2]]);
    assert_eq!(of(3.0, &[wanting(1, (1, 512))]), [vec![1, 2, 3, 4]]);
    assert_eq!(of(4.0, &[wanting(1, (1, 512))]), Vec::<Vec<usize>>::new());
    // The first match settles the debt, so that the second does not pay again.
    assert_eq!(of(1.0, &[wanting(1, (1, 512)), wanting(2, (1, 256))]), [vec![1, 2], vec![3], vec![4]]);
}

/// Without the knob a wide job waits until a job leaves, and dynamic slots are preempted one by one for narrow jobs.
#[test]
fn only_where_it_is_allowed() {
    let slots = || vec![pslot((0, 0)), dslot(0, (1, 1024), "low", ""), dslot(0, (1, 1024), "low", "")];
    let of = |allow: bool, cpus: i64| {
        let mut cycle = pool(slots(), &[wanting(1, (cpus, 512))]);
        cycle.config.allow_pslot_preemption = allow;
        matches(&cycle)
    };
    assert_eq!(of(false, 2), []);
    assert_eq!(of(false, 1), [(1, vec![], PreemptState::Priority)]);
    assert_eq!(of(true, 2), [(0, vec![1, 2], PreemptState::Priority)]);
    // "The negotiator will not preempt dynamic slots directly."
    assert_eq!(of(true, 1), [(0, vec![1], PreemptState::Priority)]);
    let mut orphan = pool(vec![dslot(7, (1, 1024), "low", "")], &[wanting(1, (1, 512))]);
    orphan.slots[0].parent = None;
    assert_eq!(matches(&orphan), []);
    // NEGOTIATOR_CONSIDER_PREEMPTION = False forbids this preemption, too.
    let mut cycle = pool(slots(), &[wanting(1, (1, 512))]);
    cycle.config.consider_preemption = false;
    assert_eq!(matches(&cycle), []);
}

/// "It sorts the slots by their CurrentRank attribute, such that slots with lower values are considered first."
#[test]
fn what_the_slot_ranks_lowest_goes_first() {
    use PreemptState::{Priority, Rank};
    let slots = |ranks: [f64; 3], rank: &str| {
        let children = ranks.into_iter();
        let children = children
            .map(|current| dslot(0, (1, 1024), "low", &format!("CurrentRank = {current}\nRank = {rank}")));
        std::iter::once(pslot((0, 0))).chain(children).collect::<Vec<_>>()
    };
    let of = |ranks, rank: &str, cpus| matches(&pool(slots(ranks, rank), &[wanting(1, (cpus, 512))]));
    assert_eq!(of([3.0, 1.0, 2.0], "9.0", 2), [(0, vec![2, 3], Rank)]);
    // Among dynamic slots that rank their job as high as the waiting job, PREEMPTION_REQUIREMENTS decides. Slots that
    // rank their job higher stay.
    assert_eq!(of([3.0, 1.0, 2.0], "2.0", 2), [(0, vec![2, 3], Priority)]);
    assert_eq!(of([3.0, 1.0, 2.0], "2.0", 3), []);
    // Among equals PREEMPTION_RANK decides, by default against the job that has run the shortest time.
    let mut cycle = pool(slots([0.0; 3], "0.0"), &[wanting(1, (1, 512))]);
    for (slot, ran) in cycle.slots.iter_mut().skip(1).zip([50, 10, 90]) {
        slot.ad.set("TotalJobRunTime", ran);
    }
    assert_eq!(matches(&cycle), [(0, vec![2], Priority)]);
}

/// A dynamic slot that was added on the way, and turned out not to be needed, stays.
#[test]
fn nobody_goes_in_vain() {
    let slots = vec![
        pslot((1, 0)),
        dslot(0, (1, 0), "low", "CurrentRank = 0.0\nRank = 9.0"),
        dslot(0, (1, 256), "low", "CurrentRank = 1.0\nRank = 9.0"),
        dslot(0, (3, 4096), "low", "CurrentRank = 2.0\nRank = 9.0"),
    ];
    let of = |size| matches(&pool(slots.clone(), &[wanting(1, size)]));
    assert_eq!(of((1, 4096)), [(0, vec![3], PreemptState::Rank)]);
    assert_eq!(of((5, 4096)), [(0, vec![1, 3], PreemptState::Rank)], "the lower rank rather than the higher");
    assert_eq!(of((6, 4352)), [(0, vec![1, 2, 3], PreemptState::Rank)]);
}

/// "Following the normal preemption rules described elsewhere"; and "dynamic slots that have retirement time remaining are not
/// considered eligible for preemption, regardless of how NEGOTIATOR_CONSIDER_EARLY_PREEMPTION is set."
#[test]
fn who_may_be_preempted() {
    for (case, user, attributes, requirements, preempted) in [
        ("worse priority", "low", "", "RemoteUserPrio > TARGET.SubmitterUserPrio", true),
        ("better priority", "low", "", "RemoteUserPrio < TARGET.SubmitterUserPrio", false),
        ("no priority preemption", "low", "", "False", false),
        ("for the slot's rank", "low", "Rank = 1.0", "False", true),
        ("which is lower", "low", "CurrentRank = 1.0", "True", false),
        ("one's own", "high", "", "True", false),
        ("one's own, for the slot's rank", "high", "Rank = 1.0", "False", true),
        ("in retirement", "low", "RetirementTimeRemaining = 60", "True", false),
        ("after it", "low", "RetirementTimeRemaining = 0", "True", true),
        ("already preempted", "low", "State = \"Preempting\"", "True", false),
        ("promised to another", "low", "PreemptingUser = \"next\"\nRank = 1.0", "True", false),
        ("what the dynamic slot says", "low", "Precious = true", "MY.Precious =!= true", false),
    ] {
        let slots = vec![pslot((0, 0)), dslot(0, (2, 1024), user, attributes)];
        let mut cycle = pool(slots, &[wanting(1, (2, 512))]);
        cycle.config.preemption_requirements = Some(expr(requirements));
        cycle.config.consider_early_preemption = true;
        cycle.submitters[0].weighted_used = if user == "high" { 2.0 } else { 0.0 };
        assert_eq!(matches(&cycle).len(), usize::from(preempted), "{case}");
    }
    let mut refuses = pool(vec![pslot((0, 0)), dslot(0, (2, 1024), "low", "")], &[wanting(1, (2, 512))]);
    refuses.submitters[0].requests[0].ad.set("WantPslotPreemption", false);
    assert_eq!(matches(&refuses), []);
    assert_eq!(rejections(&negotiate(&refuses)), [(0, 0, 1, RejectReason::NoMatch)]);
}

/// A machine on which no job has to go comes first; then a machine where the slot's rank decides; then one where
/// priorities do.
#[test]
fn where_nobody_goes_before_where_somebody_does() {
    let slots = vec![
        pslot((0, 0)),
        dslot(0, (4, 4096), "low", ""),
        pslot((0, 0)),
        dslot(2, (4, 4096), "low", "Rank = 1.0"),
        pslot((8, 8192)),
    ];
    let mut cycle = pool(slots, &[wanting(4, (4, 1024))]);
    let order = [
        (4, vec![], PreemptState::None),
        (4, vec![], PreemptState::None),
        (2, vec![3], PreemptState::Rank),
        (0, vec![1], PreemptState::Priority),
    ];
    cycle.config.pre_job_rank = Some(expr("RemoteOwner =?= undefined"));
    cycle.config.post_job_rank = None;
    assert_eq!(matches(&cycle), order);
    // The same holds under the default ranks: a slot that can be had only by preemption counts as in use.
    cycle.config = crate::negotiator::Config {
        allow_pslot_preemption: true,
        preemption_requirements: Some(expr("True")),
        ..Default::default()
    };
    assert_eq!(matches(&cycle)[..2], order[..2]);
    assert_eq!(matches(&cycle).len(), 4);
}

/// A machine makes room for several jobs in one cycle. The rest of the machine can be matched with other jobs.
#[test]
fn room_for_several() {
    use PreemptState::Priority;
    let children = (0..6).map(|_| dslot(0, (1, 1024), "low", ""));
    let slots: Vec<Candidate> = std::iter::once(pslot((1, 1024))).chain(children).collect();
    let cycle = pool(slots, &[wanting(3, (3, 512)), wanting(2, (1, 128))]);
    let expected = [(0, vec![1, 2], Priority), (0, vec![3, 4, 5], Priority), (0, vec![6], Priority)];
    assert_eq!(matches(&cycle), expected);
    let outcome = negotiate(&cycle);
    assert_eq!(weights(&cycle, &outcome), [7.0, 0.0], "at the price of what is carved");
}

/// Shares, ceilings and limits count a match that preempts several dynamic slots like any other match. Preemption by
/// priority takes no more than the share; preemption by rank may.
#[test]
fn what_limits_others_limits_these() {
    let slots = |rank: &str| {
        let children = (0..4).map(|_| dslot(0, (1, 1024), "low", &format!("Rank = {rank}")));
        std::iter::once(pslot((0, 0))).chain(children).collect::<Vec<_>>()
    };
    let of = |rank: &str, edit: &dyn Fn(&mut Cycle)| {
        let mut cycle = pool(slots(rank), &[wanting(2, (2, 512))]);
        edit(&mut cycle);
        matches(&cycle).len()
    };
    assert_eq!(of("0.0", &|_| ()), 2);
    assert_eq!(of("0.0", &|cycle| cycle.submitters[0].ceiling = Some(3.0)), 1);
    assert_eq!(of("1.0", &|cycle| cycle.submitters[0].ceiling = Some(1.0)), 0);
    let used_up = |cycle: &mut Cycle| {
        cycle.submitters[0].weighted_used = 100.0;
    };
    assert_eq!(of("0.0", &used_up), 0);
    assert_eq!(of("1.0", &used_up), 2);
    let limited = |cycle: &mut Cycle| {
        use crate::negotiator::limits::{Capacity, LimitBook};
        cycle.limits = LimitBook::new([("lic".to_owned(), Capacity::Named(1.0))], 0.0);
        cycle.submitters[0].requests[0].ad.set("ConcurrencyLimits", "lic");
    };
    assert_eq!(of("1.0", &limited), 1);
}

/// Custom resources are added up, too.
#[test]
fn gpus() {
    let requirements = "Requirements = TARGET.RequestCpus <= MY.Cpus && (TARGET.RequestGPUs ?: 0) <= MY.GPUs";
    let mut slots = vec![pslot((8, 8192))];
    slots.extend([0, 1, 1].map(|gpus| dslot(0, (1, 1024), "low", &format!("GPUs = {gpus}"))));
    for slot in &mut slots {
        slot.ad.update(&classad::Ad::parse_long(requirements).unwrap());
    }
    slots[0].ad.set("GPUs", 0);
    let mut request = wanting(1, (2, 512));
    request.ad.set("RequestGPUs", 2);
    assert_eq!(matches(&pool(slots, &[request])), [(0, vec![2, 3], PreemptState::Priority)]);
}

/// Under a consumption policy, the slot's own expressions say how much room there must be.
#[test]
fn consumption_policies() {
    let policy = "ConsumptionCpus = 2 * TARGET.RequestCpus\nConsumptionMemory = TARGET.RequestMemory\n\
                  ConsumptionDisk = TARGET.RequestDisk\nMachineResources = \"Cpus Memory Disk\"\nNumClaims = 1";
    let mut slots: Vec<Candidate> = vec![pslot((0, 0))];
    slots.extend((0..6).map(|_| dslot(0, (1, 1024), "low", "")));
    slots[0].ad.update(&classad::Ad::parse_long(policy).unwrap());
    let cycle = pool(slots, &[wanting(2, (2, 512))]);
    let expected = [(0, vec![1, 2, 3, 4], PreemptState::Priority)];
    assert_eq!(matches(&cycle), expected, "and it has one claim to give");
    assert_eq!(weights(&cycle, &negotiate(&cycle)), [4.0, 0.0]);
}

prop_compose! {
    fn any_machine()(
        left in (0_i64..4, 0_i64..8),
        children in prop::collection::vec((1_i64..4, 1_i64..5, 0_u8..4, 0_u8..2, prop::bool::ANY), 0..8),
    ) -> (Size, Vec<(Size, u8, u8, bool)>) {
        let children = children.into_iter().map(|(cpus, memory, rank, user, retires)| ((cpus, memory * 128), rank, user, retires));
        ((left.0, left.1 * 128), children.collect())
    }
}

prop_compose! {
    fn any_cycle()(
        machines in prop::collection::vec(any_machine(), 1..5),
        requests in prop::collection::vec((1_u64..5, 1_i64..7, 1_i64..9, 0_u8..4), 1..5),
        requirements in prop::sample::select(vec!["True", "False", "RemoteUserPrio > TARGET.SubmitterUserPrio"]),
        caching in any::<bool>(),
    ) -> Cycle {
        let mut slots = Vec::new();
        for (left, children) in machines {
            let parent = slots.len();
            slots.push(pslot(left));
            slots.extend(children.into_iter().map(|(size, rank, user, retires)| {
                let user = if user == 0 { "low" } else { "high" };
                let left = if retires { 60 } else { 0 };
                let said = format!(
                    "CurrentRank = {rank}.0\nRank = TARGET.Liked\nRetirementTimeRemaining = {left}"
                );
                dslot(parent, size, user, &said)
            }));
        }
        let requests: Vec<Request> = requests.into_iter().map(|(count, cpus, memory, liked)| {
            let mut request = wanting(count, (cpus, memory * 128));
            request.ad.set("Liked", f64::from(liked));
            request
        }).collect();
        let (first, second) = requests.split_at(requests.len() / 2);
        let mut cycle = pool(slots, first);
        cycle.submitters.push(submitter("other", 700.0, second));
        cycle.config.preemption_requirements = Some(expr(requirements));
        cycle.config.match_list_caching = caching;
        cycle
    }
}

fn size(slot: &Candidate) -> Size {
    let env = classad::Env::at(0);
    let amount = |name| slot.ad.eval_attr(name, None, &env).as_int().unwrap();
    (amount("Cpus"), amount("Memory"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A machine never gives more than it has. Each dynamic slot is preempted at most once, and only if it is needed:
    /// without any of them there would be too little. A slot that ranks its job higher, or whose job has retirement
    /// time left, stays.
    #[test]
    fn no_more_is_given_or_preempted_than_there_is_need_for(cycle in any_cycle()) {
        let outcome = negotiate(&cycle);
        prop_assert_eq!(&outcome, &negotiate(&cycle));
        let mut left: Vec<Size> = cycle.slots.iter().map(size).collect();
        let mut gone = vec![false; cycle.slots.len()];
        for each in &outcome.matches {
            let request = &cycle.submitters[each.submitter].requests[each.request].ad;
            let env = classad::Env::at(0);
            let amount = |name| request.eval_attr(name, None, &env).as_int().unwrap();
            let wanted = (amount("RequestCpus"), amount("RequestMemory"));
            let held = |children: &[usize]| {
                let sizes = children.iter().map(|child| size(&cycle.slots[*child]));
                sizes.fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
            };
            let has = left[each.slot];
            let fits = |children: &[usize]| {
                let held = held(children);
                wanted.0 <= has.0 + held.0 && wanted.1 <= has.1 + held.1 && (!children.is_empty() || has.0 > 0)
            };
            prop_assert!(fits(&each.dynamic), "{:?} of {:?}", wanted, has);
            prop_assert_eq!(each.dynamic.is_empty(), each.preempt == PreemptState::None);
            for (at, child) in each.dynamic.iter().enumerate() {
                let slot = &cycle.slots[*child];
                prop_assert!(!std::mem::replace(&mut gone[*child], true), "{} twice", child);
                prop_assert_eq!(slot.parent, Some(each.slot));
                let number = |name| slot.ad.eval_attr(name, Some(request), &env).as_number().unwrap();
                prop_assert!(number("Rank") >= number("CurrentRank") && number("RetirementTimeRemaining") <= 0.0);
                let mut fewer = each.dynamic.clone();
                fewer.remove(at);
                prop_assert!(!fits(&fewer), "{} goes in vain", child);
            }
            let held = held(&each.dynamic);
            left[each.slot] = (has.0 - (wanted.0 - held.0).max(0), has.1 - (wanted.1 - held.1).max(0));
        }
    }

    /// Without the knob, dynamic slots and partitionable slots with dynamic slots are like all others.
    #[test]
    fn without_the_knob_parents_mean_nothing(mut cycle in any_cycle()) {
        cycle.config.allow_pslot_preemption = false;
        let with = negotiate(&cycle);
        prop_assert!(with.matches.iter().all(|each| each.dynamic.is_empty()));
        cycle.slots.iter_mut().for_each(|slot| slot.parent = None);
        prop_assert_eq!(with, negotiate(&cycle));
    }
}
