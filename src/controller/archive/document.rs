//! An ad as a JSON document, as condor_adstash makes one.

use classad::{Ad, Env, Expr, Value as Found};
use serde_json::{Map, Value, json};

/// The most bytes of a text in a document, as of condor_adstash. A longer text is cut.
const LONGEST: usize = 256;
/// The end of a text that was cut.
const CUT: &str = "...";

/// The id and the document of an ad. The id is the same for the same end, so that a document that is shipped twice is in the index
/// once. The document has the ad's attributes, `RecordTime`, `ScheddName`, `StartdSlot`, `StartdName`, `Status` and `Universe`.
pub(super) fn of(ad: &Ad, now: i64) -> (String, Value) {
    let env = Env::at(now);
    let number = |name: &str| ad.eval_attr(name, None, &env).as_int();
    let text = |name: &str| ad.eval_attr(name, None, &env).as_str().map(str::to_owned);
    let time = |name: &str| number(name).filter(|time| *time > 0);
    let recorded = time("CompletionDate").or_else(|| time("EnteredCurrentStatus")).unwrap_or(0);
    let job = text("GlobalJobId").unwrap_or_default();
    let host = text("LastRemoteHost").unwrap_or_else(|| "UNKNOWN@UNKNOWN".to_owned());
    let (slot, machine) = host.split_once('@').unwrap_or((&host, &host));
    let mut document = Map::new();
    for (name, expr) in ad {
        let (name, value) = field(name.as_str(), expr, ad, &env);
        document.insert(name, value);
    }
    document.retain(|name, value| !(name.ends_with("Date") && *value == 0));
    document.insert("RecordTime".to_owned(), json!(recorded));
    document.insert("ScheddName".to_owned(), json!(job.split('#').next().unwrap_or_default()));
    document.insert("StartdSlot".to_owned(), json!(slot));
    document.insert("StartdName".to_owned(), json!(machine));
    document.insert("Status".to_owned(), json!(status(number("JobStatus"))));
    document.insert("Universe".to_owned(), json!(universe(number("JobUniverse"))));
    (format!("{job}#{recorded}"), Value::Object(document))
}

/// The field of an attribute: its value, or, as `NAME_EXPR`, the expression if that has no value.
fn field(name: &str, expr: &Expr, ad: &Ad, env: &Env) -> (String, Value) {
    let value = match expr.eval(Some(ad), None, env) {
        Found::Bool(truth) => json!(truth),
        Found::Int(number) => json!(number),
        Found::Real(number) => json!(number),
        Found::Str(text) => json!(short(&text)),
        Found::Undefined | Found::Error => return (format!("{name}_EXPR"), json!(short(&expr.to_old()))),
        other => json!(short(&Expr::literal(other).to_old())),
    };
    (name.to_owned(), value)
}

fn short(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST - CUT.len());
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}

const fn status(status: Option<i64>) -> &'static str {
    match status {
        Some(3) => "Removed",
        Some(4) => "Completed",
        _ => "Unknown",
    }
}

const fn universe(universe: Option<i64>) -> &'static str {
    match universe {
        Some(5) => "Vanilla",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_values_and_what_adstash_adds() {
        let ad = Ad::parse_long(
            "ClusterId = 12\nProcId = 0\nGlobalJobId = \"ns#12.0#u1\"\nJobStatus = 4\nJobUniverse = 5\nCompletionDate = 1893460000\n\
             LastRemoteHost = \"slot1_1@node1\"\nRemoteWallClockTime = 60.5\nExitBySignal = false\nTwice = ClusterId * 2\n\
             List = { 1,2 }\nRequirements = TARGET.Arch == \"X86_64\"\nJobStartDate = 0\n",
        )
        .unwrap();
        let long = ad.clone().with("Long", "x".repeat(300).as_str());
        let (id, document) = of(&long, 0);
        assert_eq!(id, "ns#12.0#u1#1893460000");
        assert_eq!(document["Long"].as_str().map(str::len), Some(256));
        let (_, document) = of(&ad, 0);
        assert_eq!(
            document,
            json!({
                "ClusterId": 12, "ProcId": 0, "GlobalJobId": "ns#12.0#u1", "JobStatus": 4, "JobUniverse": 5,
                "CompletionDate": 1_893_460_000, "LastRemoteHost": "slot1_1@node1", "RemoteWallClockTime": 60.5,
                "ExitBySignal": false, "Twice": 24, "List": "{ 1,2 }",
                "Requirements_EXPR": "TARGET.Arch == \"X86_64\"", "RecordTime": 1_893_460_000, "ScheddName": "ns",
                "StartdSlot": "slot1_1", "StartdName": "node1", "Status": "Completed", "Universe": "Vanilla",
            })
        );
    }

    #[test]
    fn a_removed_proc_is_recorded_when_it_left() {
        let ad = Ad::new().with("JobStatus", 3).with("CompletionDate", 0).with("EnteredCurrentStatus", 77);
        let (id, document) = of(&ad, 0);
        assert_eq!(
            (id.as_str(), &document["RecordTime"], &document["Status"]),
            ("#77", &json!(77), &json!("Removed"))
        );
        assert_eq!(document.get("CompletionDate"), None);
    }
}
