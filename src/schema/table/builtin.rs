//! The columns of the built-in kinds, as kubectl shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::pods::or_none;
use super::{Column, age, age_column, name_column, pods};

type Code = fn(&Value, Timestamp) -> Value;

/// The columns of a kind.
pub(super) fn columns(group: &str, kind: &str) -> Vec<Column> {
    match (group, kind) {
        ("", "Pod") => pods::columns(),
        ("", "Node") => nodes(),
        ("" | "events.k8s.io", "Event") => events(),
        ("", "Namespace") => with_age(&[("Status", 0, |o, _| text(o, "/status/phase").into())]),
        ("", "ConfigMap") => with_age(&[("Data", 0, |o, _| count(o, "/data").into())]),
        ("", "Secret") => with_age(&[
            ("Type", 0, |o, _| text(o, "/type").into()),
            ("Data", 0, |o, _| count(o, "/data").into()),
        ]),
        ("", "ServiceAccount") => with_age(&[("Secrets", 0, |o, _| count(o, "/secrets").into())]),
        ("", "Service") => services(),
        ("coordination.k8s.io", "Lease") => {
            with_age(&[("Holder", 0, |o, _| text(o, "/spec/holderIdentity").into())])
        }
        ("apps", "Deployment") => deployments(),
        ("apps", "ReplicaSet") => with_age(&[
            ("Desired", 0, |o, _| number(o, "/spec/replicas").into()),
            ("Current", 0, |o, _| number(o, "/status/replicas").into()),
            ("Ready", 0, |o, _| number(o, "/status/readyReplicas").into()),
        ]),
        ("apps", "StatefulSet") => with_age(&[("Ready", 0, ready_replicas)]),
        ("batch", "Job") => jobs(),
        ("policy", "PodDisruptionBudget") => budgets(),
        ("scheduling.k8s.io", "PriorityClass") => with_age(&[
            ("Value", 0, |o, _| number(o, "/value").into()),
            ("Global-Default", 0, |o, _| o.get("globalDefault").cloned().unwrap_or(false.into())),
        ]),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => {
            with_age(&[("Role", 0, |o, _| {
                format!("{}/{}", text(o, "/roleRef/kind"), text(o, "/roleRef/name")).into()
            })])
        }
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            vec![name_column(), column("Created At", 0, |o, _| text(o, "/metadata/creationTimestamp").into())]
        }
        _ => with_age(&[]),
    }
}

fn column(name: &str, priority: i64, cell: Code) -> Column {
    Column::code(name, "string", priority, cell)
}

/// The column NAME, the given columns of priority 0, the column AGE, and the other given columns.
fn with_age(own: &[(&str, i64, Code)]) -> Vec<Column> {
    let make =
        |wide: bool| own.iter().filter(move |(_, p, _)| (*p > 0) == wide).map(|(n, p, c)| column(n, *p, *c));
    let mut columns = vec![name_column()];
    columns.extend(make(false));
    columns.push(age_column());
    columns.extend(make(true));
    columns
}

fn text<'v>(obj: &'v Value, pointer: &str) -> &'v str {
    obj.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(obj: &'v Value, pointer: &str) -> &'v [Value] {
    obj.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn number(obj: &Value, pointer: &str) -> i64 {
    obj.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// The number of entries of a map or a list.
fn count(obj: &Value, pointer: &str) -> usize {
    match obj.pointer(pointer) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

fn join<'v>(items: impl Iterator<Item = &'v str>) -> Value {
    items.collect::<Vec<_>>().join(",").into()
}

fn selector(map: Option<&Value>) -> Value {
    match map.and_then(Value::as_object).filter(|map| !map.is_empty()) {
        None => "<none>".into(),
        Some(map) => {
            let pairs = map.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()));
            pairs.collect::<Vec<_>>().join(",").into()
        }
    }
}

fn nodes() -> Vec<Column> {
    vec![
        name_column(),
        column("Status", 0, |node, _| node_status(node).into()),
        column("Roles", 0, |node, _| node_roles(node).into()),
        age_column(),
        column("Version", 0, |node, _| text(node, "/status/nodeInfo/kubeletVersion").into()),
        column("Internal-IP", 1, |node, _| node_address(node, "InternalIP")),
        column("External-IP", 1, |node, _| node_address(node, "ExternalIP")),
        column("OS-Image", 1, |node, _| unknown(node, "/status/nodeInfo/osImage")),
        column("Kernel-Version", 1, |node, _| unknown(node, "/status/nodeInfo/kernelVersion")),
        column("Container-Runtime", 1, |node, _| unknown(node, "/status/nodeInfo/containerRuntimeVersion")),
    ]
}

fn unknown(node: &Value, pointer: &str) -> Value {
    match text(node, pointer) {
        "" => "<unknown>".into(),
        found => found.into(),
    }
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "/status/conditions").iter().find(|c| text(c, "/type") == "Ready");
    let mut status = match ready.map(|c| text(c, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn node_address(node: &Value, kind: &str) -> Value {
    let found = list(node, "/status/addresses").iter().find(|a| text(a, "/type") == kind);
    found.map_or("<none>".into(), |a| or_none(a, "/address"))
}

fn events() -> Vec<Column> {
    vec![
        column("Last Seen", 0, |e, now| seen(e, now).into()),
        column("Type", 0, |e, _| text(e, "/type").into()),
        column("Reason", 0, |e, _| text(e, "/reason").into()),
        column("Object", 0, |e, _| event_object(e).into()),
        column("Subobject", 1, |e, _| text(e, "/involvedObject/fieldPath").into()),
        column("Source", 1, |e, _| event_source(e).into()),
        column("Message", 0, |e, _| {
            let message = text(e, "/message");
            if message.is_empty() { text(e, "/note") } else { message }.trim().into()
        }),
        column("First Seen", 1, |e, now| first_seen(e, now).into()),
        column("Count", 1, |e, _| {
            e.pointer("/series/count").or(e.get("count")).and_then(Value::as_i64).unwrap_or(1).into()
        }),
        Column { priority: 1, ..name_column() },
    ]
}

/// The first of these times that is set.
fn time<'v>(event: &'v Value, pointers: &[&str]) -> Option<&'v Value> {
    pointers.iter().find_map(|p| event.pointer(p).filter(|t| !t.is_null()))
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    age::since(time(event, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]), now)
}

fn seen(event: &Value, now: Timestamp) -> String {
    let last = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"];
    time(event, &last).map_or_else(|| first_seen(event, now), |t| age::since(Some(t), now))
}

fn event_object(event: &Value) -> String {
    let object = event.get("involvedObject").or(event.get("regarding")).unwrap_or(&Value::Null);
    let kind = text(object, "/kind").to_lowercase();
    match text(object, "/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn event_source(event: &Value) -> String {
    let component = match text(event, "/source/component") {
        "" => text(event, "/reportingComponent"),
        component => component,
    };
    match text(event, "/source/host") {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

fn ready_replicas(obj: &Value, _: Timestamp) -> Value {
    let desired = obj.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    format!("{}/{desired}", number(obj, "/status/readyReplicas")).into()
}

fn deployments() -> Vec<Column> {
    with_age(&[
        ("Ready", 0, ready_replicas),
        ("Up-to-date", 0, |o, _| number(o, "/status/updatedReplicas").into()),
        ("Available", 0, |o, _| number(o, "/status/availableReplicas").into()),
        ("Containers", 1, |o, _| {
            join(list(o, "/spec/template/spec/containers").iter().map(|c| text(c, "/name")))
        }),
        ("Images", 1, |o, _| {
            join(list(o, "/spec/template/spec/containers").iter().map(|c| text(c, "/image")))
        }),
        ("Selector", 1, |o, _| selector(o.pointer("/spec/selector/matchLabels"))),
    ])
}

fn services() -> Vec<Column> {
    with_age(&[
        ("Type", 0, |o, _| match text(o, "/spec/type") {
            "" => "ClusterIP".into(),
            kind => kind.into(),
        }),
        ("Cluster-IP", 0, |o, _| or_none(o, "/spec/clusterIP")),
        ("External-IP", 0, |o, _| match list(o, "/spec/externalIPs") {
            [] => "<none>".into(),
            some => join(some.iter().filter_map(Value::as_str)),
        }),
        ("Port(s)", 0, |o, _| match list(o, "/spec/ports") {
            [] => "<none>".into(),
            ports => ports.iter().map(port).collect::<Vec<_>>().join(",").into(),
        }),
        ("Selector", 1, |o, _| selector(o.pointer("/spec/selector"))),
    ])
}

fn port(port: &Value) -> String {
    let protocol = match text(port, "/protocol") {
        "" => "TCP",
        protocol => protocol,
    };
    match number(port, "/nodePort") {
        0 => format!("{}/{protocol}", number(port, "/port")),
        node => format!("{}:{node}/{protocol}", number(port, "/port")),
    }
}

fn jobs() -> Vec<Column> {
    with_age(&[
        ("Status", 0, |o, _| {
            let is = |kind: &str| {
                list(o, "/status/conditions")
                    .iter()
                    .any(|c| text(c, "/type") == kind && text(c, "/status") == "True")
            };
            let states = [("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")];
            states.into_iter().find(|(kind, _)| is(kind)).map_or("Running", |(_, status)| status).into()
        }),
        ("Completions", 0, |o, _| match o.pointer("/spec/completions").and_then(Value::as_i64) {
            Some(wanted) => format!("{}/{wanted}", number(o, "/status/succeeded")).into(),
            None => format!("{}/1", number(o, "/status/succeeded")).into(),
        }),
        ("Duration", 0, |o, now| {
            let start = text(o, "/status/startTime");
            let end: Timestamp = text(o, "/status/completionTime").parse().unwrap_or(now);
            age::seconds_since(start, end).map_or(String::new(), age::human).into()
        }),
    ])
}

fn budgets() -> Vec<Column> {
    with_age(&[
        ("Min Available", 0, |o, _| o.pointer("/spec/minAvailable").map_or("N/A".into(), plain)),
        ("Max Unavailable", 0, |o, _| o.pointer("/spec/maxUnavailable").map_or("N/A".into(), plain)),
        ("Allowed Disruptions", 0, |o, _| number(o, "/status/disruptionsAllowed").into()),
    ])
}

fn plain(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).into()
}
