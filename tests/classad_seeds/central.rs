//! Central Managers: attributes of a cycle, limits, metrics.

use slotwright::classad::{Ad, Env, Value};

use crate::support::{NOW, value};

#[test]
fn ephemeral_attributes_may_be_undefined() {
    // Chapter 2, "Ephemeral Attributes".
    assert_eq!(value("(RemoteUserPrio =?= UNDEFINED)", "", ""), Value::Bool(true));
    assert_eq!(value("(RemoteUserPrio =?= UNDEFINED)", "RemoteUserPrio = 0.5", ""), Value::Bool(false));
}

#[test]
fn concurrency_limits_of_the_matched_machine() {
    let machine = "NETWORK = \"NETWORK_A\"";
    assert_eq!(value("TARGET.NETWORK", "", machine), Value::from("NETWORK_A"));
    assert_eq!(value("strcat(\"SWX:2 \", TARGET.NETWORK)", "", machine), Value::from("SWX:2 NETWORK_A"));
}

#[test]
fn monitoring_a_metric_in_the_new_syntax() {
    let metric = Ad::parse_new(
        r#"
        [
          Name   = "JobsSubmitted";
          Desc   = "Number of jobs submitted";
          Units  = "jobs";
          TargetType = "Scheduler";
        ]"#,
    )
    .unwrap();
    assert_eq!(metric.len(), 4);
    assert_eq!(metric.eval_attr("desc", None, &Env::at(NOW)), Value::from("Number of jobs submitted"));
}
