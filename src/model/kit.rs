//! Facts for the tests of all rooms: what a watch tells of an ordinary object. A test changes what it is about:
//! `MachineFacts { cordoned: true, ..kit::machine("n1", 4, 16) }`.

use std::sync::Arc;

use classad::Ad;

use crate::pool::{
    Accounts, Capacity, ExtendedResources, JobSpec, MachineFacts, Needs, PolicyFacts, Request, Retention,
    Selection, StartdConfig, SubmitterFacts, System,
};

/// A ready Linux node of so many CPUs, so much memory in GiB, and 100 GiB of disk.
pub(crate) fn machine(name: &str, cpus: i64, memory_gib: i64) -> MachineFacts {
    MachineFacts {
        name: name.into(),
        arch: "amd64".into(),
        os: "linux".into(),
        labels: Arc::default(),
        allocatable: Capacity {
            milli_cpu: cpus * 1000,
            memory: memory_gib << 30,
            disk: 100 << 30,
            extended: ExtendedResources::new(),
        },
        ready: true,
        cordoned: false,
        taints: vec![],
        system: System::default(),
    }
}

/// A valid NodePolicy for all nodes; another `spec` is another policy.
pub(crate) fn policy(name: &str, config: StartdConfig, spec: &str) -> PolicyFacts {
    PolicyFacts {
        name: name.into(),
        uid: "u".into(),
        generation: 1,
        selection: Selection::default(),
        config: Ok(Arc::new(config)),
        warnings: None,
        spec: spec.into(),
        recorded: None,
    }
}

/// A submitter who has used nothing, and whom nothing is set for.
pub(crate) fn submitter(name: &str) -> SubmitterFacts {
    SubmitterFacts {
        name: name.into(),
        generation: 1,
        made: false,
        misnamed: None,
        in_vain: Vec::new(),
        factor: None,
        ceiling: None,
        floor: None,
        correction: None,
        corrected: None,
        accounts: Accounts::default(),
    }
}

/// A job of one proc with this ad.
pub(crate) fn job(ad: Ad, request: Request) -> JobSpec {
    JobSpec {
        count: 1,
        request,
        ad,
        priorities: JobSpec::PLAIN,
        submitter: "alice".into(),
        group: None,
        group_by_policy: false,
        image: None,
        needs: Needs::default(),
        retention: Retention::Keep,
        hold: false,
    }
}
