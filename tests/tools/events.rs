//! The events that we write, beside those of logs that HTCondor 25.14.1 wrote (`hack/oracle/events.py`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use tools::events::{Event, Exit, Found, Kind, Log, Run, Standing};

#[derive(Deserialize)]
struct Case {
    log: String,
}

fn recorded() -> BTreeMap<String, Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/events.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the recorded logs")).expect("JSON")
}

/// Whether a line is only in HTCondor's logs or only in ours: measurements of the starter, the slot's resources, the person who
/// asked, the number of the run.
fn is_of_one_side(line: &str) -> bool {
    let line = line.trim_start();
    let resources = ["Partitionable Resources", "Cpus ", "Disk ", "Memory ", "TimeExecute", "TimeSlotBusy"];
    let others = ["CondorScratchDir", "NumShadowStarts"];
    resources.iter().chain(&others).any(|start| line.starts_with(start))
}

fn exit(lines: &[&str]) -> Option<Exit> {
    let number = |line: &str| line.rsplit(' ').next()?.trim_end_matches(')').parse().ok();
    lines.iter().find_map(|line| match line.trim().get(..5)? {
        "(1) N" => number(line).map(Exit::Code),
        "(0) A" => number(line).map(Exit::Signal),
        _ => None,
    })
}

/// The event that HTCondor's text tells; `None` for an event that we do not write.
fn read(found: &Found<'_>) -> Option<Event> {
    let lines = &found.lines;
    let texts = |from: usize| lines.get(from..).unwrap_or_default().iter().map(|line| line.trim().to_owned());
    let codes = |text: &str| {
        let mut numbers = text.split(' ').filter_map(|word| word.parse().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    let reason = || {
        let tool = lines.iter().map(|line| line.trim());
        tool.clone()
            .find_map(|line| line.strip_prefix("Reason: "))
            .map(str::to_owned)
            .or_else(|| tool.clone().find(|line| line.starts_with("The job attribute")).map(str::to_owned))
    };
    let kind = match found.number {
        0 => Kind::Submitted { host: found.behind("from host: ")?.into(), notes: texts(0).collect() },
        1 => Kind::Executing(Run {
            number: 1,
            started: 0,
            host: found.behind("on host: ")?.into(),
            slot: lines.first().and_then(|line| line.split_once(": ")).map(|(_, slot)| slot.into()),
        }),
        4 => {
            let (code, subcode) = codes(found.behind("Code").unwrap_or_default());
            Kind::Evicted { reason: reason(), code, subcode, requeued: exit(lines) }
        }
        5 => Kind::Terminated(exit(lines)?),
        9 => Kind::Aborted(texts(0).next()),
        12 => {
            let (code, subcode) = codes(texts(1).next()?.as_str());
            Kind::Held { reason: texts(0).next()?, code, subcode }
        }
        13 => Kind::Released,
        _ => return None,
    };
    let time: String = found.head.split(' ').skip(2).take(2).collect::<Vec<_>>().join(" ");
    let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", &time).unwrap().to_zoned(TimeZone::UTC).unwrap();
    Some(Event { id: found.id, time: time.timestamp().as_second(), kind })
}

#[test]
fn our_events_are_written_as_htcondor_writes_them() {
    let mut seen = BTreeSet::new();
    for (name, case) in recorded() {
        for found in Found::all(&case.log) {
            let Some(event) = read(&found) else { continue };
            seen.insert(found.number);
            let theirs = found.lines.iter().copied().filter(|line| !is_of_one_side(line));
            // The reason of a release is that of the tool.
            let theirs = theirs.take(if found.number == 13 { 0 } else { usize::MAX });
            let theirs: Vec<&str> = std::iter::once(found.head).chain(theirs).chain(["..."]).collect();
            let text = event.text(&TimeZone::UTC);
            let ours: Vec<&str> = text.lines().filter(|line| !is_of_one_side(line)).collect();
            let trimmed = |lines: Vec<&str>| {
                lines.into_iter().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(trimmed(ours), trimmed(theirs), "{name}");
        }
    }
    assert_eq!(seen, BTreeSet::from([0, 1, 4, 5, 9, 12, 13]), "the recording has each event");
}

#[test]
fn logs_of_htcondor_are_read() {
    for (name, case) in recorded() {
        let procs = Log::read(&case.log);
        let log = procs.values().next().expect("a proc");
        let removed = name.contains("removed") || name.contains("on_exit_hold");
        let expected = if removed { Standing::Aborted } else { Standing::Terminated };
        assert_eq!((procs.len(), log.standing), (1, expected), "{name}");
        let runs = ["is held while", "is vacated", "runs again"].iter().any(|start| name.starts_with(start));
        let idle = name.starts_with("is held idle");
        assert_eq!(log.run, if idle { 0 } else { 1 + u32::from(runs) }, "{name}");
    }
}
