//! Names of maps in calls of `userMap()` that no map has: such a call is undefined, and every job is then without what the map gives.

use crate::startd::config::{Remark, Severity};
use condor_config::{Config, Text};

/// The knob that names the maps.
const NAMES: &str = "SCHEDD_CLASSAD_USER_MAP_NAMES";

/// Remarks about maps that transforms and submit requirements name, and `SCHEDD_CLASSAD_USER_MAP_NAMES` does not.
pub(super) fn unknown(config: &Config) -> Vec<Remark> {
    let known = config.list(NAMES).unwrap_or_default();
    let has = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    let list = if known.is_empty() { "which names none".to_owned() } else { known.join(", ") };
    let mut remarks = Vec::new();
    for (knob, text) in texts(config) {
        let shown = text.as_str();
        if shown.trim_ascii_start().starts_with('#') {
            continue;
        }
        for (offset, name) in named(&shown).filter(|(_, name)| !has(name)) {
            let message = format!("userMap() names the map {name}, which {NAMES} does not ({list})");
            let position = config.position_at(&text, offset);
            remarks.push(Remark::at(&position, Severity::Warning, message).about(&knob));
        }
    }
    remarks
}

/// The texts in which a policy calls `userMap()`, each with its knob: the lines of transforms, requirements and their reasons.
fn texts(config: &Config) -> Vec<(String, Text)> {
    let names = |knob: &str| config.list(knob).unwrap_or_default().into_iter();
    let mut found = Vec::new();
    for name in names("JOB_TRANSFORM_NAMES") {
        let knob = format!("JOB_TRANSFORM_{name}");
        let lines = config.lines(&knob).unwrap_or_default();
        found.extend(lines.into_iter().map(|line| (knob.clone(), line)));
    }
    for name in names("SUBMIT_REQUIREMENT_NAMES") {
        for end in ["", "_REASON"] {
            let knob = format!("SUBMIT_REQUIREMENT_{name}{end}");
            found.extend(config.text(&knob).ok().flatten().map(|text| (knob, text)));
        }
    }
    found
}

/// The names of maps that calls of `userMap()` in a text have as a literal, each with its offset. A name with a macro is not known.
fn named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    const CALL: &str = "usermap";
    let folded = text.to_ascii_lowercase();
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + folded.get(from..)?.find(CALL)?;
            from = at + CALL.len();
            if let Some(found) = text.get(from..).and_then(|rest| argument(rest, from)) {
                return Some(found);
            }
        }
    })
}

/// The first argument of a call if it is a string without macros, with its offset. `rest` is what follows the function's name, and begins
/// at `from`.
fn argument(rest: &str, from: usize) -> Option<(usize, &str)> {
    let quoted = rest.trim_ascii_start().strip_prefix('(')?.trim_ascii_start().strip_prefix('"')?;
    let (name, _) = quoted.split_once('"')?;
    let offset = from + rest.len().checked_sub(quoted.len())?;
    (!name.contains('$')).then_some((offset, name))
}

#[cfg(test)]
mod tests {
    use super::super::policy::understand;

    fn told(text: &str) -> Vec<String> {
        understand(text).1.iter().map(ToString::to_string).collect()
    }

    const MAP: &str =
        "SCHEDD_CLASSAD_USER_MAP_NAMES = Groups\nCLASSAD_USER_MAPDATA_Groups @=end\n* alice physics\n@end\n";

    #[test]
    fn a_map_that_is_named_and_not_there_is_told() {
        let transform = |line: &str| {
            format!(
                "{MAP}JOB_TRANSFORM_NAMES = A\nJOB_TRANSFORM_A @=end\n  EVALSET AcctGroup = 1\n  {line}\n@end\n"
            )
        };
        let requirement =
            |text: &str| format!("{MAP}SUBMIT_REQUIREMENT_NAMES = R\nSUBMIT_REQUIREMENT_R = {text}\n");
        let says = |place: &str, name: &str, list: &str| {
            vec![format!(
                "{place}: userMap() names the map {name}, which SCHEDD_CLASSAD_USER_MAP_NAMES does not ({list})"
            )]
        };
        for (text, expected) in [
            (transform("EVALSET G = userMap(\"Groups\", Owner)"), vec![]),
            (transform("EVALSET G = USERMAP ( \"groups\", Owner)"), vec![]),
            (transform("EVALSET G = userMap(\"Gruops\", Owner)"), says("line 8, column 24", "Gruops", "Groups")),
            (transform("REQUIREMENTS userMap(\"Labs\", Owner) isnt undefined"), says("line 8, column 25", "Labs", "Groups")),
            (requirement("userMap(\"Groups\", Owner) isnt undefined"), vec![]),
            (requirement("userMap(\"Labs\", Owner) isnt undefined"), says("line 6, column 33", "Labs", "Groups")),
            (
                "SUBMIT_REQUIREMENT_NAMES = R\nSUBMIT_REQUIREMENT_R = userMap(\"Labs\", Owner) isnt undefined\n".to_owned(),
                says("line 2, column 33", "Labs", "which names none"),
            ),
        ] {
            assert_eq!(told(&text), expected, "{text}");
        }
    }
}
