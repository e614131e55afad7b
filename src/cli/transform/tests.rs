use super::*;

fn outcome(args: &[&str], input: &str) -> (u8, String, String) {
    crate::outcome::outcome("transform", args, input, run)
}

/// Files of these names and texts in a directory that is removed at the end.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        Self(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

const POLICY: &str = "\
JOB_TRANSFORM_NAMES = Memory
JOB_TRANSFORM_Memory @=end
   DEFAULT RequestMemory 600
@end
SUBMIT_REQUIREMENT_NAMES = OneGig, MinimalRequestMemory
SUBMIT_REQUIREMENT_OneGig = RequestMemory > 1024
SUBMIT_REQUIREMENT_OneGig_REASON = \"soon the minimum is 1024\"
SUBMIT_REQUIREMENT_OneGig_IS_WARNING = TRUE
SUBMIT_REQUIREMENT_MinimalRequestMemory = RequestMemory > 512
SUBMIT_REQUIREMENT_MinimalRequestMemory_REASON = strcat(\"only \", RequestMemory)
";

#[test]
fn a_policy_prints_the_jobs_that_it_accepts() {
    let files = Files::new(&[("policy", POLICY)]);
    let ads = "Owner = \"alice\"\n\nOwner = \"bob\"\nRequestMemory = 2048\n";
    let (status, out, err) = outcome(&["-f", &files.path("policy")], ads);
    assert_eq!(status, DONE, "{err}");
    assert_eq!(out, "Owner = \"alice\"\nRequestMemory = 600\n\nOwner = \"bob\"\nRequestMemory = 2048\n\n");
    let warned = "slotwright transform: -, line 1: warning of the submit requirement OneGig\nWARNING: soon the minimum is 1024\n";
    assert_eq!(err, warned);
}

#[test]
fn a_policy_may_be_a_manifest() {
    let text = POLICY.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    let head =
        "apiVersion: slotwright.dev/v1alpha1\nkind: SubmitPolicy\nmetadata: {name: p}\nspec:\n  config: |\n";
    let files = Files::new(&[("policy", POLICY), ("policy.yaml", &format!("{head}{text}"))]);
    let ads = "Owner = \"alice\"\n\nOwner = \"bob\"\nRequestMemory = 100\n";
    let of = |name: &str| outcome(&["-f", &files.path(name)], ads);
    assert_eq!(of("policy.yaml"), of("policy"));
    assert_eq!(of("policy.yaml").0, NO);
}

#[test]
fn a_refused_job_is_told_with_its_reason_and_not_printed() {
    let files = Files::new(&[("policy", POLICY), ("jobs", "RequestMemory = 100\n\nRequestMemory = 4096\n")]);
    let (status, out, err) = outcome(&["-f", &files.path("policy"), &files.path("jobs")], "");
    assert_eq!((status, out.as_str()), (NO, "RequestMemory = 4096\n\n"));
    assert!(
        err.contains("line 1: refused by the submit requirement MinimalRequestMemory\nERROR: only 100\n"),
        "{err}"
    );
}

#[test]
fn rules_make_an_ad_of_an_ad_for_each_pass() {
    let files = Files::new(&[("rules", "SET n $(n)\nTRANSFORM n from items\n"), ("items", "1\n2\n")]);
    let text = format!("SET n $(n)\nTRANSFORM n from {}\n", files.path("items"));
    fs::write(files.path("rules"), text).unwrap();
    let (status, out, err) = outcome(&["-r", &files.path("rules")], "A = 1\n");
    assert_eq!((status, out.as_str(), err.as_str()), (DONE, "A = 1\nn = 1\n\nA = 1\nn = 2\n\n", ""));
}

#[test]
fn a_transform_that_fails_is_told_with_its_place() {
    let files = Files::new(&[("rules", "SET A 1\nerror : no $(MY.B)\n")]);
    let (status, out, err) = outcome(&["-r", &files.path("rules")], "B = \"luck\"\n");
    assert_eq!((status, out.as_str()), (NO, ""));
    assert!(
        err.contains("-, line 1: the transform fails: ") && err.contains("rules, line 2, column 1: no luck"),
        "{err}"
    );
}

#[test]
fn what_is_wrong_with_the_rules_is_told_with_file_line_and_column() {
    let files = Files::new(&[("rules", "SET A 1\n  COPPY A B\nif true\n")]);
    let (status, out, err) = outcome(&["-r", &files.path("rules")], "A = 1\n");
    assert_eq!((status, out.as_str()), (crate::stop::UNUSABLE, ""));
    assert!(err.contains("rules, line 2, column 3: 'COPPY' is no command"), "{err}");
    assert!(err.contains("rules, line 3, column 1: an if is not closed"), "{err}");
    let bad = outcome(&["-r", &files.path("nope")], "");
    assert!(bad.0 == crate::stop::UNUSABLE && bad.2.contains("nope"), "{}", bad.2);
}

#[test]
fn an_htcjob_is_read_into_its_job_ad() {
    let job = "apiVersion: slotwright.dev/v1alpha1\nkind: HTCJob\nmetadata: {name: j, namespace: physics}\nspec:\n  requests: \
               {cpus: 2}\n  template:\n    spec:\n      containers: [{name: c, image: i}]\n";
    let files =
        Files::new(&[("rules", "SET Asked $(MY.RequestCpus) + 1\nDELETE /^[^A]/\n"), ("job.yaml", job)]);
    let (status, out, err) = outcome(&["-r", &files.path("rules"), &files.path("job.yaml")], "");
    assert_eq!((status, err.as_str()), (DONE, ""), "{out}");
    assert!(out.contains("Asked = 2 + 1\n"), "{out}");
    fs::write(files.path("job.yaml"), job.replace("cpus: 2", "cpus: -2")).unwrap();
    let (status, _, err) = outcome(&["-r", &files.path("rules"), &files.path("job.yaml")], "");
    assert!(status == crate::stop::UNUSABLE && err.contains("job.yaml:") && err.contains("cpus"), "{err}");
}

/// Other commands read the ad of an HTCJob, such as `slotwright classad match`.
#[test]
fn without_a_policy_ads_are_printed_as_they_are() {
    let job = r#"{"apiVersion": "slotwright.dev/v1alpha1", "kind": "HTCJob", "metadata": {"name": "j", "namespace": "physics"},
        "spec": {"requests": {"cpus": 2}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#;
    let files = Files::new(&[("job.json", job)]);
    let (status, out, err) = outcome(&[&files.path("job.json")], "");
    assert_eq!((status, err.as_str()), (DONE, ""));
    let ad = Ad::parse_long(out.trim_end()).unwrap();
    assert_eq!(ad.get("RequestCpus").map(ToString::to_string).as_deref(), Some("2"));
    assert_eq!(outcome(&[], "A = 1\n\nB = 2\n").1, "A = 1\n\nB = 2\n\n");
}

#[test]
fn the_schedds_ad_is_my_in_requirements() {
    let policy = "SUBMIT_REQUIREMENT_NAMES = Few\nSUBMIT_REQUIREMENT_Few = MY.TotalIdleJobs < 10\n";
    let files = Files::new(&[("policy", policy), ("schedd", "TotalIdleJobs = 12\n")]);
    let (status, _, err) =
        outcome(&["-f", &files.path("policy"), "--schedd", &files.path("schedd")], "A = 1\n");
    assert!(status == NO && err.contains("ERROR: Submit requirement Few not met.\n"), "{err}");
    let undefined = outcome(&["-f", &files.path("policy")], "A = 1\n");
    assert!(
        undefined.2.contains("ERROR: Submit requirement Few evaluated to non-boolean.\n"),
        "{}",
        undefined.2
    );
}
