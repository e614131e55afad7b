//! Into which slots' ads output goes, and what it cannot set.

use super::super::unclaimed_slot_ad;
use super::*;
use crate::kit;
use crate::pool::{Capacity, MachineSlot, ReportFacts, Share, SlotConfig, SlotKind, Time};

fn attributes(text: &str) -> Vec<(Arc<str>, Expr)> {
    let of = |line: &str| {
        let (name, expr) = line.split_once('=').unwrap();
        (Arc::from(name.trim()), Expr::parse(expr.trim()).unwrap())
    };
    text.split(';').map(str::trim).filter(|line| !line.is_empty()).map(of).collect()
}

fn output(slots: &[u32], text: &str) -> SlotOutput {
    SlotOutput { slots: slots.to_vec(), attributes: attributes(text) }
}

/// A machine of three slots: two of type 1, and one of type 2.
fn machine(all: &str, some: Vec<SlotOutput>) -> Machine {
    let mut machine = Machine::new(kit::machine("n1", 6, 6), Capacity::default(), Time::from_secs(0));
    let whole = machine.total.clone();
    let share = |slot_type: u32| Share { slot_type, kind: SlotKind::Static, resources: whole.clone() };
    machine.lay_out([1, 1, 2].map(share).into(), Time::from_secs(0));
    machine.report = Some(Arc::new(ReportFacts {
        attributes: attributes(all),
        slot_ads: some,
        ..ReportFacts::of("n1".into())
    }));
    machine
}

/// The value of an attribute in each of the three slots' ads.
fn values(machine: &Machine, config: &StartdConfig, name: &str) -> [String; 3] {
    [1, 2, 3].map(|id| {
        let slot: &MachineSlot = &machine.machine_slots[&id];
        unclaimed_slot_ad(machine, slot, config).eval_attr(name, None, &Env::at(0)).to_string()
    })
}

/// "These attributes are, in order of highest to lower priority (in other words, if SlotMergeConstraint matches, the other
/// attributes are not considered, and so on)".
#[test]
fn output_goes_into_the_slots_that_the_manual_says() {
    let config = StartdConfig::default();
    let none = "undefined";
    for (slots, text, expected) in [
        (&[][..], "V=1", ["1", "1", "1"]),
        (&[], "V=1; SlotId=2", [none, "1", none]),
        (&[], "V=1; SlotTypeId=1", ["1", "1", none]),
        (&[], "V=1; SlotName=\"slot3\"", [none, none, "1"]),
        (&[], "V=1; Name=\"slot1@n\"", ["1", none, none]),
        (&[], "V=1; SlotMergeConstraint=TARGET.SlotID > 1", [none, "1", "1"]),
        (&[], "V=1; SlotMergeConstraint=SlotTypeID == 2", [none, none, "1"]),
        (&[], "V=1; SlotMergeConstraint=NoSuch", [none, none, none]),
        (&[], "V=1; SlotMergeConstraint=true; SlotId=2", ["1", "1", "1"]),
        (&[], "V=1; SlotName=\"slot1\"; SlotTypeId=2", ["1", none, none]),
        (&[], "V=1; SlotTypeId=2; SlotId=1", [none, none, "1"]),
        (&[1, 3], "V=1", ["1", none, "1"]),
        (&[1, 3], "V=1; SlotId=2", [none, none, none]),
    ] {
        let machine = machine("", vec![output(slots, text)]);
        assert_eq!(values(&machine, &config, "V"), expected, "{slots:?} {text}");
        for address in ["SlotMergeConstraint", "SlotName"] {
            assert_eq!(values(&machine, &config, address), [none; 3], "{text}: an address is no attribute");
        }
    }
}

/// "It will set Value=10 for all slots except slot1 and slot2."
#[test]
fn what_is_said_of_a_slot_replaces_what_is_said_of_all() {
    let some = vec![output(&[], "Value=1; SlotId=1"), output(&[], "Value=2; SlotId=2")];
    let machine = machine("Value=10", some);
    assert_eq!(values(&machine, &StartdConfig::default(), "Value"), ["1", "2", "10"]);
}

#[test]
fn a_default_of_startd_attrs_may_be_replaced() {
    let defaults = ["Ok", "Hot", "Own"].map(|name| (name.to_owned(), Expr::literal("default")));
    let config: StartdConfig = SlotConfig { attributes: defaults.to_vec(), ..SlotConfig::default() }.into();
    let machine = machine("ok=true", vec![output(&[2], "Hot=true; HOT=false")]);
    assert_eq!(values(&machine, &config, "Ok"), ["true"; 3]);
    assert_eq!(values(&machine, &config, "Hot"), ["\"default\"", "false", "\"default\""]);
    assert_eq!(values(&machine, &config, "Own"), ["\"default\""; 3]);
}

#[test]
fn what_slots_have_by_themselves_cannot_be_set() {
    let plain = machine("", Vec::new());
    let config = StartdConfig::default();
    let has = unclaimed_slot_ad(&plain, &plain.machine_slots[&1], &config);
    // Everything in the ad now, and what is there at other times.
    let names = has.iter().map(|(name, _)| name.to_string());
    let others =
        ["RemoteUser", "MemoryUsage", "Draining", "KeyboardIdle", "PreemptingOwner", "jobid", "SlotId"];
    for name in names.chain(others.map(str::to_owned)) {
        let text = format!("{name} = \"forged\"");
        for machine in
            [machine(&text, Vec::new()), machine("", vec![output(&[], &text), output(&[1], &text)])]
        {
            let ad = unclaimed_slot_ad(&machine, &machine.machine_slots[&1], &config);
            let (now, before) =
                (ad.get(&name).map(ToString::to_string), has.get(&name).map(ToString::to_string));
            assert_eq!(now, before, "{name}");
        }
    }
}

/// HTCondor 25: a slot with a SlotBrokenReason that is not empty is broken.
#[test]
fn a_broken_slot_takes_no_jobs() {
    let config = StartdConfig::default();
    let job = Ad::parse_new("[RequestCpus = 1; RequestMemory = 1; RequestDisk = 1]").unwrap();
    for (all, some, expected) in [
        ("", "", [None; 3]),
        ("SlotBrokenReason=\"hot\"", "", [Some((0, "hot")); 3]),
        ("SlotBrokenReason=\"hot\"; SlotBrokenCode=79", "", [Some((79, "hot")); 3]),
        ("SlotBrokenReason=\"\"", "", [None; 3]),
        ("SlotBrokenReason=undefined; SlotBrokenCode=1", "", [None; 3]),
        ("SlotBrokenReason=ifThenElse(SlotID == 2, \"hot\", \"\")", "", [None, Some((0, "hot")), None]),
        ("", "SlotBrokenReason=\"hot\"; SlotId=3", [None, None, Some((0, "hot"))]),
        (
            "SlotBrokenReason=\"hot\"",
            "SlotBrokenReason=\"\"; SlotId=3",
            [Some((0, "hot")), Some((0, "hot")), None],
        ),
    ] {
        let machine = machine(all, vec![output(&[], some)]);
        for (id, expected) in (1..).zip(expected) {
            let slot = &machine.machine_slots[&id];
            let found = broken(&machine, slot, &config).map(|found| (found.code, found.reason));
            assert_eq!(found, expected.map(|(code, why)| (code, why.to_owned())), "{all} / {some}: slot{id}");
            let takes =
                unclaimed_slot_ad(&machine, slot, &config).eval_attr("Requirements", Some(&job), &Env::at(0));
            assert_eq!(takes.as_bool_equiv(), Some(expected.is_none()), "{all} / {some}: slot{id}");
        }
    }
}
