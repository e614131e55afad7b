//! How admins set policies, configure negotiators, and drain nodes.

use serde_json::json;

use super::super::layouts::{LAYOUTS, UNFIT};
use super::super::plan::{BACKFILL, What};
use super::super::store::Key;
use super::super::world::World;
use super::node;

/// Configurations of negotiators that preempt.
const NEGOTIATING: [&str; 5] = [
    "PREEMPTION_REQUIREMENTS = True\nNEGOTIATOR_CONSIDER_EARLY_PREEMPTION = True",
    "PREEMPTION_REQUIREMENTS = RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2",
    "PREEMPTION_REQUIREMENTS = True\nPREEMPTION_RANK = -TotalJobRunTime\nALLOW_PSLOT_PREEMPTION = True",
    "NEGOTIATOR_CONSIDER_PREEMPTION = False",
    "PREEMPTION_REQUIREMENTS = MY.RemoteOwner == \"alice\"\nNEGOTIATOR_PRE_JOB_RANK = isUndefined(RemoteOwner)",
];

/// The slots of two negotiators, as constraints.
const DIVISIONS: [[&str; 2]; 4] = [
    ["Machine == \"n0\"", "Machine != \"n0\""],
    ["True", "Machine == \"n0\""],
    ["Cpus > 2", "True"],
    ["NoSuchThing", "Machine =!= \"n1\""],
];

/// Policies about jobs on a machine whose owner comes back.
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

/// Policies about backfill work.
const BACKFILL_POLICIES: [&str; 3] = [
    "START_BACKFILL = True",
    "START_BACKFILL = time() - EnteredCurrentState > 3\nEVICT_BACKFILL = KeyboardIdle < 5\nKILLING_TIMEOUT = 5",
    "START_BACKFILL = State == \"Unclaimed\"\nEVICT_BACKFILL = ClockMin % 2 == 1\nIS_OWNER = KeyboardIdle < 5\nMATCH_TIMEOUT = 20",
];

/// Lets this happen, if it belongs to this file. Returns whether it does.
pub(super) fn perform(world: &mut World, what: &What) -> bool {
    match what {
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
        What::PolicyGone(n) => world.delete(&Key::new("nodepolicies", "", &format!("policy{n}")), None),
        What::Drain(n, on, how) => {
            let schedule = ["Graceful", "Quick", "Fast"][usize::from(how % 3)];
            let completion = ["Stay", "Resume"][usize::from(how / 3 % 2)];
            let mut spec = json!({"node": node(*on), "schedule": schedule, "onCompletion": completion});
            match how / 6 {
                1 => spec["start"] = json!("TARGET.RequestCpus < 2"),
                2 => spec["check"] = json!("State == \"Unclaimed\""),
                _ => {}
            }
            world.put(drain_key(*n), json!({"metadata": {}, "spec": spec}));
        }
        What::DrainGone(n) => world.delete(&drain_key(*n), None),
        _ => return false,
    }
    true
}

fn drain_key(n: u8) -> Key {
    Key::new("drainrequests", "", &format!("drain{}", n % 3))
}

/// Gives the default negotiator this configuration.
pub(super) fn negotiate(world: &mut World, config: &str) {
    negotiate_as(world, "default", config);
}

/// Gives a negotiator this configuration.
fn negotiate_as(world: &mut World, name: &str, config: &str) {
    let spec = json!({"config": config, "cycleDelaySeconds": 5});
    world.put(Key::new("negotiators", "", name), json!({"metadata": {}, "spec": spec}));
}

/// Each machine whose node goes is absent for a while.
const MISSED: &str =
    "ABSENT_REQUIREMENTS = True\nABSENT_EXPIRE_ADS_AFTER = 60\nEXPIRE_INVALIDATED_ADS = True\n";

pub(super) fn policy(world: &mut World, name: &str, n: u8, how: u8, layout: u8) {
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
            // If backfill work ends by itself, only the operator starts it again.
            let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "boinc"}]});
            spec["backfill"] = json!({"namespace": "fill", "template": {"spec": pod}});
        }
        how => config.push_str(OWNERS_POLICIES[usize::from(how - 5) % OWNERS_POLICIES.len()]),
    }
    // If a node of policy 1 goes, its machine is listed as absent for a while.
    if n == 1 {
        config.push_str(MISSED);
    }
    if !config.is_empty() {
        spec["config"] = json!(config);
    }
    world.put(Key::new("nodepolicies", "", name), json!({"metadata": {}, "spec": spec}));
}
