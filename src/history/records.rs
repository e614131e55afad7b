//! Ads with their banners, in either direction.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use classad::{Ad, Name};

use crate::banner::{Banner, MARK};
use crate::lines::{Backwards, Forwards, Line};

/// The most bytes of an ad that are read: a longer text is no ad, or is damaged.
const LONGEST: usize = 32 << 20;

/// From which end a history is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The newest first.
    #[default]
    Backwards,
    /// The oldest first.
    Forwards,
}

/// An ad as it stands in a file. The ad is parsed when it is asked for: most readers want few of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The banner; an empty one if the file ends without.
    pub banner: Banner,
    /// Where the first line after the banner before begins in the file.
    pub begin: u64,
    /// Where the next ad begins in the file.
    pub end: u64,
    text: Vec<u8>,
    /// Whether the banner is there, with its end.
    closed: bool,
}

impl Record {
    /// Parses the ad.
    ///
    /// # Errors
    /// When the text is no ad.
    pub fn ad(&self) -> Result<Ad, classad::ParseError> {
        Ad::parse_long(&self.plain())
    }

    /// Parses the attributes of these names, and the attributes to which their expressions refer. Other lines are not parsed: to
    /// read few attributes of many takes a fraction of the time.
    ///
    /// # Errors
    /// When one of the lines that are parsed is no attribute.
    pub fn some(&self, names: &BTreeSet<Name>) -> Result<Ad, classad::ParseError> {
        let text = self.plain();
        let with_name = |line| str::split_once(line, '=').map(|(name, _)| (Name::from(name.trim()), line));
        let lines: HashMap<Name, &str> = text.lines().filter_map(with_name).collect();
        let (mut ad, mut wanted) = (Ad::new(), names.iter().cloned().collect::<Vec<_>>());
        while let Some(name) = wanted.pop() {
            let Some(line) = lines.get(&name).filter(|_| !ad.contains(name.as_str())) else { continue };
            if may_look_up(line) {
                return self.ad();
            }
            let Some((name, expr)) = Ad::parse_long_line(line)? else { continue };
            if expr.as_literal().is_none() {
                let found = expr.references();
                wanted.extend(found.my.into_iter().chain(found.bare));
            }
            ad.insert(name, expr);
        }
        Ok(ad)
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.plain().is_empty()
    }

    /// The text of the ad as it stands in the file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The lines that have attributes: neither empty ones nor comments.
    fn plain(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let is_plain = |line: &&str| !line.trim_start().is_empty() && !line.trim_start().starts_with('#');
        text.lines().filter(is_plain).flat_map(|line| [line, "\n"]).collect()
    }

    /// Whether the ad was written whole: the banner is there, and its checksum, if it has one, is that of the ad.
    pub fn is_whole(&self) -> bool {
        self.closed && self.banner.checksum.is_none_or(|sum| sum == crc32fast::hash(&self.text))
    }
}

/// Whether an expression may look up attributes whose names do not stand in it: by the function `eval`.
pub(crate) fn may_look_up(text: &str) -> bool {
    text.to_ascii_lowercase().contains("eval")
}

/// The ads of a file.
#[derive(Debug)]
pub struct Records<R = File> {
    way: Way<R>,
}

#[derive(Debug)]
enum Way<R> {
    /// The lines, and the banner of the next ad, which stands behind the ad and so is read first.
    Backwards(Backwards<R>, Option<Line>),
    Forwards(Forwards<BufReader<R>>),
}

impl<R: Read + Seek> Records<R> {
    /// The ads of a file. Backwards, the text behind the last banner is skipped, as by HTCondor's tool; forwards, that text is one
    /// more ad.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(mut file: R, direction: Direction) -> io::Result<Self> {
        match direction {
            Direction::Forwards => Self::from(file, 0),
            Direction::Backwards => {
                let end = file.seek(SeekFrom::End(0))?;
                let mut lines = Backwards::before(file, end)?;
                let last = loop {
                    match lines.next_line()? {
                        Some(line) if !is_banner(&line.text) => {}
                        found => break found,
                    }
                };
                Ok(Self { way: Way::Backwards(lines, last) })
            }
        }
    }

    /// The ads of a file from the oldest on, beginning at a place. At the place an ad must begin.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn from(mut file: R, place: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(place))?;
        Ok(Self { way: Way::Forwards(Forwards::new(BufReader::new(file), place)) })
    }

    /// The next ad.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        match &mut self.way {
            Way::Forwards(lines) => forwards(lines),
            Way::Backwards(lines, last) => backwards(lines, last),
        }
    }
}

fn is_banner(line: &[u8]) -> bool {
    line.starts_with(MARK.as_bytes())
}

fn forwards<R: io::BufRead>(lines: &mut Forwards<R>) -> io::Result<Option<Record>> {
    let mut record = Record::default();
    let mut begun = false;
    while let Some(line) = lines.next_line()? {
        if !begun {
            record.begin = line.begin;
            begun = true;
        }
        record.end = line.begin + line.text.len() as u64 + u64::from(line.ended);
        if is_banner(&line.text) {
            record.banner = Banner::parse(&String::from_utf8_lossy(&line.text));
            record.closed = line.ended;
            return Ok(Some(record));
        }
        if record.text.len() < LONGEST {
            record.text.extend_from_slice(&line.text);
            record.text.extend(line.ended.then_some(b'\n'));
        }
    }
    Ok(begun.then_some(record))
}

fn backwards<R: Read + Seek>(
    lines: &mut Backwards<R>,
    last: &mut Option<Line>,
) -> io::Result<Option<Record>> {
    let Some(banner) = last.take() else { return Ok(None) };
    let mut record = Record {
        banner: Banner::parse(&String::from_utf8_lossy(&banner.text)),
        begin: banner.begin,
        end: banner.begin + banner.text.len() as u64 + u64::from(banner.ended),
        text: Vec::new(),
        closed: banner.ended,
    };
    let (mut found, mut length) = (Vec::new(), 0);
    while let Some(line) = lines.next_line()? {
        if is_banner(&line.text) {
            *last = Some(line);
            break;
        }
        record.begin = line.begin;
        length += line.text.len();
        if length < LONGEST {
            found.push(line.text);
        }
    }
    for line in found.iter().rev() {
        record.text.extend_from_slice(line);
        record.text.push(b'\n');
    }
    Ok(Some(record))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8], direction: Direction) -> Vec<Record> {
        let mut records = Records::of(Cursor::new(text), direction).unwrap();
        std::iter::from_fn(|| records.next_record().unwrap()).collect()
    }

    #[test]
    fn what_stands_behind_the_last_banner_is_no_ad_of_the_past() {
        let text = b"ClusterId = 1\n*** ClusterId = 1\n# a comment\n\nClusterId = 2\n*** ClusterId = 2\nClusterId = 3\n";
        let ids =
            |records: Vec<Record>| records.iter().map(|record| record.banner.cluster).collect::<Vec<_>>();
        let back = read(text, Direction::Backwards);
        assert_eq!(back[0].ad().unwrap().to_string(), "[ ClusterId = 2 ]");
        assert_eq!(ids(back), [Some(2), Some(1)]);
        assert_eq!(ids(read(text, Direction::Forwards)), [Some(1), Some(2), None]);
    }

    #[test]
    fn some_attributes_come_with_those_that_they_refer_to() {
        let text =
            b"A = MY.B + 1\nB = c * 2\nC = 3\nD = \"=\"\nE = eval(\"A\")\nF = = 1\n*** ClusterId = 1\n";
        let record = &read(text, Direction::Forwards)[0];
        let some = |names: &[&str]| {
            let names = names.iter().map(|name| Name::from(*name)).collect();
            record
                .some(&names)
                .map(|ad| ad.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(some(&["a"]).unwrap(), "A B C");
        assert_eq!(some(&["d", "missing"]).unwrap(), "D");
        assert!(some(&["F"]).is_err());
        assert!(some(&["E"]).is_err(), "the whole ad is read, which has a wrong line");
    }

    proptest! {
        #[test]
        fn the_same_ads_are_read_in_both_directions(parts in prop::collection::vec(prop_oneof![
            Just("a = 1\n"), Just("*** ClusterId = 7\n"), Just("***\n"), Just("\n"), Just("x"), Just("é")], 0..30)) {
            let text = parts.concat() + "\n*** ClusterId = 1\n";
            let mut back = read(text.as_bytes(), Direction::Backwards);
            back.reverse();
            prop_assert_eq!(back, read(text.as_bytes(), Direction::Forwards));
        }
    }
}
