//! More memory or disk after an eviction: retry_request_memory and its kin, as transforms that the schedd applies.

use classad::{Ad, Env, Expr};
use condor_config::amount;

use super::{GivenValue, Job, Outcome};

impl Job<'_, '_> {
    /// Adds the transform of a request. `line` is a list of amounts whose last may be an expression; `increase` is what is
    /// added each time.
    pub(super) fn set_retry(
        &mut self,
        attribute: &str,
        given: &GivenValue,
        base: i64,
        line: Option<&str>,
        increase: Option<&GivenValue>,
    ) -> Outcome {
        let (mut amounts, final_one) = self.sequence(given, base, line.unwrap_or_default())?;
        let mut former = 0;
        for number in &amounts {
            if amounts.len() > 1 && *number <= former {
                return Err(
                    self.fault(given, format!("the amounts must increase, but {number} follows {former}"))
                );
            }
            former = *number;
        }
        let is_expression = final_one.is_some();
        let last = match final_one {
            Some(last) => Some(last),
            None => amounts.pop().map(Expr::literal),
        };
        let body = match (&last, increase) {
            (None, None) => return Ok(()),
            (Some(last), _) if !amounts.is_empty() => {
                let mut values: Vec<String> = amounts.iter().map(ToString::to_string).collect();
                values.push(last.to_old());
                let (retry, index) = (format!("Retry{attribute}"), format!("Retry{attribute}Index"));
                self.assign_text(&retry, &format!("{{{}}}", values.join(",")))?;
                format!(
                    "EVALSET {attribute} {retry}[{index}?:0]\x1eEVALSET {index} MIN({{size({retry})-1, ({index}?:0)+1}})"
                )
            }
            (last, Some(increase)) => self.increasing(attribute, base, last.as_ref(), increase)?,
            (Some(last), None) => {
                let verb = if is_expression { "EVALSET" } else { "SET" };
                format!("{verb} {attribute} {}", last.to_old())
            }
        };
        let subcode = if attribute == "RequestMemory" { 102 } else { 104 };
        if self.cluster.is_none() {
            let when = "(VacateReasonCode==21 || VacateReasonCode == 34)";
            let text = format!("REQUIREMENTS {when} && VacateReasonSubCode == {subcode}\x1e{body}");
            self.set(&format!("TransformBody_{attribute}"), text);
        }
        let mut tags = self.string("TransformOnEvict").unwrap_or_default();
        if !tags.split_ascii_whitespace().any(|tag| tag.eq_ignore_ascii_case(attribute)) {
            if !tags.is_empty() {
                tags.push(' ');
            }
            tags.push_str(attribute);
            self.set("TransformOnEvict", tags);
        }
        Ok(())
    }

    /// The commands that add an amount, up to a greatest one.
    fn increasing(
        &mut self,
        attribute: &str,
        base: i64,
        last: Option<&Expr>,
        increase: &GivenValue,
    ) -> Outcome<String> {
        let refused = "expected a positive amount, or an expression that mentions the request";
        let text = match amount(increase.as_str(), base, false) {
            Some(found) if found.units > 0 => format!("{attribute} + {}", found.units),
            Some(_) => return Err(self.fault(increase, refused)),
            None => {
                let references = self.parse(increase)?.references();
                if ![&references.my, &references.bare].into_iter().flatten().any(|name| name.is(attribute)) {
                    return Err(self.fault(increase, format!("{refused} {attribute}")));
                }
                increase.as_str().to_owned()
            }
        };
        if let Some(last) = last {
            let (most, next) = (format!("Max{attribute}"), format!("Next{attribute}"));
            self.insert(&most, last.clone());
            self.assign_text(&next, &text)?;
            return Ok(format!("EVALSET {attribute} MIN({{{next}, {most}}})"));
        }
        let mut ad = Ad::new();
        ad.set(attribute, self.number(attribute));
        let value = Expr::parse_old(&text).map(|expr| expr.eval(Some(&ad), None, &Env::at(0)));
        let number = value.ok().and_then(|value| value.as_int());
        number
            .map(|number| format!("SET {attribute} {number}"))
            .ok_or_else(|| self.fault(increase, "the expression gives no integer at submission"))
    }

    /// Reads a list of amounts whose last may be an expression.
    fn sequence(&self, given: &GivenValue, base: i64, line: &str) -> Outcome<(Vec<i64>, Option<Expr>)> {
        let (mut amounts, mut rest) = (Vec::new(), line);
        while let Some(found) = amount(rest, base, true) {
            amounts.push(found.units);
            rest = found.rest.unwrap_or_default();
        }
        let rest = rest.trim();
        if rest.is_empty() {
            return Ok((amounts, None));
        }
        let expr = Expr::parse_old(rest).map_err(|error| {
            self.fault(given, format!("'{rest}' is neither an amount nor an expression: {error}"))
        })?;
        Ok((amounts, Some(expr)))
    }
}
