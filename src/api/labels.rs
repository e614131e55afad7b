//! Labels, annotations, finalizers and field managers that the operator puts on objects.

/// The prefix of all these names.
pub const PREFIX: &str = "slotwright.dev/";
/// On a pod and a Slot: the uid of the HTCJob it works for.
pub const JOB_UID: &str = "slotwright.dev/job-uid";
/// On a pod and a Slot: the name of the HTCJob it works for.
pub const JOB_NAME: &str = "slotwright.dev/job-name";
/// On a pod: the proc's number within its job.
pub const PROC: &str = "slotwright.dev/proc";
/// On a pod, as annotation: the slot that it runs in, or does backfill work for, by HTCondor's name, such as `slot1_3@node7`.
pub const SLOT: &str = "slotwright.dev/slot";
/// On a backfill pod: `"true"`.
pub const BACKFILL: &str = "slotwright.dev/backfill";
/// On a backfill pod, as annotation: the hash of the template that the pod was made from.
pub const BACKFILL_TEMPLATE: &str = "slotwright.dev/backfill-template";
/// The `PriorityClass` of backfill pods whose template names none. The chart makes it. The scheduler may preempt these
/// pods for any pod of greater priority.
pub const BACKFILL_PRIORITY: &str = "slotwright-backfill";
/// On a Slot and a `PartitionableSlot`: the node that it was carved from.
pub const NODE: &str = "slotwright.dev/node";
/// On an HTCJob, as annotation: who created it, sealed by the admission webhook. Nobody else can write a value that the operator
/// believes.
pub const SUBMITTED_BY: &str = "slotwright.dev/submitted-by";
/// On an HTCJob, as annotation: who created it, stamped by the chart's `MutatingAdmissionPolicy`: the user in the first line, and a
/// group in each further line. The operator believes the annotation only of a job that was created while the policy was in force.
pub const CREATED_BY: &str = "slotwright.dev/created-by";
/// On a pod, as annotation: the id of the claim under which it was activated.
pub const CLAIM: &str = "slotwright.dev/claim";
/// On an HTCJob, as annotation: what people ask of single procs, once, as JSON. `docs/reference/jobs.md` has the form.
pub const ACTS: &str = "slotwright.dev/acts";
/// On an HTCJob, as annotation: the procs, as ranges, that are done, and that somebody took out of the queue although
/// `LeaveJobInQueue` would keep them there. Only kubectl-slotwright reads and writes the annotation.
pub const OUT_OF_QUEUE: &str = "slotwright.dev/out-of-queue";
/// On a pod, as annotation: the name of its main container, which the job's template names first. Admission may put other
/// containers before that one.
pub const MAIN_CONTAINER: &str = "slotwright.dev/main-container";
/// On a pod that requests nothing but CPUs, memory and disk, as annotation: what it requests of its slot, such as
/// `cpus=1, memory=128, disk=1024`, in `HTCondor`'s units (MiB and KiB). Admission may add to what the pod requests.
pub const RESOURCES: &str = "slotwright.dev/resources";
/// On a pod, as annotation: how many runs of its proc came before this one.
pub const RUN: &str = "slotwright.dev/run";
/// On a pod, as annotation: the submitter who is charged for the claim, with its accounting group.
pub const SUBMITTER: &str = "slotwright.dev/submitter";
/// On a pod, as annotation: `HTCondor`'s `ClusterId.ProcId`.
pub const JOB_ID: &str = "slotwright.dev/job-id";
/// On a pod, as annotation: `"true"` while the agent of its node is to suspend its processes. Written by the operator.
pub const SUSPEND: &str = "slotwright.dev/suspend";
/// On a pod, as annotation: `"true"` asks the agent of its node to kill its processes, because the kubelet lets them run
/// for longer than killing may take, or has not ended them within KILLING_TIMEOUT. Written by the operator.
pub const KILL: &str = "slotwright.dev/kill";
/// On a pod, as annotation: the longest grace period, in seconds, with which the pod was deleted. The operator writes it
/// before it deletes the pod with a shorter one: a kubelet that has begun to end the pod keeps to the first.
pub const GRANTED_SECONDS: &str = "slotwright.dev/granted-seconds";
/// On a pod, as annotation: the lease of its claim in seconds. An agent that fences (see [`FENCES`]) ends the pod if it
/// could not renew its own Lease for this long.
pub const LEASE_SECONDS: &str = "slotwright.dev/lease-seconds";
/// On the leader's Lease, as annotation: the highest ClusterId that was ever given. It outlasts the jobs.
pub const HIGHEST_CLUSTER: &str = "slotwright.dev/highest-cluster-id";
/// On the Lease of an agent, as annotation: `"true"` if the agent promises to fence, which means to end pods as
/// [`LEASE_SECONDS`] says.
pub const FENCES: &str = "slotwright.dev/fences-claims";
/// The beginning of the termination message that an agent leaves in a container that it fences.
pub const FENCED: &str = "slotwright.dev/fenced";
/// On a pod: the tracking finalizer. It stays until the pod's end is recorded in its HTCJob, so that no end is lost.
pub const TRACKING_FINALIZER: &str = "slotwright.dev/tracking";
/// On an HTCJob: it stays until the job's pods have ended and its claims are gone.
pub const JOB_FINALIZER: &str = "slotwright.dev/release-claims";
/// The beginning of the name of an agent's Lease in `kube-node-lease`; the rest is the node's name. The agent renews the
/// Lease to say that it lives.
pub const AGENT_LEASE_PREFIX: &str = "slotwright-agent-";
/// The name of the Lease in `kube-node-lease` that says whose the pool is: the one operator of the cluster that decides.
pub const POOL_LEASE: &str = "pool.slotwright.dev";
/// The label, with the value [`FIELD_MANAGER`], of Submitters that the operator made. The operator deletes such a Submitter when nothing
/// needs the object any more; Submitters that people made stay.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The field manager of everything the operator writes.
pub const FIELD_MANAGER: &str = "slotwright";
/// The field manager of status writes (old servers do not separate managers by subresource).
pub const STATUS_MANAGER: &str = "slotwright-status";
