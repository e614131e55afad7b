//! Claims that are used again for jobs of other sizes.

use super::world::{Pod, World};
use crate::pool::ClaimId;
use crate::schedd::Submission;

/// Runs a job of a minute that fills a node's CPUs, and then another job of the same submitter. Returns what each pod has (CPUs,
/// MiB of memory, KiB of disk), and whether the second job ran on the claim of the first.
fn one_after_another(edit: impl FnOnce(&mut Submission)) -> (Vec<(i64, i64, i64)>, bool) {
    let mut world = World::new();
    world.node("n1", 4, 1);
    world.fate = |_| (60, 0);
    world.submit("large", "alice", 1, |job| {
        (job.request.cpus, job.request.memory_mib, job.request.disk_kib) = (4, 2048, 10 * 1024);
    });
    world.pass(10);
    world.submit("small", "alice", 1, edit);
    let claims = |world: &World| world.slots.values().map(|slot| slot.1.id.clone()).collect::<Vec<ClaimId>>();
    let before = claims(&world);
    world.pass(100);
    let again = claims(&world) == before;
    if again {
        let slot = world.slots.values().next().map(|(resources, _)| resources.cpus);
        assert_eq!(slot, Some(4), "the slot keeps its size");
    }
    let size = |pod: &Pod| {
        let resources = &pod.plan.resources;
        (resources.cpus, resources.memory_mib, resources.disk_kib)
    };
    (world.pods.values().map(size).collect(), again)
}

#[test]
fn a_pod_on_a_claim_that_is_used_again_is_as_large_as_its_own_proc_requests() {
    let (sizes, again) =
        one_after_another(|job| (job.request.memory_mib, job.request.disk_kib) = (100, 2000));
    assert!(again);
    // The amounts follow MODIFY_REQUEST_EXPR_REQUESTMEMORY and similar knobs, as in a slot that is carved for the proc.
    assert_eq!(sizes, [(4, 2048, 10 * 1024), (1, 128, 2048)]);
}

/// HTCondor's condor_submit adds a clause for a resource only if the job's own Requirements do not mention the
/// resource.
#[test]
fn a_claim_is_not_used_again_for_a_proc_that_does_not_fit() {
    let again = |edit: fn(&mut Submission)| {
        let (sizes, again) = one_after_another(|job| {
            job.requirements = Some("TARGET.Memory > 1 && TARGET.Cpus > 0 && TARGET.GPUs >= 0".into());
            edit(job);
        });
        assert_eq!(sizes.len(), 2, "the job runs, be it on a slot of its own");
        again
    };
    assert!(again(|_| {}));
    assert!(!again(|job| job.request.memory_mib = 2049));
    assert!(!again(|job| job.request.gpus = 1));
}
