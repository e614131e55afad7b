//! Reads any text as a map of users, and maps any user. Both must end soon and not panic. The first line is the user.

use condor_config::user_map::{UserMap, preferred};

/// Does what the target does with an input.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    let Some((user, map)) = text.split_once('\n') else { return };
    for by_prefix in [false, true] {
        let (map, _) = UserMap::read(map, by_prefix);
        if let Some(result) = map.of(user) {
            preferred(&result, Some(user));
        }
    }
}
