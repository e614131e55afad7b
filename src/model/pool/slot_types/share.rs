//! The grammar of `SLOT_TYPE_<N>`.
//!
//! If a value has several lines, each line is an item. Otherwise commas divide the items, or blanks if there is no comma. An item
//! is `name = share`, or `name = share : constraint`, or a share alone, which is the share of all resources that are not named.

use super::devices::Constraint;

/// A resource that every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    Cpus,
    Memory,
    Swap,
    Disk,
}

/// An item of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// The share of all resources that are not named.
    Blanket(Share),
    /// The share of one resource.
    Named { name: String, share: Share, constraint: Option<Constraint> },
}

/// How much of a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Share {
    /// An equal part of what the slots with other shares leave.
    Auto,
    /// [`MINIMAL`] of the machine; a slot can then have less than one CPU.
    Minimal,
    /// A part, at least 0, of all that the machine has.
    Fraction(f64),
    /// An amount, at least 0.
    Amount(f64, Unit),
}

/// The unit after an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    /// MiB for memory, KiB for disk and swap.
    None,
    Kibi,
    Mebi,
    Gibi,
    Tebi,
    Pebi,
}

/// The fraction of the machine that `minimal` means.
pub(super) const MINIMAL: f64 = 1.0 / 128.0;

/// The text of an item, and its place: line and column, both from 1.
pub(super) struct Written<'a> {
    pub line: usize,
    pub column: usize,
    pub text: &'a str,
}

impl Standard {
    /// The standard resource whose name begins with this text: `c`, `mem`, `virt`. Source: the manual.
    pub fn by_name(name: &str) -> Option<Self> {
        let is = |whole: &str| {
            !name.is_empty() && whole.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        let names = [
            (Self::Cpus, &["cpus"][..]),
            (Self::Memory, &["ram", "memory"]),
            (Self::Swap, &["swap", "virtualmemory"]),
            (Self::Disk, &["disk"]),
        ];
        names.into_iter().find(|(_, names)| names.iter().any(|whole| is(whole))).map(|(standard, _)| standard)
    }
}

/// The items of a value.
pub(super) fn items(value: &str) -> Vec<Written<'_>> {
    if value.contains('\n') {
        let lines = (1..).zip(value.split('\n'));
        return lines.filter_map(|(line, text)| written(line, 0, text)).collect();
    }
    let by_comma = value.contains(',');
    let divides = |c: char| if by_comma { c == ',' } else { c.is_ascii_whitespace() };
    let mut column = 0;
    let parts = value.split(divides).filter_map(|text| {
        let at = column;
        column += text.chars().count() + 1;
        written(1, at, text)
    });
    parts.collect()
}

fn written(line: usize, before: usize, text: &str) -> Option<Written<'_>> {
    let trimmed = text.trim_ascii();
    let blanks = text.len() - text.trim_ascii_start().len();
    (!trimmed.is_empty()).then_some(Written { line, column: before + blanks + 1, text: trimmed })
}

/// Reads a share.
///
/// HTCondor ignores what it cannot read after a number, and takes a negative number for a fraction: there, `cpus=two` is one CPU,
/// `cpus=-1` all of them, `memory=1.5G` one GiB. All of these are refused here.
pub(super) fn parse(text: &str) -> Result<Share, String> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("auto") || is("automatic") {
        return Ok(Share::Auto);
    }
    if is("min") || is("minimal") {
        return Ok(Share::Minimal);
    }
    let (amount, rest) = number(text).ok_or_else(|| {
        format!("{text} is no share: expected a number, a percentage, a fraction, auto or minimal")
    })?;
    match rest.strip_prefix('/').map(str::trim_ascii) {
        Some(divisor) => match number(divisor) {
            Some((divisor, "")) if divisor > 0.0 => Ok(Share::Fraction(amount / divisor)),
            _ => Err(format!("{text} is no share: nothing can be divided by {divisor}")),
        },
        None if rest == "%" => Ok(Share::Fraction(amount / 100.0)),
        None => Ok(Share::Amount(amount, unit(text, amount, rest)?)),
    }
}

fn unit(text: &str, amount: f64, rest: &str) -> Result<Unit, String> {
    let letter = rest.trim_end_matches(['b', 'B']).trim_end_matches(['i', 'I']);
    let unit = match letter.to_ascii_lowercase().as_str() {
        "" if rest.is_empty() => return Ok(Unit::None),
        "k" => Unit::Kibi,
        "m" => Unit::Mebi,
        "g" => Unit::Gibi,
        "t" => Unit::Tebi,
        "p" => Unit::Pebi,
        _ => return Err(format!("{text} is no share: {rest} is no unit; there are K, M, G, T and P")),
    };
    if amount.fract() == 0.0 {
        return Ok(unit);
    }
    let hint = "write a whole number of the next smaller unit";
    Err(format!("{text} is no share: HTCondor drops the fraction in front of a unit; {hint}"))
}

/// Splits a text into the number at its beginning and the rest, without the blanks between them.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let mut end = whole;
    if let Some(fraction) = text.get(end..).and_then(|rest| rest.strip_prefix('.')) {
        end += 1 + digits(fraction);
    }
    // An `e` without digits after it is no exponent and belongs to the rest.
    if let Some(exponent) = text.get(end..).and_then(|rest| rest.strip_prefix(['e', 'E']))
        && digits(exponent) > 0
    {
        end += 1 + digits(exponent);
    }
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.parse().ok().filter(|number: &f64| number.is_finite())?, rest.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        for (text, share) in [
            ("auto", Share::Auto),
            ("Automatic", Share::Auto),
            ("MINIMAL", Share::Minimal),
            ("min", Share::Minimal),
            ("25%", Share::Fraction(0.25)),
            ("12.5 %", Share::Fraction(0.125)),
            ("1/4", Share::Fraction(0.25)),
            ("1 / 4", Share::Fraction(0.25)),
            ("1.5/2", Share::Fraction(0.75)),
            ("64", Share::Amount(64.0, Unit::None)),
            (".5", Share::Amount(0.5, Unit::None)),
            ("1e3", Share::Amount(1000.0, Unit::None)),
            ("2G", Share::Amount(2.0, Unit::Gibi)),
            ("100 MB", Share::Amount(100.0, Unit::Mebi)),
            ("3TiB", Share::Amount(3.0, Unit::Tebi)),
            ("7k", Share::Amount(7.0, Unit::Kibi)),
            ("1p", Share::Amount(1.0, Unit::Pebi)),
        ] {
            assert_eq!(parse(text), Ok(share), "{text}");
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in [
            "",
            "two",
            "-1",
            "-50%",
            "1/0",
            "1/x",
            "1/-2",
            "1/4/2",
            "1/2%",
            "25%x",
            "%",
            "/2",
            "1.5G",
            "0x10",
            "inf",
            "nan",
            "10 potatoes",
            "5b",
            "5X",
            "1e999",
            "é",
            "1/",
            "1e",
            "2 3",
            "auto 2",
        ] {
            assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn a_name_can_be_cut_short() {
        use Standard::{Cpus, Disk, Memory, Swap};
        // The manual's own list.
        for (standard, names) in [
            (Cpus, &["Cpus", "C", "c", "cpu"][..]),
            (Memory, &["ram", "RAM", "MEMORY", "memory", "Mem", "R", "r", "M", "m"]),
            (Disk, &["disk", "Disk", "D", "d"]),
            (Swap, &["swap", "SWAP", "S", "s", "VirtualMemory", "V", "v", "virt"]),
        ] {
            for name in names {
                assert_eq!(Standard::by_name(name), Some(standard), "{name}");
            }
        }
        for name in ["", "cpuss", "gpus", "memo ry", "é"] {
            assert_eq!(Standard::by_name(name), None, "{name}");
        }
    }

    #[test]
    fn items_stand_on_lines_or_between_commas_or_blanks() {
        let texts = |value| items(value).iter().map(|item| item.text).collect::<Vec<_>>();
        assert_eq!(texts("c=1, mem = 25 %, , 1/4"), ["c=1", "mem = 25 %", "1/4"]);
        assert_eq!(texts("c=1\tmem=25%  1/4"), ["c=1", "mem=25%", "1/4"]);
        assert_eq!(texts("GPUs = 2 : A || B, C\n\n  90%\n"), ["GPUs = 2 : A || B, C", "90%"]);
        assert_eq!(texts("  "), [""; 0]);
        let places = items("c=1, é=2,  m=3").iter().map(|item| (item.line, item.column)).collect::<Vec<_>>();
        assert_eq!(places, [(1, 1), (1, 6), (1, 12)]);
        let lines = items("\n  c=1").iter().map(|item| (item.line, item.column)).collect::<Vec<_>>();
        assert_eq!(lines, [(2, 3)]);
    }
}
