//! Pods whose tracking finalizer is being taken off.

use super::Pool;
use super::ids::{PodRef, PodUid};

/// A pod whose tracking finalizer is being taken off, kept in mind until a watch shows the pod without the finalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untracking {
    /// The pod.
    pub pod: PodRef,
    /// Whether the pod is deleted too.
    pub delete: bool,
    /// Whether the call failed, so that the call has to be made again.
    pub again: bool,
}

impl Pool {
    /// Whether a pod was deleted before its tracking finalizer was taken off, so that nothing is left to take off.
    /// Forgets the pod.
    pub fn has_vanished(&mut self, pod: &PodUid) -> bool {
        self.vanished.remove(pod)
    }

    /// Notes that the tracking finalizer of a pod is being taken off, and whether the pod is deleted as well.
    pub fn untrack(&mut self, pod: PodRef, delete: bool) {
        self.untracking.insert(pod.uid.clone(), Untracking { pod, delete, again: false });
    }

    /// The pods whose tracking finalizer must be taken off again because the call failed; for each, whether the pod is
    /// deleted as well.
    pub fn untrack_again(&mut self) -> Vec<(PodRef, bool)> {
        let again = self.untracking.values_mut().filter(|untracking| untracking.again);
        again
            .map(|untracking| {
                untracking.again = false;
                (untracking.pod.clone(), untracking.delete)
            })
            .collect()
    }
}
