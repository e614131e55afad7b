//! A line for each reason of a hold: `condor_q -hold-codes`.

use std::collections::BTreeMap;

use classad::{Ad, Env};

use super::{cells, job_id};
use crate::Width;
use crate::column::{Absent, Cell, Column, Show};
use crate::conversion::whole;
use crate::queue::forms::valued;
use crate::screen::Screen;
use crate::table::{Table, trim_line};

/// Prints a line for each code and subcode, with the first job that has them. Codes are in the order of their text.
pub(super) fn print(shown: &[&Ad], screen: &Screen, env: &Env, out: &mut String) {
    let mut alike: BTreeMap<(String, String), Vec<&Ad>> = BTreeMap::new();
    for ad in shown {
        let text = |name| crate::conversion::unparsed(&ad.eval_attr(name, None, env));
        // A hold without a subcode has subcode 0.
        let subcode = whole(&ad.eval_attr("HoldReasonSubCode", None, env)).unwrap_or(0).to_string();
        alike.entry((text("HoldReasonCode"), subcode)).or_default().push(ad);
    }
    let made = |heading, make| Column::new(heading, Show::Made(make));
    let mut table = Table::new(
        vec![
            made("OWNER", cells::owner).left(14).or(Absent::Unknown),
            valued("CODE", "HoldReasonCode", "%4d").or(Absent::Char('?')),
            valued("/SUB", "HoldReasonSubCode", "/%-3d").joined(),
            valued("   COUNT ", "JobStatus", "%9d"),
            made("OLDEST_JOB_ID", |ad, _, env| job_id(ad, env)),
            made("HELD_SINCE", cells::held_since).right(11).or(Absent::Unknown),
            valued("HOLD_REASON", "HoldReason", "%v").last(),
        ],
        None,
    );
    let mut rows = Vec::new();
    for ads in alike.values() {
        let Some(first) = ads.first() else { continue };
        let mut row = table.row(first, screen, env);
        if let Some(count) = row.get_mut(3) {
            *count = Cell::counted(i64::try_from(ads.len()).unwrap_or(i64::MAX));
        }
        rows.push(row);
    }
    out.push_str(&table.headings());
    for row in &rows {
        table.print(row, out);
        if !matches!(screen.width, Width::Columns(_)) {
            trim_line(out);
        }
    }
}
