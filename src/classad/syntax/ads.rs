//! The long form of ads: an attribute a line.

use super::lexer::{Dialect, is_space};
use super::parser;
use crate::ad::Ad;
use crate::error::ParseError;
use crate::expr::Expr;
use crate::name::Name;

/// Whether the text is an ad in the new syntax: it starts with `[` after comments and white space.
pub(crate) fn starts_new(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let line_comment = rest.starts_with("//") || rest.starts_with('#');
        if line_comment {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return rest.starts_with('[');
        }
    }
}

/// One ad. A line that does not parse is an error.
pub(crate) fn long(text: &str) -> Result<Ad, ParseError> {
    let (ad, errors) = long_lenient(text);
    errors.into_iter().next().map_or(Ok(ad), Err)
}

/// One ad, and the errors of the lines that do not parse, which the ad lacks.
pub(crate) fn long_lenient(text: &str) -> (Ad, Vec<ParseError>) {
    let (mut ad, mut errors) = (Ad::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        match attribute(line) {
            Ok(attribute) => ad.extend(attribute),
            Err(error) => errors.push(error.shifted(number, 0)),
        }
    }
    (ad, errors)
}

/// Ads with blank lines between them.
pub(crate) fn long_stream(text: &str) -> Result<Vec<Ad>, ParseError> {
    let (mut ads, mut ad) = (Vec::new(), Ad::new());
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            if !ad.is_empty() {
                ads.push(std::mem::take(&mut ad));
            }
        } else {
            ad.extend(attribute(line).map_err(|error| error.shifted(number, 0))?);
        }
    }
    if !ad.is_empty() {
        ads.push(ad);
    }
    Ok(ads)
}

/// The attribute on a line; `None` if the line is blank or a comment.
pub(crate) fn attribute(line: &str) -> Result<Option<(Name, Expr)>, ParseError> {
    let trimmed = line.trim_matches(is_space);
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(None);
    }
    let Some((name, value)) = line.split_once('=') else {
        let wanted = "'=' after the attribute name".to_owned();
        return Err(ParseError::at(line, line.len(), wanted, "end of line".to_owned()));
    };
    let before = name.chars().count() + 1;
    // HTCondor strips only spaces before the `=`; a tab there belongs to the name.
    let name = name.trim_start_matches(is_space).trim_end_matches(' ');
    if name.is_empty() {
        let wanted = "an attribute name".to_owned();
        return Err(ParseError::at(line, before - 1, wanted, "'='".to_owned()));
    }
    let expr = parser::expression_prefix(value, Dialect::Old).map_err(|error| error.shifted(0, before))?;
    Ok(Some((name.into(), expr)))
}
