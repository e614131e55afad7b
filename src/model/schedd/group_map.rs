//! Reads `use FEATURE : AssignAccountingGroup` from a `SubmitPolicy`'s text: the accounting groups of owners.
//!
//! In HTCondor the feature consists of a transform, two submit requirements and a map. The operator acts on the feature
//! only if the text leaves the feature's definitions unchanged. The map is
//! `CLASSAD_USER_MAPDATA_AssignAccountingGroup`, since no files can be read here.

use crate::pool::GroupMap;
use crate::startd::config::{Remark, Severity};
use condor_config::user_map::UserMap;
use condor_config::{Config, Host, Reader, Source};

/// The name of the feature, of its transform, of its requirement and of its map.
const FEATURE: &str = "AssignAccountingGroup";
const DATA: &str = "CLASSAD_USER_MAPDATA_AssignAccountingGroup";
const FILE: &str = "CLASSAD_USER_MAPFILE_AssignAccountingGroup";
const PREFIX: &str = "CLASSAD_USER_MAP_PREFIX_AssignAccountingGroup";
const TRANSFORMS: &str = "JOB_TRANSFORM_NAMES";
const REQUIREMENTS: &str = "SUBMIT_REQUIREMENT_NAMES";
const MAPS: &str = "SCHEDD_CLASSAD_USER_MAP_NAMES";
const IMMUTABLE: &str = "IMMUTABLE_JOB_ATTRS";
const CHECK: &str = "CheckRequestedGroup";

/// The knobs that the feature defines.
const DEFINED: [&str; 5] = [
    "JOB_TRANSFORM_AssignAccountingGroup",
    "SUBMIT_REQUIREMENT_AssignAccountingGroup",
    "SUBMIT_REQUIREMENT_AssignAccountingGroup_REASON",
    "SUBMIT_REQUIREMENT_CheckRequestedGroup",
    "SUBMIT_REQUIREMENT_CheckRequestedGroup_REASON",
];
/// The lists that the feature adds to, and the knobs of its map.
const ADDED_TO: [&str; 7] = [TRANSFORMS, REQUIREMENTS, MAPS, IMMUTABLE, DATA, FILE, PREFIX];

/// Reads the map, if the feature is in use. Removes remarks that say that nothing acts on the feature's knobs.
pub(super) fn read(config: &Config, remarks: &mut Vec<Remark>) -> Option<GroupMap> {
    let names = |list: &str| config.list(list).unwrap_or_default();
    let lists = |list: &str, name: &str| names(list).iter().any(|each| each.eq_ignore_ascii_case(name));
    if !lists(TRANSFORMS, FEATURE) || !lists(REQUIREMENTS, FEATURE) || !lists(MAPS, FEATURE) {
        return None;
    }
    let checked = lists(REQUIREMENTS, CHECK);
    let feature = feature(checked)?;
    if DEFINED.iter().any(|name| config.raw(name) != feature.raw(name)) {
        return None;
    }
    let ours = |name: &str| DEFINED.iter().chain(&ADDED_TO).any(|ours| ours.eq_ignore_ascii_case(name));
    // Other names in the lists are not acted on, and the remarks about them stay.
    let alone = |list: &str| {
        let own = feature.list(list).unwrap_or_default();
        names(list).iter().all(|name| own.contains(name))
    };
    let acted_on = [TRANSFORMS, REQUIREMENTS, MAPS, IMMUTABLE].into_iter().all(alone);
    remarks.retain(|remark| {
        let about = |knobs: &String| knobs.split(", ").all(ours);
        !(acted_on && remark.reason == "KnobNotActedOn" && remark.knob.as_ref().is_some_and(about))
    });
    let text = match config.text(DATA) {
        Ok(Some(text)) => text,
        Ok(None) => {
            let message = format!(
                "{FEATURE} names a file, and none can be read here: put the lines of the map into {DATA}"
            );
            let file = config.definition(FILE);
            remarks.extend(file.map(|file| Remark::of_knob(config, file, Severity::Error, message)));
            return None;
        }
        // Another remark has reported the value already.
        Err(_) => return None,
    };
    let by_prefix = config.boolean(PREFIX).ok().flatten().unwrap_or(false);
    let (owners, idle) = UserMap::read(&text.as_str(), by_prefix);
    remarks.extend(idle.into_iter().map(|idle| {
        let position = config.position_in(&text, idle.line + 1, 1);
        Remark::at(&position, Severity::Warning, format!("{DATA}: {}", idle.message))
    }));
    Some(GroupMap { owners, checked })
}

/// The configuration that the feature makes alone, without the rest of the text.
fn feature(checked: bool) -> Option<Config> {
    let text = format!("use FEATURE : {FEATURE}(map, {})\n", if checked { "True" } else { "False" });
    Reader::new(Host::none()).subsystem("SCHEDD").read(&[Source::block("feature", &text)]).into_config().ok()
}

#[cfg(test)]
mod tests {
    use super::super::policy::understand;

    const MAP: &str = "CLASSAD_USER_MAPDATA_AssignAccountingGroup @=end\n* alice physics,cms\n* /^student_/ students\n@end\n";

    fn read(text: &str) -> (Option<super::GroupMap>, Vec<String>) {
        let (config, remarks) = understand(text);
        (config.and_then(|config| config.groups.clone()), remarks.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_feature_with_its_lines_is_acted_on() {
        for (argument, checked) in [("any.map", true), ("any.map, False", false)] {
            let (map, told) = read(&format!("{MAP}use FEATURE : AssignAccountingGroup({argument})\n"));
            let map = map.unwrap();
            assert_eq!((map.checked, told), (checked, Vec::<String>::new()));
            assert_eq!(map.owners.of("alice").as_deref(), Some("physics,cms"));
            assert_eq!(map.owners.of("student_3").as_deref(), Some("students"));
            assert_eq!(map.owners.of("bob"), None);
        }
    }

    #[test]
    fn a_map_alone_maps_nobody() {
        let (map, told) = read(MAP);
        assert_eq!((map, told.len()), (None, 1), "{told:?}");
    }

    #[test]
    fn a_file_cannot_be_read() {
        let (map, told) = read("A = 1\nuse FEATURE : AssignAccountingGroup($(A).map)\n");
        assert_eq!(map, None);
        assert_eq!(
            told,
            [
                "line 2, column 15: AssignAccountingGroup names a file, and none can be read here: put the lines of the map into CLASSAD_USER_MAPDATA_AssignAccountingGroup"
            ]
        );
    }

    #[test]
    fn lines_that_map_nobody_are_lists() {
        let text = "CLASSAD_USER_MAPDATA_AssignAccountingGroup @=end\n  # physicists\n* alice\n* /(/ x\n* bob y\n@end\nuse FEATURE : AssignAccountingGroup(m)\n";
        let (map, told) = read(text);
        assert_eq!(map.unwrap().owners.of("bob").as_deref(), Some("y"));
        assert_eq!(
            told,
            [
                "line 3, column 1: CLASSAD_USER_MAPDATA_AssignAccountingGroup: nothing is said after the user: what it is mapped to",
                "line 4, column 1: CLASSAD_USER_MAPDATA_AssignAccountingGroup: /(/ is no regular expression that can be used here",
            ]
        );
    }

    /// If the text changes what the feature does, or has other transforms too, remarks say that nothing acts on these.
    #[test]
    fn what_differs_from_the_feature_is_not_acted_on() {
        let feature = "use FEATURE : AssignAccountingGroup(m)\n";
        let other = "JOB_TRANSFORM_AssignAccountingGroup = SET AcctGroup \"x\"\n";
        let (map, told) = read(&format!("{MAP}{feature}{other}"));
        assert!(map.is_none() && !told.is_empty(), "{told:?}");
        let beside = "JOB_TRANSFORM_NAMES = Mine\nJOB_TRANSFORM_Mine = SET A 1\n";
        let (map, told) = read(&format!("{beside}{MAP}{feature}"));
        assert!(map.is_some() && told.iter().any(|told| told.contains("JOB_TRANSFORM_Mine")), "{told:?}");
        let (map, told) = read(&format!("IMMUTABLE_JOB_ATTRS = Project\n{MAP}{feature}"));
        assert!(map.is_some() && told.iter().any(|told| told.contains("IMMUTABLE_JOB_ATTRS")), "{told:?}");
    }
}
