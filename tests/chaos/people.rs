//! What people, nodes and the plan's faults do to the world.

use serde_json::{Value, json};

use super::kubelets::{disrupt, is_of_pool, is_over, node_key};
use super::layouts::{LAYOUTS, UNFIT};
use super::plan::{BACKFILL, Order, Presence, What};
use super::processes::Over;
use super::store::{KINDS, Key, finalizers, is_deleting, meta};
use super::world::{Drop, World};

const NODES: [&str; 3] = ["n0", "n1", "n2"];
const JOBS: [&str; 5] = ["sweep", "scan", "fold", "train", "forever"];
const OWNERS: [&str; 2] = ["alice", "bob"];
const GROUPS: [&str; 4] = ["physics", "physics.higgs", "physics.top", "biology"];
const REQUIREMENTS: [Option<&str>; 4] =
    [None, Some("TARGET.Cpus >= 1"), Some("TARGET.NoSuchThing > 1"), Some("((")];
/// The leases of each job's claims.
const LEASES: [Option<&str>; 5] = [Some("45"), None, Some("60"), Some("0"), Some("40")];
/// What procs of each job take of things that are limited.
const WANTS: [Option<&str>; 5] = [None, Some("lic"), Some("LIC:2"), None, Some("lic")];
const LIMITS: [&str; 2] = ["lic", "other"];
/// How negotiators go about preemption.
const NEGOTIATING: [&str; 5] = [
    "PREEMPTION_REQUIREMENTS = True\nNEGOTIATOR_CONSIDER_EARLY_PREEMPTION = True",
    "PREEMPTION_REQUIREMENTS = RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2",
    "PREEMPTION_REQUIREMENTS = True\nPREEMPTION_RANK = -TotalJobRunTime\nALLOW_PSLOT_PREEMPTION = True",
    "NEGOTIATOR_CONSIDER_PREEMPTION = False",
    "PREEMPTION_REQUIREMENTS = MY.RemoteOwner == \"alice\"\nNEGOTIATOR_PRE_JOB_RANK = isUndefined(RemoteOwner)",
];
/// Which slots each of two negotiators has.
const DIVISIONS: [[&str; 2]; 4] = [
    ["Machine == \"n0\"", "Machine != \"n0\""],
    ["True", "Machine == \"n0\""],
    ["Cpus > 2", "True"],
    ["NoSuchThing", "Machine =!= \"n1\""],
];
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
        What::Fated(how) => world.kubelets.fated = *how,
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
        | What::NodeDeleted(_)
        | What::Reboot(_)
        | What::Clock(..)
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
        | What::DeleteSooner(..)
        | What::ApiEvict(_)
        | What::TaintEvict(_)
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
        What::Quota(..)
        | What::QuotaGone(_)
        | What::Ceiling(..)
        | What::DeleteSubmitter(_)
        | What::Limit(..)
        | What::LimitGone(_) => {
            to_caps(world, what, at);
        }
        What::Negotiating(how) => {
            let how = NEGOTIATING[usize::from(*how) % NEGOTIATING.len()];
            negotiate(world, how);
        }
        What::Negotiators(how) => {
            for (name, slots) in
                ["default", "second"].into_iter().zip(DIVISIONS[usize::from(*how) % DIVISIONS.len()])
            {
                negotiate_as(world, name, &format!("NEGOTIATOR_SLOT_CONSTRAINT = {slots}"));
            }
        }
        What::Policy(n, how, layout) => policy(world, &format!("policy{n}"), *n, *how, *layout),
        What::Drain(..) | What::DrainGone(_) => to_drains(world, what),
        What::Agent(n, presence) => world.install(node(*n), *presence),
        What::Owner(n, seconds) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.agent.owner_until = at + u64::from(*seconds) * 1000;
            }
        }
        What::PolicyGone(n) => world.delete(&Key::new("nodepolicies", "", &format!("policy{n}")), None),
    }
    world.ring();
}

fn is_out_of_service(what: &What) -> bool {
    matches!(what, What::Taint(n, true) if *n >= 9)
}

fn to_nodes(world: &mut World, what: &What, at: u64) {
    match what {
        What::NodeGone(n) => {
            world.switch_off(node(*n));
            world.delete(&node_key(node(*n)), None);
            world.delete(&Key::new("leases", "kube-node-lease", node(*n)), None);
            world.install(node(*n), Presence::TakenOff);
        }
        What::Reboot(n) => {
            let was_on = world.kubelets.machines.get(node(*n)).is_some_and(|machine| machine.on);
            world.switch_off(node(*n));
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.on = was_on;
            }
        }
        What::Clock(n, seconds) => {
            if let Some(machine) = world.kubelets.machines.get_mut(node(*n)) {
                machine.wrong = i64::from(*seconds);
            }
        }
        What::NodeDeleted(n) => {
            // The garbage collector deletes what the Node owned. The machine runs on, and its kubelet with it.
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
        What::Taint(n, on) => {
            let off = is_out_of_service(what);
            if off {
                world.switch_off(node(*n));
            }
            let key = if off { "node.kubernetes.io/out-of-service" } else { "maintenance" };
            world.edit(&node_key(node(*n)), |node| {
                let taint = json!([{"key": key, "effect": "NoSchedule"}]);
                node["spec"]["taints"] = if *on { taint } else { json!([]) };
            });
        }
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
        let labels = json!({
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "nvidia.com/gpu.memory": "16000"});
        world.put(key, json!({"metadata": {"labels": labels}, "spec": {}, "status": status}));
    }
}

fn to_pods(world: &mut World, what: &What, at: u64) {
    match what {
        What::Evict(n) => {
            if let Some(key) = world.pick("pods", *n, |pod| is_of_pool(pod) && !is_over(pod)) {
                evicted_by_kubelet(world, &key, at);
            }
        }
        What::EndNow(n) => {
            let name = node(*n);
            for process in world.kubelets.processes.values_mut().filter(|process| process.node == name) {
                process.end_now(at);
            }
        }
        What::DeletePod(n, force) => {
            if let Some(key) = world.pick("pods", *n, is_of_pool) {
                // Without our finalizer it is gone at once, and nobody can say when its program ends.
                if *force && world.store.get(&key).is_some_and(|pod| finalizers(&pod).is_empty()) {
                    disown(world, &key, true);
                }
                world.delete(&key, force.then_some(0));
            }
        }
        What::DeleteSooner(n, grace) => {
            let going = world.pick("pods", *n, |pod| is_of_pool(pod) && is_deleting(pod));
            if let Some(key) = going.or_else(|| world.pick("pods", *n, is_of_pool)) {
                world.delete(&key, Some(u64::from(*grace)));
            }
        }
        What::ApiEvict(n) => {
            if let Some(key) = world.pick("pods", *n, |pod| is_of_pool(pod) && !is_over(pod)) {
                disrupted(world, &key, "EvictionByEvictionAPI");
            }
        }
        What::TaintEvict(n) => {
            let on = |pod: &Value| is_of_pool(pod) && !is_over(pod) && pod["spec"]["nodeName"] == node(*n);
            let pods: Vec<Key> =
                world.store.of("pods").filter(|(_, pod)| on(pod)).map(|(key, _)| key.clone()).collect();
            for key in pods {
                disrupted(world, &key, "DeletionByTaintManager");
            }
        }
        What::StripPod(n) => {
            if let Some(key) = world.pick("pods", *n, is_of_pool) {
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

/// The node is low on memory: its kubelet kills what runs in a pod, and says so.
fn evicted_by_kubelet(world: &mut World, key: &Key, at: u64) {
    const WHY: &str = "The node was low on resource: memory. ";
    let Some(pod) = world.store.get(key) else { return };
    let now = world.text(at);
    match world.kubelets.processes.get_mut(meta(&pod, "uid")) {
        Some(process) if process.alive => {
            let evicted = Some(WHY.to_owned());
            process.killed(Over { at, code: 137, reason: "Error", own: false, message: None, evicted });
        }
        Some(_) => {}
        None => world.edit(key, |pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["reason"] = json!("Evicted");
            pod["status"]["message"] = json!(WHY);
            disrupt(pod, "TerminationByKubelet", &now);
        }),
    }
}

/// Somebody says by condition why a pod goes, and deletes it.
fn disrupted(world: &mut World, key: &Key, reason: &str) {
    let now = world.text(world.at());
    world.edit(key, |pod| disrupt(pod, reason, &now));
    world.delete(key, None);
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
    if let Some(lease) = LEASES[usize::from(order.job) % LEASES.len()] {
        spec["attributes"] = json!({"JobLeaseDuration": lease});
    }
    if let Some(wants) = WANTS[usize::from(order.job) % WANTS.len()] {
        spec["concurrencyLimits"] = json!([wants]);
    }
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
            let claims = world.store.of("slots").map(|(_, slot)| slot["spec"]["claim"].clone());
            let other = claims.into_iter().find(Value::is_object);
            world.edit(&key, |slot| {
                // Somebody claims a static slot by hand, in another's name.
                if !slot["spec"]["claim"].is_object() {
                    slot["spec"]["claim"] = other.unwrap_or(Value::Null);
                }
                if !slot["spec"]["claim"].is_object() {
                    return;
                }
                match how {
                    0 => slot["spec"]["claim"] = Value::Null,
                    1 => slot["spec"]["claim"]["id"] = json!("somebody#1#1"),
                    _ => slot["spec"]["claim"]["proc"] = json!(77),
                }
            });
        }
        What::MakeSlot(n) => {
            let (name, from) = (node(*n), u32::from(*n / 3) + 1);
            let fixed = n % 4 == 3;
            let name_of = |joint: &str, at: &str| {
                if fixed { format!("slot{from}{at}{name}") } else { format!("slot1{joint}{from}{at}{name}") }
            };
            let key = Key::new("slots", "", &name_of("-", "."));
            let claim = world.store.of("slots").next().map(|(_, slot)| slot["spec"]["claim"].clone());
            if world.store.get(&key).is_none() {
                world.checks.tampered_slots.insert(key.name.clone());
                let resources = json!({"cpus": 1, "memoryMiB": 128, "diskKiB": 1024});
                let kind = if fixed { "Static" } else { "Dynamic" };
                let spec = json!({"name": name_of("_", "@"), "node": name, "slotType": kind,
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
            world.checks.caps.set(format!("group {name}"), f64::from(*quota), at);
            world.put(Key::new("groupquotas", "", name), json!({"metadata": {}, "spec": {"quota": quota}}));
        }
        What::QuotaGone(n) => {
            let name = GROUPS[usize::from(*n) % 4];
            world.checks.caps.set(format!("group {name}"), f64::INFINITY, at);
            world.delete(&Key::new("groupquotas", "", name), None);
        }
        What::Ceiling(n, ceiling) => {
            let name = OWNERS[usize::from(*n) % 2];
            let key = Key::new("submitters", "", name);
            let spec = ceiling.map_or(json!({}), |ceiling| json!({"ceiling": ceiling}));
            world.checks.caps.set(format!("submitter {name}"), ceiling.map_or(f64::INFINITY, f64::from), at);
            world.put(key, json!({"metadata": {}, "spec": spec}));
        }
        What::DeleteSubmitter(n) => {
            if let Some(key) = world.pick("submitters", *n, |_| true) {
                world.checks.caps.set(format!("submitter {}", key.name), f64::INFINITY, at);
                world.delete(&key, None);
            }
        }
        What::Limit(n, limit) => {
            let name = LIMITS[usize::from(*n) % LIMITS.len()];
            world.checks.caps.set(format!("limit {name}"), f64::from(*limit), at);
            world.put(
                Key::new("concurrencylimits", "", name),
                json!({"metadata": {}, "spec": {"limit": limit}}),
            );
        }
        What::LimitGone(n) => {
            let name = LIMITS[usize::from(*n) % LIMITS.len()];
            world.checks.caps.set(format!("limit {name}"), f64::INFINITY, at);
            world.delete(&Key::new("concurrencylimits", "", name), None);
        }
        _ => {}
    }
}

/// The default negotiator, with that configuration.
fn negotiate(world: &mut World, config: &str) {
    negotiate_as(world, "default", config);
}

/// A negotiator with that configuration.
fn negotiate_as(world: &mut World, name: &str, config: &str) {
    let spec = json!({"config": config, "cycleDelaySeconds": 5});
    world.put(Key::new("negotiators", "", name), json!({"metadata": {}, "spec": spec}));
}

/// What policies say of how owners come back, and of what becomes of jobs then.
const OWNERS_POLICIES: [&str; 6] = [
    "WANT_SUSPEND = True\nSUSPEND = KeyboardIdle < 5\nCONTINUE = KeyboardIdle > 10\n\
     PREEMPT = Activity == \"Suspended\" && time() - EnteredCurrentActivity > 15\nMAXJOBRETIREMENTTIME = 20",
    "IS_OWNER = KeyboardIdle < 5\nPREEMPT = KeyboardIdle < 5\nWANT_VACATE = False\nKILLING_TIMEOUT = 5",
    "PREEMPT = KeyboardIdle < 5\nMachineMaxVacateTime = 10\nMAXJOBRETIREMENTTIME = 8\nKILLING_TIMEOUT = 5\n\
     KILL = Activity == \"Vacating\" && time() - EnteredCurrentActivity > 3",
    "PREEMPT = State == \"Claimed\" && time() - EnteredCurrentState > 12\nMachineMaxVacateTime = 4\nKILLING_TIMEOUT = 2",
    "RANK = TARGET.RequestCpus\nMAXJOBRETIREMENTTIME = 10\nMachineMaxVacateTime = 3",
    "IS_OWNER = ClockMin % 2 == 1\nWANT_SUSPEND = True\nSUSPEND = KeyboardIdle < 5\nCONTINUE = KeyboardIdle > 5",
];

/// What policies say of backfill work.
const BACKFILL_POLICIES: [&str; 3] = [
    "START_BACKFILL = True",
    "START_BACKFILL = time() - EnteredCurrentState > 3\nEVICT_BACKFILL = KeyboardIdle < 5\nKILLING_TIMEOUT = 5",
    "START_BACKFILL = State == \"Unclaimed\"\nEVICT_BACKFILL = ClockMin % 2 == 1\nIS_OWNER = KeyboardIdle < 5\nMATCH_TIMEOUT = 20",
];

fn policy(world: &mut World, name: &str, n: u8, how: u8, layout: u8) {
    let mut spec = json!({"nodeSelector": {}, "precedence": n});
    let mut config = match layout {
        0 => String::new(),
        layout => LAYOUTS.get(usize::from(layout)).map_or(UNFIT, |division| division.text).to_owned(),
    };
    match how {
        0 => spec["claimWorklifeSeconds"] = json!(0),
        1 => spec["start"] = json!("TARGET.RequestCpus < 3"),
        2 => spec["start"] = json!("(("),
        3 => config.push_str("START = TARGET.RequestCpus < 2\nSLOT_WEIGHT = Cpus\n"),
        4 => {}
        how if how >= BACKFILL => {
            let says = BACKFILL_POLICIES[usize::from(how - BACKFILL) % BACKFILL_POLICIES.len()];
            config.push_str("ENABLE_BACKFILL = True\n");
            config.push_str(says);
            // Work that ends by itself is begun anew, by the operator alone.
            let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "boinc"}]});
            spec["backfill"] = json!({"namespace": "fill", "template": {"spec": pod}});
        }
        how => config.push_str(OWNERS_POLICIES[usize::from(how - 5) % OWNERS_POLICIES.len()]),
    }
    if !config.is_empty() {
        spec["config"] = json!(config);
    }
    world.put(Key::new("nodepolicies", "", name), json!({"metadata": {}, "spec": spec}));
}

fn to_drains(world: &mut World, what: &What) {
    let key = |n: u8| Key::new("drainrequests", "", &format!("drain{}", n % 3));
    match what {
        What::Drain(n, on, how) => {
            let schedule = ["Graceful", "Quick", "Fast"][usize::from(how % 3)];
            let completion = ["Stay", "Resume"][usize::from(how / 3 % 2)];
            let mut spec = json!({"node": node(*on), "schedule": schedule, "onCompletion": completion});
            match how / 6 {
                1 => spec["start"] = json!("TARGET.RequestCpus < 2"),
                2 => spec["check"] = json!("State == \"Unclaimed\""),
                _ => {}
            }
            world.put(key(*n), json!({"metadata": {}, "spec": spec}));
        }
        What::DrainGone(n) => world.delete(&key(*n), None),
        _ => {}
    }
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
            machine.agent.owner_until = 0;
            // What manages agents has them come back.
            if machine.agent.presence.is_some_and(|presence| presence != Presence::TakenOff) {
                world.install(name, Presence::Works);
            }
        }
        node_back(world, name, 8);
        world.edit(&node_key(name), |node| {
            node["spec"] = json!({});
        });
        perform_quietly(world, &What::ForeignGone(n));
        perform_quietly(world, &What::PolicyGone(n));
        perform_quietly(world, &What::DrainGone(n));
    }
    if world.layout != 0 {
        policy(world, "last", 0, 4, world.layout);
    }
    // Whatever their quotas, in the end groups compete for all that is left: slots may be wider than any quota.
    for (name, quota) in GROUPS.iter().zip([9, 4, 4, 4]) {
        world.checks.caps.set(format!("group {name}"), f64::INFINITY, at);
        let spec = json!({"quota": quota, "autoregroup": true});
        world.put(Key::new("groupquotas", "", name), json!({"metadata": {}, "spec": spec}));
    }
    for (n, name) in OWNERS.iter().enumerate() {
        world.checks.caps.set(format!("submitter {name}"), f64::INFINITY, at);
        if world.store.get(&Key::new("submitters", "", name)).is_some() {
            perform_quietly(world, &What::Ceiling(u8::try_from(n).unwrap(), None));
        }
    }
    // As many as the greediest proc takes: the others wait their turn.
    if world.store.get(&Key::new("concurrencylimits", "", LIMITS[0])).is_some() {
        perform_quietly(world, &What::Limit(0, 2));
    }
    // With fixed priorities users would throw one another out for ever, where that is the policy.
    if world.store.get(&Key::new("negotiators", "", "default")).is_some() {
        negotiate(world, "PREEMPTION_REQUIREMENTS = False");
    }
    if world.store.get(&Key::new("negotiators", "", "second")).is_some() {
        world.delete(&Key::new("negotiators", "", "second"), None);
    }
    let endless = job_key(4);
    world.delete(&endless, None);
    world.ring();
}

/// Edits jobs of which procs are held: what they were held for is corrected.
pub fn release(world: &mut World) {
    let held = world.store.of("htcjobs").filter(|(_, job)| is_held(job)).map(|(key, _)| key.clone());
    for key in held.collect::<Vec<_>>() {
        world.edit(&key, |job| {
            let image = format!("busybox:{}", job["metadata"]["generation"]);
            job["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        });
    }
}

/// Whether procs are held under the spec as it is, and editing it would release them: not where it is wrong.
fn is_held(job: &Value) -> bool {
    let holds = job["status"]["heldProcs"].as_array().is_some_and(|held| !held.is_empty());
    let wrong = job["spec"]["requirements"] == "((";
    holds && !wrong && job["status"]["observedGeneration"] == job["metadata"]["generation"]
}

fn perform_quietly(world: &mut World, what: &What) {
    let at = world.at();
    match what {
        What::ForeignGone(_) => to_pods(world, what, at),
        What::DrainGone(_) => to_drains(world, what),
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
        What::NodeDeleted(_) => "Node deleted, machine on",
        What::Reboot(_) => "node starts again",
        What::Clock(..) => "clock of a node wrong",
        What::Fated(_) => "chosen programs",
        What::NodeCut(..) => "node cut off",
        What::NodeBack(..) => "node back or resized",
        What::Cordon(..) => "cordon",
        What::Taint(..) if is_out_of_service(what) => "out of service",
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
        What::DeleteSooner(..) => "pod deleted again, sooner",
        What::ApiEvict(_) => "eviction API",
        What::TaintEvict(_) => "taint manager",
        What::StripPod(_) => "pod's finalizer taken",
        What::DeleteSlot(_) => "slot deleted",
        What::EditSlot(..) => "slot edited",
        What::MakeSlot(_) => "slot made up",
        What::DeletePslot(_) => "partitionable slot deleted",
        What::Quota(..) => "quota",
        What::QuotaGone(_) => "quota deleted",
        What::Ceiling(..) => "ceiling",
        What::DeleteSubmitter(_) => "submitter deleted",
        What::Limit(..) => "limit",
        What::LimitGone(_) => "limit deleted",
        What::Negotiating(_) => "negotiator's policy",
        What::Negotiators(_) => "two negotiators",
        What::Policy(_, how, 0) if *how < 5 => "policy",
        What::Policy(_, how, _) if *how >= BACKFILL => "backfill work",
        What::Policy(_, _, 0) => "owner's policy",
        What::Policy(_, _, layout) if usize::from(*layout) < LAYOUTS.len() => "division into slots",
        What::Policy(..) => "division that does not fit",
        What::Drain(..) => "drain",
        What::DrainGone(_) => "drain canceled",
        What::Agent(_, Presence::Works) => "agent comes",
        What::Agent(_, Presence::Silent) => "agent falls silent",
        What::Agent(_, Presence::CannotWork) => "agent cannot work",
        What::Agent(_, Presence::TakenOff) => "agent taken off",
        What::Owner(..) => "owner is back",
        What::PolicyGone(_) => "policy deleted",
    }
}
