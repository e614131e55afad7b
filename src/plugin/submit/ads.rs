//! The ads of jobs, as dry runs and `-verbose` print them.

use std::fs;
use std::io::Write;

use ::submit::Cluster as Jobs;
use ::submit::manifest;

use super::{Error, Printed, Request};

/// A proc's ad as `-verbose` prints it, with the number of the cluster. If the job got none in time, the ad has no line with the number.
pub(super) fn verbose(proc: usize, ad: &str, number: Option<i64>) -> String {
    let placeholder = manifest::CLUSTER.to_string();
    if let Some(number) = number {
        return format!("\n** Proc {number}.{proc}:\n{}", ad.replace(&placeholder, &number.to_string()));
    }
    let known = ad.lines().filter(|line| !line.contains(&placeholder));
    known.fold(format!("\n** Proc {proc}:\n"), |text, line| text + line + "\n")
}

/// The ads in long form: the first proc's with the cluster's, the others' own attributes.
pub(super) fn ads(jobs: &Jobs) -> Vec<String> {
    let first = |ad: &classad::Ad| {
        let mut whole = jobs.ad.clone();
        whole.update(ad);
        whole
    };
    let procs = jobs.procs.iter().enumerate();
    procs.map(|(number, proc)| long(&if number == 0 { first(&proc.ad) } else { proc.ad.clone() })).collect()
}

/// The ads of all procs with all attributes.
pub(super) fn whole(jobs: &Jobs) -> Vec<String> {
    let whole = |proc: &::submit::Proc| {
        let mut whole = jobs.ad.clone();
        whole.update(&proc.ad);
        long(&whole)
    };
    jobs.procs.iter().map(whole).collect()
}

/// An ad as condor_submit writes one: without blanks around the equals sign.
fn long(ad: &classad::Ad) -> String {
    let lines: Vec<String> = ad.iter().map(|(name, expr)| format!("{name}={}\n", expr.to_old())).collect();
    lines.concat()
}

/// Writes the ads, and the lines of condor_submit around them. Only the name condor_submit has these lines on standard output, so that
/// other commands can read the ads.
pub(super) fn dry_run(
    request: &Request,
    jobs: &Jobs,
    path: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Error> {
    let mut say = |line: String, out: &mut dyn Write| {
        if request.as_condor_submit { writeln!(out, "{line}") } else { writeln!(err, "{line}") }
    };
    if request.printed != Printed::Terse {
        say(format!("Dry-Run job(s){}", ".".repeat(jobs.procs.len().min(60))), out)?;
    }
    written(path, &ads(jobs), out)?;
    let last = jobs.procs.len().saturating_sub(1);
    if request.printed == Printed::Terse {
        say(format!("1.0 - 1.{last}"), out)?;
    } else {
        say(format!("{} job(s) dry-run to cluster 1.", jobs.procs.len()), out)?;
    }
    Ok(())
}

/// Writes ads to a file, or to `out`.
pub(super) fn written(path: &str, ads: &[String], out: &mut dyn Write) -> Result<(), Error> {
    let text = ads.iter().flat_map(|ad| [ad.as_str(), "\n"]).collect::<String>();
    if path == "-" {
        out.write_all(text.as_bytes())?;
        return Ok(());
    }
    fs::write(path, text).map_err(|error| Error::File(path.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ads_of_verbose_have_the_number_of_the_job() {
        let ad = format!("ClusterId={0}\nCmd=\"sleep\"\nOut=\"{0}.out\"\n", manifest::CLUSTER);
        let said = "\n** Proc 12.3:\nClusterId=12\nCmd=\"sleep\"\nOut=\"12.out\"\n";
        assert_eq!(verbose(3, &ad, Some(12)), said);
        assert_eq!(verbose(3, &ad, None), "\n** Proc 3:\nCmd=\"sleep\"\n");
    }
}
