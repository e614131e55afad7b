//! Expressions, values and ads to text, in HTCondor's own form.

use std::fmt::{Result, Write};

use super::time;
use crate::classad::ad::Ad;
use crate::classad::expr::{Binary, Expr, Id, Kids, Node, Program, Unary};
use crate::classad::value::Value;

/// How reals print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reals {
    /// With the 16 digits HTCondor always prints: what functions of the language make of a real.
    Condor,
    /// The same where that reads back as the same real, else with the 17 digits it takes.
    Exact,
}

/// Prints the tree under a node.
pub(crate) fn node<W: Write>(out: &mut W, program: &Program, id: Id, reals: Reals) -> Result {
    let sub = |out: &mut W, id: Id| node(out, program, id, reals);
    match program.node(id) {
        None => Ok(()),
        Some(Node::Literal(literal)) => value(out, literal, reals),
        Some(Node::Attr(name)) => identifier(out, name.as_str()),
        Some(Node::RootAttr(name)) => {
            out.write_char('.')?;
            identifier(out, name.as_str())
        }
        Some(Node::Select(select)) => {
            sub(out, select.base)?;
            out.write_char('.')?;
            identifier(out, select.name.as_str())
        }
        Some(Node::Unary(op, inner)) => {
            out.write_str(unary(*op))?;
            sub(out, *inner)
        }
        Some(Node::Binary(op, left, right)) => {
            sub(out, *left)?;
            write!(out, " {} ", binary(*op))?;
            sub(out, *right)
        }
        Some(Node::And(items)) => separated(out, program, *items, " && ", reals),
        Some(Node::Or(items)) => separated(out, program, *items, " || ", reals),
        Some(Node::Ternary(condition, yes, no)) => {
            sub(out, *condition)?;
            out.write_str(" ? ")?;
            sub(out, *yes)?;
            out.write_str(" : ")?;
            sub(out, *no)
        }
        Some(Node::Elvis(left, right)) => {
            sub(out, *left)?;
            out.write_str(" ?: ")?;
            sub(out, *right)
        }
        Some(Node::Index(base, index)) => {
            sub(out, *base)?;
            out.write_char('[')?;
            sub(out, *index)?;
            out.write_char(']')
        }
        Some(Node::Paren(inner)) => {
            out.write_char('(')?;
            sub(out, *inner)?;
            out.write_char(')')
        }
        Some(Node::List(items)) => list(out, program, *items, reals),
        Some(Node::Ad(nested)) => ad(out, nested, reals),
        Some(Node::Call(call)) => {
            write!(out, "{}(", call.name)?;
            separated(out, program, call.args, ",", reals)?;
            out.write_char(')')
        }
    }
}

fn list<W: Write>(out: &mut W, program: &Program, items: Kids, reals: Reals) -> Result {
    if items.start == items.end {
        return out.write_str("{  }");
    }
    out.write_str("{ ")?;
    separated(out, program, items, ",", reals)?;
    out.write_str(" }")
}

fn separated<W: Write>(out: &mut W, program: &Program, items: Kids, with: &str, reals: Reals) -> Result {
    for (place, id) in program.kids(items).iter().enumerate() {
        if place > 0 {
            out.write_str(with)?;
        }
        node(out, program, *id, reals)?;
    }
    Ok(())
}

/// Prints an expression.
pub(crate) fn expr<W: Write>(out: &mut W, expr: &Expr, reals: Reals) -> Result {
    node(out, expr.program(), expr.program().root(), reals)
}

/// Prints an ad in the new syntax, on one line.
pub(crate) fn ad<W: Write>(out: &mut W, ad: &Ad, reals: Reals) -> Result {
    out.write_char('[')?;
    let mut entries: Vec<_> = ad.iter().collect();
    if reals == Reals::Condor {
        // HTCondor keeps attributes in this order, which shows where a function makes text of an ad.
        entries.sort_by_key(|(name, _)| name.as_str().len());
    }
    for (place, (name, value)) in entries.into_iter().enumerate() {
        out.write_str(if place > 0 { "; " } else { " " })?;
        identifier(out, name.as_str())?;
        out.write_str(" = ")?;
        expr(out, value, reals)?;
    }
    out.write_str(if ad.is_empty() { "  ]" } else { " ]" })
}

/// Prints an ad in the long form.
pub(crate) fn long(ad: &Ad) -> String {
    let mut text = String::new();
    for (name, value) in ad {
        text.push_str(name.as_str());
        text.push_str(" = ");
        match value.as_literal() {
            Some(Value::Str(string)) if old_string(string) => {
                text.push('"');
                text.push_str(&string.replace('"', "\\\""));
                text.push('"');
            }
            _ => text.push_str(&value.to_string()),
        }
        text.push('\n');
    }
    text
}

/// Whether a string can be written the long form's way, in which a backslash stands for itself.
fn old_string(string: &str) -> bool {
    !string.contains(['\n', '\r']) && !string.contains("\\\"")
}

/// Prints a value as an expression that evaluates to it.
pub(crate) fn value<W: Write>(out: &mut W, value: &Value, reals: Reals) -> Result {
    match value {
        Value::Undefined => out.write_str("undefined"),
        Value::Error => out.write_str("error"),
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Real(number) => real(out, *number, reals),
        Value::Str(text) => string(out, text),
        Value::List(items) if items.is_empty() => out.write_str("{  }"),
        Value::List(items) => {
            out.write_str("{ ")?;
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.write_char(',')?;
                }
                self::value(out, item, reals)?;
            }
            out.write_str(" }")
        }
        Value::Ad(nested) => ad(out, nested, reals),
        Value::AbsTime(time) => write!(out, "absTime(\"{}\")", time::absolute(*time)),
        Value::RelTime(secs) => write!(out, "relTime(\"{}\")", time::relative_exact(*secs)),
    }
}

/// Prints a real: C's `%1.15E`, or a call that makes what has no digits.
pub(crate) fn real<W: Write>(out: &mut W, number: f64, reals: Reals) -> Result {
    if number.is_nan() {
        return out.write_str("real(\"NaN\")");
    }
    if number.is_infinite() {
        return out.write_str(if number > 0.0 { "real(\"INF\")" } else { "real(\"-INF\")" });
    }
    if number == 0.0 {
        return out.write_str(if number.is_sign_negative() { "-0.0" } else { "0.0" });
    }
    let mut text = format!("{number:.15E}");
    if reals == Reals::Exact && text.parse::<f64>() != Ok(number) {
        text = format!("{number:.16E}");
    }
    let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    write!(out, "{digits}E{sign}{exponent:0>2}")
}

/// Prints a string literal in the new syntax.
fn string<W: Write>(out: &mut W, text: &str) -> Result {
    escaped(out, text, '"')
}

fn escaped<W: Write>(out: &mut W, text: &str, quote: char) -> Result {
    out.write_char(quote)?;
    for byte in text.bytes() {
        match byte {
            7 => out.write_str("\\a")?,
            8 => out.write_str("\\b")?,
            9 => out.write_str("\\t")?,
            10 => out.write_str("\\n")?,
            11 => out.write_str("\\v")?,
            12 => out.write_str("\\f")?,
            13 => out.write_str("\\r")?,
            b'\\' => out.write_str("\\\\")?,
            _ if char::from(byte) == quote => write!(out, "\\{quote}")?,
            b' '..=b'~' => out.write_char(char::from(byte))?,
            _ => write!(out, "\\{byte:03o}")?,
        }
    }
    out.write_char(quote)
}

/// Prints a name, in quotes where it would not read as one.
pub(crate) fn identifier<W: Write>(out: &mut W, name: &str) -> Result {
    const RESERVED: [&str; 7] = ["true", "false", "undefined", "error", "is", "isnt", "parent"];
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name));
    if plain { out.write_str(name) } else { escaped(out, name, '\'') }
}

fn unary(op: Unary) -> &'static str {
    match op {
        Unary::Minus => " -",
        Unary::Plus => " +",
        Unary::Not => " !",
        Unary::Complement => " ~",
    }
}

fn binary(op: Binary) -> &'static str {
    match op {
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulus => "%",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::ShiftRightUnsigned => ">>>",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Is => "is",
        Binary::Isnt => "isnt",
        Binary::BitAnd => "&",
        Binary::BitXor => "^",
        Binary::BitOr => "|",
    }
}
