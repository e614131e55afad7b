//! Tests of the warnings.

mod template;
mod texts;

use super::*;
use serde_json::{Value, json};

fn told(spec: Value) -> Vec<String> {
    let mut spec = spec;
    if spec.get("template").is_none() {
        spec["template"] = json!({"spec": {"containers": [{"name": "main", "image": "a"}]}});
    }
    let job = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "j"}, "spec": spec});
    warnings(&serde_json::from_value(job).unwrap()).iter().map(ToString::to_string).collect()
}

#[test]
fn warnings_past_the_eighth_are_counted() {
    let first = |count: usize| -> Vec<String> {
        let attributes: serde_json::Map<_, _> =
            (0..count).map(|n| (format!("A{n}"), json!(format!("Name{n}")))).collect();
        let spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}, "attributes": attributes});
        let job = json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "j"}, "spec": spec});
        let job: HTCJob = serde_json::from_value(job).unwrap();
        assert_eq!(warnings(&job).len(), count);
        first_warnings(&job).iter().map(ToString::to_string).collect()
    };
    assert_eq!((first(0).len(), first(8).len(), first(9).len()), (0, 8, 9));
    assert!(first(8).iter().all(|told| told.contains("reads the attribute Name")));
    assert_eq!(first(9)[8], "spec: 1 more warning; slotwright lint lists all");
    assert_eq!(first(11)[8..], ["spec: 3 more warnings; slotwright lint lists all"]);
}

#[test]
fn pods_that_the_api_server_refuses_are_told_of() {
    let pod = |pod: Value| told(json!({"template": {"spec": pod}}));
    let mount = json!([{"name": "data", "mountPath": "/data"}]);
    let main = json!({"name": "main", "image": "a", "volumeMounts": mount});
    assert_eq!(
        pod(json!({"containers": [main], "initContainers": [{"name": "Fetch", "image": ""}]})),
        [
            "spec.template.spec.containers[0].volumeMounts[0].name: the template has no volume data: the API server refuses the pods; add \
             the volume to spec.template.spec.volumes",
            "spec.template.spec.initContainers[0].image: is missing: the API server refuses the pods; name an image, unless a webhook of the \
             cluster adds one",
            "spec.template.spec.initContainers[0].name: \"Fetch\" is no container's name: the API server refuses the pods; use small \
             letters, digits and -, and at most 63 of them",
        ]
    );
    assert_eq!(pod(json!({"containers": [main], "volumes": [{"name": "data"}]})), [""; 0]);
}

#[test]
fn what_a_job_says_in_vain_is_told() {
    let main = |more: Value| {
        let mut container = json!({"name": "main", "image": "a"});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"template": {"spec": {"containers": [container]}}})
    };
    for (spec, expected) in [
        (
            main(json!({"resources": {"requests": {"cpu": "2"}}})),
            "spec.template.spec.containers[0].resources: the cpu of requests is replaced: the main container gets what its slot \
             holds; say it in spec.requests",
        ),
        (
            main(json!({"args": ["--seed", "$(process)"]})),
            "spec.template.spec.containers[0].args: $(Process) is passed on as it is: it stands for a proc's own value \
             only where spec.items is set, if only to {}",
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": "main", "image": "a"}], "affinity": {"nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": []}}}}}),
            "spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution: has no effect: the \
             negotiator chooses the node; say in spec.rank which nodes are preferred",
        ),
        (
            main(json!({"ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]})),
            "spec.template.spec.containers[0].ports[1]: takes port 8080 of the node: the negotiator does not count ports, the \
             kubelet refuses another pod with this port, and the proc is tried again; leave the port out",
        ),
        (
            json!({"template": {"spec": {"hostNetwork": true, "containers": [
                {"name": "main", "image": "a", "ports": [{"containerPort": 80}]}]}}}),
            "spec.template.spec.containers[0].ports[0]: takes port 80 of the node: the negotiator does not count ports, the \
             kubelet refuses another pod with this port, and the proc is tried again; leave the port out",
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": "main", "image": "a"}], "topologySpreadConstraints": []}}}),
            "spec.template.spec.topologySpreadConstraints: has no effect: the negotiator chooses the node, and does not look \
             at other pods; leave it out",
        ),
        (
            main(json!({"livenessProbe": {"exec": {"command": ["true"]}}})),
            "spec.template.spec.containers[0].livenessProbe: a suspended proc answers no probe, and the kubelet then restarts \
             the container; leave it out where WANT_SUSPEND may be true",
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": "main", "image": "a", "readinessProbe": {}}], "initContainers": [
                {"name": "proxy", "image": "a", "restartPolicy": "Always", "startupProbe": {"periodSeconds": 1}}]}}}),
            "spec.template.spec.initContainers[0].startupProbe: a suspended proc answers no probe, and the kubelet then \
             restarts the container; leave it out where WANT_SUSPEND may be true",
        ),
        (
            json!({"attributes": {"maxRetries": "3", "OnExitRemove": "false", "PeriodicRemove": "true"}}),
            "spec.attributes.maxRetries: nothing acts on it: condor_submit turns this command of submit files into \
             OnExitRemove; give OnExitRemove instead",
        ),
        (
            json!({"attributes": {"KillSig": "\"SIGUSR1\"", "LeaveJobInQueue": "true", "WantIOProxy": "false", "Mine": "1"}}),
            "spec.attributes.KillSig: nothing acts on it: the image decides which signal ends the program",
        ),
        (
            json!({"requests": {"memory": "500"}}),
            "spec.requests.memory: 500 without a unit means 500 bytes, as Kubernetes counts; write 500Mi",
        ),
        (
            json!({"requirements": "TARGET.Memroy > 100"}),
            "spec.requirements: no machine has the attribute Memroy unless an admin adds it; did you mean Memory?",
        ),
        (
            json!({"requirements": "TARGET.Machine =!= LastRemoteHost"}),
            "spec.requirements: LastRemoteHost is undefined here: it differs from proc to proc, and all procs of a job are matched \
             as one",
        ),
        (
            json!({"concurrencyLimits": ["matlab", "XSW:2.5", "FOO:x"]}),
            "spec.concurrencyLimits: FOO:x takes one unit: expected a number above 0 behind the colon",
        ),
        (
            json!({"concurrencyLimits": ["a b", "c"]}),
            "spec.concurrencyLimits: 'a b' is several limits; give each an item of its own",
        ),
        (
            json!({"requests": {"disk": "10"}}),
            "spec.requests.disk: 10 without a unit means 10 bytes, as Kubernetes counts; write 10Ki",
        ),
        (
            json!({"rank": "Capabilty"}),
            "spec.rank: no machine has the attribute Capabilty unless an admin adds it; did you mean Capability?",
        ),
        (
            json!({"concurrencyLimitsExpr": "strcat(\"XSW.\", TARGET.Machin)"}),
            "spec.concurrencyLimitsExpr: no machine has the attribute Machin unless an admin adds it; did you mean Machine?",
        ),
    ] {
        assert_eq!(told(spec), [expected]);
    }
}

#[test]
fn what_differs_between_procs_is_told_in_expressions_of_matching() {
    for name in ["ProcId", "RemoteWallClockTime", "ExitCode"] {
        let spec = json!({"requirements": format!("{name} > 3 || JobStatus == 1 || QDate > 5")});
        let expected = format!(
            "spec.requirements: {name} is undefined here: it differs from proc to proc, and all procs of a job are matched as one"
        );
        assert_eq!(told(spec), [expected]);
    }
}

#[test]
fn submit_commands_among_the_attributes_are_told() {
    let attributes = json!({
        "JobUniverse": "9", "max_retries": "3", "periodic_hold": "JobStatus == 2", "transfer_input_files": "\"x\"",
        "on_exit_remove": "false", "Description": "\"mine\"",
    });
    assert_eq!(
        told(json!({"attributes": attributes})),
        [
            "spec.attributes.JobUniverse: changes what policies see, and not how the job runs: each job is of the vanilla universe, \
             5; leave it out",
            "spec.attributes.max_retries: nothing acts on it: max_retries is a submit command; give the attributes JobMaxRetries \
             and OnExitRemove",
            "spec.attributes.on_exit_remove: nothing acts on it: on_exit_remove is a submit command; give the attribute \
             OnExitRemove",
            "spec.attributes.periodic_hold: nothing acts on it: periodic_hold is a submit command; give the attribute PeriodicHold",
            "spec.attributes.transfer_input_files: nothing acts on it: transfer_input_files is a submit command; give the files by a \
             ConfigMap or a volume of the template",
        ]
    );
}

#[test]
fn an_amount_that_is_less_than_its_author_means_is_told() {
    for (requests, expected) in [
        (
            json!({"memory": "512m"}),
            "memory: 512m means 1 byte: m is a thousandth in Kubernetes; write 512Mi",
        ),
        (json!({"disk": "1m"}), "disk: 1m means 1 byte: m is a thousandth in Kubernetes; write 1Mi"),
        (
            json!({"memory": "500k"}),
            "memory: 500k means 500000 bytes: k is a thousand in Kubernetes; write 500Mi if MiB are meant",
        ),
        (
            json!({"memory": "0.5"}),
            "memory: 0.5 means 1 byte, which is less than 1 MiB; write the amount in Mi or Gi",
        ),
        (
            json!({"memory": "64Ki"}),
            "memory: 64Ki means 65536 bytes, which is less than 1 MiB; write the amount in Mi or Gi",
        ),
        (
            json!({"gpus": 1, "gpusMinimumMemory": "8000"}),
            "gpusMinimumMemory: 8000 without a unit means 8000 bytes, as Kubernetes counts; write 8000Mi",
        ),
    ] {
        assert_eq!(told(json!({"requests": requests})), [format!("spec.requests.{expected}")]);
    }
}

#[test]
fn a_string_without_quotes_is_told() {
    let attributes = json!({"Experiment": "DUNE", "OnExitHoldReason": "done"});
    assert_eq!(
        told(json!({"attributes": attributes})),
        [
            "spec.attributes[Experiment]: reads the attribute DUNE, which the job does not have; a string has its own quotes: '\"DUNE\"'",
            "spec.attributes[OnExitHoldReason]: reads the attribute done, which the job does not have; a string has its own quotes: \
             '\"done\"'",
        ]
    );
}

#[test]
fn an_attribute_that_no_slot_has_is_told() {
    let spec = json!({"requirements": "TARGET.HasFileTransfer && x > 1", "rank": "CUDACapability"});
    assert_eq!(
        told(spec),
        [
            "spec.requirements: no slot has HasFileTransfer unless an admin adds it; leave the condition out: each job runs in an image, \
             and there is no starter",
            "spec.rank: no slot has CUDACapability unless an admin adds it; use spec.requests.gpusMinimumCapability",
        ]
    );
}

#[test]
fn an_attribute_that_no_proc_has_is_told_of_in_an_expression_that_acts() {
    for (attribute, text, expected) in [
        (
            "PeriodicRemove",
            "JobStaus == 2",
            Some("no job has the attribute JobStaus unless it is given; did you mean JobStatus?"),
        ),
        (
            "PeriodicHold",
            "MY.NumJobStart > 3",
            Some("no job has the attribute NumJobStart unless it is given; did you mean NumJobStarts?"),
        ),
        ("OnExitHold", "RemoteUserCpu > 60", Some("RemoteUserCpu is not kept here; use RemoteWallClockTime")),
        (
            "periodicrelease",
            "LastHoldReasonCode == 3",
            Some("LastHoldReasonCode is not kept here; use NumHolds, or HoldReasonCode of a held proc"),
        ),
        (
            "PeriodicHold",
            "MemoryUsage > TARGET.Memory",
            Some(
                "TARGET.Memory is undefined here: the expression is evaluated for a proc, without a machine; leave TARGET. out for an \
                 attribute of the job",
            ),
        ),
        (
            "OnExitRemove",
            "LoadAvg > 1",
            Some("LoadAvg is undefined here: slots have it, and the expression sees the job alone"),
        ),
        ("OnExitRemove", "ExitBySignal == false && ExitCode == 0 && NumJobCompletions > JobMaxRetries", None),
        (
            "PeriodicHold",
            "JobStatus == 2 && time() - EnteredCurrentStatus > 60 && MemoryUsage > RequestMemory",
            None,
        ),
        ("PeriodicHold", "Retries > 3 || MyTries > 3 || GPUsMemoryUsage > 3", None),
        ("Note", "JobStaus", None),
    ] {
        let found = told(json!({"attributes": {attribute: text, "Retries": "1", "JobStat": "2"}}));
        let found: Vec<&String> =
            found.iter().filter(|told| told.contains('[') && !told.contains("its own quotes")).collect();
        let expected: Vec<String> =
            expected.iter().map(|expected| format!("spec.attributes[{attribute}]: {expected}")).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{attribute} = {text}");
    }
}

#[test]
fn a_mistake_in_an_expression_is_told() {
    let spec = json!({
        "requirements": "TARGET.OpSys == \"LINUX\" && isLinx(Machine)",
        "rank": "Name == 'n1'",
        "attributes": {"PeriodicHold": "size()", "Note": "\"isn't 'x'\""},
    });
    assert_eq!(
        told(spec),
        [
            "spec.requirements: calls isLinx(), which is no function: the call is error",
            "spec.rank: has 'n1' in single quotes, which is an attribute; a string has double quotes: \"n1\"",
            "spec.attributes[PeriodicHold]: calls size() with 0 arguments, which size() does not take: the call is error",
        ]
    );
}

#[test]
fn what_is_meant_is_not_told() {
    for spec in [
        json!({"requirements": "TARGET.Memory > 100 && Cpus > 1 && HasRack =?= true"}),
        json!({"requirements": "Disks > 1", "attributes": {"Disks": "2"}}),
        json!({"requirements": "MY.NumJobStarts < 3 && TARGET.MemoryUsage < 5", "attributes": {"NumJobStarts": "0"}}),
        json!({"requests": {"memory": "500Mi"}}),
        json!({"attributes": {"A": "B", "b": "1", "C": " True ", "D": "undefined", "E": "ExitBySignal", "F": "\"DUNE\""}}),
        json!({"requirements": "TARGET.HasDocker && HasSIF", "attributes": {"HasSIF": "true"}}),
        json!({"attributes": {"JobUniverse": "5", "my_own": "1", "JobDescription": "\"x\""}}),
        json!({"requests": {"memory": "1073741824"}}),
        json!({"requests": {"memory": "1.5Gi", "disk": "500k"}}),
        json!({"requests": {"memory": "1e9", "disk": "64Ki"}}),
        json!({"requests": {"memory": "2000000k", "disk": "0"}}),
        json!({"requests": {"memory": "512MB"}}),
        json!({"template": {"spec": {"containers": [{"name": "main", "image": "a", "args": ["$(HOME)"], "resources": {"limits": {"example.com/x": "1"}}}]}}}),
    ] {
        assert_eq!(told(spec.clone()), Vec::<String>::new(), "{spec}");
    }
}
