//! Reads any text as rules of a transform, and applies them to an ad twice. Both must end soon, not panic, and give the same.

use classad::{Ad, Env};
use condor_config::{Host, Source};
use transform::RulesFile;

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let host = Host { seed: Some(1), ..Host::none() };
    let mut findings = Vec::new();
    let rules = RulesFile::read(&Source::new("fuzz", text), host, None, &mut findings);
    for finding in &findings {
        let _ = finding.to_string();
    }
    let ad = Ad::parse_long(
        "A = 1\nB = \"x y\"\nC = A + 1\nMaxX = { 1,2 }\nOwner = \"alice\"\nRequirements = TARGET.Memory > A\n",
    );
    let Ok(ad) = ad else { return };
    let first = rules.apply(&ad, &Env::at(0));
    assert_eq!(rules.apply(&ad, &Env::at(0)), first);
}
