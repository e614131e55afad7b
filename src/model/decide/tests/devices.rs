//! Devices and consumption policies, compared with the real condor_startd: the recordings of `hack/oracle/devices.py`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::manual::{gpu_slots, pool};
use super::world::World;
use crate::pool::{Capacity, Device, DeviceId, Event, ReportFacts, ResourceName, SlotName, Time, Zone};
use crate::schedd::{GpuDemands, Submission};
use crate::startd::{claimed_slot_ad, unclaimed_slot_ad};
use classad::{Ad, Env, Expr};

const RECORDED: &str = include_str!("../../../../tests/oracle/devices.json");

fn recorded() -> Json {
    serde_json::from_str(RECORDED).unwrap()
}

fn scene(name: &str) -> Json {
    recorded()["pools"][name].clone()
}

/// A machine of 8 CPUs with the scene's configuration and GPUs, and with the scene's jobs, once they run.
fn play(scene: &Json) -> World {
    let text = scene["config"].as_str().unwrap();
    // Here GPUs belong to the node, and its agent reports them. A layout without slot types is the recording's base.
    let own: Vec<&str> = text.lines().filter(|line| !line.contains("INVENTORY")).collect();
    let base = "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\n";
    let text = format!("{base}{}\n", own.join("\n"));
    let mut world = pool(&text, Zone::default(), Time::from_secs(1_800_000_000));
    world.fate = |_| (100_000, 0);
    let gpus = scene["gpus"].as_array().unwrap();
    world.node("n1", 8, i64::try_from(gpus.len()).unwrap());
    let devices = gpus.iter().map(device).collect();
    world.pool.apply(Event::Report(ReportFacts { devices, ..ReportFacts::of("n1".into()) }), world.now);
    world.settle();
    for (text, n) in scene["jobs"].as_array().unwrap().iter().zip(0..) {
        world.submit(&format!("job{n}"), "alice", 1, |job| describe(job, text.as_str().unwrap()));
    }
    world.pass(120);
    world
}

fn device(gpu: &Json) -> Device {
    let properties = gpu[1].as_object().unwrap();
    Device {
        resource: "nvidia.com/gpu".into(),
        id: gpu[0].as_str().unwrap().into(),
        properties: properties
            .iter()
            .map(|(name, value)| (name.as_str().into(), Expr::parse(&value.to_string()).unwrap()))
            .collect(),
    }
}

/// Fills in a submission from the commands of a submit description.
fn describe(job: &mut Submission, text: &str) {
    job.request.disk_kib = 1000;
    for line in text.lines() {
        let (command, value) = line.split_once(" = ").unwrap_or((line, ""));
        let number = || value.parse().unwrap();
        match command {
            "request_cpus" => job.request.cpus = number(),
            "request_memory" => job.request.memory_mib = number(),
            "request_gpus" => job.request.gpus = number(),
            "request_cogs" => job.request.extended = [("cogs".into(), number())].into(),
            "require_gpus" => job.gpus.require = Some(value.to_owned()),
            "gpus_minimum_capability" => job.gpus.minimum_capability = value.parse().ok(),
            "gpus_maximum_capability" => job.gpus.maximum_capability = value.parse().ok(),
            "gpus_minimum_memory" => job.gpus.minimum_memory_mib = value.parse().ok(),
            "gpus_minimum_runtime" => job.gpus.minimum_runtime = Some(value.to_owned()),
            _ => {
                let name = command.strip_prefix('+').unwrap_or_else(|| panic!("{line}"));
                job.attributes.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}

/// The ads of all slots, by the first part of their names.
fn ads(world: &World) -> BTreeMap<String, Ad> {
    let machine = &world.pool.machines()[&"n1".into()];
    let config = world.pool.startd(machine);
    let short = |name: &SlotName| name.to_string().split('@').next().unwrap().to_owned();
    let machine_slot = machine
        .slots()
        .filter(|slot| !slot.claimed)
        .map(|slot| (short(&slot.name(&"n1".into())), unclaimed_slot_ad(machine, slot, &config)));
    let claimed = world
        .pool
        .slots()
        .values()
        .map(|slot| (short(slot.name()), claimed_slot_ad(machine, &config, slot, None, &Env::at(0))));
    machine_slot.chain(claimed).collect()
}

/// Whether an attribute is compared: those about devices and consumption, and amounts of custom resources.
fn is_compared(name: &str) -> bool {
    let of_devices = [
        "Assigned",
        "Available",
        "GPUs",
        "Cogs",
        "TotalSlotGPUs",
        "TotalSlotCogs",
        "Consumption",
        "NumClaims",
    ];
    of_devices.iter().any(|start| name.starts_with(start))
        || ["Cpus", "TotalSlotCpus", "TotalGPUs", "TotalCogs"].contains(&name)
}

/// An attribute's expression, normalized. A nested ad is a value here and a constructor there.
fn written(name: &str, expr: &Expr) -> String {
    if name.starts_with("Available") || name.starts_with("Consumption") {
        return expr.to_string().to_ascii_lowercase().replace(' ', "");
    }
    expr.eval(Some(&Ad::new()), None, &Env::at(0)).to_string()
}

fn compare(name: &str) {
    let scene = scene(name);
    let world = play(&scene);
    let ours = ads(&world);
    let theirs = scene["slots"].as_object().unwrap();
    let names = |slots: Vec<&String>| slots.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(ours.keys().collect()), names(theirs.keys().collect()), "{name}");
    for (slot, theirs) in theirs {
        let theirs: BTreeMap<String, String> = theirs
            .as_object()
            .unwrap()
            .iter()
            .filter(|(attribute, _)| is_compared(attribute))
            .map(|(attribute, text)| {
                let expr = Expr::parse(text.as_str().unwrap()).unwrap();
                (attribute.clone(), written(attribute, &expr))
            })
            .collect();
        let ours: BTreeMap<String, String> = ours[slot]
            .iter()
            .filter(|(attribute, _)| is_compared(attribute.as_str()))
            .map(|(attribute, expr)| (attribute.as_str().to_owned(), written(attribute.as_str(), expr)))
            .collect();
        assert_eq!(ours, theirs, "{name}: {slot}");
    }
}

#[test]
fn slot_ads_show_devices_as_condor_startd_does() {
    for name in [
        "nobody is there",
        "all are alike",
        "jobs that require",
        "jobs that want at least",
        "one job gets all",
        "named cogs",
        "named cogs required",
        "counted cogs",
        "the manual's slot types",
        "static slots",
    ] {
        compare(name);
    }
}

#[test]
fn requirements_on_gpus_are_condor_submit_s() {
    for (text, theirs) in recorded()["submit"].as_object().unwrap() {
        let mut submission = Submission {
            name: "job".to_owned(),
            owner: "alice".to_owned(),
            count: 1,
            request: crate::pool::Request { cpus: 1, memory_mib: 1, disk_kib: 1, ..Default::default() },
            ..Submission::default()
        };
        // Commands that do not exist, and values that are no number, have no field here.
        let sayable = text.lines().all(|line| {
            let (command, value) = line.split_once(" = ").unwrap_or((line.trim_end_matches(" ="), ""));
            !["require_cogs", "requirements", "gpus_maximum_memory", "gpus_maximum_runtime"]
                .contains(&command)
                && !["+RequestGPUs", "+RequestCogs"].contains(&command)
                && !["x", "", "undefined"].contains(&value)
                && !value.ends_with('G')
        });
        if !sayable {
            continue;
        }
        describe(&mut submission, text);
        let ours = crate::schedd::submit(&submission);
        let asks = submission.request.gpus > 0 || !submission.request.extended.is_empty();
        let Some(theirs) = theirs.get("ad").filter(|_| asks || submission.gpus == GpuDemands::default())
        else {
            assert!(ours.is_err(), "{text}");
            continue;
        };
        let ad = ours.unwrap_or_else(|problems| panic!("{text}: {problems:?}")).ad.clone();
        let plain = |text: &str| text.replace(['(', ')', ' '], "").to_ascii_lowercase();
        for name in
            ["RequireGPUs", "GPUsMinCapability", "GPUsMaxCapability", "GPUsMinMemory", "GPUsMinRuntime"]
        {
            let said = |expr: &Expr| {
                if name == "RequireGPUs" { plain(&expr.to_string()) } else { written(name, expr) }
            };
            let ours = ad.get(name).map(said);
            assert_eq!(
                ours,
                theirs.get(name).map(|theirs| said(&Expr::parse(theirs.as_str().unwrap()).unwrap())),
                "{text}: {name}"
            );
        }
        let enough = |text: &str| {
            let asks =
                |clause: &&str| [">=requestgpus", ">=requestcogs"].iter().any(|end| clause.ends_with(end));
            plain(text).split("&&").find(asks).map(str::to_owned)
        };
        let requirements = theirs["Requirements"].as_str().unwrap();
        assert_eq!(enough(&ad.get("Requirements").unwrap().to_string()), enough(requirements), "{text}");
    }
}

#[test]
fn consumption_policies_carve_as_condor_startd_does() {
    for name in [
        "consumption",
        "consumption, two claims",
        "consumption of the policy",
        "consumption of fractions",
        "consumption of fractions of CPUs",
        "consumption of fractions of memory",
        "consumption of fractions of disk",
        "consumption of fractions of cogs",
        "consumption of half CPUs",
        "consumption of GPUs",
        "consumption without Cpus",
    ] {
        compare(name);
    }
}

#[test]
fn jobs_that_require_gpus_find_those_of_the_manual_s_slots() {
    let mut world = gpu_slots();
    for (name, require) in [
        ("newest", "Capability >= 8.5"),
        ("that-one", "Id == \"GPU-6a96bd13\""),
        ("middling", "Capability > 7.0 && Capability < 8.0"),
        ("newest-too", "Capability >= 8.5"),
        ("future", "Capability >= 9.0"),
    ] {
        world.submit(name, "alice", 1, |job| {
            (job.request.gpus, job.request.memory_mib) = (1, 10);
            job.gpus.require = Some(require.to_owned());
        });
    }
    world.pass(120);
    let holders: Vec<String> = world
        .slots
        .iter()
        .map(|(slot, (held, claim))| {
            format!("{slot} {} {}", claim.last.job.name, held.devices_of("nvidia.com/gpu").join(","))
        })
        .collect();
    assert_eq!(
        holders,
        ["slot1_1@n1 newest GPU-3", "slot2@n1 that-one GPU-6a96bd13", "slot3@n1 middling GPU-1"],
        "GPU-3 is taken, and no slot has one of Capability 9.0"
    );
    let why = world.log.iter().find(|line| line.starts_with("RequirementsNotMet")).unwrap();
    let expected = "has as its best GPU a GPU with Capability 8.6, and does not meet Capability >= 9.0";
    assert!(why.contains(expected), "{why}");
    // 7200 s later the two other jobs have ended, too.
    world.pass(7200);
    let next = SlotName::parse("slot1_1@n1").unwrap();
    assert_eq!(&*world.slots[&next].1.last.job.name, "newest-too");
    assert_eq!(world.slots[&next].0.devices_of("nvidia.com/gpu").join(","), "GPU-3");
}

#[test]
fn devices_return_when_their_slot_goes_and_are_known_to_the_next_operator() {
    let scene = scene("nobody is there");
    let mut world = play(&scene);
    world.fate = |name| (if name.starts_with("short") { 60 } else { 100_000 }, 0);
    world.submit("short", "alice", 1, |job| {
        describe(job, "request_gpus = 1\nrequire_gpus = Capability > 8.5");
    });
    world.submit("long", "alice", 1, |job| {
        describe(job, "request_gpus = 1\nrequire_gpus = Capability >= 8.0");
    });
    world
        .submit("waits", "bob", 1, |job| describe(job, "request_gpus = 1\nrequire_gpus = Capability >= 8.5"));
    world.pass(30);
    let assigned = |world: &World| -> Vec<String> {
        let ads = ads(world);
        let shown = ["slot1_1", "slot1_2"]
            .map(|slot| ads.get(slot).map(|ad| ad.eval_attr("AssignedGPUs", None, &Env::at(0)).to_string()));
        shown.into_iter().flatten().collect()
    };
    assert_eq!(assigned(&world), ["\"GPU-c\"", "\"GPU-6a96bd13\""]);
    world.restart();
    let devices = scene["gpus"].as_array().unwrap().iter().map(device).collect();
    world.pool.apply(Event::Report(ReportFacts { devices, ..ReportFacts::of("n1".into()) }), world.now);
    world.settle();
    assert_eq!(assigned(&world), ["\"GPU-c\"", "\"GPU-6a96bd13\""]);
    assert!(!world.pods.contains_key("waits-0"), "no free GPU is what it requires");
    world.pass(1500);
    assert!(world.pods.contains_key("waits-0"), "{:?}", world.log);
    assert_eq!(assigned(&world), ["\"GPU-c\"", "\"GPU-6a96bd13\""]);
}

/// The kubelet chooses a pod's devices. The operator learns which by the agent's report.
#[test]
fn a_slots_ad_has_the_devices_that_its_pod_has_found() {
    let gpu = || -> ResourceName { "nvidia.com/gpu".into() };
    let alike = r#"[["GPU-0", {"Capability": 80}], ["GPU-1", {"Capability": 80}]]"#;
    let mixed = r#"[["GPU-0", {"Capability": 80}], ["GPU-1", {"Capability": 90}]]"#;
    let cases = [
        ("the other one", mixed, &["GPU-1"][..], "GPU-1", "90"),
        ("the same", mixed, &["GPU-0"], "GPU-0", "80"),
        ("both", mixed, &["GPU-1", "GPU-0"], "GPU-1,GPU-0", "undefined"),
        ("one that nobody has reported", mixed, &["MIG-7"], "MIG-7", "undefined"),
        ("one of which the labels say no more than of the others", alike, &["GPU-6a96"], "GPU-6a96", "80"),
        ("the kubelet does not tell", mixed, &[], "GPU-0", "80"),
    ];
    for (what, gpus, found, assigned, capability) in cases {
        let scene = serde_json::json!({"config": "", "jobs": ["request_gpus = 1"],
            "gpus": serde_json::from_str::<Json>(gpus).unwrap()});
        let mut world = play(&scene);
        let pod = world.pool.slots().values().next().unwrap().active().unwrap().pod.uid.clone();
        let ids: Vec<DeviceId> = found.iter().map(|id| DeviceId::from(*id)).collect();
        let pod_devices =
            [(pod, [(gpu(), ids)].into_iter().filter(|(_, ids)| !ids.is_empty()).collect())].into();
        let devices = scene["gpus"].as_array().unwrap().iter().map(device).collect();
        let facts = ReportFacts { pod_devices, devices, ..ReportFacts::of("n1".into()) };
        world.pool.apply(Event::Report(facts.clone()), world.now);
        world.settle();
        let says =
            |world: &World, name: &str| ads(world)["slot1_1"].eval_attr(name, None, &Env::at(0)).to_string();
        assert_eq!(says(&world, "AssignedGPUs"), format!("\"{assigned}\""), "{what}");
        assert_eq!(says(&world, "GPUs_Capability"), capability, "{what}");
        assert_eq!(says(&world, "GPUs"), "1", "{what}: what the slot has is what it was given");
        world.pool.apply(Event::Report(ReportFacts { working: false, ..facts }), world.now);
        world.settle();
        assert_ne!(
            says(&world, "AssignedGPUs"),
            "\"GPU-1\"",
            "{what}: an agent that cannot work tells nothing"
        );
    }
}

/// Nothing describes the node's GPUs: the operator hands out a number of them, and learns which from the kubelet.
#[test]
fn devices_that_were_only_counted_are_known_once_a_pod_has_them() {
    let mut world = play(&serde_json::json!({"config": "", "jobs": [], "gpus": []}));
    world.node("n1", 8, 2);
    world.submit("one", "alice", 1, |job| describe(job, "request_gpus = 1"));
    world.submit("none", "alice", 1, |_| {});
    world.pass(120);
    let pod = |name: &str| world.pods[name].facts.pod.uid.clone();
    let gpu = || [(ResourceName::from("nvidia.com/gpu"), vec![DeviceId::from("GPU-7")])].into();
    let pod_devices = [(pod("one-0"), gpu()), (pod("none-0"), gpu())].into();
    world.pool.apply(Event::Report(ReportFacts { pod_devices, ..ReportFacts::of("n1".into()) }), world.now);
    world.settle();
    let shown: Vec<String> = ads(&world)
        .into_iter()
        .filter_map(|(slot, ad)| Some(format!("{slot}: {}", ad.get("AssignedGPUs")?)))
        .collect();
    assert_eq!(shown, ["slot1_1: \"GPU-7\""], "a slot without GPUs has none");
}

/// Something that happens to a machine with GPUs.
#[derive(Clone, Debug)]
enum Happening {
    /// A job comes that requests so many GPUs, of a capability.
    Submit(i64, &'static str),
    /// The agent reports the GPUs whose bit is set.
    Report(u8),
    /// Pods outside the pool hold so many GPUs.
    Foreign(i64),
    /// Another operator takes over.
    Restart,
    /// Time passes, in seconds.
    Pass(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let require = prop_oneof![
        Just("true"),
        Just("Capability >= 8.0"),
        Just("Capability < 8.0"),
        Just("Id == \"GPU-2\"")
    ];
    prop_oneof![
        4 => (1_i64..3, require).prop_map(|(gpus, require)| Happening::Submit(gpus, require)),
        1 => any::<u8>().prop_map(Happening::Report),
        1 => (0_i64..3).prop_map(Happening::Foreign),
        1 => Just(Happening::Restart),
        3 => (1_u64..60).prop_map(Happening::Pass),
    ]
}

const LAYOUTS: [&str; 3] = [
    "",
    "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1_PARTITIONABLE = True\nSLOT_TYPE_1 = 50%, GPUs=3\n\
     NUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2_PARTITIONABLE = True\nSLOT_TYPE_2 = 50%, GPUs=auto\n",
    "NUM_SLOTS_TYPE_1 = 3\nSLOT_TYPE_1 = 10%, GPUs=1\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2_PARTITIONABLE = True\n\
     SLOT_TYPE_2 @=slot\n  GPUs = 2 : Capability >= 8.0\n  60%\n@slot\nCONSUMPTION_POLICY = True\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The world checks after each decision that claims hold the resources that were carved, and that no device is held twice.
    #[test]
    fn no_device_is_ever_given_twice(
        layout in 0..LAYOUTS.len(),
        happenings in proptest::collection::vec(happening(), 1..24),
    ) {
        const GPUS: i64 = 6;
        let devices = |mask: u8| -> Vec<Device> {
            let reported = (0..GPUS).filter(|n| mask & (1 << n) != 0);
            let device = |n: i64| device(&serde_json::json!([format!("GPU-{n}"), {"Capability": if n % 2 == 0 { 8.0 } else { 7.0 }}]));
            reported.map(device).collect()
        };
        let mut world = pool(LAYOUTS[layout], Zone::default(), Time::from_secs(1_800_000_000));
        world.fate = |name| (name.bytes().map(u64::from).sum::<u64>() % 50 + 5, 0);
        world.node("n1", 16, GPUS);
        let mut mask = 0b11_1111;
        for (happening, n) in happenings.iter().zip(0..) {
            match happening {
                Happening::Submit(gpus, require) => world.submit(&format!("job{n}"), "alice", 2, |job| {
                    job.request.gpus = *gpus;
                    job.gpus.require = Some((*require).to_owned());
                }),
                Happening::Report(seen) => mask = *seen,
                Happening::Foreign(gpus) => {
                    let requests = Capacity {
                        extended: [("nvidia.com/gpu".into(), *gpus)].into(),
                        ..Capacity::default()
                    };
                    let pod = Event::ForeignPod { pod: "other".into(), machine: "n1".into(), requests };
                    world.pool.apply(pod, world.now);
                }
                Happening::Restart => world.restart(),
                Happening::Pass(seconds) => world.pass(*seconds),
            }
            let report = ReportFacts { devices: devices(mask), ..ReportFacts::of("n1".into()) };
            world.pool.apply(Event::Report(report), world.now);
            world.settle();
        }
    }
}
