//! Marks: what must still be done since the pool changed; and the one table that says what follows from each change.
//!
//! The deciders' work follows from what an event touches, not from the pool's size. So if a mark were forgotten, nobody would look at a
//! slot again. Therefore no code sets a mark directly: code that changes the pool names the [`Change`], either in this module or through
//! the editing methods of `edit`, which compare before and after. [`Pool::changed`] is the table; it reads from top to bottom.
//!
//! Four things may follow from a change: an object is looked at again; an object's status is written again; the
//! machines' offers count as changed, so that earlier explanations no longer hold; and a negotiation cycle is wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ids::{ClaimId, GroupName, JobUid, MachineName, PolicyName, SlotName, SubmitterName};
use super::slot::{Claim, Slot};
use super::slot_types::Kind as SlotKind;
use super::{Document, Pool};

/// The work that must still be done since the pool changed.
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
    /// How many times the machines' offers have changed.
    offers: u64,
    /// Something changed that a cycle of any negotiator could act on: `condor_reschedule`.
    cycle: bool,
}

/// A change of the pool, named after what changed. [`Pool::changed`] says what follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    /// Everything that existed at the start is known.
    Synced,
    /// A node appeared, changed or was deleted.
    Node(&'a MachineName),
    /// Something changed that the review of a machine reads: its Leases, its drains, its backfill work, or its alarm.
    Machine(&'a MachineName),
    /// More or less can be carved on a machine, though the machine itself is the same.
    ToCarve(&'a MachineName),
    /// An agent's report changed, or the agent became silent or came back.
    Agent {
        /// The machine.
        machine: &'a MachineName,
        /// Whether START may have another value.
        start: bool,
        /// Whether the load of the pool's own jobs changed, or what they use.
        load: bool,
    },
    /// Whether a machine offers its resources changed, or the reason why not.
    Offer(&'a MachineName),
    /// A drain of a machine began or ended.
    Draining(&'a MachineName),
    /// A drain's deadline moved, or no further jobs may fill in.
    DrainPace(&'a MachineName),
    /// Whether a policy's text can be used on a machine changed.
    Unfit(&'a MachineName),
    /// Another policy governs a machine.
    PolicyOf {
        /// The policy before.
        before: Option<&'a PolicyName>,
        /// The policy now.
        after: Option<&'a PolicyName>,
    },
    /// Other policies than before tie on a machine: they select it with equal precedence, and their names decide.
    Tied {
        /// The tied policies before.
        before: &'a [PolicyName],
        /// The tied policies now.
        after: &'a [PolicyName],
    },
    /// A machine was divided into other slots; these objects showed its slots before.
    Layout(&'a MachineName, &'a BTreeSet<Document>),
    /// A latched value of a slot changed (`STARTD_LATCH_EXPRS`).
    Latched,
    /// The attributes that slots of a machine show of each other changed (`STARTD_SLOT_ATTRS`).
    Crossed,
    /// Something happened for which a claim on a machine may have waited: backfill work ended, an agent's Lease was
    /// read, or a kubelet became silent.
    ClaimsOn(&'a MachineName),
    /// A machine whose node is gone was forgotten, and with it these objects.
    Forgotten(&'a BTreeSet<Document>, Option<&'a PolicyName>),
    /// A machine is absent, or no longer; or its AbsentMachine says something else.
    Absent(&'a MachineName),

    /// An unclaimed machine slot took a transition.
    MachineSlot {
        /// The object that shows the slot.
        document: &'a Document,
        /// Whether the slot is Unclaimed/Idle now.
        idle: bool,
    },
    /// The amount that is kept at a partitionable slot for gatherings changed.
    Kept(&'a SlotName),

    /// Something changed that the next step of a claimed slot reads: its claim, its record, its pod, or its alarm.
    Slot(&'a SlotName),
    /// A pod began to run in a claimed slot.
    Started(&'a SlotName),
    /// A claimed slot was added.
    Carved(&'a Slot),
    /// A claimed slot is gone, and its resources have returned.
    Returned(&'a Slot),
    /// A claimed slot's claim was replaced: the claim before, and the slot now.
    Replaced(&'a Claim, &'a Slot),
    /// A claimed slot has taken transitions and rests.
    Rests {
        /// The slot.
        slot: &'a SlotName,
        /// Whether other slots of the machine read its attributes, or an agent works there.
        seen: bool,
        /// Whether its next step will come in a moment, so that writing its status now would cost a write for each
        /// proc.
        passing: bool,
    },
    /// A slot's object was adopted or deleted, or has a claim that it should not have.
    SlotObject(&'a SlotName),
    /// A slot's object is about to be deleted: its status is not written any more.
    SlotObjectGoes(&'a SlotName),
    /// A claim waits for a slot, or waits for other slots than before.
    Waits(&'a SlotName),
    /// A claim that waited for a slot waits no longer.
    WaitsNoLonger,
    /// Something changed for which a gathering waits.
    Gathering(&'a ClaimId),
    /// A gathering is over.
    GatheringOver,

    /// A job is new.
    NewJob(&'a JobUid),
    /// A job's object was seen, its finalizer changed, or a pod of the job is gone.
    Job(&'a JobUid),
    /// A job's spec changed.
    Spec(&'a JobUid),
    /// A spec that was accepted came into force.
    SpecInForce,
    /// Some procs of a job became idle, running, held or done.
    Procs(&'a JobUid),
    /// Something changed that a job's status shows: why it waits, whether it can be matched, when it started, or how many of
    /// its procs are suspended.
    JobStatus(&'a JobUid),
    /// A proc was assigned to a claim.
    Assigned(&'a SlotName, &'a JobUid, &'a SubmitterName),
    /// A proc was taken from its claim before it started.
    Withdrawn(&'a JobUid),
    /// Procs were released, or the API server accepts a job's pods again, so that more procs may be matched.
    Released,
    /// A job is gone.
    JobGone(&'a JobUid),
    /// A job was added to a submitter's queue or removed from it.
    Queue(&'a SubmitterName, Option<&'a GroupName>),

    /// A submitter is new, its object went, or its accounts changed.
    Submitter(&'a SubmitterName),
    /// An admin set a submitter's factor, ceiling, floor or account.
    SubmitterSet(&'a SubmitterName),
    /// A submitter is charged for a claim, or no longer charged, because the job continued or was suspended.
    Charge(&'a SubmitterName),
    /// A group's priority factor changed, or which of a submitter's accounts comes first.
    Priorities,
    /// Accounting groups came, went or changed.
    Groups,
    /// The amount that a cycle gave to a group changed.
    Given(&'a Arc<str>),
    /// The amounts of dynamic quotas changed, because negotiators have other slots than before.
    Shares,
    /// The amount of a concurrency limit that claims hold changed.
    Limit {
        /// The ConcurrencyLimit objects that show it.
        objects: &'a BTreeSet<Arc<str>>,
        /// Whether something was returned.
        less: bool,
    },
    /// Units of concurrency limits that were kept for a replaced claim no longer count.
    LimitFreed,
    /// ConcurrencyLimits, or knobs that set limits, changed.
    Limits {
        /// Whether other amounts may be had now.
        other: bool,
    },
    /// Other procs than before wait for concurrency limits.
    Barred,

    /// A NodePolicy was accepted, refused, changed or removed.
    Policies,
    /// A SubmitPolicy was added, changed or removed, so that another may count.
    SubmitPolicies,
    /// Negotiators were added, changed or removed.
    Negotiators,
    /// The slots that constraints of several negotiators take changed.
    Overlaps,
    /// A negotiator's cycle is over.
    Cycle(Option<&'a Arc<str>>),
    /// A DrainRequest was added, changed or removed.
    Drain {
        /// The DrainRequest, if it still exists.
        request: Option<&'a Arc<str>>,
        /// The machine that it was for before, and the machine that it is for now.
        machines: [Option<&'a MachineName>; 2],
    },
    /// A DrainRequest's phase or cost changed.
    DrainStatus(&'a Arc<str>),
    /// A time has come at which something may have changed.
    Time,
}

impl Pool {
    /// Sets the marks that follow from a change.
    #[allow(clippy::too_many_lines, clippy::match_same_arms, reason = "one table, a row for each change")]
    pub(super) fn changed(&mut self, change: Change) {
        self.changes = self.changes.wrapping_add(1);
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
                // Dynamic quotas are shares of the pool's weight.
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
                // Which pods are suspended does not stand in the machine's ad.
                if start || load {
                    self.offer_changed();
                }
                // A change of the pool's own load alone is no reason for an early cycle.
                self.marks.cycle |= start;
                self.show_machine(machine);
                self.marks.machines.insert(machine.clone());
                // Each slot's policy reads what the agent senses; and a suspension that took place leads to a
                // transition.
                self.look_at_claims(machine);
            }
            Change::Offer(name) | Change::Draining(name) => {
                self.show_machine(name);
                // A slot on the machine may have to end its claim, or may start a proc that waited.
                self.look_at_claims(name);
                self.offer_changed();
            }
            Change::DrainPace(name) => {
                self.look_at_claims(name);
                self.offer_changed();
            }
            Change::Unfit(name) => self.show_machine(name),
            Change::PolicyOf { before, after } => {
                self.marks.statuses.extend(before.into_iter().chain(after).cloned().map(Document::Policy));
            }
            Change::Tied { before, after } => {
                self.marks.statuses.extend(before.iter().chain(after).cloned().map(Document::Policy));
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
            Change::Absent(name) => {
                self.marks.statuses.insert(Document::AbsentMachine(name.clone()));
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
            Change::SpecInForce | Change::Released => self.marks.cycle = true,
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
                self.submitters.queue_changed(submitter);
                self.show_groups_around(group);
            }

            Change::Submitter(name) => {
                self.marks.statuses.insert(Document::Submitter(name.clone()));
            }
            Change::SubmitterSet(name) | Change::Charge(name) => {
                self.marks.statuses.insert(Document::Submitter(name.clone()));
                // More or less can be had now.
                self.marks.cycle = true;
            }
            Change::Priorities => {
                self.marks
                    .statuses
                    .extend(self.submitters.by_name().keys().cloned().map(Document::Submitter));
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
            Change::Limits { other } => {
                self.marks.cycle |= other;
                self.show_limits();
            }
            Change::Barred => self.show_limits(),

            // The status of each policy names the other policies that get into its way, so that all statuses may
            // change.
            Change::Policies => {
                self.marks.policies = true;
                self.marks.statuses.extend(self.policies.keys().cloned().map(Document::Policy));
            }
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
            Change::Drain { request, machines } => {
                self.marks.machines.extend(machines.into_iter().flatten().cloned());
                self.marks.statuses.extend(request.cloned().map(Document::Drain));
            }
            Change::DrainStatus(request) => {
                self.marks.statuses.insert(Document::Drain(Arc::clone(request)));
            }
        }
    }

    /// Marks the objects of a machine whose node is gone, so that they say so. The machine stays until its claims have
    /// ended.
    pub fn show_gone(&mut self, machine: &MachineName) {
        self.show_machine(machine);
    }

    /// Marks several claimed slots.
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

    /// Marks the objects of a machine's slots.
    fn show_machine(&mut self, machine: &MachineName) {
        if let Some(machine) = self.machines.get(machine) {
            self.marks.statuses.extend(machine.documents());
        }
    }

    fn show_groups(&mut self) {
        self.marks.statuses.extend(self.groups.by_object().keys().cloned().map(Document::Group));
    }

    /// Marks the objects of a group and of the groups around it.
    fn show_groups_around(&mut self, group: Option<&GroupName>) {
        let Some(group) = group else { return };
        for name in group.ancestry() {
            let objects = self.groups.named(&name).map(|outer| Document::Group(outer.object.clone()));
            self.marks.statuses.extend(objects);
        }
    }

    fn show_limits(&mut self) {
        self.marks.statuses.extend(self.limits.keys().cloned().map(Document::Limit));
    }

    fn show_negotiators(&mut self) {
        self.marks.statuses.extend(self.negotiators.keys().cloned().map(Document::Negotiator));
    }

    /// Marks all objects that show a claim on a slot.
    fn show_claim(&mut self, slot: &SlotName, claim: &Claim) {
        self.marks.statuses.insert(Document::of_holder(slot));
        self.marks.statuses.insert(Document::Submitter(claim.submitter.clone()));
        self.marks.statuses.insert(Document::Job(claim.last.job.uid.clone()));
        let machine = self.machines.get(&slot.machine);
        // All partitionable slots of the machine show what is left of it, for example how many pods.
        let carvers = machine.into_iter().flat_map(|machine| {
            let partitionable = machine.slots().filter(|slot| slot.kind == SlotKind::Partitionable);
            partitionable.map(|slot| slot.document(&machine.facts.name))
        });
        self.marks.statuses.extend(carvers);
        if machine.is_some_and(|machine| self.startd(machine).has_weights()) {
            // Such weights may differ before and after carving. Then the pool's weight changes, and with it the dynamic
            // quotas of groups that have nothing to do with this claim.
            self.show_groups();
        } else {
            self.show_groups_around(claim.group.as_ref());
        }
    }

    // --- taking up what was marked ---------------------------------------------------------------------------------

    /// Removes and returns a marked machine, which is to be reviewed.
    pub fn next_machine(&mut self) -> Option<MachineName> {
        self.marks.machines.pop_first()
    }

    /// Removes and returns a marked claimed slot, which is to be looked at.
    pub fn next_slot(&mut self) -> Option<SlotName> {
        self.marks.slots.pop_first()
    }

    /// Removes and returns a marked job, which is to be reviewed.
    pub fn next_job(&mut self) -> Option<JobUid> {
        self.marks.jobs.pop_first()
    }

    /// Removes and returns a marked gathering, which is to be looked at.
    pub fn next_gathering(&mut self) -> Option<ClaimId> {
        self.marks.gatherings.pop_first()
    }

    /// Removes and returns a machine whose drain would cost something else now.
    pub fn next_drain_cost(&mut self) -> Option<MachineName> {
        self.marks.drain_costs.pop_first()
    }

    /// Whether negotiators changed since the last call.
    pub fn take_negotiators_changed(&mut self) -> bool {
        std::mem::take(&mut self.marks.negotiators)
    }

    /// Whether a cycle was wanted since the last call.
    pub(super) fn take_cycle_wanted(&mut self) -> bool {
        std::mem::take(&mut self.marks.cycle)
    }

    /// If policies changed, marks all machines and claimed slots: another policy may govern them.
    pub fn spread_policies(&mut self) {
        if std::mem::take(&mut self.marks.policies) {
            self.look_at_every_machine_and_slot();
            self.offer_changed();
            self.marks.cycle = true;
        }
    }

    /// If groups changed, marks all jobs that name a group: some may start now, others no longer.
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

    /// Removes and returns the statuses that must be written. If all procs of a job have ended, and some ends are not in the
    /// history yet, the job's status is left out until the history has them, so that the ends cost one write.
    pub fn take_statuses(&mut self) -> BTreeSet<Document> {
        let mut stale = std::mem::take(&mut self.marks.statuses);
        stale.retain(|document| !self.waits_only_for_history(document));
        stale
    }

    /// How many times the machines' offers have changed. Conclusions from the offers alone hold as long as this number
    /// stays the same.
    pub fn offers(&self) -> u64 {
        self.marks.offers
    }
}

#[cfg(test)]
mod tests;
