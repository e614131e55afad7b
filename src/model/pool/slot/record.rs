//! Whether the Slot object in the API server has a claim.

use std::time::Duration;

use crate::pool::time::Time;

/// How long after a refused write a claim is written again if a pod runs under the claim.
pub const CLAIM_RETRY: Duration = Duration::from_secs(30);

/// Whether the Slot object in the API server has the claim as the pool has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// No object has the claim yet, and no object needs the claim: the claim's pod and job tell a new leader everything
    /// about the claim. The operator writes the claim once its proc has lasted: see `pool::unwritten`.
    Unwritten,
    /// The object does not have the claim, or not as the pool has it. The claim must be written before anything depends
    /// on it.
    Due,
    /// A write is under way.
    Writing,
    /// The write failed, as far as is known. The object may have the claim all the same.
    Refused {
        /// When the operator heard of the failure.
        at: Time,
    },
    /// The object has the claim.
    Written,
    /// The claim is over, and the object is being deleted. Until the object is gone, nobody else gets the slot's
    /// resources: a leader that starts now would find the claim and continue it.
    Deleting,
}

/// How the object that is seen under a slot's name relates to the slot's claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// The object is the claim's own, or there is none.
    #[default]
    Own,
    /// Another object has the name of a dynamic slot whose claim is not written yet.
    Another,
    /// The claim on a static slot is to be deleted, and the operator never heard that the claim was written. The object
    /// of a static slot exists with and without a claim. So an object without the claim does not prove that the claim
    /// is deleted: the write may still arrive.
    Unheard,
}
