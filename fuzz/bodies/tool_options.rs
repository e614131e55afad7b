//! Reads any text, a word a line, as the command lines of condor_q and condor_status, and prints ads by them twice. Both must end
//! soon, not panic, and give the same.

use classad::Ad;
use jiff::tz::TimeZone;
use tools::queue::{self, Source};
use tools::{Screen, Width, slots};

const ADS: &str = "ClusterId = 12\nProcId = 0\nOwner = \"ada\"\nJobStatus = 2\nQDate = 1893456000\nJobBatchName = \"a\"\n\
                   Cmd = \"/bin/x\"\nList = { 1,\"b\" }\nSum = ClusterId + 1\nName = \"slot1@n\"\nMachine = \"n\"\nState = \"Owner\"\n\n\
                   ClusterId = 12345\nProcId = 1000\nJobStatus = 5\nName = \"slot1_10@n\"\nMachine = \"n\"\n";

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let ads = Ad::parse_long_stream(ADS).unwrap_or_default();
    let screen = Screen { width: Width::Piped, now: 1_893_500_000, zone: TimeZone::UTC };
    if let Ok(queue::Asked::Jobs(request)) = queue::parse(&words) {
        let first = request.print(&ads, &Source::default(), &screen);
        assert_eq!(request.print(&ads, &Source::default(), &screen), first);
    }
    if let Ok(slots::Asked::Ads(request)) = slots::parse(&words) {
        let first = request.print(&ads, &screen);
        assert_eq!(request.print(&ads, &screen), first);
    }
}
