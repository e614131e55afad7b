//! Samples of monitors, and what they come to for each pod.

use serde_json::json;

use super::*;

fn pod(uid: &str, slot: &str) -> Pod {
    let meta = json!({"namespace": "lab", "name": uid, "uid": uid, "labels": {"slotwright.dev/job-uid": "j"},
        "annotations": {"slotwright.dev/slot": slot}});
    Pod::read(&serde_json::from_value(meta).unwrap()).unwrap()
}

fn gpu(uid: &str, ids: &[&str]) -> PodDevices {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    PodDevices { uid: uid.to_owned(), resource: "nvidia.com/gpu".to_owned(), ids }
}

fn job(metrics: &[&str]) -> NodeCronJob {
    let metrics = metrics.iter().map(|metric| (*metric).to_owned()).collect();
    NodeCronJob { name: "GPUs_MONITOR".to_owned(), metrics, ..NodeCronJob::default() }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A monitor's ad about one GPU.
fn of_gpu(id: &str, seconds: f64, memory: u32) -> BTreeMap<String, String> {
    [
        ("SlotMergeConstraint", format!("StringListMember(\"{id}\", AssignedGPUs)")),
        ("UptimeGPUsSeconds", format!("{seconds:?}")),
        ("UptimeGPUsMemoryPeakUsage", memory.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn told(monitors: &mut Monitors, id: &str, seconds: f64, memory: u32, now: u64) -> BTreeMap<String, String> {
    let mut attributes = of_gpu(id, seconds, memory);
    let tag = id.to_owned();
    monitors.told(&job(&["SUM:GPUs", "PEAK:GPUsMemory"]), Some(&tag), &mut attributes, at(now));
    attributes
}

fn metrics<const N: usize>(of: [(&str, f64); N]) -> BTreeMap<String, f64> {
    of.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Two pods share three GPUs. A monitor writes every ten seconds how many seconds each GPU was busy since its last sample, and the
/// memory in use.
#[test]
fn each_pod_is_told_what_its_devices_did_while_it_ran() {
    let mut monitors = Monitors::default();
    let (one, two) = (pod("one", "slot1_1@n"), pod("two", "slot1_2@n"));
    let devices = [gpu("one", &["GPU-a"]), gpu("two", &["GPU-b", "GPU-c"])];
    let rest = told(&mut monitors, "GPU-a", 10.0, 900, 10);
    assert_eq!(
        rest.keys().collect::<Vec<_>>(),
        ["SlotMergeConstraint"],
        "samples are no attributes of slots"
    );
    monitors.follow([&one, &two].into_iter(), &devices);
    assert_eq!(monitors.of_pod("one"), metrics([]), "its devices have told nothing since it began");
    for (id, seconds, memory) in [("GPU-a", 4.0, 100), ("GPU-b", 0.0, 10), ("GPU-c", 0.0, 20)] {
        told(&mut monitors, id, seconds, memory, 20);
    }
    assert_eq!(
        monitors.of_pod("one"),
        metrics([
            ("DeviceGPUsAverageUsage", 0.7),
            ("DeviceGPUsMemoryPeakUsage", 900.0),
            ("GPUsMemoryUsage", 100.0)
        ]),
        "an average needs two samples, since nobody knows when between two samples the pod began"
    );
    for (id, seconds, memory) in [("GPU-a", 5.0, 300), ("GPU-b", 10.0, 40), ("GPU-c", 2.5, 30)] {
        told(&mut monitors, id, seconds, memory, 30);
    }
    told(&mut monitors, "GPU-a", 10.0, 200, 40);
    assert_eq!(
        monitors.of_pod("one"),
        metrics([
            ("DeviceGPUsAverageUsage", 0.725),
            ("DeviceGPUsMemoryPeakUsage", 900.0),
            ("GPUsAverageUsage", 0.75),
            ("GPUsMemoryUsage", 300.0),
        ])
    );
    assert_eq!(
        monitors.of_pod("two"),
        metrics([
            ("DeviceGPUsAverageUsage", 0.417),
            ("DeviceGPUsMemoryPeakUsage", 40.0),
            ("GPUsAverageUsage", 1.25),
            ("GPUsMemoryUsage", 40.0),
        ]),
        "the use of two GPUs is added up, and the greater peak counts"
    );
    // The next pod on the GPU begins anew, and the usage of the first pod is forgotten with that pod.
    let three = pod("three", "slot1_1@n");
    monitors.follow([&three].into_iter(), &[gpu("three", &["GPU-a"])]);
    told(&mut monitors, "GPU-a", 1.0, 50, 50);
    told(&mut monitors, "GPU-a", 1.0, 60, 60);
    assert_eq!(monitors.of_pod("one"), metrics([]));
    let third = monitors.of_pod("three");
    assert_eq!((third["GPUsAverageUsage"], third["GPUsMemoryUsage"]), (0.1, 60.0));
}

#[test]
fn an_ad_is_for_the_slots_that_it_names() {
    let cases = [
        ("all slots", "", vec![], true),
        ("the slot's number", "SlotId = 1", vec![], true),
        ("another number", "SlotId = 2", vec![], false),
        ("the slot's name", "SlotName = \"slot1_1@\"", vec![], true),
        ("another name", "SlotName = \"slot1_2@\"", vec![], false),
        ("a constraint that is true", "SlotMergeConstraint = TARGET.SlotID == 1", vec![], true),
        ("a constraint that is undefined", "SlotMergeConstraint = Nothing", vec![], false),
        ("the first that is there decides", "SlotMergeConstraint = false\nSlotId = 1", vec![], false),
        ("a type, which the agent does not know", "SlotTypeId = 1", vec![], false),
        ("the job's slots", "", vec![1], true),
        ("other slots of the job", "", vec![2], false),
    ];
    for (case, address, slots, expected) in cases {
        let mut monitors = Monitors::default();
        monitors.follow([&pod("one", "slot1_1@n")].into_iter(), &[]);
        let job = NodeCronJob { slots, ..job(&["PEAK:X"]) };
        let lines = address.lines().filter_map(|line| line.split_once(" = "));
        let mut attributes: BTreeMap<String, String> =
            lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        attributes.insert("uptimexpeakusage".to_owned(), "7".to_owned());
        monitors.told(&job, None, &mut attributes, at(5));
        assert_eq!(monitors.of_pod("one").contains_key("XUsage"), expected, "{case}");
    }
}

#[test]
fn a_sample_that_is_no_amount_is_none() {
    for (text, expected) in
        [("1 + 1", true), ("\"7\"", false), ("-1", false), ("real(\"INF\")", false), ("(", false)]
    {
        let mut monitors = Monitors::default();
        monitors.follow([&pod("one", "slot1_1@n")].into_iter(), &[]);
        let mut attributes = [("UptimeXPeakUsage".to_owned(), text.to_owned())].into();
        monitors.told(&job(&["PEAK:X"]), None, &mut attributes, at(5));
        assert_eq!(monitors.of_pod("one").contains_key("XUsage"), expected, "{text}");
        assert!(attributes.is_empty(), "a sample is never an attribute of slots");
    }
}

#[test]
fn a_job_that_is_a_monitor_no_longer_is_forgotten() {
    let mut monitors = Monitors::default();
    monitors.follow([&pod("one", "slot1_1@n")].into_iter(), &[gpu("one", &["GPU-a"])]);
    told(&mut monitors, "GPU-a", 1.0, 50, 10);
    monitors.keep(&[job(&["PEAK:GPUsMemory"])]);
    assert!(!monitors.of_pod("one").is_empty());
    monitors.keep(&[job(&[])]);
    assert_eq!(monitors.of_pod("one"), metrics([]));
}
