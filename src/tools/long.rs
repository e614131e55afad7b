//! Whole ads, or some attributes of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use classad::{Ad, Env, Expr, Name, Value};

use crate::xml;

/// How whole ads print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// An attribute a line.
    #[default]
    Long,
    /// A list of JSON objects.
    Json,
    /// Elements of a document.
    Xml,
    /// A list of ads in the new syntax.
    New,
}

impl Form {
    /// The form of a name, as in `-long:json`. `None`: there is no such form.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "long" | "auto" => Some(Self::Long),
            "json" => Some(Self::Json),
            "xml" => Some(Self::Xml),
            "new" => Some(Self::New),
            _ => None,
        }
    }
}

/// The ads in a form. `only` names the attributes that are shown; empty: all. Without ads the text is empty, except in XML.
pub fn whole<'a>(ads: impl IntoIterator<Item = &'a Ad>, only: &[Name], form: Form) -> String {
    let mut out = String::new();
    let between = match form {
        Form::Long => "",
        Form::Json | Form::New => ",\n",
        Form::Xml => {
            out.push_str(xml::HEAD);
            ""
        }
    };
    let begin = out.len();
    for ad in ads {
        let attributes = attributes(ad, only);
        // An object without attributes is an answer, too, where programs read it.
        if attributes.is_empty() && matches!(form, Form::Long | Form::New) {
            continue;
        }
        if out.len() > begin {
            out.push_str(between);
        } else {
            out.push_str(match form {
                Form::Json => "[\n",
                Form::New => "{\n",
                Form::Long | Form::Xml => "",
            });
        }
        match form {
            Form::Long => long(&attributes, &mut out),
            Form::Json => json(&attributes, &mut out, 0),
            Form::Xml => xml::ad(&attributes, &mut out),
            Form::New => new_syntax(&attributes, &mut out),
        }
        if matches!(form, Form::Json | Form::New) {
            out.push('\n');
        }
    }
    match form {
        Form::Json if out.len() > begin => out.push_str("]\n"),
        Form::New if out.len() > begin => out.push_str("}\n"),
        Form::Xml => out.push_str(xml::TAIL),
        _ => {}
    }
    out
}

/// The attributes of an ad and of the ad that it is chained to, sorted by name.
pub(crate) type Attributes<'a> = BTreeMap<&'a Name, &'a Expr>;

fn attributes<'a>(ad: &'a Ad, only: &'a [Name]) -> Attributes<'a> {
    if !only.is_empty() {
        return only
            .iter()
            .filter_map(|name| ad.get_name(name).map(|expr| (own_name(ad, name), expr)))
            .collect();
    }
    let mut all: Attributes = ad.chained().into_iter().flat_map(Ad::unsorted).collect();
    // The ad's own spelling of a name counts.
    for (name, expr) in ad.unsorted() {
        all.remove(name);
        all.insert(name, expr);
    }
    all
}

/// The name as the ad spells it.
fn own_name<'a>(ad: &'a Ad, name: &'a Name) -> &'a Name {
    let spelled = |ad: &'a Ad| ad.unsorted().map(|(own, _)| own).find(|own| *own == name);
    spelled(ad).or_else(|| ad.chained().and_then(spelled)).unwrap_or(name)
}

/// All attributes of an ad.
pub(crate) fn all(ad: &Ad) -> Attributes<'_> {
    attributes(ad, &[])
}

pub(crate) fn long(attributes: &Attributes, out: &mut String) {
    for (name, expr) in attributes {
        let _ = writeln!(out, "{name} = {}", expr.to_old());
    }
    out.push('\n');
}

fn new_syntax(attributes: &Attributes, out: &mut String) {
    let all: Vec<String> = attributes.iter().map(|(name, expr)| format!("{name} = {expr}")).collect();
    let _ = write!(out, "[ {} ]", all.join("; "));
}

pub(crate) fn json(attributes: &Attributes, out: &mut String, depth: usize) {
    let indent = "  ".repeat(depth);
    out.push_str("{\n");
    for (number, (name, expr)) in attributes.iter().enumerate() {
        let comma = if number + 1 < attributes.len() { "," } else { "" };
        let _ = write!(out, "{indent}  {}: ", quoted(name.as_str()));
        json_expr(expr, out, depth + 1);
        let _ = writeln!(out, "{comma}");
    }
    let _ = write!(out, "{indent}}}");
}

/// The attributes as a JSON object in one line.
pub(crate) fn json_line(attributes: &Attributes) -> String {
    let mut text = String::new();
    json(attributes, &mut text, 0);
    // Strings of JSON have no ends of lines in them: all ends of lines belong to the layout.
    text.lines().map(str::trim_start).collect()
}

/// An expression in JSON. One that is no plain value is the text `/Expr(...)/`.
fn json_expr(expr: &Expr, out: &mut String, depth: usize) {
    match constant(expr) {
        Some(value) if json_value(&value, out, depth) => {}
        // HTCondor writes the slashes around an expression as `\/`, and no others.
        _ => out.push_str(
            &quoted(&format!("/Expr({})/", expr.to_old())).replacen('/', "\\/", 1).replace(")/\"", ")\\/\""),
        ),
    }
}

/// The value of an expression that is a literal, or a list or an ad of its own.
pub(crate) fn constant(expr: &Expr) -> Option<Value> {
    if let Some(value) = expr.as_literal() {
        return Some(value.clone());
    }
    let text = expr.to_string();
    text.starts_with(['{', '[']).then(|| expr.eval(None, None, &Env::at(0)))
}

/// Appends a value; false, and nothing appended, if JSON has no such value.
fn json_value(value: &Value, out: &mut String, depth: usize) -> bool {
    match value {
        Value::Undefined => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Real(number) if number.is_finite() => out.push_str(&crate::conversion::unparsed(value)),
        Value::Str(text) => out.push_str(&quoted(text)),
        Value::List(values) => {
            let before = out.len();
            let indent = "  ".repeat(depth);
            out.push_str("[\n");
            for (number, value) in values.iter().enumerate() {
                let comma = if number + 1 < values.len() { "," } else { "" };
                out.push_str(&indent);
                out.push_str("  ");
                if !json_value(value, out, depth + 1) {
                    out.truncate(before);
                    return false;
                }
                let _ = writeln!(out, "{comma}");
            }
            let _ = write!(out, "{indent}]");
        }
        Value::Ad(ad) => json(&all(ad), out, depth),
        Value::Real(_) | Value::Error | Value::AbsTime(_) | Value::RelTime(_) => return false,
    }
    true
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
