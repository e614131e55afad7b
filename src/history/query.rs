//! Reads a store page by page, so that the size of an answer is bounded although the size of the history is not.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::io::{self, Seek};
use std::path::Path;

use classad::{Ad, Name};

use crate::files::Files;
use crate::records::{Direction, Record, Records};
use crate::search::{Search, Searching};

/// A page that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The search. Its limits hold for this page: the caller subtracts what earlier pages have used.
    pub search: Search,
    /// The attributes that are shown, without the attributes to which their expressions refer, which are shown, too; `None`: all.
    pub attributes: Option<BTreeSet<Name>>,
    /// The [`PageEnd::next`] of the page before; `None` for the first page.
    pub from: Option<u64>,
    /// A page ends with the ad that makes it as long as this.
    pub most_bytes: usize,
}

/// A page: ads with their banners, then a line that says how the page ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The text, with the line at its end.
    pub text: Vec<u8>,
    /// How the page ends.
    pub end: PageEnd,
}

/// How a page ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageEnd {
    /// How many ads the page has.
    pub found: usize,
    /// How many ads were looked at.
    pub scanned: usize,
    /// How many ads were skipped since they are damaged.
    pub damaged: usize,
    /// The number of the last ad that was passed, from which the next page goes on; `None`: there is no more.
    pub next: Option<u64>,
}

/// The beginning of the line at the end of a page.
const END: &str = "*** END ";

impl PageEnd {
    fn line(self) -> String {
        let mut line =
            format!("{END}Found = {} Scanned = {} Damaged = {}", self.found, self.scanned, self.damaged);
        if let Some(next) = self.next {
            let _ = write!(line, " Next = {next}");
        }
        line.push('\n');
        line
    }

    /// Takes the last line off a page. `None`: the page lacks that line, since something cut the page off.
    pub fn split(page: &[u8]) -> Option<(&[u8], Self)> {
        let whole = page.strip_suffix(b"\n")?;
        let at = memchr::memrchr(b'\n', whole).map_or(0, |at| at + 1);
        let (ads, line) = whole.split_at_checked(at)?;
        let line = std::str::from_utf8(line).ok()?.strip_prefix(END)?;
        let words: Vec<&str> = line.split(' ').collect();
        let mut end = Self::default();
        for words in words.chunks(3) {
            let [name, "=", value] = words else { return None };
            match *name {
                "Found" => end.found = value.parse().ok()?,
                "Scanned" => end.scanned = value.parse().ok()?,
                "Damaged" => end.damaged = value.parse().ok()?,
                "Next" => end.next = Some(value.parse().ok()?),
                _ => {}
            }
        }
        Some((ads, end))
    }
}

impl Query {
    /// Reads the page from the files of a history. `now` is the time that expressions see; `late` says whether the page has to end.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn page(&self, current: &Path, now: i64, late: &dyn Fn() -> bool) -> io::Result<Page> {
        let mut files = Files::open(current)?.files;
        if self.search.direction == Direction::Backwards {
            files.reverse();
        }
        let mut reads = self.search.reads();
        if let Some(names) = &mut reads {
            names.extend(self.attributes.iter().flatten().cloned());
        }
        let mut reading = Reading {
            query: self,
            reads,
            searching: self.search.begin(now),
            page: Page::default(),
            passed: self.from,
            begun: false,
        };
        for (_, mut file) in files {
            if self.is_passed(&mut file)? {
                continue;
            }
            if !reading.read(Records::of(file, self.search.direction)?, late)? {
                reading.page.end.next = reading.passed;
                break;
            }
        }
        let mut page = reading.page;
        page.end.found = reading.searching.found;
        page.end.scanned = reading.searching.scanned;
        page.text.extend_from_slice(page.end.line().as_bytes());
        Ok(page)
    }

    /// Whether earlier pages have all ads of a file.
    fn is_passed(&self, file: &mut std::fs::File) -> io::Result<bool> {
        let Some(from) = self.from else { return Ok(false) };
        let last_in_turn = match self.search.direction {
            Direction::Backwards => Direction::Forwards,
            Direction::Forwards => Direction::Backwards,
        };
        let last = Records::of(&*file, last_in_turn)?.next_record()?;
        file.rewind()?;
        let sequence = last.and_then(|record| record.banner.sequence);
        Ok(sequence.is_some_and(|sequence| self.is_before(sequence, from)))
    }

    /// Whether the ad of number `sequence` stands before the ad of number `from` in the direction of reading, or is the same ad.
    fn is_before(&self, sequence: u64, from: u64) -> bool {
        match self.search.direction {
            Direction::Backwards => sequence >= from,
            Direction::Forwards => sequence <= from,
        }
    }
}

/// A page that is being read.
struct Reading<'q> {
    query: &'q Query,
    /// The attributes that are read of each ad; `None`: all.
    reads: Option<BTreeSet<Name>>,
    searching: Searching<'q>,
    page: Page,
    passed: Option<u64>,
    /// Whether this page has passed an ad. Each page passes one at least, so that pages get ahead.
    begun: bool,
}

impl Reading<'_> {
    /// Reads a file. False if the page is over and there may be more.
    fn read(&mut self, mut records: Records, late: &dyn Fn() -> bool) -> io::Result<bool> {
        while let Some(record) = records.next_record()? {
            if self.searching.is_over() {
                self.passed = None;
                return Ok(false);
            }
            // The store has numbered each ad that it wrote: an ad without a number is somebody else's.
            let Some(sequence) = record.banner.sequence else { continue };
            if self.passed.is_some_and(|passed| self.query.is_before(sequence, passed)) {
                continue;
            }
            if (self.page.text.len() >= self.query.most_bytes || late()) && self.begun {
                return Ok(false);
            }
            (self.passed, self.begun) = (Some(sequence), true);
            if self.searching.wants(&record.banner) {
                self.take(&record);
            }
        }
        Ok(true)
    }

    fn take(&mut self, record: &Record) {
        let ad = self.reads.as_ref().map_or_else(|| record.ad(), |names| record.some(names));
        let ad = match ad {
            Ok(ad) if record.is_whole() => ad,
            _ => {
                self.page.end.damaged += 1;
                return;
            }
        };
        if !self.searching.look_at(&ad) {
            return;
        }
        match &self.query.attributes {
            None => self.page.text.extend_from_slice(record.text()),
            Some(names) => self.page.text.extend_from_slice(some(&ad, names).as_bytes()),
        }
        let banner = crate::Banner { checksum: None, ..record.banner.clone() };
        self.page.text.extend_from_slice(banner.line(0).as_bytes());
    }
}

/// The attributes of these names of an ad, and the attributes to which their expressions refer, in the long form.
fn some(ad: &Ad, names: &BTreeSet<Name>) -> String {
    let mut wanted: Vec<Name> = names.iter().cloned().collect();
    let mut shown: HashMap<Name, String> = HashMap::new();
    while let Some(name) = wanted.pop() {
        let Some(expr) = ad.get_name(&name).filter(|_| !shown.contains_key(&name)) else { continue };
        if expr.as_literal().is_none() {
            let found = expr.references();
            wanted.extend(found.my.into_iter().chain(found.bare));
        }
        shown.insert(name, expr.to_old());
    }
    let mut lines: Vec<String> =
        shown.iter().map(|(name, expr)| format!("{name} = {}\n", expr.replace(['\n', '\r'], " "))).collect();
    lines.sort_unstable();
    lines.concat()
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
