//! Reads words that several tools take: jobs, widths, forms, limits, lists of names, columns.

use classad::Name;

use crate::autoformat::Formats;
use crate::long::Form;
use crate::options::Words;
use crate::screen::Width;

/// The most columns that `-wide:` takes.
const WIDEST: usize = 100_000;

/// A job or a proc: ClusterId, or ClusterId.ProcId. `None`: the word is neither.
pub fn job_id(word: &str) -> Option<(i64, Option<i64>)> {
    match word.split_once('.') {
        Some((cluster, proc)) => Some((cluster.parse().ok()?, Some(proc.parse().ok()?))),
        None => Some((word.parse().ok()?, None)),
    }
}

/// As [`job_id`], for condor_q, condor_qedit and condor_history: the words `12.` and `12.-1` mean the whole cluster, too.
pub fn job_in_queue(word: &str) -> Option<(i64, Option<i64>)> {
    let whole = word.strip_suffix("-1").unwrap_or(word).strip_suffix('.');
    let whole = whole.filter(|cluster| cluster.bytes().all(|byte| byte.is_ascii_digit()));
    job_id(whole.unwrap_or(word))
}

/// A message for standard error, as HTCondor's tools begin it.
pub(crate) fn error(message: String) -> String {
    format!("Error: {message}")
}

/// The width of `-wide` and `-wide:80`. `None`: that of the terminal, which `-wide:` and `-wide:0` mean.
pub(crate) fn wide(more: Option<&str>) -> Result<Option<Width>, String> {
    let Some(more) = more else { return Ok(Some(Width::Wide)) };
    if more.is_empty() {
        return Ok(None);
    }
    let columns = more.parse().ok().filter(|columns| *columns <= WIDEST);
    let columns = columns.ok_or_else(|| format!("Error: -wide:{more}: '{more}' is no number of columns"))?;
    Ok((columns > 0).then_some(Width::Columns(columns)))
}

/// The form of `-long` and `-long:json`.
pub(crate) fn form(more: Option<&str>) -> Result<Form, String> {
    let name = more.unwrap_or("long");
    // The order of attributes is always that of their names.
    let name = if name == "nosort" { "long" } else { name };
    Form::named(name).ok_or_else(|| format!("Error: -long:{name}: the forms are long, json, xml and new"))
}

/// The number behind `-limit`.
pub(crate) fn limit(words: &mut Words) -> Result<usize, String> {
    let text = words.needed("limit", "the max number of results as an argument.")?;
    let number = text.parse::<usize>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("Error: {text} is not a valid for -limit."))
}

/// The names of a list that commas or spaces separate.
pub(crate) fn names(list: &str) -> Vec<Name> {
    list.split([',', ' ']).filter(|name| !name.is_empty()).map(Name::from).collect()
}

/// Adds the column of `-format`. `what` names the words that the option needs, for the error.
pub(crate) fn format(columns: &mut Formats, words: &mut Words, what: &str) -> Result<(), String> {
    let format = words.needed("format", what)?;
    let expression = words.needed("format", what)?;
    columns.format(format, expression).map_err(error)
}

/// Adds the columns of `-aaf`. `letters` stand behind the option's colon; `permitted` says which of them may.
pub(crate) fn append(
    columns: &mut Formats,
    letters: &str,
    asked: &[&str],
    permitted: &str,
) -> Result<(), String> {
    if letters.len() > 1 || !"VrTY".contains(letters) {
        return Err(format!(
            "Error: {letters} is invalid -aaf format qualifier. only one of {permitted} is permitted."
        ));
    }
    columns.autoformat(&format!("h{letters}"), asked).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_columns_are_those_of_the_terminal() {
        for (more, expected) in [
            (None, Ok(Some(Width::Wide))),
            (Some("80"), Ok(Some(Width::Columns(80)))),
            (Some("0"), Ok(None)),
            (Some(""), Ok(None)),
            (Some("x"), Err("Error: -wide:x: 'x' is no number of columns".to_owned())),
        ] {
            assert_eq!(wide(more), expected, "{more:?}");
        }
    }

    #[test]
    fn a_job_is_a_number_and_a_proc_two() {
        for (word, expected) in [
            ("12", Some((12, None))),
            ("12.3", Some((12, Some(3)))),
            ("ada", None),
            ("12.", None),
            ("12.x", None),
            (".3", None),
        ] {
            assert_eq!(job_id(word), expected, "{word}");
        }
        for (word, expected) in [
            ("12.", Some((12, None))),
            ("12.-1", Some((12, None))),
            ("12.3", Some((12, Some(3)))),
            ("12", Some((12, None))),
            ("ada.", None),
            (".", None),
        ] {
            assert_eq!(job_in_queue(word), expected, "{word}");
        }
    }
}
