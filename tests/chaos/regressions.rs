//! Stories of bugs that chaos runs found, each as short as possible, and of situations that random runs reach too
//! seldom.

use super::letting_go::IGNORES;
use super::plan::{Class, How, Item, Lists, Order, Plan, Presence, Server, What, When};
use super::processes::Fated;
use super::run::run;

/// A run on one node that is there from the start, with a job and what else happens.
pub fn story(cpus: u8, job: Order, items: Vec<(When, What)>) -> Plan {
    let start = [(When::At(0), What::NodeBack(0, cpus)), (When::At(1200), What::Submit(job))];
    let items = start.into_iter().chain(items).map(|(when, what)| Item { when, what }).collect();
    Plan::told(90, items)
}

/// Two negotiators, of which the default one has all nodes: no claim is of a plain kind, so that each is written before its pod is
/// made.
pub const WRITTEN_FIRST: (When, What) = (When::At(0), What::Negotiators(1));

/// A job of so many procs of one CPU each. Its pods are deleted when they have ended.
pub fn job(count: u8) -> Order {
    Order { job: 1, group: None, count, cpus: 1, device: 0, requirements: 0, retention: 2 }
}

/// Kinds that operators watch, by number.
const NODES: u8 = 0;
const PODS: u8 = 1;
const HTCJOBS: u8 = 3;
const SLOTS: u8 = 4;

/// Lets this happen at 10 s, while the watch of the kind is late. Before the watch shows anything of it, the server
/// ends the watch, and the operator has to list again.
fn unseen(kind: u8, happens: Vec<What>) -> Vec<(When, What)> {
    let mut items = vec![(When::At(9000), What::Lag(kind, 20_000, 10))];
    items.extend(happens.into_iter().map(|what| (When::At(10_000), what)));
    items.push((When::At(12_000), What::Gone(kind)));
    items
}

pub fn goes_well(plan: Plan) {
    let outcome = run(&plan, true);
    assert!(outcome.violation.is_none(), "{}", super::story::tell(&plan));
}

#[test]
fn a_list_or_watch_that_is_never_answered_is_asked_again() {
    for (class, lists) in
        [(Class::List, Lists::InPages), (Class::Watch, Lists::InPages), (Class::Watch, Lists::AsWatches)]
    {
        for nth in 0..10 {
            let silent = story(2, job(2), vec![(When::Before(class, nth), What::Call(How::Silence, 0))]);
            goes_well(Plan { server: Server { lists, ..Server::NEWEST }, ..silent });
        }
    }
}

/// The deletion of a claim's Slot fails again and again, or takes longer than the next cycles need to come.
#[test]
fn what_a_claim_held_is_nobody_elses_until_its_slot_is_gone() {
    let train = Order { job: 3, count: 2, cpus: 2, ..job(2) };
    for (how, more) in [(How::Throttled, 20), (How::Late(8000), 3), (How::LateAnswer(8000), 3)] {
        for nth in 0..3 {
            let items = vec![
                WRITTEN_FIRST,
                // While bob's claim has all of the node. Two of alice's claims have room in what it leaves; the second has a
                // name that no Slot has.
                (When::At(3000), What::Submit(Order { job: 0, ..job(5) })),
                (When::Before(Class::DeleteSlot, nth), What::Call(how, more)),
                (When::At(60_000), What::Kill(0)),
            ];
            goes_well(story(2, train.clone(), items));
        }
    }
}

#[test]
fn a_pod_whose_release_meets_a_conflict_is_released_again() {
    for more in [0, 9] {
        goes_well(story(
            2,
            job(3),
            vec![(When::Before(Class::UntrackPod, 1), What::Call(How::Conflict, more))],
        ));
    }
}

#[test]
fn a_group_keeps_its_quota_and_a_submitter_its_ceiling() {
    let grouped = Order { group: Some(3), ..job(6) };
    goes_well(story(6, grouped, vec![(When::At(0), What::Quota(3, 2))]));
    goes_well(story(6, job(6), vec![(When::At(0), What::Ceiling(1, Some(2)))]));
}

#[test]
fn an_end_without_a_claim_is_recorded_before_its_pod_goes() {
    let items = vec![
        (When::Before(Class::JobStatus, 1), What::Call(How::Late(3000), 20)),
        (When::At(4000), What::Kill(0)),
        (When::At(4000), What::EditSlot(0, 1)),
        (When::At(4000), What::EndNow(0)),
    ];
    goes_well(story(1, job(1), items));
}

#[test]
fn what_a_pod_without_a_claim_holds_is_nobody_elses_until_it_has_ended() {
    let forever = Order { job: 4, ..job(1) };
    let items = vec![
        (When::At(3000), What::Submit(job(1))),
        (When::At(4000), What::Kill(0)),
        (When::At(4000), What::EditSlot(0, 1)),
    ];
    goes_well(story(1, forever, items));
}

#[test]
fn a_claim_whose_proc_is_done_runs_nothing_when_it_is_found_again() {
    let items = vec![
        (When::Before(Class::DeleteSlot, 0), What::Call(How::Throttled, 20)),
        (When::At(50_000), What::Kill(0)),
    ];
    goes_well(story(1, job(1), items));
}

#[test]
fn a_slot_that_somebody_made_up_under_the_name_is_not_the_claims() {
    goes_well(story(2, job(1), vec![(When::Before(Class::CreateSlot, 0), What::MakeSlot(0))]));
    // A copy of the first slot's claim, under the third's name, which no watch has shown when the third is to be made.
    let items = vec![
        (When::At(1500), What::Lag(SLOTS, 20_000, 10)),
        (When::Before(Class::CreateSlot, 2), What::Call(How::Late(3000), 0)),
        (When::At(3000), What::MakeSlot(6)),
    ];
    goes_well(story(3, job(3), items));
}

/// A job vanishes, and its proc ends. The operator must learn that nobody is left for whom to record the end.
#[test]
fn a_job_that_vanished_unseen_frees_what_it_held() {
    let vanish = vec![What::Unhold(1), What::Remove(1), What::EndNow(0)];
    goes_well(story(2, job(4), unseen(HTCJOBS, vanish)));
}

/// A pod vanishes, and nobody saw its end.
#[test]
fn a_pod_that_vanished_unseen_has_ended() {
    goes_well(story(1, job(2), unseen(PODS, vec![What::StripPod(0)])));
}

#[test]
fn a_slot_that_vanished_unseen_is_written_again() {
    is_written_again(unseen(SLOTS, vec![What::DeleteSlot(0)]));
}

/// A status that a dead leader sent arrives after the next leader has recorded more. One end is recorded in the late status, and
/// another only by the next leader, in some of these runs.
#[test]
fn what_is_recorded_outlasts_what_a_former_leader_sent() {
    for (nth, gap) in (0..4).flat_map(|nth| [200, 500, 1000, 1800].map(|gap| (nth, gap))) {
        let items = vec![
            (When::At(0), What::NodeBack(1, 1)),
            (When::Before(Class::JobStatus, nth), What::Call(How::Late(8000), 0)),
            (When::At(5000), What::EndNow(0)),
            (When::At(5000 + gap), What::EndNow(1)),
            (When::At(5000 + gap), What::Kill(0)),
        ];
        goes_well(Plan { ghosts: true, ..story(1, job(2), items) });
    }
}

#[test]
fn what_could_not_be_written_or_deleted_is_tried_again_later() {
    let (gives_up, forever) = (What::Call(How::Error(500), 8), Order { job: 4, ..job(1) });
    for nth in 0..3 {
        for class in [Class::JobStatus, Class::SlotStatus, Class::OtherStatus] {
            goes_well(story(1, job(1), vec![(When::Before(class, nth), gives_up.clone())]));
        }
    }
    goes_well(story(1, job(1), vec![(When::Before(Class::UntrackPod, 0), gives_up.clone())]));
    let removed = vec![(When::At(5000), What::Remove(4)), (When::Before(Class::DeletePod, 0), gives_up)];
    goes_well(story(1, forever, removed));
}

#[test]
fn a_slot_deleted_under_a_running_pod_is_written_again() {
    is_written_again(vec![(When::At(10_000), What::DeleteSlot(0))]);
}

/// The Slot of a pod that runs without end is written twice.
pub fn is_written_again(items: Vec<(When, What)>) {
    let forever = Order { job: 4, ..job(1) };
    let outcome = run(&story(1, forever, items), true);
    assert_eq!(outcome.violation, None);
    let written = outcome.log.iter().filter(|line| line.contains(": CreateSlot slot1-1.n0 {")).count();
    assert_eq!(written, 2, "{}", outcome.log.join("\n"));
}

/// The owner's policy, with a division of the nodes.
pub(super) fn policy(how: u8, layout: u8) -> (When, What) {
    (When::At(0), What::Policy(0, how, layout))
}

#[test]
fn static_slots_are_claimed_used_and_free_again() {
    for layout in 1..=4 {
        goes_well(Plan { layout, ..story(8, job(6), vec![policy(4, layout)]) });
    }
}

/// Any write about a static slot may fail, or seem to fail.
#[test]
fn a_static_slot_is_there_once_whatever_goes_wrong() {
    let writes = [Class::CreateSlot, Class::PatchSlot, Class::GetSlot, Class::DeleteSlot, Class::SlotStatus];
    for class in writes {
        for nth in 0..4 {
            for how in [How::ErrorAfter, How::ResetAfter, How::SilenceAfter, How::Late(3000)] {
                let fails = (When::Before(class, nth), What::Call(how, 0));
                goes_well(Plan { layout: 3, ..story(8, job(4), vec![policy(4, 3), fails]) });
            }
            let gives_up = (When::Before(class, nth), What::Call(How::Error(500), 8));
            goes_well(Plan { layout: 3, ..story(8, job(4), vec![policy(4, 3), gives_up]) });
            let killed = (When::After(class, nth), What::Kill(0));
            goes_well(Plan { layout: 3, ..story(8, job(4), vec![policy(4, 3), killed]) });
        }
    }
}

#[test]
fn another_division_waits_for_claims_and_leaves_nothing_behind() {
    for from in 0..=4 {
        for to in 0..=4 {
            for when in [When::At(5000), When::Before(Class::PatchSlot, 0), When::After(Class::CreatePod, 1)]
            {
                let items =
                    vec![policy(4, from), (when, What::Policy(0, 4, to)), (When::At(9000), What::Kill(0))];
                goes_well(Plan { layout: to, ..story(8, job(5), items) });
            }
        }
    }
}

#[test]
fn drains_end_and_leave_nothing_behind() {
    for how in 0..18 {
        let drain = (When::At(8000), What::Drain(0, 0, how));
        let killed = (When::At(11_000), What::Kill(0));
        goes_well(Plan { layout: 3, ..story(8, job(5), vec![policy(7, 3), drain, killed]) });
    }
}

/// Jobs are suspended while the owner is at the node. They continue, leave, or are killed. The node's agent may fall
/// silent meanwhile.
#[test]
fn jobs_give_way_to_the_owner() {
    for how in 5..=10 {
        for presence in [Presence::Works, Presence::Silent, Presence::CannotWork, Presence::TakenOff] {
            let items = vec![
                policy(how, 1),
                (When::At(0), What::Agent(0, Presence::Works)),
                (When::At(5000), What::Owner(0, 20)),
                (When::At(15_000), What::Agent(0, presence)),
                (When::At(40_000), What::Owner(0, 5)),
            ];
            goes_well(Plan { layout: 1, ..story(8, job(6), items) });
        }
    }
}

/// A pod fails. Before the operator hears of that, it evicts the pod and writes the reason on it. It sees both at once.
#[test]
fn a_pod_that_failed_before_it_was_evicted_has_failed() {
    // Procs end by themselves after up to 41 s, every fifth of them with a failure. In some of these runs one does so
    // while the watch is late.
    for seed in 0..12 {
        let items = vec![
            (When::At(4000), What::Lag(PODS, 20_000, 20)),
            (When::At(8000), What::Drain(0, 0, 1)),
            (When::At(9000), What::Gone(PODS)),
        ];
        goes_well(Plan { seed, ..story(8, job(8), items) });
    }
}

/// The slot of an ended claim cannot be deleted, its proc runs in another slot, and the next leader finds both claims.
#[test]
fn of_two_claims_for_one_proc_the_one_with_the_pod_is_gone_on_with() {
    for seed in 0..6 {
        let items = vec![
            WRITTEN_FIRST,
            (When::At(0), What::Negotiating(3)),
            (When::After(Class::JobStatus, 0), What::StripPod(0)),
            (When::Before(Class::DeleteSlot, 0), What::Call(How::Error(500), 6)),
            (When::At(16_000), What::Kill(0)),
        ];
        goes_well(Plan { seed, ..story(4, Order { job: 0, ..job(1) }, items) });
    }
}

/// The answer to a pod's creation is lost. The operator sees the pod, and somebody deletes it, before the operator
/// repeats the call.
#[test]
fn a_pod_that_was_seen_is_not_made_again() {
    for how in [How::SilenceAfter, How::ResetAfter] {
        let items = vec![
            (When::Before(Class::CreatePod, 0), What::Call(how, 5)),
            (When::At(3500), What::StripPod(0)),
        ];
        goes_well(story(1, job(1), items));
    }
}

/// A pod is gone before the watch has shown it, and then the watch begins anew: nobody tells the operator that the pod
/// went.
#[test]
fn a_pod_that_nobody_ever_saw_is_asked_for() {
    let items = vec![
        (When::Before(Class::CreatePod, 0), What::Lag(PODS, 20_000, 10)),
        (When::After(Class::CreatePod, 0), What::StripPod(0)),
        (When::At(9000), What::Gone(PODS)),
    ];
    goes_well(story(1, job(1), items));
}

/// A Slot is gone before the watch has shown it. The next write of its status finds that.
#[test]
fn a_slot_that_nobody_ever_saw_is_written_again() {
    is_written_again(vec![
        (When::Before(Class::CreateSlot, 0), What::Lag(SLOTS, 20_000, 10)),
        (When::After(Class::CreatePod, 0), What::DeleteSlot(0)),
        (When::At(9000), What::Gone(SLOTS)),
    ]);
}

/// Somebody deletes a slot's object after a write of its status and before the answer. The watch tells of the deletion
/// before the answer comes.
#[test]
fn an_object_that_went_before_the_answer_to_a_write_is_made_again() {
    for nth in 0..4 {
        let items = vec![
            (When::Before(Class::OtherStatus, nth), What::Call(How::LateAnswer(3000), 0)),
            (When::After(Class::OtherStatus, nth), What::DeletePslot(0)),
        ];
        goes_well(story(2, job(1), items.clone()));
        // Without jobs, no later write finds that the object is not there.
        let mut idle = story(8, job(1), items);
        idle.items.retain(|item| !matches!(item.what, What::Submit(_)));
        goes_well(idle);
    }
}

/// The next leader continues from what the Slot's status says of the job.
#[test]
fn what_was_pledged_to_a_job_and_how_long_it_stood_still_outlast_its_operator() {
    let forever = Order { job: 4, ..job(1) };
    // The owner goes before the run begins: the job is suspended for almost ten seconds.
    let items = vec![
        policy(5, 0),
        (When::At(0), What::Agent(0, Presence::Works)),
        (When::At(20_000), What::Kill(0)),
        (When::At(60_000), What::Owner(0, 3)),
    ];
    let plan = story(1, forever, items);
    let outcome = run(&plan, true);
    assert_eq!(outcome.violation, None, "{}", super::story::tell(&plan));
    let stood = outcome.log.iter().any(|line| line.contains("\"suspendedSeconds\":9"));
    assert!(stood, "{}", outcome.log.join("\n"));
}

#[test]
fn a_pod_that_is_made_late_on_a_node_that_is_back_is_not_deleted_by_force() {
    // The operator asks for the pod before the node goes. The pod is created when the node is back, and its claim is
    // over by then.
    let items = vec![
        (When::Before(Class::CreatePod, 0), What::Call(How::Late(6000), 6)),
        (When::At(4000), What::NodeGone(0)),
        (When::At(30_000), What::NodeBack(0, 8)),
    ];
    goes_well(story(8, job(1), items));
}

/// The machine is absent under one leader, and back under the next.
#[test]
fn an_absent_machine_that_is_back_is_listed_no_longer() {
    for kill in [4500, 8000, 31_000] {
        let items = vec![
            (When::At(0), What::Policy(1, 0, 0)),
            (When::At(4000), What::NodeGone(0)),
            (When::At(kill), What::Kill(0)),
            (When::At(30_000), What::NodeBack(0, 8)),
        ];
        goes_well(story(8, job(1), items));
    }
}

/// The watch of nodes is 20 s late. When it shows that the node went, the node is back and runs a pod that was created
/// since.
#[test]
fn a_pod_on_a_node_that_came_back_unseen_is_not_deleted_by_force() {
    for (job_again, policy) in [(0, None), (3, None), (0, Some(11))] {
        let mut items = vec![
            (When::At(8000), What::Lag(NODES, 20_000, 60)),
            (When::At(9000), What::NodeGone(0)),
            (When::At(10_000), What::Submit(Order { job: job_again, ..job(2) })),
            (When::At(25_000), What::NodeBack(0, 8)),
        ];
        items.extend(policy.map(|how| (When::At(0), What::Policy(0, how, 0))));
        goes_well(story(8, job(1), items));
    }
}

/// The answer to the pod's creation is lost, and somebody deletes the pod before the operator tries again. The pod
/// belongs to the claim all the same.
#[test]
fn a_pod_that_is_deleted_before_its_creation_is_heard_of_is_its_claims() {
    for job_again in [0, 4] {
        let items = vec![
            (When::At(1000), What::Lag(PODS, 5000, 20)),
            (When::Before(Class::CreatePod, 0), What::Call(How::ResetAfter, 0)),
            (When::After(Class::CreatePod, 0), What::DeletePod(0, false)),
        ];
        goes_well(story(1, Order { job: job_again, ..job(1) }, items));
    }
    // The program ignores SIGTERM, so that the pod runs when the operator repeats a call that has had no answer.
    for seconds in [4, 10] {
        let items = vec![
            (When::At(0), What::Fated(Some(Fated::Handler(IGNORES)))),
            (When::At(1000), What::Lag(PODS, 25_000, 20)),
            (When::Before(Class::CreatePod, 0), What::Call(How::SilenceAfter, 0)),
            (When::At(seconds * 1000), What::DeletePod(0, false)),
        ];
        goes_well(story(1, Order { job: 4, ..job(1) }, items));
    }
}

/// The deletion of an evicted proc's pod gets no answer, and the proc gets its claim back. News of the old pod must not
/// be taken for news of the new pod, which waits to be created.
#[test]
fn a_pod_that_was_let_go_is_not_its_successor() {
    let items = vec![
        (When::At(8000), What::Evict(0)),
        (When::Before(Class::DeletePod, 0), What::Call(How::Late(6000), 6)),
        (When::At(25_000), What::Evict(0)),
    ];
    goes_well(story(1, Order { job: 4, ..job(2) }, items));
}

/// The operator gives up a claim on a static slot before the write of the claim is answered. The state of the object
/// before the write does not prove that the claim is gone.
#[test]
fn a_claim_that_is_still_to_be_written_has_not_gone() {
    goes_well(Plan::of(556_750));
}

/// A claim replaces another. Until the slot's object says so, the quota of the earlier claim belongs to nobody else.
#[test]
fn what_a_claim_gives_up_to_another_is_free_once_its_slot_says_so() {
    let physics = Order { job: 0, group: Some(0), requirements: 1, ..job(5) };
    let gpus = Order { job: 2, device: 1, requirements: 0, retention: 1, ..job(6) };
    let items = vec![
        (When::At(0), What::Policy(1, 4, 3)),
        (When::At(0), What::Quota(0, 2)),
        (When::At(0), What::Negotiating(4)),
        (When::At(2376), What::Submit(gpus)),
        (When::Before(Class::SlotStatus, 2), What::Call(How::SilenceAfter, 20)),
    ];
    goes_well(Plan { layout: 4, ..story(4, physics, items) });
}

#[test]
fn a_job_that_is_deleted_while_it_is_held_again_and_again_is_not_let_go() {
    // The first attempt writes the finalizer, but the operator does not hear of that. The job is deleted before the
    // last attempt.
    let forever = Order { job: 4, group: None, count: 1, cpus: 1, device: 0, requirements: 0, retention: 0 };
    for attempts in 1..6 {
        let items = vec![
            (When::Before(Class::AddJobFinalizer, 0), What::Call(How::SilenceAfter, attempts)),
            (When::At(14_000), What::Remove(4)),
        ];
        goes_well(story(8, forever.clone(), items));
    }
}

/// If somebody takes any marks off a pod, then under any leader the pod's proc ends once, and its slot becomes free.
#[test]
fn a_pod_whose_marks_were_taken_off_stays_its_procs() {
    for how in 0..3 {
        for more in [vec![], vec![(When::At(7000), What::Kill(0))], vec![(When::At(7000), What::Gone(PODS))]]
        {
            let mut items =
                vec![(When::At(5000), What::Unmark(0, how)), (When::At(5000), What::Unmark(1, how))];
            items.extend(more);
            goes_well(story(2, job(4), items));
        }
    }
}

/// An object that cannot be decoded stays as it was last known, and nothing that belongs to it ends.
#[test]
fn what_cannot_be_decoded_is_not_taken_for_gone() {
    for n in 0..3 {
        for more in [What::Gone(PODS), What::Kill(0), What::Gone(HTCJOBS), What::Gone(NODES)] {
            let items = vec![(When::At(5000), What::Garble(n)), (When::At(7000), more)];
            goes_well(story(2, job(4), items));
        }
    }
}

#[test]
fn a_webhook_that_hangs_only_delays() {
    for fails in [true, false] {
        for at in [0, 3000, 12_000] {
            goes_well(story(
                2,
                job(4),
                vec![
                    (When::At(at), What::Webhook(0, 50, fails)),
                    (When::At(at), What::Webhook(1, 50, fails)),
                ],
            ));
        }
    }
}

/// The operator dies before or after each status of a job, of which some record ends; in between, the history has ends that no
/// status records.
#[test]
fn each_end_is_in_the_history_once_whatever_becomes_of_the_operator() {
    let seconds = [What::Attributes(1, 3), What::Attributes(1, 6), What::Act(1, 2, 2)];
    for nth in 0..8 {
        for when in [When::Before(Class::JobStatus, nth), When::After(Class::JobStatus, nth)] {
            for more in &seconds {
                let items = vec![(When::At(2000), more.clone()), (when, What::Kill(0))];
                goes_well(Plan { history: true, ..story(2, job(4), items) });
            }
        }
    }
}

/// A job is deleted while its procs wait, run and have ended.
#[test]
fn a_deleted_job_goes_when_the_history_has_its_procs() {
    for after in [2000, 6000, 12_000, 30_000] {
        for nth in 0..4 {
            let items = vec![
                (When::At(after), What::Remove(1)),
                (When::After(Class::JobStatus, nth), What::Kill(0)),
                (When::Before(Class::AddJobFinalizer, 1), What::Kill(0)),
            ];
            goes_well(Plan { history: true, ..story(2, job(4), items) });
        }
    }
}
