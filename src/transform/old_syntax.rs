//! The old syntax of transforms, a ClassAd with attributes such as `set_X`, which HTCondor 25.8 dropped.

use std::collections::BTreeMap;

use classad::{Ad, Env, Expr, Name, Value};

/// The message that refuses a transform in the old syntax. It shows the same transform in the native syntax.
pub(crate) fn refusal(knob: &str, text: &str) -> String {
    let dropped = "the old syntax, a ClassAd in brackets, is not read any more since HTCondor 25.8";
    match Ad::parse_new_leniently(text) {
        Ok(ad) => format!("{dropped}; write\n{}", native(knob, &ad)),
        Err(error) => format!(
            "{dropped}, and this ad does not parse either ({error}): write a command a line, such as SET Attribute expression"
        ),
    }
}

/// The commands that an attribute of the old syntax stands for, by the order in which HTCondor carried them out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Name,
    Requirements,
    Variable,
    Copy,
    Delete,
    Set,
    EvalSet,
}

impl Kind {
    fn of(name: &str) -> (Self, &str) {
        let prefixes = [
            ("copy_", Self::Copy),
            ("delete_", Self::Delete),
            ("set_", Self::Set),
            ("eval_set_", Self::EvalSet),
        ];
        let found = prefixes.into_iter().find_map(|(prefix, kind)| {
            let (start, rest) = name.split_at_checked(prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then_some((kind, rest))
        });
        match found {
            Some(found) => found,
            None if name.eq_ignore_ascii_case("Name") => (Self::Name, name),
            None if name.eq_ignore_ascii_case("Requirements") => (Self::Requirements, name),
            None => (Self::Variable, name),
        }
    }
}

fn native(knob: &str, ad: &Ad) -> String {
    let mut lines: BTreeMap<(Kind, Name), String> = BTreeMap::new();
    for (name, expr) in ad {
        let (kind, attribute) = Kind::of(name.as_str());
        if let Some(line) = line(kind, attribute, expr, ad) {
            lines.insert((kind, Name::from(attribute)), line);
        }
    }
    let body: Vec<String> = lines.into_values().collect();
    format!("{knob} @=end\n   {}\n@end", body.join("\n   "))
}

fn line(kind: Kind, attribute: &str, expr: &Expr, ad: &Ad) -> Option<String> {
    let text = || match expr.eval(Some(ad), None, &Env::at(0)) {
        Value::Str(text) => Some(text.to_string()),
        _ => None,
    };
    let written = expr.to_old();
    Some(match kind {
        Kind::Name => format!("NAME {}", text()?),
        Kind::Requirements => format!("REQUIREMENTS {}", without_target(&written)),
        Kind::Variable => {
            let literal = expr.as_literal().and_then(Value::as_str).map(str::to_owned);
            format!("{attribute} = {}", literal.unwrap_or(written))
        }
        Kind::Copy => format!("COPY {attribute} {}", text()?),
        Kind::Delete => format!("DELETE {attribute}"),
        Kind::Set => format!("SET {attribute} {written}"),
        Kind::EvalSet => format!("EVALSET {attribute} {written}"),
    })
}

/// The expression with `TARGET.name` written as `name`: the job was the target, and is now the only ad.
fn without_target(expr: &str) -> String {
    let (mut out, mut rest, mut in_string) = (String::new(), expr, false);
    while let Some(first) = rest.chars().next() {
        let after_name = out.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        let target = rest.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("TARGET."));
        if !in_string && !after_name && target {
            rest = rest.get(7..).unwrap_or_default();
            continue;
        }
        in_string ^= first == '"' && !out.ends_with('\\');
        out.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_shows_the_transform_in_native_syntax() {
        let text = "[ Requirements = TARGET.Owner == \"TARGET.x\"; eval_set_B = A * 2; set_A = 1 + 1; copy_X = \"Y\"; \
                    delete_Z = true; Grp = \"g\" ]";
        let expected = "JOB_TRANSFORM_T @=end\n   REQUIREMENTS Owner == \"TARGET.x\"\n   Grp = g\n   COPY X Y\n   DELETE Z\n   \
                        SET A 1 + 1\n   EVALSET B A * 2\n@end";
        let shown = refusal("JOB_TRANSFORM_T", text);
        assert!(shown.ends_with(expected), "{shown}");
        assert!(refusal("JOB_TRANSFORM_T", "[ a = ").contains("does not parse"));
    }
}
