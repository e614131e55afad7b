//! Links to the program by the names of HTCondor's tools, which are links to another program.

use std::ffi::OsStr;
use std::path::Path;

/// Advice on what to link, if the program was called by the name of a tool of HTCondor.
pub fn advice(program: &OsStr) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    let is_tool = name.strip_prefix("condor").is_some_and(|rest| rest.starts_with(['_', '-']));
    is_tool.then(|| format!("this is no {name}; link the name {name} to the program kubectl-slotwright"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_linked_to_the_wrong_program_says_what_to_link() {
        let said = advice(OsStr::new("/usr/local/bin/condor_q")).unwrap();
        assert_eq!(said, "this is no condor_q; link the name condor_q to the program kubectl-slotwright");
        for name in ["slotwright", "/opt/condor/bin/slotwright", "condorcet"] {
            assert_eq!(advice(OsStr::new(name)), None);
        }
    }
}
