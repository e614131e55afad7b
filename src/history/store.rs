//! Writes a history: appends ads, rotates files, and cuts off the remains of a crash.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use classad::Ad;

use crate::banner::{Banner, MARK};
use crate::files::{rotated, rotated_name};
use crate::records::{Direction, Record, Records};

/// The name of the file that grows.
const NAME: &str = "history";
/// The name of the file whose lock keeps other writers away.
const LOCK: &str = "history.lock";
/// How many times [`Limits::rotations`] files are kept while a reader has not read the oldest.
const PATIENCE: usize = 4;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `MAX_HISTORY_LOG`: how many bytes a file may have before it is rotated.
    pub max_log: u64,
    /// `MAX_HISTORY_ROTATIONS`: how many files are kept beside the one that grows.
    pub rotations: usize,
}

impl Default for Limits {
    /// HTCondor's defaults: three files of 20 MiB.
    fn default() -> Self {
        Self { max_log: 20 << 20, rotations: 2 }
    }
}

/// The outcome of a [`Store::append`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// How many ads were written.
    pub written: usize,
    /// How many ads were left out, since the history had them before.
    pub known: usize,
    /// How many ads that a reader had not read were removed with their files, because there were too many files.
    pub lost_unread: u64,
}

/// One file.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    bytes: u64,
    /// The number of the file's last ad.
    last: u64,
    /// The number of the ad before the file's first.
    before: u64,
    /// Whose ends its ads tell.
    known: HashSet<Key>,
}

/// Which end of which proc an ad tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The hash of the ad's `GlobalJobId`.
    proc: u64,
    /// Whether the proc completed, as `JobStatus` 4 says; else somebody removed the proc.
    completed: bool,
}

/// A history that this process alone writes.
#[derive(Debug)]
pub struct Store {
    limits: Limits,
    current: PathBuf,
    file: File,
    /// Where the last banner of the file begins; 0 without one.
    last_banner: u64,
    /// The oldest first; the last is the file that grows, and always there.
    segments: VecDeque<Segment>,
    /// How many bytes of an ad that was not written whole were cut off when the store was opened.
    pub cut: u64,
    /// Whether a write has failed whose remains could not be cut off yet.
    torn: bool,
    /// The lock of the directory, which is released when the store is dropped.
    _lock: File,
}

impl Key {
    /// Whether these ends have this one, or make it superfluous: a proc that completed is not removed.
    fn is_in(self, known: &HashSet<Self>) -> bool {
        known.contains(&Self { completed: true, ..self }) || known.contains(&self)
    }
}

impl Store {
    /// The file that grows, in a directory.
    pub fn file_in(directory: &Path) -> PathBuf {
        directory.join(NAME)
    }

    /// Opens the history in a directory, or begins one. Cuts off the part of an ad that a crash has left.
    ///
    /// # Errors
    /// When the directory cannot be made or its files cannot be read; [`io::ErrorKind::WouldBlock`] when another process writes to
    /// the directory.
    pub fn open(directory: &Path, limits: Limits) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        let current = Self::file_in(directory);
        let mut segments = VecDeque::new();
        for path in rotated(&current)? {
            let (segment, ..) = Segment::read(path)?;
            segments.push_back(segment);
        }
        let file = open_to_append(&current)?;
        let (mut newest, last_banner, good) = Segment::read(current.clone())?;
        if newest.last == 0 {
            newest.last = segments.back().map_or(0, |segment: &Segment| segment.last);
            newest.before = newest.last;
        }
        let cut = newest.bytes - good;
        if cut > 0 {
            file.set_len(good)?;
            file.sync_all()?;
            newest.bytes = good;
        }
        segments.push_back(newest);
        sync_directory(&current)?;
        Ok(Self { limits, current, file, last_banner, segments, cut, torn: false, _lock: lock })
    }

    /// The number of the last ad; 0 before the first.
    pub fn last(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.last)
    }

    /// How many bytes all files have.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Appends ads, and returns once they are on the disk. An ad whose `GlobalJobId` is in the history is left out,
    /// unless the proc completed and the history has only the proc's removal: an operator that loses its Lease may have
    /// removed a proc that ran on under the next operator. `now` is in seconds since 1970. `read` is for a reader who
    /// should miss no ad: the number of the last ad that this reader has read. Files with later ads are kept for
    /// longer, up to four times as many files as the limits say.
    ///
    /// # Errors
    /// When the ads cannot be written. Then none of them is in the history.
    pub fn append(&mut self, ads: &[Ad], now: i64, read: Option<u64>) -> io::Result<Appended> {
        if self.torn {
            self.file.set_len(self.newest_bytes())?;
            self.torn = false;
        }
        let mut appended = Appended::default();
        let mut fresh: Vec<(Vec<u8>, Option<Key>, Banner)> = Vec::new();
        let mut keys = HashSet::new();
        for ad in ads {
            let text = long(ad);
            let key = key_of(&text);
            if key.is_some_and(|key| self.is_known(key) || key.is_in(&keys)) {
                appended.known += 1;
                continue;
            }
            keys.extend(key);
            fresh.push((text, key, Banner::of(ad, now)));
        }
        if fresh.is_empty() {
            return Ok(appended);
        }
        let size: usize = fresh.iter().map(|(text, ..)| text.len() + 160).sum();
        if self.newest_bytes() > 0 && self.newest_bytes() + size as u64 > self.limits.max_log {
            appended.lost_unread = self.rotate(now, read)?;
        }
        let (mut bytes, mut sequence, mut last_banner) =
            (Vec::with_capacity(size), self.last(), self.last_banner);
        for (text, _, banner) in &mut fresh {
            sequence += 1;
            banner.sequence = Some(sequence);
            banner.checksum = Some(crc32fast::hash(text));
            bytes.extend_from_slice(text);
            let begin = self.newest_bytes() + bytes.len() as u64;
            bytes.extend_from_slice(banner.line(last_banner).as_bytes());
            last_banner = begin;
        }
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            self.torn = self.file.set_len(self.newest_bytes()).is_err();
            return Err(error);
        }
        self.last_banner = last_banner;
        appended.written = fresh.len();
        if let Some(newest) = self.segments.back_mut() {
            newest.bytes += bytes.len() as u64;
            newest.last = sequence;
            newest.known.extend(fresh.iter().filter_map(|(_, key, _)| *key));
        }
        Ok(appended)
    }

    fn newest_bytes(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.bytes)
    }

    fn is_known(&self, key: Key) -> bool {
        self.segments.iter().any(|segment| key.is_in(&segment.known))
    }

    /// Gives the file that grows its final name, begins another file, and removes the oldest files if there are too many. Returns
    /// how many of the removed ads the reader had not read.
    fn rotate(&mut self, now: i64, read: Option<u64>) -> io::Result<u64> {
        // Two rotations in a second must not have the same name, nor one after the clock was set back an older name.
        let mut later = now;
        while self
            .segments
            .iter()
            .rev()
            .skip(1)
            .any(|segment| segment.path >= rotated_name(&self.current, later))
        {
            later += 1;
        }
        let path = rotated_name(&self.current, later);
        fs::rename(&self.current, &path)?;
        let last = self.last();
        if let Some(newest) = self.segments.back_mut() {
            newest.path = path;
        }
        let empty =
            Segment { path: self.current.clone(), bytes: 0, last, before: last, known: HashSet::new() };
        self.segments.push_back(empty);
        self.last_banner = 0;
        self.file = open_to_append(&self.current)?;
        sync_directory(&self.current)?;
        Ok(self.remove_extra(read))
    }

    fn remove_extra(&mut self, read: Option<u64>) -> u64 {
        let mut lost = 0;
        while self.segments.len() > self.limits.rotations + 1 {
            let Some(oldest) = self.segments.front() else { break };
            let unread = read.map_or(0, |read| oldest.last.saturating_sub(read.max(oldest.before)));
            if unread > 0 && self.segments.len() <= self.limits.rotations * PATIENCE + 1 {
                break;
            }
            // A file that cannot be removed now is found again by the next start.
            let _ = fs::remove_file(&oldest.path);
            lost += unread;
            self.segments.pop_front();
        }
        lost
    }
}

impl Segment {
    /// Reads a file. Returns the file, and the places in the file at which the banner of the last whole ad begins and at which that
    /// ad ends. A whole ad is one that was written to its end.
    fn read(path: PathBuf) -> io::Result<(Self, u64, u64)> {
        let file = File::open(&path)?;
        let bytes = file.metadata()?.len();
        let mut segment = Self { path, bytes, last: 0, before: 0, known: HashSet::new() };
        let mut records = Records::of(file, Direction::Forwards)?;
        let (mut last_banner, mut good) = (0, 0);
        while let Some(record) = records.next_record()? {
            if !record.is_whole() {
                continue;
            }
            last_banner = record.begin + record.text().len() as u64;
            good = record.end;
            segment.take(&record);
        }
        Ok((segment, last_banner, good))
    }

    fn take(&mut self, record: &Record) {
        if let Some(sequence) = record.banner.sequence {
            if self.last == 0 {
                self.before = sequence.saturating_sub(1);
            }
            self.last = self.last.max(sequence);
        }
        self.known.extend(key_of(record.text()));
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Puts the names of the files beside a file on the disk.
fn sync_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

/// The ad in the long form. No line can be taken for a banner or a comment, and no value ends a line.
fn long(ad: &Ad) -> Vec<u8> {
    let mut text = String::new();
    for (name, expr) in ad {
        let line = format!("{name} = {}", expr.to_old()).replace(['\n', '\r'], " ");
        if !line.starts_with(MARK) && !line.starts_with('#') {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// Which end the ad tells; `None` if the ad has no `GlobalJobId`.
fn key_of(text: &[u8]) -> Option<Key> {
    let value = |name: &[u8]| text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name));
    let mut hasher = DefaultHasher::new();
    value(b"GlobalJobId = ")?.hash(&mut hasher);
    Some(Key { proc: hasher.finish(), completed: value(b"JobStatus = ") == Some(b"4") })
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
