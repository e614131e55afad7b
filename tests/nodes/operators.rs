//! Two operators, of which one leads, are killed ten times: no proc is lost, and none runs twice.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;

use crate::cluster::Cluster;
use crate::program::{OnTerm, Program};

const KILLS: usize = 10;
/// So many that some are left at the tenth kill.
const PROCS: u32 = 140;
const NAMES: [&str; 2] = ["one", "two"];

async fn lease(cluster: &Cluster) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "slotwright-system");
    leases.get_opt("slotwright-operator").await.unwrap().and_then(|lease| lease.spec).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn ten_kills_of_two_operators_lose_and_double_nothing() {
    let cluster = Cluster::without_operator("operators", "MachineMaxVacateTime = 5").await;
    let space = cluster.namespace.clone();
    for name in NAMES {
        cluster.start_operator(name, true);
    }
    let polite = OnTerm::Exit { after: 1, code: 0 };
    cluster.apply(Program::new(12, 12).on_term(polite).job(&space, "sweep", PROCS / 2, |_| {})).await;
    cluster.apply(Program::new(16, 16).exit(3).on_term(polite).job(&space, "fails", PROCS / 2, |_| {})).await;
    let started = |cluster: &Cluster| cluster.proof("sweep").started() + cluster.proof("fails").started();
    cluster.until("some procs run", 60, || async { started(&cluster) > 5 }).await;
    for kill in 0..KILLS {
        let before = lease(&cluster).await;
        let holder = before.holder_identity.unwrap_or_default();
        let leads = holder.split('_').next().filter(|name| NAMES.contains(name));
        let leads = leads.unwrap_or(NAMES[0]).to_owned();
        let stands_by = NAMES.into_iter().find(|name| *name != leads).unwrap();
        // The leader, then the one that stands by, then both at once.
        let victims = match kill % 4 {
            0 | 2 => vec![leads.as_str()],
            1 => vec![stands_by],
            _ => vec![leads.as_str(), stands_by],
        };
        for name in &victims {
            cluster.kill_operator(name);
        }
        // Work is left for the time without a leader: some programs end, and some pods were just created.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        for name in &victims {
            cluster.start_operator(name, true);
        }
        eprintln!("kill {kill}: {victims:?}, {} of {PROCS} procs have started", started(&cluster));
        if kill % 4 == 2 {
            // Sometimes the next kill waits until somebody leads again.
            let renewed = before.renew_time;
            cluster
                .until("an operator leads again", 60, || async { lease(&cluster).await.renew_time > renewed })
                .await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    let seen = started(&cluster);
    assert!(seen < PROCS as usize, "no work was left for the last kills");
    let mut wrong = Vec::new();
    for job in ["sweep", "fails"] {
        cluster.completed(job, 180).await;
        wrong.extend(cluster.violations(job, |_| false).await);
        let proof = cluster.proof(job);
        for proc in 0..PROCS / 2 {
            let runs = proof.runs(proc);
            if runs.len() != 1 {
                wrong.push(format!(
                    "{job}.{proc} ran {} times though nobody sent it away: {runs:?}",
                    runs.len()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}
