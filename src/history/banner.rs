//! The banner: the line that ends an ad.

use classad::{Ad, Env, Expr};

/// The beginning of every banner.
pub(crate) const MARK: &str = "***";

/// A banner: which job's ad stands above, and when the ad was written. A field that the banner lacks is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Banner {
    /// The type of the ad in capitals: the first word if the word is no name of a pair, otherwise `JOB`.
    pub kind: String,
    /// `ClusterId`.
    pub cluster: Option<i64>,
    /// `ProcId`.
    pub proc: Option<i64>,
    /// `Owner`.
    pub owner: Option<String>,
    /// `CompletionDate`, in seconds since 1970.
    pub completed: Option<i64>,
    /// `CurrentTime`: when the ad was written, in seconds since 1970.
    pub written: Option<i64>,
    /// `Sequence`: the ad's number in its history.
    pub sequence: Option<u64>,
    /// `Checksum`: the CRC-32 of the ad.
    pub checksum: Option<u32>,
}

impl Banner {
    /// The banner of an ad that is written at a time, in seconds since 1970. Number and checksum are `None`.
    pub fn of(ad: &Ad, written: i64) -> Self {
        let env = Env::at(written);
        let number = |name: &str| ad.eval_attr(name, None, &env).as_int();
        Self {
            kind: "JOB".to_owned(),
            cluster: number("ClusterId"),
            proc: number("ProcId"),
            owner: ad.eval_attr("Owner", None, &env).as_str().map(str::to_owned),
            completed: number("CompletionDate"),
            written: Some(written),
            sequence: None,
            checksum: None,
        }
    }

    /// Reads a line that begins with `***`. Skips pairs that are not known.
    pub fn parse(line: &str) -> Self {
        let text = line.trim_start_matches('*').trim();
        let mut banner = Self::default();
        let Some((before, _)) = text.split_once('=') else { return banner };
        let mut rest = text;
        match before.trim_end().rsplit_once([' ', '\t']) {
            // Words before the first name are the type of the ad.
            Some((kind, _)) => {
                let kind = kind.split_whitespace().next().unwrap_or_default();
                banner.kind = kind.to_ascii_uppercase();
                rest = text.strip_prefix(kind).unwrap_or(text).trim_start();
            }
            None => "JOB".clone_into(&mut banner.kind),
        }
        while let Some((name, value)) = rest.split_once('=') {
            let value = value.trim_start();
            let end = end_of_value(value);
            let (value, behind) = value.split_at_checked(end).unwrap_or((value, ""));
            banner.take(name.trim(), value);
            rest = behind.trim_start();
        }
        banner
    }

    fn take(&mut self, name: &str, value: &str) {
        let number = || value.parse::<i64>().ok();
        match name.to_ascii_lowercase().as_str() {
            "clusterid" => self.cluster = number().filter(|id| *id > 0),
            "procid" => self.proc = number().filter(|id| *id >= 0),
            "owner" => self.owner = string(value),
            "completiondate" => self.completed = number().filter(|time| *time >= 0),
            "currenttime" => self.written = number(),
            "sequence" => self.sequence = value.parse().ok(),
            "checksum" => self.checksum = value.parse().ok(),
            _ => {}
        }
    }

    /// The line of the banner, with its end. `offset` is the place in the file at which the banner before begins, or 0 without one.
    pub fn line(&self, offset: u64) -> String {
        use std::fmt::Write;
        let id = |id: Option<i64>| id.unwrap_or(-1);
        let owner = Expr::literal(self.owner.as_deref().unwrap_or("?")).to_old();
        let mut line = format!(
            "{MARK} Offset = {offset} ClusterId = {} ProcId = {} Owner = {owner} CompletionDate = {}",
            id(self.cluster),
            id(self.proc),
            id(self.completed),
        );
        if let Some(written) = self.written {
            let _ = write!(line, " CurrentTime = {written}");
        }
        if let Some(sequence) = self.sequence {
            let _ = write!(line, " Sequence = {sequence}");
        }
        if let Some(checksum) = self.checksum {
            let _ = write!(line, " Checksum = {checksum}");
        }
        line.push('\n');
        line
    }
}

/// Where a value ends: at its closing quote, or before the next blank.
fn end_of_value(value: &str) -> usize {
    if !value.starts_with('"') {
        return value.find([' ', '\t']).unwrap_or(value.len());
    }
    let mut escaped = false;
    for (at, char) in value.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    value.len()
}

fn string(value: &str) -> Option<String> {
    let value = Expr::parse_old(value).ok()?;
    value.as_literal().and_then(|value| value.as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_is_read_as_it_is_written() {
        let banner = Banner {
            kind: "JOB".to_owned(),
            cluster: Some(12),
            proc: Some(0),
            owner: Some("a \"b\" = c".to_owned()),
            completed: Some(1_893_460_000),
            written: Some(1_893_460_001),
            sequence: Some(7),
            checksum: Some(99),
        };
        let line = banner.line(40);
        assert_eq!(
            line,
            "*** Offset = 40 ClusterId = 12 ProcId = 0 Owner = \"a \\\"b\\\" = c\" CompletionDate = 1893460000 \
             CurrentTime = 1893460001 Sequence = 7 Checksum = 99\n"
        );
        assert_eq!(Banner::parse(line.trim_end()), banner);
    }

    #[test]
    fn banners_of_others_are_read() {
        let of_a_schedd = "*** Offset = 0 ClusterId = 3 ProcId = 1 Owner = \"ada\" CompletionDate = -1";
        let banner = Banner::parse(of_a_schedd);
        assert_eq!((banner.kind.as_str(), banner.cluster, banner.proc), ("JOB", Some(3), Some(1)));
        assert_eq!((banner.owner.as_deref(), banner.completed), (Some("ada"), None));
        let epoch =
            Banner::parse("*** EPOCH ClusterId=5 ProcId=0 RunInstanceId=0 Owner=\"bob\" CurrentTime=9");
        assert_eq!((epoch.kind.as_str(), epoch.cluster, epoch.written), ("EPOCH", Some(5), Some(9)));
        for line in ["***", "*** ", "*** =", "*** x", "*** = = =", "*** Owner = \"", "***\u{e9} = \u{e9}"] {
            assert_eq!(Banner::parse(line).cluster, None, "{line}");
        }
    }
}
