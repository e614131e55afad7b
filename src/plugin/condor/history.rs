//! `condor_history`: jobs that have left the queue, of a history file or of the operator.

use std::env;
use std::fs::File;
use std::path::Path;

use ::history::{Direction, Files, PageEnd, Records};
use api::history::{PORT, TOKEN_HEADER, TOKEN_KEY, TOKEN_SECRET_HEADER};
use classad::Ad;
use tools::history::{self, Asked, Printer, Request};

use super::{Answer, Failure, Outcome, place};
use crate::cluster::{Cluster, Connection, Proxied};

/// Namespace and name of the history's Service, as the chart names it in the release `slotwright`.
const SERVICE: (&str, &str) = ("slotwright-system", "slotwright-history");

pub(super) async fn run(words: &[String], connection: &Connection, width: Option<usize>) -> Outcome {
    let request = match history::parse(words)? {
        Asked::Jobs(request) => *request,
        Asked::Help => return Ok(Answer { text: format!("{}\n", history::USAGE), ..Answer::default() }),
    };
    let screen = place::screen(width);
    let mut printer = request.printer(&screen);
    let mut answer = Answer { text: printer.head(), ..Answer::default() };
    if let Some(file) = &request.file {
        of_files(&request, Path::new(file), screen.now, |ad| see(ad, &mut printer, &mut answer.text))?;
    } else {
        let cluster = Cluster::connect(connection).await?;
        let Answer { text, notes, .. } = &mut answer;
        of_operator(&request, &cluster, notes, |ad| see(ad, &mut printer, text)).await?;
    }
    answer.text.push_str(&printer.foot());
    Ok(answer)
}

/// Prints an ad; `None` stands for an ad that cannot be read.
fn see(ad: Option<&Ad>, printer: &mut Printer, text: &mut String) {
    match ad {
        Some(ad) => printer.ad(ad, text),
        None => text.push_str(Printer::malformed()),
    }
}

fn of_files(
    request: &Request,
    file: &Path,
    now: i64,
    mut see: impl FnMut(Option<&Ad>),
) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure(format!("Error opening history file {}: {error}", file.display()));
    let search = &request.search;
    let mut searching = search.begin(now);
    if !request.rotated {
        let records = Records::of(File::open(file).map_err(failed)?, search.direction).map_err(failed)?;
        return searching.read(records, see).map_err(failed);
    }
    let mut files = Files::open(file).map_err(failed)?.files;
    if search.direction == Direction::Backwards {
        files.reverse();
    }
    if files.is_empty() {
        return Err(failed(std::io::ErrorKind::NotFound.into()));
    }
    for (_, file) in files {
        let records = Records::of(file, search.direction).map_err(failed)?;
        searching.read(records, &mut see).map_err(failed)?;
    }
    Ok(())
}

/// The last ad of a proc that the operator's history has, with what tells of the proc's end. `None`: there is none.
pub(crate) async fn last_ad(cluster: &Cluster, id: &str) -> Result<Option<Ad>, Failure> {
    let words = [
        id,
        "-limit",
        "1",
        "-af",
        "ExitCode",
        "ExitSignal",
        "LastRemoteHost",
        "JobCurrentStartDate",
        "CompletionDate",
    ];
    let words = words.map(str::to_owned);
    let Asked::Jobs(request) = history::parse(&words)? else { return Ok(None) };
    let mut found = None;
    of_operator(&request, cluster, &mut Vec::new(), |ad| found = ad.cloned()).await?;
    Ok(found)
}

/// Reads page after page from the operator.
async fn of_operator(
    request: &Request,
    cluster: &Cluster,
    notes: &mut Vec<String>,
    mut see: impl FnMut(Option<&Ad>),
) -> Result<(), Failure> {
    let (namespace, service) = service()?;
    let (mut left, mut scans, mut from, mut damaged) =
        (request.search.limit, request.search.scan_limit, None, 0);
    let mut token = None;
    loop {
        let path = path(request, (left, scans, from));
        let shown = token.as_deref().map(|token| (TOKEN_HEADER, token));
        let page = match cluster.proxied((&namespace, &service, PORT), &path, shown).await? {
            Proxied::Body(page) => page,
            Proxied::Refused { status: 401, headers, .. } if token.is_none() => {
                let secret = headers.get(TOKEN_SECRET_HEADER).and_then(|name| name.to_str().ok());
                let secret = secret.ok_or_else(|| {
                    Failure("the operator asks for a token, but names no Secret with the token".to_owned())
                })?;
                token = Some(cluster.secret(&namespace, secret, TOKEN_KEY).await?);
                continue;
            }
            Proxied::Refused { status, message, .. } => {
                return Err(refused(&namespace, &service, status, &message));
            }
        };
        let cut = || Failure("the answer was cut off; try again".to_owned());
        let (ads, end) = PageEnd::split(&page).ok_or_else(cut)?;
        let failed = |error: std::io::Error| Failure(error.to_string());
        let mut records = Records::of(std::io::Cursor::new(ads), Direction::Forwards).map_err(failed)?;
        while let Some(record) = records.next_record().map_err(failed)? {
            see(record.ad().ok().as_ref());
        }
        damaged += end.damaged;
        left = left.map(|left| left.saturating_sub(end.found));
        scans = scans.map(|scans| scans.saturating_sub(end.scanned));
        from = end.next;
        if from.is_none() || left == Some(0) || scans == Some(0) {
            break;
        }
    }
    if damaged > 0 {
        notes.push(format!("note: {damaged} ads of the history are damaged, and left out"));
    }
    Ok(())
}

/// The Service of the history: its namespace and name.
fn service() -> Result<(String, String), Failure> {
    let Some(named) = env::var("SLOTWRIGHT_HISTORY").ok().filter(|named| !named.is_empty()) else {
        return Ok((SERVICE.0.to_owned(), SERVICE.1.to_owned()));
    };
    let wrong = || Failure(format!("SLOTWRIGHT_HISTORY is {named}: give NAMESPACE/SERVICE"));
    named.split_once('/').map(|(namespace, name)| (namespace.to_owned(), name.to_owned())).ok_or_else(wrong)
}

/// The path and query of a page.
fn path(request: &Request, (left, scans, from): (Option<usize>, Option<usize>, Option<u64>)) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (cluster, proc) in &request.search.jobs {
        let id = proc.map_or_else(|| cluster.to_string(), |proc| format!("{cluster}.{proc}"));
        query.append_pair("job", &id);
    }
    for owner in &request.search.owners {
        query.append_pair("owner", owner);
    }
    for expr in &request.search.constraint {
        query.append_pair("constraint", &expr.to_old());
    }
    if let Some(since) = &request.search.since {
        query.append_pair("since", &since.to_old());
    }
    if request.search.direction == Direction::Forwards {
        query.append_pair("forwards", "true");
    }
    if let Some(names) = request.attributes() {
        let names: Vec<&str> = names.iter().map(classad::Name::as_str).collect();
        query.append_pair("attributes", &names.join(","));
    }
    for (name, number) in [("limit", left), ("scanlimit", scans)] {
        if let Some(number) = number {
            query.append_pair(name, &number.to_string());
        }
    }
    if let Some(from) = from {
        query.append_pair("from", &from.to_string());
    }
    format!("history?{}", query.finish())
}

fn refused(namespace: &str, service: &str, status: u16, message: &str) -> Failure {
    let message = message.trim_end();
    let what = match status {
        403 => format!(
            "not allowed to read the history: {message}; ask an admin for the Role {service}-reader in namespace {namespace}"
        ),
        404 => format!(
            "there is no history at Service {namespace}/{service}: {message}; an admin turns it on with the chart's history.enabled, and \
             SLOTWRIGHT_HISTORY=NAMESPACE/SERVICE names another Service"
        ),
        401 => format!("the operator does not take the token: {message}"),
        _ => format!("the history cannot be read: {status}: {message}"),
    };
    Failure(format!("Error: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_asked_for_with_all_that_is_wanted() {
        let words = ["12.3", "ada", "-constraint", "A == \"b c\"", "-since", "7", "-af", "Cmd"];
        let words: Vec<String> = words.map(str::to_owned).to_vec();
        let Ok(Asked::Jobs(request)) = history::parse(&words) else { panic!("{words:?}") };
        assert_eq!(
            path(&request, (Some(5), None, Some(70))),
            "history?job=12.3&owner=ada&constraint=A+%3D%3D+%22b+c%22&since=ClusterId+%3D%3D+7\
             &attributes=ClusterId%2CCmd%2CProcId%2CTotalSubmitProcs&limit=5&from=70"
        );
    }
}
