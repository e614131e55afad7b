//! The programs that the procs run. Each writes a proof file: what it did and when, line by line.

use serde_json::{Value, json};

/// How a program behaves.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// After how many seconds the proc's first run ends by itself.
    pub first: u32,
    /// After how many seconds a later run ends by itself.
    pub again: u32,
    /// With which code the program ends by itself.
    pub exit: i32,
    pub on_term: OnTerm,
}

/// How a program behaves when it receives SIGTERM.
#[derive(Clone, Copy, Debug)]
pub enum OnTerm {
    /// It shuts down for so many seconds, and exits with the code.
    Exit { after: u32, code: i32 },
    /// The program notes the signal, and runs on.
    Ignore,
}

impl Program {
    /// A program that ends by itself with 0 after `first` seconds, or `again` seconds in a later run, and that exits at once
    /// when it hears SIGTERM.
    pub const fn new(first: u32, again: u32) -> Self {
        Self { first, again, exit: 0, on_term: OnTerm::Exit { after: 0, code: 0 } }
    }

    pub const fn on_term(self, on_term: OnTerm) -> Self {
        Self { on_term, ..self }
    }

    pub const fn exit(self, exit: i32) -> Self {
        Self { exit, ..self }
    }

    /// A job of `count` such procs.
    pub fn job(self, namespace: &str, name: &str, count: u32, edit: impl FnOnce(&mut Value)) -> Value {
        let (after, code) = match self.on_term {
            OnTerm::Exit { after, code } => (json!(after.to_string()), json!(code.to_string())),
            OnTerm::Ignore => (json!("never"), json!("0")),
        };
        let mut object = shell(namespace, name, count, SCRIPT);
        let env = object["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut().unwrap();
        env.extend([
            json!({"name": "FIRST", "value": self.first.to_string()}),
            json!({"name": "AGAIN", "value": self.again.to_string()}),
            json!({"name": "EXIT", "value": self.exit.to_string()}),
            json!({"name": "TERM_AFTER", "value": after}),
            json!({"name": "TERM_CODE", "value": code}),
        ]);
        edit(&mut object);
        object
    }
}

/// A job whose procs run a shell script. The script finds the directory `/proof`, and `JOB`, `POD_UID` and `NODE` in its
/// environment.
pub fn shell(namespace: &str, name: &str, count: u32, script: &str) -> Value {
    json!({
        "apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "count": count,
            "requests": {"cpus": 1, "memory": "128Mi", "disk": "64Mi"},
            "template": {"spec": {
                "containers": [container("main", name, script)],
                "volumes": [{"name": "proof", "hostPath": {"path": proof_dir(namespace), "type": "DirectoryOrCreate"}}],
            }},
        },
    })
}

/// A container that runs a shell script.
pub fn container(name: &str, job: &str, script: &str) -> Value {
    json!({
        "name": name, "image": IMAGE, "command": ["sh", "-c", script],
        "env": [
            {"name": "JOB", "value": job},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "volumeMounts": [{"name": "proof", "mountPath": "/proof"}],
    })
}

/// The image that `hack/kube/node.sh` gives to each node.
pub const IMAGE: &str = "localhost/busybox:1";

/// Where the programs of a test's namespace write. All nodes are on this computer.
pub fn proof_dir(namespace: &str) -> std::path::PathBuf {
    super::cluster::state().join("proof").join(namespace)
}

/// Writes `S`, then `B` twice a second, then `E` and the exit code when the program ends by itself. `T` says that SIGTERM was
/// heard, `X` that the handler has ended. Each line has the seconds since the computer was booted: one clock for all nodes.
/// A proc's later run finds the file of an earlier run, or its own file if the kubelet started the pod's container again.
const SCRIPT: &str = r#"
mkdir -p "/proof/$JOB"
file="/proof/$JOB/$_CONDOR_PROC.$POD_UID.$NODE"
say() { read -r now rest </proc/uptime; echo "$1 $now $2" >>"$file"; }
beat() { sleep .5 & wait $!; say B; }
left() {
  say T; trap '' TERM
  n=0; while [ $n -lt $((TERM_AFTER * 2)) ]; do beat; n=$((n + 1)); done
  say X; exit "$TERM_CODE"
}
seconds=$FIRST
set -- "/proof/$JOB/$_CONDOR_PROC".*
[ ! -e "$1" ] || seconds=$AGAIN
if [ "$TERM_AFTER" = never ]; then trap 'say T' TERM; else trap left TERM; fi
say S
i=0; while [ $i -lt $((seconds * 2)) ]; do beat; i=$((i + 1)); done
trap '' TERM
say E "$EXIT"
exit "$EXIT"
"#;
