//! Files that travel: what a program on a real node finds of them, and where its output goes.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::cluster::{Cluster, root, state};
use crate::program::{IMAGE, proof_dir};

/// Reads its inputs, writes beside them, and tries to change one.
const SCRIPT: &str = "#!/bin/sh\n\
    echo \"proc $1 in $PWD of $_CONDOR_SCRATCH_DIR as $0\"\n\
    cat word.txt own.txt\n\
    cat\n\
    wc -c <raw.bin\n\
    echo made >beside.txt && cat beside.txt\n\
    ls\n\
    { echo changed >word.txt; } 2>/dev/null || echo 'the input stays'\n\
    exit 3\n";

/// Runs the plugin beside the operator's program. Returns its exit code, standard output and standard error.
fn plugin(words: &[&str]) -> (Option<i32>, String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_slotwright")).with_file_name("kubectl-slotwright");
    assert!(program.exists(), "{} is not built: cargo build --bins", program.display());
    let run = Command::new(program)
        .args(words)
        .env("KUBECONFIG", state().join("admin.kubeconfig"))
        .current_dir(root())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real nodes: make e2e-nodes"]
async fn files_travel_to_the_program_and_its_output_stays() {
    let cluster = Cluster::start("files", "MachineMaxVacateTime = 5").await;
    let space = cluster.namespace.clone();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    write("run.sh", SCRIPT.as_bytes());
    write("word.txt", b"word\n");
    write("raw.bin", &[0xff, 0, 0x10]);
    std::fs::create_dir(directory.path().join("typed")).unwrap();
    write("typed/line.txt", b"as if typed\n");
    for proc in ["0", "1"] {
        std::fs::create_dir(directory.path().join(proc)).unwrap();
        write(&format!("{proc}/own.txt"), format!("own {proc}\n").as_bytes());
    }
    let template = json!({"spec": {
        "containers": [{"name": "main", "volumeMounts": [{"name": "results", "mountPath": "/results"}]}],
        "volumes": [{"name": "results", "hostPath": {"path": proof_dir(&space), "type": "DirectoryOrCreate"}}],
    }});
    write("template.json", template.to_string().as_bytes());
    let at = directory.path().display();
    let submit = |name: &str, more: &str| {
        let text = format!(
            "container_image = docker://{IMAGE}\nexecutable = {at}/run.sh\ntransfer_executable = true\narguments = $(Process)\n\
             transfer_input_files = {at}/word.txt, {at}/raw.bin, {at}/$(Process)/own.txt\nrequest_memory = 64\n\
             initialdir = {at}\ninput = typed/line.txt\npreserve_relative_paths = true\n{more}queue 2\n"
        );
        write(&format!("{name}.sub"), text.as_bytes());
        let (file, template) = (format!("{at}/{name}.sub"), format!("{at}/template.json"));
        let (code, out, err) =
            plugin(&["submit", "-n", &space, "--name", name, "--template", &template, &file]);
        assert_eq!(code, Some(0), "{out}{err}");
        out.trim_end().rsplit(' ').next().unwrap().trim_end_matches('.').to_owned()
    };
    let (logged, written) =
        (submit("logged", ""), submit("written", "output = /results/o.$(Process)\nerror = /results/e\n"));
    let expected = |proc: u32| {
        format!(
            "proc {proc} in /scratch of /scratch as /scratch/run.sh\nword\nown {proc}\nas if typed\n3\nmade\nbeside.txt\nown.txt\n\
             raw.bin\nrun.sh\ntyped\nword.txt\nthe input stays\n"
        )
    };
    for job in [&logged, &written] {
        let record = cluster.completed(job, 120).await;
        assert_eq!(record.failed.len(), 2, "{job} ends with 3: {record:?}");
    }
    let id = cluster.jobs().get(&logged).await.unwrap().status.unwrap().cluster_id.unwrap();
    for proc in 0..2 {
        let (code, out, err) = plugin(&["output", "-n", &space, &format!("{id}.{proc}")]);
        assert_eq!((code, out.as_str()), (Some(0), expected(proc).as_str()), "{err}");
        assert!(err.starts_with(&format!("{id}.{proc}: ended with exit code 3 on node")), "{err}");
        let file = std::fs::read_to_string(proof_dir(&space).join(format!("o.{proc}"))).unwrap();
        assert_eq!(file, expected(proc));
    }
    let (_, _, err) = plugin(&["output", "-n", &space, &written]);
    assert!(err.contains("standard output is in the file /results/o.1 of the volume results"), "{err}");
}
