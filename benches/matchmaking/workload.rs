//! The machines and jobs of the benchmark: the reference workload with which HTCondor's negotiator was measured.
//!
//! Each ad is a pure function of an index. The attributes have the order of the reference; values are texts in the ClassAd
//! language. `tests/commands/bench_workload.rs` compares these ads with the reference.

/// The names and expressions of an ad.
pub type Attributes = Vec<(&'static str, String)>;

const START: &str = "(MY.Draining =!= true) && (TARGET.JobUniverse =?= 5) && \
     ((MY.KeyboardIdle > 15 * 60) || ((MY.LoadAvg - MY.CondorLoadAvg) <= 0.3)) && \
     ((TARGET.WantSite =?= undefined) || stringListIMember(MY.Site, TARGET.WantSite)) && \
     ((MY.GPUs == 0) || ((TARGET.RequestGPUs ?: 0) > 0) || (TARGET.BackfillOk =?= true))";

const WITHIN: &str = "MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && MY.Memory > 0 && \
     TARGET.RequestMemory <= MY.Memory && MY.Disk > 0 && TARGET.RequestDisk <= MY.Disk && \
     (TARGET.RequestGPUs =?= undefined || MY.GPUs >= TARGET.RequestGPUs)";

/// The requirements that the job's owner wrote, and the clauses that `condor_submit` adds.
const JOB_REQUIREMENTS: &str = "((TARGET.Arch == \"X86_64\") && (TARGET.OpSys == \"LINUX\") && \
     (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory) && \
     (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer) && \
     (TARGET.Mips >= 5000) && (regexp(\"^(Debian|Alma|Ubuntu)\", TARGET.OpSysAndVer))) && \
     (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory)";

/// Spreads an index over 32 bits.
fn scramble(index: u64) -> u64 {
    index.wrapping_mul(2_654_435_761) & 0xFFFF_FFFF
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// The ad of the machine with this index.
pub fn slot(index: u64) -> Attributes {
    let x = scramble(index);
    let (os_and_version, os, major) =
        [("Debian12", "Debian", 12), ("AlmaLinux9", "AlmaLinux", 9), ("Ubuntu24", "Ubuntu", 24)]
            [usize::try_from(x / 29 % 3).unwrap_or(0)];
    let address = quoted(&format!("<127.{}.{}.{}:1>", 1 + (index >> 16), index >> 8 & 255, index & 255));
    let host = format!("node{index:06}.anchor.local");
    let memory = (16384 * (1 + x % 4)).to_string();
    let mips = 10_000 + x / 17 % 20_000;
    let idle = (3600 + x / 23 % 36_000).to_string();
    let entered = (1_795_000_000 + index).to_string();
    let load = x / 19 % 100;
    vec![
        ("MyType", quoted("Machine")),
        ("TargetType", quoted("Job")),
        ("Name", quoted(&format!("slot1@{host}"))),
        ("Machine", quoted(&host)),
        ("MyAddress", address.clone()),
        ("StartdIpAddr", address),
        ("CondorVersion", quoted("$CondorVersion: 25.14.1 2026-10-16 PackageID: 25.14.1 $")),
        ("CondorPlatform", quoted("$CondorPlatform: X86_64-Debian_12 $")),
        ("Arch", quoted(if (x / 11).is_multiple_of(10) { "AARCH64" } else { "X86_64" })),
        ("OpSys", quoted("LINUX")),
        ("OpSysAndVer", quoted(os_and_version)),
        ("OpSysName", quoted(os)),
        ("OpSysMajorVer", major.to_string()),
        ("State", quoted("Unclaimed")),
        ("Activity", quoted("Idle")),
        ("EnteredCurrentState", entered.clone()),
        ("EnteredCurrentActivity", entered),
        ("SlotID", "1".into()),
        ("SlotTypeID", "0".into()),
        ("SlotType", quoted("Static")),
        ("Cpus", "8".into()),
        ("Memory", memory.clone()),
        ("Disk", (100_000_000 + 1_000_000 * (x / 7 % 100)).to_string()),
        ("GPUs", u8::from((x / 13).is_multiple_of(20)).to_string()),
        ("TotalSlotCpus", "8".into()),
        ("TotalCpus", "8.0".into()),
        ("TotalMemory", memory),
        ("DetectedCpus", "8".into()),
        ("Mips", mips.to_string()),
        ("KFlops", (100 * mips).to_string()),
        ("LoadAvg", format!("0.{load:03}")),
        ("CondorLoadAvg", "0.0".into()),
        ("KeyboardIdle", idle.clone()),
        ("ConsoleIdle", idle),
        ("ClockMin", "600".into()),
        ("ClockDay", "3".into()),
        ("HasFileTransfer", "true".into()),
        ("HasDocker", (x / 31 % 2 == 1).to_string()),
        ("FileSystemDomain", quoted("anchor.local")),
        ("UidDomain", quoted("local")),
        ("Site", quoted(&format!("site{}", index % 8))),
        ("Rack", quoted(&format!("rack{:03}", index / 40))),
        ("Draining", "false".into()),
        ("CurrentRank", "0.0".into()),
        ("Rank", "0.0".into()),
        ("SlotWeight", "Cpus".into()),
        ("Start", START.into()),
        ("WithinResourceLimits", WITHIN.into()),
        ("Requirements", "Start && WithinResourceLimits".into()),
        ("UpdateSequenceNumber", "1".into()),
    ]
}

/// The ad of the job with this index, as the schedd stores it. There are `jobs` jobs of `kinds` kinds; `kinds` must be a
/// multiple of `submitters`.
pub fn job(index: u64, jobs: u64, kinds: u64, submitters: u64) -> Attributes {
    let (submitter, place) = (index % submitters, index / submitters);
    let kinds_each = kinds / submitters;
    let kind = submitter * kinds_each + place * kinds_each / jobs.div_ceil(submitters);
    let user = quoted(&format!("user{submitter:03}"));
    vec![
        ("MyType", quoted("Job")),
        ("TargetType", quoted("Machine")),
        ("ClusterId", (1 + submitter).to_string()),
        ("ProcId", place.to_string()),
        ("Owner", quoted("alice")),
        ("User", quoted("alice@local")),
        ("AccountingGroup", user.clone()),
        ("AcctGroupUser", user),
        ("Cmd", quoted("/bin/sleep")),
        ("Args", quoted("600")),
        ("Iwd", quoted("/home/alice")),
        ("JobUniverse", "5".into()),
        ("JobStatus", "1".into()),
        ("JobPrio", "0".into()),
        ("QDate", (1_795_000_000 + index).to_string()),
        ("RequestCpus", (1 + kind % 4).to_string()),
        ("RequestMemory", (1024 + kind).to_string()),
        ("RequestDisk", "1048576".into()),
        ("ImageSize", "100".into()),
        ("DiskUsage", "100".into()),
        ("BackfillOk", "true".into()),
        ("Requirements", JOB_REQUIREMENTS.into()),
        ("Rank", "TARGET.Mips".into()),
    ]
}

/// The ad in the long form.
#[allow(dead_code, reason = "only the test uses it")]
pub fn long(ad: &Attributes) -> String {
    let lines: Vec<String> = ad.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    lines.concat()
}

/// The ad in the new syntax, on one line. This works because no string here has a character that the two syntaxes write
/// differently.
pub fn line(ad: &Attributes) -> String {
    let all: Vec<String> = ad.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("[{}]", all.join("; "))
}
