//! The chart's agent: it may do what is listed here and nothing else, and sees of its node what is listed here.

// A test states what it expects by panicking.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{PodSpec, SecurityContext, Volume};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use serde_json::Value;

use super::chart::{find, granted, listed, objects, render};

const AGENT: [&str; 2] = ["--set", "agent.enabled=true"];

/// Everything that the account of agents may do in the cluster, with the reason.
const PERMISSIONS: &[(&str, &[&str], &str)] = &[
    ("/pods", &["list", "watch"], "what the operator asks for, in annotations; RBAC cannot name a node"),
    ("/nodes", &["get"], "the Node owns its report"),
    (
        "slotwright.dev/nodereports",
        &["list", "watch", "create"],
        "its report, and what the operator asks for there",
    ),
    ("slotwright.dev/nodereports/status", &["patch"], "what it senses and does"),
];

/// And in the namespace of the nodes' Leases: its own Lease, by which the operator knows that it lives.
const LEASES: (&str, &[&str]) = ("coordination.k8s.io/leases", &["create", "patch"]);

/// The directories of the node that the agent's container has, and whether it may write there.
const MOUNTS: [(&str, bool, &str); 3] = [
    ("/sys/fs/cgroup", true, "freezing and killing, and what pods use"),
    ("/dev", false, "when somebody last typed on a terminal"),
    ("/run/systemd/sessions", false, "which terminals are the console"),
];

fn pod(text: &str, name: &str) -> PodSpec {
    find::<DaemonSet>(&objects(text), name).spec.unwrap().template.spec.unwrap()
}

/// The directories of the node that the pod's only container has, and whether the container may write there.
fn mounts(pod: &PodSpec) -> BTreeMap<String, bool> {
    let [container] = &pod.containers[..] else { panic!("one container: {pod:?}") };
    let volumes = pod.volumes.iter().flatten();
    let path = |volume: &Volume| match &volume.host_path {
        Some(directory) => Some((volume.name.clone(), directory.path.clone())),
        // An empty directory of the pod's own shows nothing of the node, and neither does a ConfigMap.
        None if volume.empty_dir.is_some() || volume.config_map.is_some() => None,
        None => panic!("a volume that the table of mounts does not have: {volume:?}"),
    };
    let paths: BTreeMap<String, String> = volumes.filter_map(path).collect();
    let mounts = container.volume_mounts.iter().flatten();
    mounts
        .filter_map(|mount| Some((paths.get(&mount.name)?.clone(), mount.read_only != Some(true))))
        .collect()
}

fn security(pod: &PodSpec) -> SecurityContext {
    pod.containers[0].security_context.clone().unwrap()
}

#[test]
fn there_is_no_agent_unless_one_is_asked_for() {
    let Some(text) = render(&[]) else { return };
    assert!(objects(&text).iter().all(|object| object["kind"] != "DaemonSet"));
}

#[test]
fn the_agent_may_do_what_is_listed_and_nothing_else() {
    let Some(text) = render(&AGENT) else { return };
    let objects = objects(&text);
    let cluster: ClusterRole = find(&objects, "slotwright-agent");
    assert_eq!(granted(cluster.rules), listed(PERMISSIONS.iter().map(|&(what, verbs, _)| (what, verbs))));
    let leases: Role = find(&objects, "slotwright-agent");
    assert_eq!(leases.metadata.namespace.as_deref(), Some("kube-node-lease"));
    assert_eq!(granted(leases.rules), listed([LEASES]));
}

#[test]
fn the_agent_is_root_without_any_capability_and_sees_what_is_listed() {
    let Some(text) = render(&AGENT) else { return };
    let pod = pod(&text, "slotwright-agent");
    let listed: BTreeMap<String, bool> =
        MOUNTS.iter().map(|(path, writable, _)| ((*path).to_owned(), *writable)).collect();
    assert_eq!(mounts(&pod), listed);
    assert!(pod.host_pid.is_none() && pod.host_network.is_none() && pod.host_ipc.is_none());
    assert_eq!(
        pod.security_context.as_ref().unwrap().seccomp_profile.as_ref().unwrap().type_,
        "RuntimeDefault"
    );
    let security = security(&pod);
    assert_eq!(security.run_as_user, Some(0));
    assert_eq!((security.privileged, security.allow_privilege_escalation), (None, Some(false)));
    assert_eq!(security.read_only_root_filesystem, Some(true));
    let capabilities = security.capabilities.unwrap();
    assert_eq!((capabilities.drop.as_deref(), capabilities.add), (Some(&["ALL".to_owned()][..]), None));
}

#[test]
fn killing_on_cgroup_v1_takes_the_nodes_processes_and_one_capability_and_no_more() {
    let values = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let (Some(plain), Some(all)) = (render(&AGENT), render(&values)) else { return };
    let (plain, all) = (pod(&plain, "slotwright-agent"), pod(&all, "physics-pool-agent"));
    assert_eq!((plain.host_pid, all.host_pid, all.host_network), (None, Some(true), None));
    assert_eq!(security(&all).capabilities.unwrap().add, Some(vec!["KILL".to_owned()]));
    let extra: Vec<(String, bool)> =
        mounts(&all).into_iter().filter(|(path, _)| !mounts(&plain).contains_key(path)).collect();
    let expected = [
        ("/run/desk", false),
        ("/scratch", false),
        ("/usr/local/libexec/slotwright", false),
        ("/var/lib/fence", true),
        ("/var/lib/kubelet/pod-resources", false),
    ];
    assert_eq!(extra, expected.map(|(path, writable)| (path.to_owned(), writable)));
}

/// Mounts below the node's /dev, such as /dev/shm, are writable in the container unless the mount is read-only recursively.
#[test]
fn the_agent_writes_to_nothing_below_the_nodes_devices_where_kubernetes_can_say_so() {
    let Some(text) = render(&AGENT) else { return };
    let mounts = pod(&text, "slotwright-agent").containers[0].volume_mounts.clone().unwrap();
    let dev = mounts.iter().find(|mount| mount.mount_path == "/host/dev").unwrap();
    // Kubernetes refuses such a mount if it follows the mounts of the node.
    assert_eq!((dev.recursive_read_only.as_deref(), &dev.mount_propagation), (Some("IfPossible"), &None));
}

/// An agent that ends soon, or that cannot renew its Lease, must not be followed by those of all other nodes.
#[test]
fn a_rollout_waits_until_agents_are_connected() {
    let Some(text) = render(&AGENT) else { return };
    let set = find::<DaemonSet>(&objects(&text), "slotwright-agent").spec.unwrap();
    assert_eq!(set.min_ready_seconds, Some(30));
    let container = &pod(&text, "slotwright-agent").containers[0];
    let probe = container.readiness_probe.clone().unwrap().tcp_socket.unwrap();
    let port = container.ports.iter().flatten().find(|port| port.name.as_deref() == Some("ready")).unwrap();
    assert_eq!(serde_json::to_value(probe.port).unwrap(), "ready");
    let argument = format!("--ready-addr=[::]:{}", port.container_port);
    assert!(container.args.iter().flatten().any(|found| *found == argument), "{:?}", container.args);
    assert!(
        container.liveness_probe.is_none(),
        "kubelets would restart all agents of an API server that is away"
    );
}

/// The image has a program for nodes beside the operator's.
#[test]
fn the_agent_is_a_program_of_its_own() {
    let Some(text) = render(&AGENT) else { return };
    let container = &pod(&text, "slotwright-agent").containers[0];
    assert_eq!(container.command.as_deref(), Some(&["/usr/local/bin/slotwright-agent".to_owned()][..]));
    let first = container.args.iter().flatten().next();
    assert!(first.is_some_and(|argument| argument.starts_with("--")), "there are no commands: {first:?}");
    let dockerfile = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Dockerfile")).unwrap();
    assert!(
        dockerfile.contains("--bin slotwright-agent")
            && dockerfile.contains("target/release/slotwright-agent")
    );
}

/// Only a site that has installed guards lets the agents promise.
#[test]
fn an_agent_shares_a_directory_with_the_nodes_guard_if_the_site_says_so() {
    let argument = |text: &str, name: &str| {
        let [container] = &pod(text, name).containers[..] else { panic!("one container") };
        container.args.iter().flatten().any(|argument| argument == "--fence-directory=/host/fence")
    };
    let values = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let (Some(plain), Some(all)) = (render(&AGENT), render(&values)) else { return };
    assert!(!argument(&plain, "slotwright-agent"));
    assert!(argument(&all, "physics-pool-agent"));
}

/// Whoever takes an agent over may then read what each kubelet counts.
#[test]
fn an_agent_asks_its_kubelet_what_pods_use_of_the_disk_if_the_site_says_so() {
    let values = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let (Some(plain), Some(all)) = (render(&AGENT), render(&values)) else { return };
    for (text, name, asks) in [(&plain, "slotwright-agent", false), (&all, "physics-pool-agent", true)] {
        let role: ClusterRole = find(&objects(text), name);
        assert_eq!(granted(role.rules).contains("/nodes/stats get"), asks);
        let [container] = &pod(text, name).containers[..] else { panic!("one container") };
        let args = container.args.iter().flatten();
        assert_eq!(args.filter(|arg| *arg == "--kubelet=$(HOST_IP)").count(), usize::from(asks));
    }
}

/// Otherwise the agent shows its token to whoever answers at the kubelet's address.
#[test]
fn an_agent_checks_its_kubelets_certificate_if_the_site_says_by_whom_it_is_signed() {
    let values = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let (Some(plain), Some(all)) = (render(&AGENT), render(&values)) else { return };
    for (text, name, checks) in [(&plain, "slotwright-agent", false), (&all, "physics-pool-agent", true)] {
        let pod = pod(text, name);
        let [container] = &pod.containers[..] else { panic!("one container") };
        let argument = container.args.iter().flatten().any(|arg| arg == "--kubelet-ca=/kubelet-ca/ca.crt");
        let mount = container.volume_mounts.iter().flatten().find(|mount| mount.mount_path == "/kubelet-ca");
        assert_eq!((argument, mount.is_some()), (checks, checks));
        let volume = pod.volumes.iter().flatten().find_map(|volume| volume.config_map.as_ref());
        assert_eq!(volume.map(|map| map.name.as_str()), checks.then_some("kube-root-ca.crt"));
    }
}

/// Whoever takes an agent over may then read which devices, CPUs and memory each pod of the node has.
#[test]
fn an_agent_asks_its_kubelet_which_devices_pods_have_if_the_site_says_so() {
    let values = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let (Some(plain), Some(all)) = (render(&AGENT), render(&values)) else { return };
    for (text, name, asks) in [(&plain, "slotwright-agent", false), (&all, "physics-pool-agent", true)] {
        let [container] = &pod(text, name).containers[..] else { panic!("one container") };
        let argument = "--pod-resources=/host/pod-resources/kubelet.sock";
        assert_eq!(container.args.iter().flatten().any(|arg| arg == argument), asks);
    }
}

/// The agent is root. With the kubelet's directory it would have the node's credentials and the secrets of all pods.
#[test]
fn no_mount_of_an_agent_has_secrets_of_the_kubelet() {
    let Some(text) = render(&AGENT) else { return };
    let pod = pod(&text, "slotwright-agent");
    let scratch = pod.volumes.iter().flatten().find(|volume| volume.name == "scratch").unwrap();
    assert!(scratch.empty_dir.is_some() && scratch.host_path.is_none());
    for path in mounts(&pod).keys() {
        assert!(!path.starts_with("/var/lib/kubelet") && !path.starts_with("/etc"), "{path}");
        assert!(!["/", "/var", "/var/lib", "/run", "/proc"].contains(&path.as_str()), "{path}");
    }
}

/// A program has the same path in the container as on the node, and cannot be changed from there.
#[test]
fn the_directory_of_cron_jobs_is_mounted_where_the_node_has_it() {
    let values = ["--values", "charts/slotwright/ci/all-values.yaml", "--name", "x", "--namespace", "hpc"];
    let (Some(plain), Some(all)) = (render(&AGENT), render(&values)) else { return };
    let [container] = &pod(&all, "physics-pool-agent").containers[..] else { panic!("one container") };
    let directory = "/usr/local/libexec/slotwright";
    let mount = container.volume_mounts.iter().flatten().find(|mount| mount.name == "cron").unwrap();
    assert_eq!((mount.mount_path.as_str(), mount.read_only), (directory, Some(true)));
    assert!(container.args.iter().flatten().any(|arg| *arg == format!("--cron-directory={directory}")));
    assert!(!plain.contains("--cron-directory"));
}

/// The unit of the guard and the chart's documentation name the same directory.
#[test]
fn the_guards_unit_restarts_it_for_ever_and_shares_the_documented_directory() {
    let read =
        |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let unit = read("deploy/guard/slotwright-guard.service");
    for line in [
        "Type=notify",
        "WatchdogSec=10",
        "Restart=always",
        "RestartSec=1",
        "StartLimitIntervalSec=0",
        "OOMScoreAdjust=-1000",
        "StateDirectory=slotwright",
    ] {
        assert!(unit.lines().any(|other| other == line), "{line}");
    }
    assert!(unit.contains("slotwright guard --fence-directory=/var/lib/slotwright "));
    assert!(read("docs/how-to/agent.md").contains("agent.fenceDirectory=/var/lib/slotwright"));
}

/// `docs/how-to/agent.md` names each mount.
#[test]
fn the_page_about_agents_names_each_mount() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/how-to/agent.md")).unwrap();
    for (path, writable, _) in MOUNTS {
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{path}`")));
        let row = row.unwrap_or_else(|| panic!("{path} is not in the table of mounts"));
        assert_eq!(row.contains(", writable"), writable, "{row}");
    }
}

#[test]
fn the_policy_holds_each_agent_to_its_own_node() {
    let Some(text) = render(&AGENT) else { return };
    let objects = objects(&text);
    let policy = objects
        .iter()
        .find(|object| {
            object["kind"] == "ValidatingAdmissionPolicy" && object["metadata"]["name"] == "slotwright-agent"
        })
        .unwrap();
    let condition = &policy["spec"]["matchConditions"][0]["expression"];
    let account = "system:serviceaccount:slotwright-system:slotwright-agent";
    assert_eq!(condition, &Value::from(format!("request.userInfo.username == '{account}'")));
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
}
