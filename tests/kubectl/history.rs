//! condor_history asks the operator through the API server's proxy.

use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use ::history::{Limits, Store};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use classad::Ad;
use controller::archive::{Token, router};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// An API server that has a Service of a history, and nothing else.
struct World {
    directory: TempDir,
    _serving: JoinSet<()>,
}

impl World {
    /// Begins a history of so many procs. Readers have to show the token of a Secret, which they may read if `may_read`.
    async fn new(procs: i64, may_read: bool) -> Self {
        let directory = TempDir::new().unwrap();
        let mut store = Store::open(directory.path(), Limits { max_log: 4 << 20, rotations: 9 }).unwrap();
        let ads: Vec<Ad> = (0..procs).map(ad).collect();
        for ads in ads.chunks(1000) {
            store.append(ads, 1_893_500_000, None).unwrap();
        }
        let token = directory.path().join("token");
        std::fs::write(&token, "s3cret").unwrap();
        let token = Token { file: token, secret: "history-token".to_owned() };
        let history = router(directory.path(), Some(token), controller::Clock::start());
        let secret = move || async move {
            if may_read {
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "history-token"}, "data": {"token": "czNjcmV0"}});
                (StatusCode::OK, secret.to_string())
            } else {
                let refused = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden",
                    "message": "secrets \"history-token\" is forbidden", "code": 403});
                (StatusCode::FORBIDDEN, refused.to_string())
            }
        };
        let namespace = "/api/v1/namespaces/slotwright-system";
        let router = Router::new()
            .nest(&format!("{namespace}/services/slotwright-history:history/proxy"), history)
            .route(&format!("{namespace}/secrets/history-token"), get(secret));
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let server = listener.local_addr().unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{server}")}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        });
        std::fs::write(directory.path().join("config"), kubeconfig.to_string()).unwrap();
        symlink(env!("CARGO_BIN_EXE_kubectl-slotwright"), directory.path().join("condor_history")).unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { directory, _serving: serving }
    }

    async fn says(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(self.directory.path().join("condor_history"));
        let config = self.directory.path().join("config");
        command.args(words).env_clear().env("TZ", "UTC").env("KUBECONFIG", config);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let Output { status, stdout, stderr } = output;
        (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }
}

/// Each job has 10 procs, and every third job is bob's.
fn ad(number: i64) -> Ad {
    let (cluster, proc) = (1 + number / 10, number % 10);
    Ad::new()
        .with("ClusterId", cluster)
        .with("ProcId", proc)
        .with("Owner", if cluster % 3 == 0 { "bob" } else { "ada" })
        .with("QDate", 1_893_456_000 + number)
        .with("CompletionDate", 1_893_460_000 + number)
        .with("JobStatus", 4)
        .with("RemoteWallClockTime", 61.0)
        .with("Cmd", "/bin/sim")
        .with("Arguments", format!("--seed {number}").as_str())
        .with("TotalSubmitProcs", 10)
        .with("Padding", "x".repeat(600).as_str())
        .with("GlobalJobId", format!("ns#{cluster}.{proc}#u").as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_history() {
    let world = World::new(10_000, true).await;
    let (status, said, notes) = world.says(&["-limit", "2"]).await;
    assert_eq!((status, notes.as_str()), (0, ""));
    assert_eq!(
        said,
        " ID          OWNER            SUBMITTED   RUN_TIME   ST   COMPLETED CMD\n\
         1000.9       ada             1/1  02:46   0+00:01:01 C   1/1  03:53 sim --seed 9999\n\
         1000.8       ada             1/1  02:46   0+00:01:01 C   1/1  03:53 sim --seed 9998\n"
    );
    let (_, all, _) = world.says(&["-af", "ClusterId", "ProcId"]).await;
    assert_eq!(all.lines().count(), 10_000, "page after page");
    assert!(all.starts_with("1000 9\n") && all.ends_with("\n1 0\n"));
    let (_, forwards, _) = world.says(&["-forwards", "-af", "ClusterId", "ProcId"]).await;
    assert!(forwards.starts_with("1 0\n1 1\n") && forwards.lines().count() == 10_000);
    for (words, lines) in [
        (&["7"][..], 10),
        (&["7.3"], 1),
        (&["bob"], 3330),
        (&["bob", "-limit", "5"], 5),
        (&["-constraint", "ProcId == 4 && Owner == \"ada\""], 667),
        (&["-since", "900.9"], 1000),
        (&["-scanlimit", "6000"], 6000),
        (&["99999"], 0),
    ] {
        let (_, said, _) = world.says(&[words, &["-af", "ClusterId"]].concat()).await;
        assert_eq!(said.lines().count(), lines, "{words:?}");
    }
    let (_, long, _) = world.says(&["-long", "7.3"]).await;
    assert!(long.contains("\nGlobalJobId = \"ns#7.3#u\"\n") && !long.contains("Sequence"), "{long}");
    let (_, json, _) = world.says(&["-json", "-limit", "1"]).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["Arguments"], "--seed 9999");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_is_told_why() {
    let world = World::new(1, false).await;
    let (status, _, why) = world.says(&[]).await;
    assert_eq!(status, 1);
    assert!(why.contains("slotwright-system/history-token") && why.contains("is forbidden"), "{why}");
    let mut command = Command::new(world.directory.path().join("condor_history"));
    command
        .env_clear()
        .env("KUBECONFIG", world.directory.path().join("config"))
        .env("SLOTWRIGHT_HISTORY", "other/name");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(
        why.contains("there is no history at Service other/name") && why.contains("history.enabled"),
        "{why}"
    );
}
