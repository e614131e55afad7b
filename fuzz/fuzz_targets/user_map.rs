#![no_main]
//! Reads any text as a map of users, and maps any user. Both must end soon and not panic. The first line is the user.

use condor_config::user_map::{UserMap, preferred};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Some((user, map)) = text.split_once('\n') else { return };
    for by_prefix in [false, true] {
        let (map, _) = UserMap::read(map, by_prefix);
        if let Some(result) = map.of(user) {
            preferred(&result, Some(user));
        }
    }
});
