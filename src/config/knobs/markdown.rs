//! Prints the knob table as a page: `docs/reference/knobs.md`.

use std::fmt::Write;

use super::all;
use super::knob::{Knob, Reader, Support};

const HEAD: &str = "\
# Knobs

Every configuration variable of HTCondor's manual that a policy may name, and what it is here. Generated from the table
in `src/config/knobs/` by `slotwright knobs`; `make lint` checks that it is current.

- **Names** are compared without case. `<N>` stands for a number, other angle brackets for a name of your own.
- **Default** is what HTCondor has where nothing is configured; empty means unset. If Slotwright's default differs, the table
  gives that default after *here*, and a pool without configuration behaves by it, as far as the knob is in force.
- **Type**: booleans and numbers may be expressions that need no ad, such as `10 * 60`; expressions are evaluated
  against the ads of slot and job. A number out of its range, and a value of the wrong type, is an error.
- **\u{2020}** marks knobs that `SLOT_TYPE_<N>_NAME` overrides for the slots of a type.
- **Here**: *in force* means that it does what it does in HTCondor. *Not yet* means that it is read, checked and shown,
  and that nothing acts on it so far. *Use \u{2026}* says what does it instead. *No effect* says why.

A parameter of HTCondor's that is not in this list is accepted and has no effect; a name that is not HTCondor's and that
nothing refers to is reported with the nearest name there is.
";

/// The page: the knobs by reader, in a table each.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    let mut readers: Vec<Reader> = all().filter_map(|knob| knob.readers.first().copied()).collect();
    readers.sort_unstable();
    readers.dedup();
    for reader in readers {
        let mut knobs: Vec<&Knob> = all().filter(|knob| knob.readers.first() == Some(&reader)).collect();
        knobs.sort_by_key(|knob| knob.name.to_ascii_lowercase());
        let _ = write!(page, "\n## Read by {}\n\n{}\n\n", reader.described(), about(reader));
        page.push_str(
            "| name | type | default | unit, range | here | what |\n| --- | --- | --- | --- | --- | --- |\n",
        );
        for knob in knobs {
            page.push_str(&row(knob));
        }
    }
    page
}

const fn about(reader: Reader) -> &'static str {
    match reader {
        Reader::Startd => "The startd's configuration is a NodePolicy's, for the nodes that it selects.",
        Reader::Negotiator => {
            "The negotiator's configuration is the Negotiator's, as text or in fields of its own."
        }
        Reader::Accountant => {
            "The accountant's configuration is the Negotiator's text; Submitter and GroupQuota objects say the rest."
        }
        Reader::Schedd => "The access point's policy: the SubmitPolicy's text.",
        Reader::Submit => {
            "The defaults that `condor_submit` fills in where a job says nothing: the SubmitPolicy's text."
        }
        Reader::Defrag => "Draining machines for large jobs.",
        Reader::Collector => {
            "Machines that left, in the text of the NodePolicy that selects them, and the views of the pool's past."
        }
        Reader::Master => "Daemons: the operator is all of them.",
        Reader::Macros => "Names to write policies with. They mean nothing by themselves.",
    }
}

fn row(knob: &Knob) -> String {
    let kind = knob.kind.described();
    let kind = kind
        .split_once(' ')
        .filter(|(article, _)| ["a", "an"].contains(article))
        .map_or(kind, |(_, bare)| bare);
    let mark = if knob.per_slot_type { "\u{a0}\u{2020}" } else { "" };
    format!(
        "| {}{mark} | {kind} | {} | {} | {} | {} |\n",
        code(knob.name),
        default(knob),
        extent(knob),
        support(knob.support),
        escaped(knob.doc),
    )
}

fn default(knob: &Knob) -> String {
    let default = knob.default().map_or(String::new(), code);
    match knob.ours {
        None => default,
        Some("") => format!("{default}; here unset"),
        Some(ours) => format!("{default}; here {}", code(ours)),
    }
}

fn extent(knob: &Knob) -> String {
    let range = match knob.range {
        None => String::new(),
        Some((least, f64::INFINITY)) => format!("\u{2265} {least}"),
        Some((least, greatest)) => format!("{least} to {greatest}"),
    };
    [knob.unit, &range].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(", ")
}

fn support(support: Support) -> String {
    match support {
        Support::Honored => "in force".to_owned(),
        Support::Planned => "not yet".to_owned(),
        Support::MappedTo(what) => format!("use {}", escaped(what)),
        Support::Meaningless(why) => format!("no effect: {}", escaped(why)),
    }
}

fn code(text: &str) -> String {
    format!("`{}`", escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
