//! Each ad that was appended is in the history once, whatever happens between.

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn ad(cluster: i64, proc: i64) -> Ad {
    Ad::new()
        .with("ClusterId", cluster)
        .with("ProcId", proc)
        .with("Owner", "ada")
        .with("CompletionDate", 100 + proc)
        .with("GlobalJobId", format!("ns#{cluster}.{proc}#u").as_str())
}

/// The jobs of a history, the oldest first.
fn jobs(directory: &Path) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    for (_, file) in crate::Files::open(&Store::file_in(directory)).unwrap().files {
        let mut records = Records::of(file, Direction::Forwards).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            if record.is_whole() {
                let ad = record.ad().unwrap();
                let number = |name| ad.eval_attr(name, None, &classad::Env::at(0)).as_int().unwrap();
                found.push((number("ClusterId"), number("ProcId")));
            }
        }
    }
    found
}

#[test]
fn an_ad_is_written_once_also_by_the_next_process() {
    let directory = TempDir::new().unwrap();
    let mut store = Store::open(directory.path(), Limits::default()).unwrap();
    let appended = store.append(&[ad(1, 0), ad(1, 1), ad(1, 0)], 1000, None).unwrap();
    assert_eq!((appended.written, appended.known, store.last()), (2, 1, 2));
    assert_eq!(store.append(&[ad(1, 1)], 1001, None).unwrap().known, 1);
    drop(store);
    let mut store = Store::open(directory.path(), Limits::default()).unwrap();
    assert_eq!((store.last(), store.cut), (2, 0));
    let appended = store.append(&[ad(1, 1), ad(2, 0)], 1002, None).unwrap();
    assert_eq!((appended.written, appended.known, store.last()), (1, 1, 3));
    assert_eq!(jobs(directory.path()), [(1, 0), (1, 1), (2, 0)]);
}

#[test]
fn a_proc_that_was_removed_may_complete_and_not_the_other_way_round() {
    let directory = TempDir::new().unwrap();
    let mut store = Store::open(directory.path(), Limits::default()).unwrap();
    let (removed, completed) = (ad(1, 0).with("JobStatus", 3), ad(1, 0).with("JobStatus", 4));
    assert_eq!(store.append(&[removed.clone(), removed.clone()], 1000, None).unwrap().written, 1);
    drop(store);
    let mut store = Store::open(directory.path(), Limits::default()).unwrap();
    let appended = store.append(&[removed.clone(), completed.clone(), removed.clone()], 1001, None).unwrap();
    assert_eq!((appended.written, appended.known), (1, 2));
    assert_eq!(store.append(&[completed, removed], 1002, None).unwrap().written, 0);
    assert_eq!(jobs(directory.path()), [(1, 0), (1, 0)]);
}

#[test]
fn the_file_is_htcondors() {
    let directory = TempDir::new().unwrap();
    let mut store = Store::open(directory.path(), Limits::default()).unwrap();
    let forged = "x\n*** Offset = 0 ClusterId = 9 ProcId = 9 Owner = \"eve\" CompletionDate = 1\n";
    store.append(&[ad(1, 0).with("Note", forged), ad(1, 1)], 1000, None).unwrap();
    let text = fs::read_to_string(Store::file_in(directory.path())).unwrap();
    let banners: Vec<&str> = text.lines().filter(|line| line.starts_with("***")).collect();
    assert_eq!(banners.len(), 2, "{text}");
    assert!(banners[0].starts_with("*** Offset = 0 ClusterId = 1 ProcId = 0 Owner = \"ada\" CompletionDate = 100 CurrentTime = 1000 Sequence = 1 Checksum = "));
    let offset = text.find("\n***").unwrap() + 1;
    assert!(banners[1].starts_with(&format!("*** Offset = {offset} ClusterId = 1 ProcId = 1 ")), "{text}");
    drop(store);
    let mut store = Store::open(directory.path(), Limits::default()).unwrap();
    store.append(&[ad(2, 0)], 1001, None).unwrap();
    let text = fs::read_to_string(Store::file_in(directory.path())).unwrap();
    let second = text.match_indices("\n***").nth(1).unwrap().0 + 1;
    let last = text.lines().last().unwrap();
    assert!(last.starts_with(&format!("*** Offset = {second} ClusterId = 2 ")), "{last}");
}

#[test]
fn files_are_rotated_and_the_oldest_removed() {
    let directory = TempDir::new().unwrap();
    let limits = Limits { max_log: 600, rotations: 2 };
    let mut store = Store::open(directory.path(), limits).unwrap();
    for proc in 0..20 {
        store.append(&[ad(1, proc)], 1000, None).unwrap();
    }
    let left = jobs(directory.path());
    assert_eq!(left.last(), Some(&(1, 19)));
    assert!((3..9).contains(&left.len()), "{left:?}");
    assert_eq!(rotated(&Store::file_in(directory.path())).unwrap().len(), 2);
    assert!(store.bytes() <= 3 * 600);
    drop(store);
    // The numbers go on, also if the file that grows is new.
    fs::remove_file(Store::file_in(directory.path())).unwrap();
    let store = Store::open(directory.path(), limits).unwrap();
    assert!((17..20).contains(&store.last()), "{}", store.last());
}

#[test]
fn files_wait_for_a_reader_who_may_not_miss_one_but_not_for_ever() {
    let directory = TempDir::new().unwrap();
    let mut store = Store::open(directory.path(), Limits { max_log: 600, rotations: 1 }).unwrap();
    let mut lost = 0;
    for proc in 0..10 {
        lost += store.append(&[ad(1, proc)], 1000 + proc, Some(0)).unwrap().lost_unread;
    }
    assert_eq!((lost, jobs(directory.path()).first()), (0, Some(&(1, 0))));
    for proc in 10..40 {
        lost += store.append(&[ad(1, proc)], 1000 + proc, Some(0)).unwrap().lost_unread;
    }
    assert_eq!(usize::try_from(lost).unwrap() + jobs(directory.path()).len(), 40);
    let newest = store.last();
    for proc in 40..43 {
        assert_eq!(store.append(&[ad(1, proc)], 2000, Some(newest)).unwrap().lost_unread, 0);
    }
    assert!(jobs(directory.path()).len() < 10);
}

#[test]
fn two_processes_cannot_write() {
    let directory = TempDir::new().unwrap();
    let store = Store::open(directory.path(), Limits::default()).unwrap();
    assert_eq!(
        Store::open(directory.path(), Limits::default()).unwrap_err().kind(),
        io::ErrorKind::WouldBlock
    );
    drop(store);
    assert!(Store::open(directory.path(), Limits::default()).is_ok());
}

/// How a crash may leave the end of a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Zeros(usize),
    Garbage(Vec<u8>),
    Flip(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (0..2000_usize).prop_map(Damage::Cut),
        (1..600_usize).prop_map(Damage::Zeros),
        prop::collection::vec(any::<u8>(), 1..80).prop_map(Damage::Garbage),
        (0..5000_usize).prop_map(Damage::Flip),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// An ad that stands whole before the damage is never lost, and the store goes on.
    #[test]
    fn a_damaged_file_keeps_what_is_intact(count in 1..12_i64, damage in damage()) {
        let directory = TempDir::new().unwrap();
        let file = Store::file_in(directory.path());
        let ads: Vec<Ad> = (0..count).map(|proc| ad(1, proc)).collect();
        let mut ends = Vec::new();
        {
            let mut store = Store::open(directory.path(), Limits::default()).unwrap();
            for ad in &ads {
                store.append(std::slice::from_ref(ad), 1000, None).unwrap();
                ends.push(usize::try_from(fs::metadata(&file).unwrap().len()).unwrap());
            }
        }
        let mut bytes = fs::read(&file).unwrap();
        let from = match &damage {
            Damage::Cut(most) => bytes.len() - (*most).min(bytes.len()),
            Damage::Zeros(_) | Damage::Garbage(_) => bytes.len(),
            Damage::Flip(at) => at % bytes.len(),
        };
        match damage {
            Damage::Cut(_) => bytes.truncate(from),
            Damage::Zeros(length) => bytes.extend(vec![0; length]),
            Damage::Garbage(garbage) => bytes.extend(garbage),
            Damage::Flip(_) => bytes[from] ^= 0x20,
        }
        fs::write(&file, &bytes).unwrap();
        let intact = ends.iter().filter(|end| **end <= from).count();
        let mut store = Store::open(directory.path(), Limits::default()).unwrap();
        let before = jobs(directory.path());
        for proc in 0..intact {
            prop_assert!(before.contains(&(1, i64::try_from(proc).unwrap())), "{} of {}", proc, intact);
        }
        store.append(&[ad(2, 0)], 1001, None).unwrap();
        let after = jobs(directory.path());
        prop_assert_eq!(after.last(), Some(&(2, 0)));
        prop_assert_eq!(after.len(), before.len() + 1);
    }
}
