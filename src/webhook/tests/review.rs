//! Tables of what is allowed, refused and warned of.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::JUDGED;
use crate::known::Objects;

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "slotwright.dev/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "alice"}, "spec": spec})
}

fn of<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value) -> K {
    serde_json::from_value(object(kind, name, spec)).unwrap()
}

fn asked(operation: &str, kind: &str, new: Value, old: Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "kind": {"group": "slotwright.dev", "version": "v1alpha1", "kind": kind},
        "resource": {"group": "slotwright.dev", "version": "v1alpha1", "resource": plural},
        "name": "x", "namespace": "alice", "operation": operation, "userInfo": {"username": "alice"},
        "object": new, "oldObject": old, "dryRun": false}})
}

/// The answer that a person sees: nothing, a refusal, and warnings.
fn said(asked: &Value, known: &OtherObjects) -> (Option<String>, Vec<String>) {
    let read = read(&serde_json::to_vec(asked).unwrap()).unwrap();
    let answer = review(&read, known);
    assert_eq!(
        (answer.types.api_version.as_str(), answer.types.kind.as_str()),
        ("admission.k8s.io/v1", "AdmissionReview")
    );
    let response = answer.response.unwrap();
    assert_eq!(response.uid, "705ab4f5");
    assert_eq!(response.allowed, response.result.message.is_empty(), "{response:?}");
    let refusal = (!response.allowed).then_some(response.result.message);
    assert_eq!(refusal.is_some(), response.result.code == 422);
    (refusal, response.warnings.unwrap_or_default())
}

fn created(kind: &str, spec: Value, known: &OtherObjects) -> (Option<String>, Vec<String>) {
    said(&asked("CREATE", kind, object(kind, "x", spec), Value::Null), known)
}

fn job(more: Value) -> Value {
    let mut spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// Anybody in the cluster may reach the webhook, past the API server and its schemas. A few bytes may name billions of procs.
#[test]
fn a_stranger_who_names_billions_of_procs_costs_no_more_than_others() {
    let all = "0-4294967295";
    let status = json!({
        "observedGeneration": 1, "completedProcs": all, "failedProcs": all, "removedProcs": all,
        "heldProcs": [{"procs": all, "code": 1, "subcode": 0, "reason": ""}],
        "runs": [{"procs": all, "starts": 1, "completions": 1, "holds": 0}],
    });
    for count in [1_i64, 100_000, u32::MAX.into(), i64::MAX] {
        let mut new = object("HTCJob", "x", job(json!({"count": count})));
        new["status"] = status.clone();
        new["metadata"]["annotations"] = json!({"slotwright.dev/acts": format!(
            r#"{{"acts": [{{"id": 1, "act": "Hold", "procs": "{all}"}}, {{"id": 2, "act": "Release"}}]}}"#
        )});
        let mut old = new.clone();
        old["spec"]["priority"] = json!(1);
        for (operation, old) in [("CREATE", Value::Null), ("UPDATE", old)] {
            said(&asked(operation, "HTCJob", new.clone(), old), &OtherObjects::all(&Objects::default()));
        }
    }
}

/// Whoever may edit an object may write metadata that no typed client reads. The rest of the object is judged all the same.
#[test]
fn odd_metadata_gets_nothing_past_the_webhook() {
    let mut deep = json!(1);
    for _ in 0..300 {
        deep = json!({"f:a": deep});
    }
    for odd in [json!([{"time": "9999-12-31T23:59:59Z"}]), json!([{"fieldsV1": deep}]), json!("nonsense")] {
        let mut bad = object("HTCJob", "x", job(json!({"rank": ")"})));
        bad["metadata"]["managedFields"] = odd;
        let (refusal, _) = said(&asked("CREATE", "HTCJob", bad, Value::Null), &OtherObjects::nothing());
        assert!(refusal.is_some_and(|text| text.contains("spec.rank: ")));
    }
}

#[test]
fn what_nobody_can_decode_is_refused_unless_it_only_goes() {
    let allows = |operation: &str, metadata: Value| {
        let mut odd = object("HTCJob", "x", job(json!({})));
        odd["metadata"] = metadata;
        let body = serde_json::to_vec(&asked(operation, "HTCJob", odd, Value::Null)).unwrap();
        let Err(Malformed::Object(answer)) = read(&body) else { panic!("{operation}") };
        let response = answer.response.unwrap();
        assert_eq!(response.uid, "705ab4f5");
        let refused = response.result.message.contains("the object cannot be decoded");
        assert_eq!(refused, !response.allowed);
        response.allowed
    };
    assert!(!allows("CREATE", json!({"name": "x", "labels": 7})));
    assert!(!allows("UPDATE", json!({"name": "x", "finalizers": {}})));
    assert!(allows("UPDATE", json!({"name": "x", "labels": 7, "deletionTimestamp": "2026-01-01T00:00:00Z"})));
}

#[test]
fn each_kind_is_accepted_and_refused_with_every_problem_and_its_field() {
    for (kind, good, bad, fields) in [
        (
            "HTCJob",
            job(json!({})),
            job(json!({"requirements": "1 +", "rank": ")", "attributes": {"ProcId": "1"}})),
            &["spec.requirements: ", "spec.rank: ", "spec.attributes[ProcId]: "][..],
        ),
        (
            "SubmitPolicy",
            json!({"config": "JOB_DEFAULT_REQUESTMEMORY = 512"}),
            json!({"config": "JOB_DEFAULT_REQUESTMEMORY = (\n"}),
            &["spec.config: "],
        ),
        (
            "NodePolicy",
            json!({"start": "true"}),
            json!({"start": "(", "slotWeight": "*"}),
            &["spec.start: ", "spec.slotWeight: "],
        ),
        (
            "Negotiator",
            json!({"intervalSeconds": 60}),
            json!({"slotConstraint": "a b", "preJobRank": "="}),
            &["spec.slotConstraint: ", "spec.preJobRank: "],
        ),
        ("GroupQuota", json!({"quota": 3}), json!({"group": "a b", "quota": 3}), &["spec.group: "]),
        ("ConcurrencyLimit", json!({"limit": 3}), json!({"name": "a.b.c"}), &["spec.name: ", "spec.limit: "]),
        (
            "Submitter",
            json!({"priorityFactor": 10}),
            json!({"priorityFactor": "x"}),
            &["the object cannot be read: "],
        ),
        (
            "DrainRequest",
            json!({"node": "n1"}),
            json!({"node": "n1", "check": "(", "start": ")"}),
            &["spec.check: ", "spec.start: "],
        ),
    ] {
        for known in [OtherObjects::nothing(), OtherObjects::all(&Objects::default())] {
            assert_eq!(created(kind, good.clone(), &known), (None, Vec::new()), "{kind}");
            let (refusal, warnings) = created(kind, bad.clone(), &known);
            let refusal = refusal.unwrap_or_else(|| panic!("{kind} was accepted"));
            for field in fields {
                assert!(refusal.contains(field), "{kind}: {field:?} is not in {refusal}");
            }
            assert_eq!(warnings, Vec::<String>::new(), "{kind}");
        }
    }
}

#[test]
fn what_leaves_another_object_nothing_is_warned_of() {
    let policy = |name: &str, spec: Value| -> api::NodePolicy { of("NodePolicy", name, spec) };
    let negotiator = |name: &str, spec: Value| -> api::Negotiator { of("Negotiator", name, spec) };
    let desktops = || json!({"nodeSelector": {"matchLabels": {"kind": "desktop"}}});
    let nodes = [policy("desk", desktops()), policy("x1", json!({"precedence": -1}))];
    let negotiators = [negotiator("gpu", json!({"slotConstraint": "TotalGPUs > 0"}))];
    let known =
        OtherObjects::all(&Objects { nodes: &nodes, negotiators: &negotiators, ..Objects::default() });
    let remedy = "always counts instead; merge the two, or give this one a greater precedence";
    let selects =
        |by: &str| format!("NodePolicy {by} selects every node that this one selects, and {remedy}");
    let apart = "give each a slotConstraint, such that no slot makes two of them true";
    for (kind, spec, warnings) in [
        ("NodePolicy", json!({"precedence": -2}), vec![format!("metadata.name: {}", selects("x1"))]),
        ("NodePolicy", desktops(), vec![format!("metadata.name: {}", selects("desk"))]),
        ("NodePolicy", json!({"nodeSelector": {"matchLabels": {"kind": "server"}}}), vec![]),
        // Two policies may select some of the same nodes. The webhook does not warn of that: the conditions of the
        // policies say which one counts there.
        ("NodePolicy", json!({"nodeSelector": {"matchLabels": {"gpu": "yes"}}}), vec![]),
        ("NodePolicy", json!({}), vec![format!("NodePolicy x1: metadata.name: {}", selects("x"))]),
        (
            "NodePolicy",
            json!({"precedence": 1}),
            ["desk", "x1"].map(|name| format!("NodePolicy {name}: metadata.name: {}", selects("x"))).into(),
        ),
        (
            "Negotiator",
            json!({}),
            vec![format!(
                "spec: this Negotiator has no slotConstraint, so that it also takes every slot of the Negotiator gpu; {apart}"
            )],
        ),
        (
            "Negotiator",
            json!({"slotConstraint": "TotalGPUs > 0"}),
            vec![format!(
                "spec: the Negotiator gpu has the same slotConstraint, and matches all these slots; {apart}"
            )],
        ),
        ("Negotiator", json!({"slotConstraint": "(TotalGPUs ?: 0) == 0"}), vec![]),
    ] {
        assert_eq!(created(kind, spec.clone(), &known), (None, warnings), "{kind} {spec}");
        assert_eq!(created(kind, spec, &OtherObjects::nothing()), (None, vec![]));
    }
}

#[test]
fn an_object_that_is_wrong_can_be_finished_and_deleted() {
    let known = OtherObjects::nothing();
    let bad = |labels: Value| {
        let mut bad = object("HTCJob", "x", job(json!({"rank": ")"})));
        bad["metadata"].as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        bad
    };
    let (old, good) = (bad(json!({})), object("HTCJob", "x", job(json!({}))));
    let leaving = bad(json!({"deletionTimestamp": "2026-11-25T00:00:00Z", "finalizers": []}));
    let mut status = asked("UPDATE", "HTCJob", old.clone(), good.clone());
    status["request"]["subResource"] = json!("status");
    let mut foreign = asked("CREATE", "HTCJob", old.clone(), Value::Null);
    foreign["request"]["kind"]["group"] = json!("example.com");
    for (what, asked, allowed) in [
        ("as it was", asked("UPDATE", "HTCJob", old.clone(), old.clone()), true),
        ("a label", asked("UPDATE", "HTCJob", bad(json!({"labels": {"a": "b"}})), old.clone()), true),
        ("a finalizer", asked("UPDATE", "HTCJob", bad(json!({"finalizers": ["a/b"]})), old.clone()), true),
        ("its end", asked("UPDATE", "HTCJob", leaving, good.clone()), true),
        ("its status", status, true),
        ("a deletion", asked("DELETE", "HTCJob", Value::Null, old.clone()), true),
        ("a connection", asked("CONNECT", "HTCJob", old.clone(), Value::Null), true),
        ("another group's", foreign, true),
        ("a correction", asked("UPDATE", "HTCJob", good.clone(), old.clone()), true),
        ("a mistake", asked("UPDATE", "HTCJob", old.clone(), good.clone()), false),
        (
            "another mistake",
            asked("UPDATE", "HTCJob", object("HTCJob", "x", job(json!({"rank": "("}))), old),
            false,
        ),
    ] {
        assert_eq!(said(&asked, &known).0.is_none(), allowed, "{what}");
    }
}

#[test]
fn what_a_job_says_in_vain_is_a_short_warning() {
    let spec = job(json!({"requirements": "TARGET.Memroy > 100", "attributes": {"maxRetries": "3"}}));
    let (refusal, told) = created("HTCJob", spec, &OtherObjects::nothing());
    assert_eq!((refusal, told.len()), (None, 2), "{told:?}");
    assert!(told.iter().any(|warning| warning.contains("did you mean Memory?")), "{told:?}");
    let long = "x\n".repeat(200);
    assert_eq!(line(&long).chars().count(), WARNING);
    assert!(!line(&long).contains('\n') && line(&long).ends_with("..."));
    let many = vec![Problem { reason: "R", field: "f".to_owned(), message: "m".to_owned() }; 20];
    let told = warnings(&many).unwrap();
    assert_eq!((told.len(), told[15].as_str()), (16, "5 more warnings are in the object's conditions"));
}

#[test]
fn a_job_may_charge_a_group_that_is_open_to_its_namespace() {
    let groups = [
        of("GroupQuota", "physics", json!({"quota": 3, "owners": ["alice"]})),
        of("GroupQuota", "chemistry", json!({"quota": 3, "owners": ["bob"]})),
    ];
    let known = OtherObjects::all(&Objects { groups: &groups, ..Objects::default() });
    let charge =
        |group: &str, known: &OtherObjects| created("HTCJob", job(json!({"accountingGroup": group})), known);
    assert_eq!(charge("physics", &known), (None, Vec::new()));
    let refusal = charge("chemistry", &known).0.unwrap();
    assert!(
        refusal.starts_with("spec.accountingGroup: alice may not charge the group chemistry"),
        "{refusal}"
    );
    // The group may be created next, or is just not known here yet.
    let (refusal, warnings) = charge("biology", &known);
    assert!(refusal.is_none() && warnings.len() == 1 && warnings[0].contains("biology"), "{warnings:?}");
    assert_eq!(charge("biology", &OtherObjects::nothing()), (None, Vec::new()));
}

#[test]
fn the_tree_of_groups_is_judged_as_it_would_be() {
    let groups = [
        of("GroupQuota", "physics", json!({"quota": 3})),
        of("GroupQuota", "physics.higgs", json!({"quota": 1})),
        of("GroupQuota", "lost.child", json!({"quota": 1})),
    ];
    let known = OtherObjects::all(&Objects { groups: &groups, ..Objects::default() });
    let named = |name: &str, group: &str| {
        said(
            &asked(
                "CREATE",
                "GroupQuota",
                object("GroupQuota", name, json!({"group": group, "quota": 1})),
                Value::Null,
            ),
            &known,
        )
    };
    assert_eq!(named("new", "physics.atlas"), (None, Vec::new()));
    // A problem for which an earlier object was refused is not this object's doing.
    assert_eq!(named("lost", "lost"), (None, Vec::new()));
    for name in ["aa", "zz"] {
        let refusal = named(name, "Physics").0.unwrap();
        assert!(
            refusal.contains("the GroupQuota physics declares the group physics, too, and counts"),
            "{refusal}"
        );
    }
    // The object that has the group's own name wins the name: the other would not count.
    let taken = [of("GroupQuota", "aa", json!({"group": "biology", "quota": 3}))];
    let with_taken = OtherObjects::all(&Objects { groups: &taken, ..Objects::default() });
    let biology = created("GroupQuota", json!({"group": "biology", "quota": 1}), &with_taken);
    assert!(biology.0.unwrap().contains("the GroupQuota aa declares the group biology, too, and counts"));
    let (refusal, warnings) = named("new", "geo.core");
    assert!(refusal.is_none() && warnings[0].contains("its parent \"geo\""), "{warnings:?}");
    // A group that is renamed leaves its children without a parent.
    let renamed = asked(
        "UPDATE",
        "GroupQuota",
        object("GroupQuota", "physics", json!({"group": "physik", "quota": 3})),
        object("GroupQuota", "physics", json!({"quota": 3})),
    );
    let (refusal, warnings) = said(&renamed, &known);
    assert!(
        refusal.is_none() && warnings[0].contains("the GroupQuota physics.higgs would not count"),
        "{warnings:?}"
    );
    let both = created("GroupQuota", json!({"quota": 1, "dynamicQuota": 0.5}), &known);
    assert!(both.0.is_none() && both.1[0].starts_with("spec.dynamicQuota: has no effect"), "{both:?}");
}

#[test]
fn objects_of_which_one_counts_are_accepted_with_a_warning() {
    let limits = [of("ConcurrencyLimit", "a", json!({"name": "xsw", "limit": 3}))];
    let policies = [of("SubmitPolicy", "y", json!({}))];
    let negotiators = [of("Negotiator", "cpu", json!({}))];
    let known = OtherObjects::all(&Objects {
        limits: &limits,
        policies: &policies,
        negotiators: &negotiators,
        ..Objects::default()
    });
    let only = |kind: &str, name: &str, spec: Value| {
        let (refusal, mut warnings) =
            said(&asked("CREATE", kind, object(kind, name, spec), Value::Null), &known);
        assert_eq!(refusal, None, "{kind} {name}");
        assert!(warnings.len() < 2, "{warnings:?}");
        warnings.pop().unwrap_or_default()
    };
    assert!(only("ConcurrencyLimit", "b", json!({"name": "XSW", "limit": 5})).contains("the smaller counts"));
    assert_eq!(only("ConcurrencyLimit", "b", json!({"limit": 5})), "");
    assert!(only("SubmitPolicy", "z", json!({})).contains("the SubmitPolicy y is in force"));
    assert!(only("SubmitPolicy", "x", json!({})).contains("SubmitPolicy y is no longer in force"));
    assert_eq!(only("SubmitPolicy", "y", json!({})), "");
    let correction = |with: &str| json!({"correction": {"id": "1", "negotiator": with, "realPriority": 1.0}});
    assert!(only("Submitter", "alice", correction("gpu")).contains("there is no Negotiator gpu"));
    assert_eq!(only("Submitter", "alice", correction("cpu")), "");
}

#[test]
fn a_submitters_object_must_have_the_submitters_name() {
    let refusal = |name: &str, said_name: &str| {
        let spec = json!({"name": said_name, "priorityFactor": 2.0});
        said(
            &asked("CREATE", "Submitter", object("Submitter", name, spec), Value::Null),
            &OtherObjects::nothing(),
        )
        .0
    };
    assert_eq!(refusal("group-physics.alice-2c32f131b55e3f75", "group_physics.alice"), None);
    let why = refusal("alice-b", "alice_b").unwrap_or_default();
    assert!(why.contains("the Submitter of alice_b must have the metadata.name alice-b-"), "{why}");
}

#[test]
fn a_body_that_is_no_review_is_an_error_that_says_why() {
    for (body, why) in [
        (&b""[..], "not an AdmissionReview"),
        (b"null", "not an AdmissionReview"),
        (b"[]", "not an AdmissionReview"),
        (b"\xff\xfe", "not an AdmissionReview"),
        (br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "no request"),
        (br#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#, "v1beta1"),
        (br#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, "v1 Pod"),
        (
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":1}}"#,
            "not an AdmissionReview",
        ),
    ] {
        let error = read(body).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(read("[".repeat(100_000).as_bytes()).is_err(), "nested deeper than any object");
}

/// JSON such as a hostile client could send as a spec.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("spec"),
        Just("requirements"),
        Just("config"),
        Just("template"),
        Just("containers"),
        Just("attributes"),
        Just("requests"),
        Just("memory"),
        Just("group"),
        Just("quota"),
        Just("name"),
        Just("count"),
        Just("metadata"),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(asked) = read(&body) {
            review(&asked, &OtherObjects::nothing());
        }
    }

    #[test]
    fn no_object_panics_and_every_request_is_answered(kind in prop::sample::select(&JUDGED[..]), new in any_json(), old in any_json(), whole in any::<bool>()) {
        let new = if whole { new } else { object(kind, "x", new) };
        let body = serde_json::to_vec(&asked("UPDATE", kind, new, old)).unwrap();
        if let Ok(asked) = read(&body) {
            for known in [OtherObjects::nothing(), OtherObjects::all(&Objects::default())] {
                let response = review(&asked, &known).response.unwrap();
                prop_assert_eq!(&response.uid, "705ab4f5");
                prop_assert!(response.allowed || !response.result.message.is_empty());
                prop_assert!(response.warnings.iter().flatten().all(|warning| warning.chars().count() <= WARNING));
            }
        }
    }
}

/// A policy that asks who created a job, with a requirement, a warning and a transform.
fn strict() -> OtherObjects {
    let config = "SUBMIT_REQUIREMENT_NAMES = NotChris, OneGig\n\
                  SUBMIT_REQUIREMENT_NotChris = Owner != \"chris\"\n\
                  SUBMIT_REQUIREMENT_NotChris_REASON = \"Chris, you can only submit jobs to the instructional pool.\"\n\
                  SUBMIT_REQUIREMENT_OneGig = RequestMemory > 1024\n\
                  SUBMIT_REQUIREMENT_OneGig_REASON = strcat(\"All jobs must request more than one gigabyte, not \", RequestMemory, \" MiB.\")\n\
                  SUBMIT_REQUIREMENT_OneGig_IS_WARNING = True\n\
                  QUEUE_SUPER_USERS = root\n";
    OtherObjects::all(&Objects {
        policies: &[of("SubmitPolicy", "p", json!({"config": config, "owner": {"from": "User"}}))],
        ..Objects::default()
    })
}

fn by(user: &str, mut asked: Value) -> Value {
    asked["request"]["userInfo"] = json!({"username": user, "groups": ["system:authenticated"]});
    asked
}

#[test]
fn requirements_and_warnings_of_the_policy_are_said_before_a_job_is_stored() {
    let small = || asked("CREATE", "HTCJob", object("HTCJob", "x", job(json!({}))), Value::Null);
    let large = job(json!({"requests": {"memory": "2Gi"}}));
    let large = || asked("CREATE", "HTCJob", object("HTCJob", "x", large.clone()), Value::Null);
    let warned = "All jobs must request more than one gigabyte, not 128 MiB. (OneGig)".to_owned();
    assert_eq!(said(&by("alice", small()), &strict()), (None, vec![warned]));
    assert_eq!(said(&by("alice", large()), &strict()), (None, Vec::new()));
    let refused = "Chris, you can only submit jobs to the instructional pool. (NotChris)".to_owned();
    assert_eq!(said(&by("chris", large()), &strict()).0, Some(refused.clone()));
    // The requirements judge an edit by the owner of the job, and not by the user who edits the job.
    let mut old = object("HTCJob", "x", job(json!({"count": 1})));
    old["metadata"]["uid"] = json!("u1");
    old["status"] = json!({"observedGeneration": 1, "owner": "chris"});
    let mut new = old.clone();
    new["spec"]["count"] = json!(2);
    assert_eq!(said(&by("root", asked("UPDATE", "HTCJob", new, old)), &strict()).0, Some(refused));
}

/// Only transforms set secure attributes: not even a superuser may set one.
#[test]
fn secure_attributes_are_left_out_with_a_warning_or_refused() {
    let known = |more: &str| {
        let config = format!("SECURE_JOB_ATTRS = Trust\nQUEUE_SUPER_USERS = root\n{more}");
        let policy = of("SubmitPolicy", "p", json!({"config": config, "owner": {"from": "User"}}));
        OtherObjects::all(&Objects { policies: &[policy], ..Objects::default() })
    };
    let mut old = object("HTCJob", "x", job(json!({})));
    old["metadata"]["uid"] = json!("u1");
    old["status"] = json!({"observedGeneration": 1, "owner": "alice"});
    let mut new = old.clone();
    new["spec"]["attributes"] = json!({"Trust": "1"});
    let requests = [
        by("alice", asked("CREATE", "HTCJob", new.clone(), Value::Null)),
        by("alice", asked("UPDATE", "HTCJob", new.clone(), old.clone())),
        by("root", asked("UPDATE", "HTCJob", new, old)),
    ];
    let only = "spec.attributes[Trust]: only the SubmitPolicy's transforms set this attribute";
    for request in requests {
        let (refusal, warnings) = said(&request, &known(""));
        assert_eq!(refusal, None);
        assert_eq!(warnings, [format!("{only}: the job goes on without it; leave it out")]);
        let (refusal, _) = said(&request, &known("IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS = False\n"));
        assert_eq!(refusal.as_deref(), Some(&*format!("{only}; leave it out")));
    }
}

#[test]
fn only_its_owner_and_superusers_edit_a_job() {
    let mut old = object("HTCJob", "x", job(json!({"requests": {"memory": "2Gi"}})));
    old["metadata"]["uid"] = json!("u1");
    old["status"] = json!({"observedGeneration": 1, "owner": "alice"});
    let mut new = old.clone();
    new["spec"]["count"] = json!(2);
    let edit = |user: &str| said(&by(user, asked("UPDATE", "HTCJob", new.clone(), old.clone())), &strict()).0;
    assert_eq!((edit("alice"), edit("root")), (None, None));
    let refused =
        "spec: the job is alice's, and bob may not edit its spec; ask alice, or submit a job of your own";
    assert_eq!(edit("bob").as_deref(), Some(refused));
    let mut admin = by("bob", asked("UPDATE", "HTCJob", new.clone(), old.clone()));
    admin["request"]["userInfo"]["groups"] = json!(["system:masters"]);
    assert_eq!(said(&admin, &strict()).0, None);
    let mut labeled = old.clone();
    labeled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(said(&by("bob", asked("UPDATE", "HTCJob", labeled, old)), &strict()).0, None);
}

#[test]
fn a_job_that_cannot_be_charged_to_its_creator_is_stored_with_a_warning() {
    let asked = asked(
        "CREATE",
        "HTCJob",
        object("HTCJob", "x", job(json!({"requests": {"memory": "2Gi"}}))),
        Value::Null,
    );
    let (refusal, warnings) = said(&by("system:serviceaccount:ci:runner", asked), &strict());
    assert_eq!(refusal, None);
    assert!(warnings[0].starts_with("the job is charged to its namespace, alice: "), "{warnings:?}");
}

#[test]
fn quotas_that_would_add_up_to_more_than_there_is_are_warned_of_once() {
    let group =
        |name: &str, share: f64| of::<api::GroupQuota>("GroupQuota", name, json!({"dynamicQuota": share}));
    let known = |groups: &[api::GroupQuota]| OtherObjects::all(&Objects { groups, ..Objects::default() });
    let told =
        "spec.dynamicQuota: the shares of the pool add up to 1.2, more than 1; all of them are scaled down";
    let share =
        |share: f64, known: &OtherObjects| created("GroupQuota", json!({"dynamicQuota": share}), known);
    assert_eq!(share(0.5, &known(&[group("a", 0.7)])), (None, vec![told.to_owned()]));
    assert_eq!(share(0.3, &known(&[group("a", 0.7)])), (None, Vec::new()));
    assert_eq!(
        share(0.1, &known(&[group("a", 0.7), group("b", 0.5)])),
        (None, Vec::new()),
        "it was so before"
    );
}

/// Otherwise nobody but an admin could edit a job that came while no operator answered.
#[test]
fn a_job_that_is_charged_to_its_namespace_is_edited_by_whoever_may_edit_there() {
    let mut old = object("HTCJob", "x", job(json!({"requests": {"memory": "2Gi"}})));
    old["metadata"]["uid"] = json!("u1");
    old["status"] = json!({"observedGeneration": 1, "owner": "namespace:alice"});
    let mut new = old.clone();
    new["spec"]["count"] = json!(2);
    for user in ["alice", "bob", "system:serviceaccount:ci:runner"] {
        let asked = asked("UPDATE", "HTCJob", new.clone(), old.clone());
        assert_eq!(said(&by(user, asked), &strict()).0, None, "{user}");
    }
}

#[test]
fn an_edit_before_the_owner_is_recorded_is_judged_as_the_editors_own() {
    let mut old = object("HTCJob", "x", job(json!({"requests": {"memory": "2Gi"}})));
    old["metadata"]["uid"] = json!("u1");
    let mut new = old.clone();
    new["spec"]["count"] = json!(2);
    let edit = |user: &str| said(&by(user, asked("UPDATE", "HTCJob", new.clone(), old.clone())), &strict());
    assert_eq!(edit("alice"), (None, Vec::new()));
    assert!(edit("chris").0.is_some_and(|refusal| refusal.contains("(NotChris)")));
}

#[test]
fn an_edit_by_somebody_without_an_owners_name_is_refused_by_the_editors_name() {
    let mut old = object("HTCJob", "x", job(json!({"requests": {"memory": "2Gi"}})));
    old["metadata"]["uid"] = json!("u1");
    old["status"] = json!({"observedGeneration": 1, "owner": "alice"});
    let mut new = old.clone();
    new["spec"]["count"] = json!(2);
    let asked = asked("UPDATE", "HTCJob", new, old);
    let refusal = said(&by("system:serviceaccount:ci:runner", asked), &strict()).0.unwrap();
    assert!(refusal.contains("system:serviceaccount:ci:runner may not edit its spec"), "{refusal}");
}
