//! Ads as elements of an XML document.

use std::fmt::Write;

use classad::{Expr, Value};
use condor_config::Format;

use crate::long::{Attributes, all, constant};

/// The text before the first ad.
pub(crate) const HEAD: &str =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n";
/// The text behind the last ad.
pub(crate) const TAIL: &str = "</classads>\n";

/// Appends the element of an ad.
pub(crate) fn ad(attributes: &Attributes, out: &mut String) {
    element(attributes, out, 0);
    out.push('\n');
}

fn element(attributes: &Attributes, out: &mut String, depth: usize) {
    let indent = "    ".repeat(depth);
    out.push_str("<c>\n");
    for (name, expr) in attributes {
        let _ = write!(out, "{indent}    <a n=\"{}\">", escaped(name.as_str()));
        expression(expr, out, depth + 1);
        out.push_str("</a>\n");
    }
    let _ = write!(out, "{indent}</c>");
}

fn expression(expr: &Expr, out: &mut String, depth: usize) {
    match constant(expr) {
        Some(found) if !matches!(found, Value::AbsTime(_) | Value::RelTime(_)) => value(&found, out, depth),
        _ => {
            let _ = write!(out, "<e>{}</e>", escaped(&expr.to_old()));
        }
    }
}

fn value(value: &Value, out: &mut String, depth: usize) {
    let _ = match value {
        Value::Undefined => write!(out, "<un/>"),
        Value::Error => write!(out, "<er/>"),
        Value::Bool(truth) => write!(out, "<b v=\"{}\"/>", if *truth { "t" } else { "f" }),
        Value::Int(number) => write!(out, "<i>{number}</i>"),
        Value::Real(number) => write!(out, "<r>{}</r>", real(*number)),
        Value::Str(text) => write!(out, "<s>{}</s>", escaped(text)),
        Value::AbsTime(_) | Value::RelTime(_) => write!(out, "<e>{}</e>", escaped(&value.to_string())),
        Value::List(values) => {
            out.push_str("<l>");
            for one in values.iter() {
                self::value(one, out, depth);
            }
            write!(out, "</l>")
        }
        Value::Ad(ad) => {
            element(&all(ad), out, depth);
            Ok(())
        }
    };
}

fn real(number: f64) -> String {
    if number == 0.0 {
        return "0.0".to_owned();
    }
    Format::parse("%1.15E").map_or_else(|| number.to_string(), |format| format.real(number))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
