//! Marks: what is still to be done since the pool changed, and the one table that says what follows from which change.
//!
//! The deciders' work follows from what an event touches, not from the pool's size, so that a forgotten mark is a slot that
//! nobody looks at again. Nobody sets a mark by hand: whoever changes the pool names the [`Change`], either here in the pool's
//! room or by one of the editing methods of `edit`, which compare before and after. [`Pool::changed`] is the table; it reads
//! from top to bottom.
//!
//! Four things follow from changes: somebody looks at an object again, an object's status is written again, what machines offer
//! counts as another offer (explanations made before do not hold), and a negotiation cycle is wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ids::{ClaimId, GroupName, JobUid, MachineName, PolicyName, SlotName, SubmitterName};
use super::slot::{Claim, Slot};
use super::slot_types::Kind as SlotKind;
use super::{Document, Pool};

/// What is still to be done since the pool changed.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
pub(super) struct Marks {
    machines: BTreeSet<MachineName>,
    slots: BTreeSet<SlotName>,
    jobs: BTreeSet<JobUid>,
    gatherings: BTreeSet<ClaimId>,
    drain_costs: BTreeSet<MachineName>,
    policies: bool,
    groups: bool,
    negotiators: bool,
    statuses: BTreeSet<Document>,
    /// How often what machines would offer has changed.
    offers: u64,
    /// Something changed that a cycle of any negotiator could act on: `condor_reschedule`.
    cycle: bool,
}

/// A change of the pool, named by what changed. [`Pool::changed`] says what follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    /// Everything that existed at the start is known.
    Synced,
    /// A node appeared, changed or was deleted.
    Node(&'a MachineName),
    /// What the review of a machine asks about has changed: its Leases, its drains, its backfill work, its alarm.
    Machine(&'a MachineName),
    /// There is more or less to carve on a machine, though the machine is what it was.
    ToCarve(&'a MachineName),
    /// An agent's report is another, or the agent became silent or came back.
    Agent {
        /// The machine.
        machine: &'a MachineName,
        /// START may answer otherwise.
        start: bool,
        /// The load that the pool's own jobs cause is another.
        load: bool,
    },
    /// Whether a machine offers anything has changed, or why not.
    Offer(&'a MachineName),
    /// A drain of a machine began or ended.
    Draining(&'a MachineName),
    /// A drain's deadline moved, or jobs may no longer fill in.
    DrainPace(&'a MachineName),
    /// Whether a policy's text can be used on a machine has changed.
    Unfit(&'a MachineName),
    /// A machine is governed by another policy.
    PolicyOf(Option<&'a PolicyName>, Option<&'a PolicyName>),
    /// A machine's slots were laid out in another way; these objects showed the slots before.
    Layout(&'a MachineName, &'a BTreeSet<Document>),
    /// A latched value of a slot has changed (`STARTD_LATCH_EXPRS`).
    Latched,
    /// What slots of a machine see of each other has changed (`STARTD_SLOT_ATTRS`).
    Crossed,
    /// What a claim on a machine may have waited for is there: backfill work ended, an agent's Lease was read, a kubelet is
    /// silent.
    ClaimsOn(&'a MachineName),
    /// A machine of a deleted node is gone from the pool, and these objects with it.
    Forgotten(&'a BTreeSet<Document>, Option<&'a PolicyName>),

    /// A machine slot that nobody has claimed took a transition.
    MachineSlot {
        /// The object that shows the slot.
        document: &'a Document,
        /// The slot is Unclaimed/Idle now.
        idle: bool,
    },
    /// What is kept at a partitionable slot for gatherings is another amount.
    Kept(&'a SlotName),

    /// What the next step of a claimed slot asks about has changed: its claim, its record, its pod, its alarm.
    Slot(&'a SlotName),
    /// A pod began to run in a claimed slot.
    Started(&'a SlotName),
    /// A claimed slot came into being.
    Carved(&'a Slot),
    /// A claimed slot is gone, and its resources are back.
    Returned(&'a Slot),
    /// A claimed slot's claim took the place of this one.
    Replaced(&'a Claim, &'a Slot),
    /// A claimed slot has taken its steps and rests, after transitions; `passing` if its next step is a matter of moments.
    Rests {
        /// The slot.
        slot: &'a SlotName,
        /// Its machine's slots look at each other, or an agent is there.
        seen: bool,
        /// Telling its state would cost a write for each proc.
        passing: bool,
    },
    /// A slot's object was adopted, deleted, or shows a claim that it should not.
    SlotObject(&'a SlotName),
    /// A slot's object is about to be deleted: its status is not written any more.
    SlotObjectGoes(&'a SlotName),
    /// A claim waits for a slot, or for another set of slots.
    Waits(&'a SlotName),
    /// A claim that waited for a slot waits no longer.
    WaitsNoLonger,
    /// Something has changed that a gathering waits for.
    Gathering(&'a ClaimId),
    /// A gathering is over.
    GatheringOver,

    /// A job is new.
    NewJob(&'a JobUid),
    /// A job's object was seen, its finalizer was set or not, or a pod of the job is gone.
    Job(&'a JobUid),
    /// A job's spec is another.
    Spec(&'a JobUid),
    /// A spec that was accepted is in force.
    SpecInForce,
    /// A job's procs are others: idle, running, held or done.
    Procs(&'a JobUid),
    /// What a job's status says has changed: why it waits, whether it can be matched, when it started.
    JobStatus(&'a JobUid),
    /// A proc was given to a claim.
    Assigned(&'a SlotName, &'a JobUid, &'a SubmitterName),
    /// A proc was taken from its claim before it started.
    Withdrawn(&'a JobUid),
    /// A job is gone.
    JobGone(&'a JobUid),
    /// A submitter's queue has one job more or less.
    Queue(&'a SubmitterName, Option<&'a GroupName>),

    /// A submitter is new, its object went, or its accounts are others.
    Submitter(&'a SubmitterName),
    /// A submitter's factor, ceiling, floor or account was set by an admin.
    SubmitterSet(&'a SubmitterName),
    /// A submitter is charged for a claim, or is not, as its job runs or stands still.
    Charge(&'a SubmitterName),
    /// The priority factor that a group gives its submitters is another, or which account comes first.
    Priorities,
    /// Accounting groups came, went or changed.
    Groups,
    /// What a cycle gave to a group is another amount.
    Given(&'a Arc<str>),
    /// Quotas are shares of something else now: which negotiator has which slots.
    Shares,
    /// Somebody may have more of a limited thing than before, or less.
    Limit {
        /// The ConcurrencyLimit objects that show it.
        objects: &'a BTreeSet<Arc<str>>,
        /// Something was returned.
        less: bool,
    },
    /// Something that was held in the name of a claim that is over is held no longer.
    LimitFreed,
    /// ConcurrencyLimits, or the knobs that set limits, changed; whether what may be had is another.
    Limits(bool),
    /// Other procs wait for limits than before.
    Barred,

    /// A NodePolicy was accepted, refused or changed.
    Policy(&'a PolicyName),
    /// A NodePolicy is gone.
    PolicyGone,
    /// A SubmitPolicy came, changed or went: another may count.
    SubmitPolicies,
    /// Negotiators came, went or changed.
    Negotiators,
    /// What negotiators share is another.
    Overlaps,
    /// A negotiator's cycle is over.
    Cycle(Option<&'a Arc<str>>),
    /// A DrainRequest came, changed or went, for these machines.
    Drain(Option<&'a Arc<str>>, [Option<&'a MachineName>; 2]),
    /// A DrainRequest's phase or cost is another.
    DrainStatus(&'a Arc<str>),
    /// A time has come at which something may be new.
    Time,
}

impl Pool {
    /// Marks what follows from a change.
    #[allow(clippy::too_many_lines, clippy::match_same_arms, reason = "one table, a row for each change")]
    pub(super) fn changed(&mut self, change: Change) {
        match change {
            Change::Synced => {
                self.look_at_every_machine_and_slot();
                self.marks.jobs.extend(self.jobs.keys().cloned());
                self.marks.policies = true;
                self.marks.negotiators = true;
                self.marks.cycle = true;
            }
            Change::Node(name) => {
                self.offer_changed();
                self.marks.cycle = true;
                self.show_machine(name);
                self.marks.machines.insert(name.clone());
                // Dynamic quotas are shares of the pool.
                self.show_groups();
            }
            Change::Machine(name) => {
                self.marks.machines.insert(name.clone());
            }
            Change::ToCarve(name) => {
                self.offer_changed();
                self.marks.cycle = true;
                self.show_machine(name);
            }
            Change::Agent { machine, start, load } => {
                // Which pods are suspended is not in the machine's ad.
                if start || load {
                    self.offer_changed();
                }
                // That the pool's own load moves is nothing to negotiate about before the next cycle.
                self.marks.cycle |= start;
                self.show_machine(machine);
                self.marks.machines.insert(machine.clone());
                // The policy of each slot looks at what is sensed, and a suspension that took place is one of its transitions.
                self.look_at_claims(machine);
            }
            Change::Offer(name) | Change::Draining(name) => {
                self.show_machine(name);
                // A slot on the machine may have to let its job go, or may start what waited.
                self.look_at_claims(name);
                self.offer_changed();
            }
            Change::DrainPace(name) => {
                self.look_at_claims(name);
                self.offer_changed();
            }
            Change::Unfit(name) => self.show_machine(name),
            Change::PolicyOf(before, after) => {
                self.marks.statuses.extend(before.into_iter().chain(after).cloned().map(Document::Policy));
            }
            Change::Layout(name, before) => {
                self.marks.statuses.extend(before.iter().cloned());
                self.show_machine(name);
                self.offer_changed();
                self.marks.cycle = true;
            }
            Change::Latched => self.offer_changed(),
            Change::Crossed => {
                self.offer_changed();
                self.marks.cycle = true;
            }
            Change::ClaimsOn(name) => self.look_at_claims(name),
            Change::Forgotten(documents, policy) => {
                self.marks.statuses.extend(documents.iter().cloned());
                self.marks.statuses.extend(policy.cloned().map(Document::Policy));
            }

            Change::MachineSlot { document, idle } => {
                self.marks.statuses.insert(document.clone());
                self.marks.cycle |= idle;
            }
            Change::Kept(parent) => {
                self.marks.statuses.insert(Document::PartitionableSlot(parent.clone()));
            }

            Change::Slot(name) => {
                self.marks.slots.insert(name.clone());
            }
            Change::Started(name) => {
                self.marks.slots.insert(name.clone());
                self.marks.drain_costs.insert(name.machine.clone());
            }
            Change::Carved(slot) => {
                self.show_claim(slot.name(), slot.claim());
                self.marks.slots.insert(slot.name().clone());
            }
            Change::Returned(slot) => {
                self.show_claim(slot.name(), slot.claim());
                self.marks.machines.insert(slot.name().machine.clone());
                self.marks.drain_costs.insert(slot.name().machine.clone());
                self.marks.cycle = true;
            }
            Change::Replaced(before, after) => {
                self.show_claim(after.name(), before);
                self.show_claim(after.name(), after.claim());
                self.marks.slots.insert(after.name().clone());
                self.marks.cycle = true;
            }
            Change::Rests { slot, seen, passing } => {
                self.marks.drain_costs.insert(slot.machine.clone());
                if seen {
                    self.marks.machines.insert(slot.machine.clone());
                }
                if !passing {
                    self.marks.statuses.insert(Document::Slot(slot.clone()));
                }
            }
            Change::SlotObject(name) => {
                self.marks.statuses.insert(Document::Slot(name.clone()));
            }
            Change::SlotObjectGoes(name) => {
                self.marks.statuses.remove(&Document::Slot(name.clone()));
            }
            Change::Waits(name) => {
                self.marks.slots.insert(name.clone());
            }
            // The proc of the claim that waited may be matched again.
            Change::WaitsNoLonger | Change::GatheringOver | Change::LimitFreed | Change::Time => {
                self.marks.cycle = true;
            }
            Change::Gathering(id) => {
                self.marks.gatherings.insert(id.clone());
            }

            Change::NewJob(uid) | Change::Spec(uid) | Change::JobStatus(uid) => {
                self.marks.statuses.insert(Document::Job(uid.clone()));
            }
            Change::Job(uid) => {
                self.marks.jobs.insert(uid.clone());
            }
            Change::SpecInForce => self.marks.cycle = true,
            Change::Procs(uid) => {
                self.marks.statuses.insert(Document::Job(uid.clone()));
                self.marks.jobs.insert(uid.clone());
            }
            Change::Assigned(slot, job, submitter) => {
                self.marks.slots.insert(slot.clone());
                self.marks.statuses.insert(Document::Submitter(submitter.clone()));
                self.marks.statuses.insert(Document::Job(job.clone()));
            }
            Change::Withdrawn(uid) => {
                self.marks.statuses.insert(Document::Job(uid.clone()));
                self.marks.jobs.insert(uid.clone());
                self.marks.cycle = true;
            }
            Change::JobGone(uid) => {
                self.marks.statuses.remove(&Document::Job(uid.clone()));
                self.marks.jobs.remove(uid);
            }
            Change::Queue(submitter, group) => {
                self.marks.statuses.insert(Document::Submitter(submitter.clone()));
                self.show_groups_around(group);
            }

            Change::Submitter(name) => {
                self.marks.statuses.insert(Document::Submitter(name.clone()));
            }
            Change::SubmitterSet(name) | Change::Charge(name) => {
                self.marks.statuses.insert(Document::Submitter(name.clone()));
                // There may be more to be had now, or less.
                self.marks.cycle = true;
            }
            Change::Priorities => {
                self.marks.statuses.extend(self.submitters.keys().cloned().map(Document::Submitter));
            }
            Change::Groups => {
                self.marks.groups = true;
                self.marks.cycle = true;
                self.show_groups();
            }
            Change::Given(group) => {
                self.marks.statuses.insert(Document::Group(Arc::clone(group)));
            }
            Change::Shares => self.show_groups(),
            Change::Limit { objects, less } => {
                self.marks.cycle |= less;
                self.marks.statuses.extend(objects.iter().cloned().map(Document::Limit));
            }
            Change::Limits(other) => {
                self.marks.cycle |= other;
                self.show_limits();
            }
            Change::Barred => self.show_limits(),

            Change::Policy(name) => {
                self.marks.policies = true;
                self.marks.statuses.insert(Document::Policy(name.clone()));
            }
            Change::PolicyGone => self.marks.policies = true,
            Change::SubmitPolicies => {
                self.marks.statuses.extend(self.submit_policies.keys().cloned().map(Document::SubmitPolicy));
            }
            Change::Negotiators => {
                self.show_negotiators();
                self.marks.negotiators = true;
                self.marks.cycle = true;
            }
            Change::Overlaps => self.show_negotiators(),
            Change::Cycle(negotiator) => {
                self.marks.statuses.extend(negotiator.cloned().map(Document::Negotiator));
            }
            Change::Drain(request, machines) => {
                self.marks.machines.extend(machines.into_iter().flatten().cloned());
                self.marks.statuses.extend(request.cloned().map(Document::Drain));
            }
            Change::DrainStatus(request) => {
                self.marks.statuses.insert(Document::Drain(Arc::clone(request)));
            }
        }
    }

    /// A machine whose node is gone stays until its claims have ended: its objects say so.
    pub fn show_gone(&mut self, machine: &MachineName) {
        self.show_machine(machine);
    }

    /// Marks what follows when several claimed slots have changed.
    pub(super) fn slots_changed<'a>(&mut self, slots: impl IntoIterator<Item = &'a SlotName>) {
        self.marks.slots.extend(slots.into_iter().cloned());
    }

    fn offer_changed(&mut self) {
        self.marks.offers += 1;
    }

    fn look_at_every_machine_and_slot(&mut self) {
        self.marks.machines.extend(self.machines.keys().cloned());
        self.marks.slots.extend(self.slots.keys().cloned());
    }

    fn look_at_claims(&mut self, machine: &MachineName) {
        let from = SlotName { machine: machine.clone(), slot: 0, dynamic: None };
        let slots =
            self.slots.range(from..).map(|(slot, _)| slot).take_while(|slot| slot.machine == *machine);
        self.marks.slots.extend(slots.cloned());
    }

    /// The objects of a machine's slots are written again.
    fn show_machine(&mut self, machine: &MachineName) {
        if let Some(machine) = self.machines.get(machine) {
            self.marks.statuses.extend(machine.documents());
        }
    }

    fn show_groups(&mut self) {
        self.marks.statuses.extend(self.groups.keys().cloned().map(Document::Group));
    }

    /// A group and the groups around it are written again.
    fn show_groups_around(&mut self, group: Option<&GroupName>) {
        let Some(group) = group else { return };
        let around = self.groups.values().filter(|outer| outer.name.contains(group));
        self.marks.statuses.extend(around.map(|outer| Document::Group(outer.object.clone())));
    }

    fn show_limits(&mut self) {
        self.marks.statuses.extend(self.limits.keys().cloned().map(Document::Limit));
    }

    fn show_negotiators(&mut self) {
        self.marks.statuses.extend(self.negotiators.keys().cloned().map(Document::Negotiator));
    }

    /// All objects that a claim on a slot shows in are written again.
    fn show_claim(&mut self, slot: &SlotName, claim: &Claim) {
        self.marks.statuses.insert(Document::of_holder(slot));
        self.marks.statuses.insert(Document::Submitter(claim.submitter.clone()));
        self.marks.statuses.insert(Document::Job(claim.last.job.uid.clone()));
        let machine = self.machines.get(&slot.machine);
        // What is left of the machine is left for all that may still carve of it, such as pods.
        let carvers = machine.into_iter().flat_map(|machine| {
            let partitionable = machine.slots().filter(|slot| slot.kind == SlotKind::Partitionable);
            partitionable.map(|slot| slot.document(&machine.facts.name))
        });
        self.marks.statuses.extend(carvers);
        if machine.is_some_and(|machine| self.startd(machine).has_weights()) {
            // Such a weight need not be the same before and after carving: the pool's may change, and with it the dynamic
            // quotas of groups that have nothing to do with this claim.
            self.show_groups();
        } else {
            self.show_groups_around(claim.group.as_ref());
        }
    }

    // --- taking up what was marked ---------------------------------------------------------------------------------

    /// A machine to review; asking takes the mark away.
    pub fn next_machine(&mut self) -> Option<MachineName> {
        self.marks.machines.pop_first()
    }

    /// A claimed slot to look at; asking takes the mark away.
    pub fn next_slot(&mut self) -> Option<SlotName> {
        self.marks.slots.pop_first()
    }

    /// A job to review; asking takes the mark away.
    pub fn next_job(&mut self) -> Option<JobUid> {
        self.marks.jobs.pop_first()
    }

    /// A gathering to look at; asking takes the mark away.
    pub fn next_gathering(&mut self) -> Option<ClaimId> {
        self.marks.gatherings.pop_first()
    }

    /// A machine of which draining would cost something else now; asking takes the mark away.
    pub fn next_drain_cost(&mut self) -> Option<MachineName> {
        self.marks.drain_costs.pop_first()
    }

    /// Whether negotiators changed since this was asked last.
    pub fn take_negotiators_changed(&mut self) -> bool {
        std::mem::take(&mut self.marks.negotiators)
    }

    /// Whether a cycle is wanted since this was asked last.
    pub(super) fn take_cycle_wanted(&mut self) -> bool {
        std::mem::take(&mut self.marks.cycle)
    }

    /// Where policies changed, all machines and claimed slots are looked at: another policy may govern them.
    pub fn spread_policies(&mut self) {
        if std::mem::take(&mut self.marks.policies) {
            self.look_at_every_machine_and_slot();
            self.offer_changed();
            self.marks.cycle = true;
        }
    }

    /// Where groups came or went, all jobs with a group are looked at: some may start now, or may no longer.
    pub fn spread_groups(&mut self) {
        if std::mem::take(&mut self.marks.groups) {
            let grouped = self
                .jobs
                .iter()
                .filter(|(_, job)| job.spec.as_ref().is_some_and(|spec| spec.group.is_some()));
            let uids: Vec<_> = grouped.map(|(uid, _)| uid.clone()).collect();
            self.marks.statuses.extend(uids.iter().cloned().map(Document::Job));
            self.marks.jobs.extend(uids);
            self.marks.cycle = true;
        }
    }

    /// Statuses to be written; asking takes them.
    pub fn take_statuses(&mut self) -> BTreeSet<Document> {
        std::mem::take(&mut self.marks.statuses)
    }

    /// How often what machines would offer has changed: what follows from the offers alone holds as long as this is the same.
    pub fn offers(&self) -> u64 {
        self.marks.offers
    }
}

#[cfg(test)]
mod tests;
