//! Doubts about NEGOTIATOR_SLOT_CONSTRAINT, of which admins are warned.

use classad::{Ad, Env, Expr, Name};

/// Attributes of what a partitionable slot has left, each with the attribute of what it had before any job took a part.
const LEFT: [(&str, &str); 4] = [
    ("Cpus", "TotalSlotCpus"),
    ("Disk", "TotalSlotDisk"),
    ("GPUs", "TotalGPUs"),
    ("Memory", "TotalSlotMemory"),
];

/// Says what is doubtful about a slot constraint, each time as the rest of a sentence that begins with the constraint.
pub fn doubts(constraint: &Expr) -> Vec<String> {
    let references = constraint.references();
    let reads = |wanted: &str| {
        let mut names = references.my.iter().chain(&references.bare).map(Name::as_str);
        names.any(|name| name.eq_ignore_ascii_case(wanted))
    };
    let of_left = LEFT.into_iter().filter(|(left, _)| reads(left)).map(|(left, total)| {
        format!(
            "looks at {left}, which changes when a job takes a part of a partitionable slot: the slot may then be another \
             Negotiator's, or nobody's; use {total}"
        )
    });
    // Only the slots of a machine with GPUs have TotalGPUs.
    let is_true = |slot: &Ad| constraint.eval(Some(slot), None, &Env::at(0)).as_bool_equiv() == Some(true);
    let is_about_none = || is_true(&Ad::new().with("TotalGPUs", 0_i64)) && !is_true(&Ad::new());
    let of_none = (reads("TotalGPUs") && is_about_none()).then(|| {
        "is not true of a slot without GPUs, whose TotalGPUs is undefined and not 0; write (TotalGPUs ?: 0)".to_owned()
    });
    let of_target = references.target.iter().map(|name| {
        format!("looks at TARGET.{0}, and the constraint sees a slot alone; write {0}", name.as_str())
    });
    of_left.chain(of_none).chain(of_target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_or_is_never_true_is_doubtful() {
        for (constraint, expected) in [
            ("GPUs > 0", &["use TotalGPUs"][..]),
            ("MY.Cpus >= 8 && memory > 1024", &["use TotalSlotCpus", "use TotalSlotMemory"]),
            ("TotalGPUs =?= 0", &["write (TotalGPUs ?: 0)"]),
            ("TotalGPUs < 1", &["write (TotalGPUs ?: 0)"]),
            ("(TotalGPUs ?: 0) == 0", &[]),
            ("TotalGPUs > 0 && TotalSlotCpus > 8", &[]),
            ("Arch == \"X86_64\"", &[]),
            ("TotalGPUs =?= undefined", &[]),
            ("TARGET.Cpus > 3 && TotalSlotCpus > 3", &["write Cpus"]),
        ] {
            let found = doubts(&Expr::parse(constraint).unwrap());
            let advice: Vec<&str> =
                found.iter().filter_map(|doubt| doubt.rsplit_once("; ")).map(|(_, advice)| advice).collect();
            assert_eq!(advice, expected, "{constraint}");
        }
    }
}
