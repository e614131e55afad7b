//! What people, nodes and the plan's faults do to the world.

use serde_json::{Value, json};

use super::kubelets::{is_ours, is_over, node_key};
use super::plan::{Order, What};
use super::store::{KINDS, Key, finalizers, meta};
use super::world::{Drop, World};

const NODES: [&str; 3] = ["n0", "n1", "n2"];
const JOBS: [&str; 5] = ["sweep", "scan", "fold", "train", "forever"];
const OWNERS: [&str; 2] = ["alice", "bob"];
const GROUPS: [&str; 4] = ["physics", "physics.higgs", "physics.top", "biology"];
const REQUIREMENTS: [Option<&str>; 4] =
    [None, Some("TARGET.Cpus >= 1"), Some("TARGET.NoSuchThing > 1"), Some("((")];
const RETENTIONS: [&str; 3] = ["Keep", "KeepFailed", "Delete"];

fn node(n: u8) -> &'static str {
    NODES[usize::from(n) % NODES.len()]
}

fn job_key(n: u8) -> Key {
    let n = usize::from(n) % JOBS.len();
    Key::new("htcjobs", OWNERS[n % OWNERS.len()], JOBS[n])
}

/// A kind that operators watch.
fn watched(n: u8) -> &'static str {
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.0).filter(|kind| *kind != "events").collect();
    kinds[usize::from(n) % kinds.len()]
}

/// Does it.
pub fn perform(world: &mut World, what: &What) {
    world.coverage.fault(name(what));
    world.note(|| format!("{what:?}"));
    let line = format!("{what:?}");
    world.hash(line.as_bytes());
    let at = world.at();
    match what {
        What::Call(..) => {}
        What::Kill(seat) => {
            if let Some(who) = world.living(usize::from(*seat % 2)) {
                world.kill(who);
            }
        }
        What::KillAfterPolls(seat, polls) => {
            if let Some(who) = world.living(usize::from(*seat % 2)) {
                world.lives[who].polls_left = Some(*polls);
            }
        }
        What::Stop(seat) => {
            if let Some(who) = world.living(usize::from(*seat % 2)) {
                world.lives[who].stop.cancel();
            }
        }
        What::Second => world.second = true,
        What::Stall(seat, seconds) => {
            world.hindrances[usize::from(*seat % 2)].stalled_until = at + u64::from(*seconds) * 1000;
        }
        What::Cut(seat, seconds) => {
            world.hindrances[usize::from(*seat % 2)].cut_until = at + u64::from(*seconds) * 1000;
        }
        What::Lag(kind, lag, seconds) => {
            world.lags.insert(watched(*kind), (u64::from(*lag), at + u64::from(*seconds) * 1000));
        }
        What::DropWatch(kind, error) => {
            let how = if *error { Drop::ByError } else { Drop::Quietly };
            world.drops.insert(watched(*kind), (at, how));
        }
        What::Gone(kind) => {
            world.drops.insert(watched(*kind), (at, Drop::Gone));
        }
        What::Compact => world.store.compacted = world.store.version,
        What::NodeGone(_)
        | What::NodeCut(..)
        | What::NodeBack(..)
        | What::Cordon(..)
        | What::Taint(..)
        | What::Refuse(..) => {
            to_nodes(world, what, at);
        }
        What::Evict(_)
        | What::EndNow(_)
        | What::DeletePod(..)
        | What::StripPod(_)
        | What::Foreign(..)
        | What::ForeignGone(_) => {
            to_pods(world, what, at);
        }
        What::Submit(order) => submit(world, order),
        What::Edit(order) => {
            let key = job_key(order.job);
            let spec = spec(order);
            world.edit(&key, |job| job["spec"] = spec);
        }
        What::Remove(n) => world.delete(&job_key(*n), None),
        What::Unhold(n) => world.edit(&job_key(*n), |job| job["metadata"]["finalizers"] = json!([])),
        What::DeleteSlot(_) | What::EditSlot(..) | What::MakeSlot(_) | What::DeletePslot(_) => {
            to_slots(world, what);
        }
        What::Quota(..) | What::QuotaGone(_) | What::Ceiling(..) | What::DeleteSubmitter(_) => {
            to_caps(world, what, at);
        }
        What::Policy(n, how) => policy(world, *n, *how),
        What::PolicyGone(n) => world.delete(&Key::new("nodepolicies", "", &format!("policy{n}")), None),
    }
    world.ring();
}

fn to_nodes(world: &mut World, what: &What, at: u64) {
    match what {
        What::NodeGone(n) => {
            world.switch_off(node(*n));
            world.delete(&node_key(node(*n)), None);
            world.delete(&Key::new("leases", "kube-node-lease", node(*n)), None);
        }
        What::NodeCut(n, seconds) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.cut_until = at + u64::from(*seconds) * 1000;
            }
        }
        What::NodeBack(n, cpus) => node_back(world, node(*n), i64::from(*cpus)),
        What::Cordon(n, on) => {
            world.edit(&node_key(node(*n)), |node| node["spec"]["unschedulable"] = json!(on));
        }
        What::Taint(n, on) => world.edit(&node_key(node(*n)), |node| {
            let taint = json!([{"key": "maintenance", "effect": "NoSchedule"}]);
            node["spec"]["taints"] = if *on { taint } else { json!([]) };
        }),
        What::Refuse(n, times) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.refuses = *times;
            }
        }
        _ => {}
    }
}

/// A node joins, or has another size from now on.
fn node_back(world: &mut World, name: &str, cpus: i64) {
    let machine = world.kubelets.machines.entry(name.to_owned()).or_default();
    let shrinks = cpus < machine.cpus;
    machine.crowded |= shrinks;
    (machine.cpus, machine.on, machine.cut_until) = (cpus, true, 0);
    let most = world.checks.most_cpus.entry(name.to_owned()).or_default();
    *most = (*most).max(cpus);
    let status = json!({
        "allocatable": {"cpu": cpus.to_string(), "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True"}]});
    let key = node_key(name);
    if world.store.get(&key).is_some() {
        world.edit(&key, |node| node["status"] = status);
    } else {
        let labels = json!({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"});
        world.put(key, json!({"metadata": {"labels": labels}, "spec": {}, "status": status}));
    }
}

fn to_pods(world: &mut World, what: &What, at: u64) {
    match what {
        What::Evict(n) => {
            if let Some(key) = world.pick("pods", *n, |pod| is_ours(pod) && !is_over(pod)) {
                disown(world, &key, false);
                world.edit(&key, |pod| {
                    pod["status"] = json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"});
                });
            }
        }
        What::EndNow(n) => {
            let name = node(*n);
            for process in world.kubelets.processes.values_mut().filter(|process| process.node == name) {
                process.end_now(at);
            }
        }
        What::DeletePod(n, force) => {
            if let Some(key) = world.pick("pods", *n, is_ours) {
                if *force {
                    disown(world, &key, true);
                }
                world.delete(&key, force.then_some(0));
            }
        }
        What::StripPod(n) => {
            if let Some(key) = world.pick("pods", *n, is_ours) {
                disown(world, &key, true);
                world.edit(&key, |pod| pod["metadata"]["finalizers"] = json!([]));
                world.delete(&key, Some(0));
            }
        }
        What::Foreign(pod, n, cpus) => {
            let key = Key::new("pods", "kube-system", &format!("foreign{pod}"));
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.crowded = true;
            }
            let requests = json!({"cpu": cpus.to_string()});
            let spec = json!({"nodeName": node(*n), "containers": [{"name": "main", "resources": {"requests": requests}}]});
            if world.store.get(&key).is_none() {
                world.put(key, json!({"metadata": {}, "spec": spec}));
            }
        }
        What::ForeignGone(pod) => {
            world.delete(&Key::new("pods", "kube-system", &format!("foreign{pod}")), Some(0));
        }
        _ => {}
    }
}

/// Somebody takes a pod from under its process: what becomes of it is not the operator's to know.
fn disown(world: &mut World, key: &Key, lives_on: bool) {
    let Some(pod) = world.store.get(key) else { return };
    let unseen = !finalizers(&pod).is_empty();
    if unseen {
        world.checks.lost.insert(super::checks::proc_of(&pod));
    }
    if let Some(process) = world.kubelets.processes.get_mut(meta(&pod, "uid")) {
        process.disowned = true;
        process.alive &= lives_on;
    }
}

fn spec(order: &Order) -> Value {
    let mut spec = json!({
        "count": order.count,
        "requests": {"cpus": order.cpus, "memory": "128Mi", "disk": "1Mi", "gpus": order.gpus},
        "podRetention": RETENTIONS[usize::from(order.retention) % 3],
        "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}});
    if let Some(requirements) = REQUIREMENTS[usize::from(order.requirements) % 4] {
        spec["requirements"] = json!(requirements);
    }
    if let Some(group) = order.group {
        spec["accountingGroup"] = json!(GROUPS[usize::from(group) % 4]);
    }
    spec
}

fn submit(world: &mut World, order: &Order) {
    let key = job_key(order.job);
    if world.store.get(&key).is_none() {
        world.put(key, json!({"metadata": {}, "spec": spec(order)}));
    }
}

fn to_slots(world: &mut World, what: &What) {
    match what {
        What::DeleteSlot(n) => {
            if let Some(key) = world.pick("slots", *n, |_| true) {
                world.tamper(&key);
                world.delete(&key, None);
            }
        }
        What::EditSlot(n, how) => {
            let Some(key) = world.pick("slots", *n, |_| true) else { return };
            world.tamper(&key);
            world.edit(&key, |slot| match how {
                0 => slot["spec"]["claim"] = Value::Null,
                1 => slot["spec"]["claim"]["id"] = json!("somebody#1#1"),
                _ => slot["spec"]["claim"]["proc"] = json!(77),
            });
        }
        What::MakeSlot(n) => {
            let (name, from) = (node(*n), u32::from(*n / 3) + 1);
            let key = Key::new("slots", "", &format!("slot1-{from}.{name}"));
            let claim = world.store.of("slots").next().map(|(_, slot)| slot["spec"]["claim"].clone());
            if world.store.get(&key).is_none() {
                world.checks.tampered_slots.insert(key.name.clone());
                let resources = json!({"cpus": 1, "memoryMiB": 128, "diskKiB": 1024});
                let spec = json!({"name": format!("slot1_{from}@{name}"), "node": name, "slotType": "Dynamic",
                    "resources": resources, "claim": claim.unwrap_or(Value::Null)});
                world.put(key, json!({"metadata": {}, "spec": spec}));
            }
        }
        What::DeletePslot(n) => {
            if let Some(key) = world.pick("partitionableslots", *n, |_| true) {
                world.delete(&key, None);
            }
        }
        _ => {}
    }
}

fn to_caps(world: &mut World, what: &What, at: u64) {
    match what {
        What::Quota(n, quota) => {
            let name = GROUPS[usize::from(*n) % 4];
            world.checks.set_cap(format!("group {name}"), f64::from(*quota), at);
            world.put(Key::new("groupquotas", "", name), json!({"metadata": {}, "spec": {"quota": quota}}));
        }
        What::QuotaGone(n) => {
            let name = GROUPS[usize::from(*n) % 4];
            world.checks.set_cap(format!("group {name}"), f64::INFINITY, at);
            world.delete(&Key::new("groupquotas", "", name), None);
        }
        What::Ceiling(n, ceiling) => {
            let name = OWNERS[usize::from(*n) % 2];
            let key = Key::new("submitters", "", name);
            let spec = ceiling.map_or(json!({}), |ceiling| json!({"ceiling": ceiling}));
            world.checks.set_cap(format!("submitter {name}"), ceiling.map_or(f64::INFINITY, f64::from), at);
            world.put(key, json!({"metadata": {}, "spec": spec}));
        }
        What::DeleteSubmitter(n) => {
            if let Some(key) = world.pick("submitters", *n, |_| true) {
                world.checks.set_cap(format!("submitter {}", key.name), f64::INFINITY, at);
                world.delete(&key, None);
            }
        }
        _ => {}
    }
}

fn policy(world: &mut World, n: u8, how: u8) {
    let mut spec = json!({"nodeSelector": {}, "precedence": n});
    match how {
        0 => spec["claimWorklifeSeconds"] = json!(0),
        1 => spec["start"] = json!("TARGET.RequestCpus < 3"),
        2 => spec["start"] = json!("(("),
        3 => spec["config"] = json!("START = TARGET.RequestCpus < 2\nSLOT_WEIGHT = Cpus"),
        _ => {}
    }
    world.put(Key::new("nodepolicies", "", &format!("policy{n}")), json!({"metadata": {}, "spec": spec}));
}

/// Faults stop, and people put right what they can.
pub fn mend(world: &mut World) {
    world.note(|| "faults stop, and everything is mended".to_owned());
    let at = world.at();
    world.items.clear();
    world.faults.clear();
    world.lags.clear();
    world.hindrances = Default::default();
    for life in &mut world.lives {
        life.polls_left = None;
    }
    for (n, name) in (0_u8..).zip(NODES) {
        if let Some(machine) = world.kubelets.machines.get_mut(name) {
            (machine.cut_until, machine.refuses) = (0, 0);
        }
        node_back(world, name, 8);
        world.edit(&node_key(name), |node| {
            node["spec"] = json!({});
        });
        perform_quietly(world, &What::ForeignGone(n));
        perform_quietly(world, &What::PolicyGone(n));
    }
    // Jobs without a group have what the groups leave.
    for (n, quota) in [(0, 9), (1, 4), (2, 4), (3, 4)] {
        perform_quietly(world, &What::Quota(n, quota));
    }
    for (n, name) in OWNERS.iter().enumerate() {
        world.checks.set_cap(format!("submitter {name}"), f64::INFINITY, at);
        if world.store.get(&Key::new("submitters", "", name)).is_some() {
            perform_quietly(world, &What::Ceiling(u8::try_from(n).unwrap(), None));
        }
    }
    let endless = job_key(4);
    world.delete(&endless, None);
    world.ring();
}

fn perform_quietly(world: &mut World, what: &What) {
    let at = world.at();
    match what {
        What::ForeignGone(_) => to_pods(world, what, at),
        What::PolicyGone(n) => world.delete(&Key::new("nodepolicies", "", &format!("policy{n}")), None),
        _ => to_caps(world, what, at),
    }
}

/// The kind of what happens, for the list of what was reached.
pub fn name(what: &What) -> &'static str {
    match what {
        What::Call(how, _) => how.name(),
        What::Kill(_) => "kill",
        What::KillAfterPolls(..) => "kill after polls",
        What::Stop(_) => "stop",
        What::Second => "second operator",
        What::Stall(..) => "stall",
        What::Cut(..) => "cut off",
        What::Lag(..) => "watch lags",
        What::DropWatch(..) => "watch dropped",
        What::Gone(_) => "watch gone",
        What::Compact => "compaction",
        What::NodeGone(_) => "node gone",
        What::NodeCut(..) => "node cut off",
        What::NodeBack(..) => "node back or resized",
        What::Cordon(..) => "cordon",
        What::Taint(..) => "taint",
        What::Refuse(..) => "kubelet refuses",
        What::Evict(_) => "eviction",
        What::EndNow(_) => "pods end at once",
        What::Foreign(..) => "foreign pod",
        What::ForeignGone(_) => "foreign pod gone",
        What::Submit(_) => "submit",
        What::Edit(_) => "job edited",
        What::Remove(_) => "job deleted",
        What::Unhold(_) => "job's finalizer taken",
        What::DeletePod(_, false) => "pod deleted",
        What::DeletePod(_, true) => "pod deleted by force",
        What::StripPod(_) => "pod's finalizer taken",
        What::DeleteSlot(_) => "slot deleted",
        What::EditSlot(..) => "slot edited",
        What::MakeSlot(_) => "slot made up",
        What::DeletePslot(_) => "partitionable slot deleted",
        What::Quota(..) => "quota",
        What::QuotaGone(_) => "quota deleted",
        What::Ceiling(..) => "ceiling",
        What::DeleteSubmitter(_) => "submitter deleted",
        What::Policy(..) => "policy",
        What::PolicyGone(_) => "policy deleted",
    }
}
