//! The manual's examples, and each command in a few words. Expected answers are HTCondor's.

use std::sync::Arc;

use classad::{Ad, Env};
use condor_config::{Diagnostic, Host, Reader, Source};
use transform::{Applied, RulesFile, Transforms};

fn rules(text: &str) -> (RulesFile, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let rules = RulesFile::read(&Source::new("rules", text), Host::none(), None, &mut findings);
    (rules, findings)
}

fn applied(text: &str, ad: &str) -> Vec<Applied> {
    let (rules, findings) = rules(text);
    assert!(findings.is_empty(), "{text}: {findings:?}");
    rules
        .apply(&Ad::parse_long(ad).unwrap(), &Env::at(0))
        .unwrap_or_else(|(_, error)| panic!("{text}: {error}"))
}

/// The ad that the rules make, an attribute a line.
#[track_caller]
fn makes(text: &str, ad: &str, expected: &str) {
    let printed: Vec<String> = applied(text, ad).iter().map(|applied| applied.ad.to_long()).collect();
    assert_eq!(printed.join("\n"), expected, "{text}");
}

/// The faults of the rules.
fn wrong(text: &str) -> Vec<String> {
    rules(text).1.iter().map(ToString::to_string).collect()
}

const AD: &str = "A = 1\nB = \"x y\"\nC = A + 1\n";

#[test]
fn the_manuals_page_of_condor_transform_ads() {
    let text = "EVALSET MemoryUsage ( ResidentSetSize / 100 )\nEVALMACRO WantDisk = ( DiskUsage * 2 )\n\
                SET RequestDisk ( $(WantDisk) / 1024 )\nRENAME NumCkpts NumCheckPoints\nDELETE /(.+)Err/\n";
    let ad = "ResidentSetSize = 500\nDiskUsage = 2500000\nNumCkpts = 0\nTransferrErr = false\nErr = \"/dev/null\"\n";
    makes(
        text,
        ad,
        "DiskUsage = 2500000\nErr = \"/dev/null\"\nMemoryUsage = 5\nNumCheckPoints = 0\n\
         RequestDisk = (5000000 / 1024)\nResidentSetSize = 500\n",
    );
}

#[test]
fn the_manuals_two_transforms() {
    let text = "\
JOB_TRANSFORM_NAMES = AssignGroup, SL6ToDocker

JOB_TRANSFORM_AssignGroup @=end
   # map Owner to group using the existing accounting group attribute as requested group
   EVALSET AcctGroup = userMap(\"Groups\",Owner,AcctGroup,\"any\")
   EVALSET AccountingGroup = join(\".\",AcctGroup,Owner)
@end

JOB_TRANSFORM_SL6ToDocker @=end
   # match only vanilla jobs that have WantSL6 and do not already have a DockerImage
   REQUIREMENTS JobUniverse==5 && WantSL6 && DockerImage =?= undefined
   SET  WantDocker = true
   SET  DockerImage = \"SL6\"
   SET  Requirements = TARGET.HasDocker && $(MY.Requirements)
@end
";
    let transforms = Transforms::parse(&Source::new("policy", text)).unwrap();
    let job = "JobUniverse = 5\nWantSL6 = true\nOwner = \"alice\"\nRequirements = TARGET.Memory > 1\n";
    let after = transforms.apply(Ad::parse_long(job).unwrap(), &Env::at(0)).unwrap();
    assert_eq!(after.names, ["AssignGroup", "SL6ToDocker"]);
    assert_eq!(
        after.ad.to_long(),
        "AccountingGroup = \"any.alice\"\nAcctGroup = \"any\"\nDockerImage = \"SL6\"\nJobUniverse = 5\nOwner = \"alice\"\n\
         Requirements = TARGET.HasDocker && TARGET.Memory > 1\nWantDocker = true\nWantSL6 = true\n"
    );
    let other = transforms.apply(Ad::parse_long("JobUniverse = 7\nOwner = \"bob\"\n").unwrap(), &Env::at(0));
    assert_eq!(other.unwrap().names, ["AssignGroup"]);
}

#[test]
fn set_default_and_evalset() {
    makes("SET q A + 1\nEVALSET r A + 1", AD, "A = 1\nB = \"x y\"\nC = A + 1\nq = A + 1\nr = 2\n");
    makes("DEFAULT A 5\nDEFAULT D 5\nDEFAULT D 6", "A = undefined\n", "A = undefined\nD = 5\n");
    makes("set 's' = 1\nSET \"t\" , 2\nSET u= 3", "", "s = 1\nt = 2\nu = 3\n");
    makes(
        "EVALSET q NOPE\nEVALSET r 1/0\nEVALSET t A junk",
        "A = 1\n",
        "A = 1\nq = undefined\nr = error\nt = 1\n",
    );
    makes("EVALSET l {A, 2}\nEVALSET m ((l))", "A = 1\n", "A = 1\nl = { A,2 }\nm = { A,2 }\n");
    makes("SET q \\\n 1 + \\\n 2", "", "q = 1 + 2\n");
}

#[test]
fn copy_rename_and_delete() {
    makes("COPY A D\nCOPY NOPE E\nRENAME B A", AD, "A = \"x y\"\nC = A + 1\nD = 1\n");
    makes("COPY /^(.)$/ Old\\1_\\2", "A = 1\nBB = 2\n", "A = 1\nBB = 2\n");
    makes("COPY /^(.)$/ Old\\1_\\0", "A = 1\nBB = 2\n", "A = 1\nBB = 2\nOldA_A = 1\n");
    makes("RENAME /max(.+?)x/U Was\\1", "MaxAxBx = 1\n", "WasAxB = 1\n");
    makes("DELETE /b/\nDELETE a", AD, "C = A + 1\n");
    makes("DELETE /B/g", "AB = 1\nBA = 2\n", "AB = 1\n");
    makes("RENAME A a\nCOPY a A", "A = 1\n", "a = 1\n");
}

#[test]
fn variables_are_replaced_at_their_line() {
    makes("X = 1\nSET q $(X)\nX = $(X)0\nSET r $(X)", "", "q = 1\nr = 10\n");
    makes("X = $(Y)\nY = 2\nSET q $(X)", "", "q = 2\n");
    makes(
        "SET q $(MY.C)\nSET r \"$(MY.B) $(MY.NOPE:z)\"\nSET s $INT(MY.A)$EVAL(MY.C)",
        AD,
        "A = 1\nB = \"x y\"\nC = A + 1\nq = A + 1\nr = \"x y z\"\ns = 12\n",
    );
    makes("XFORM.V = 6\nV = 5\nSET s $(V)\n+Z = 3\nSET t $(MY.Z)", "", "s = 6\nt = 3\n");
    makes("X = a\nX += b\nX +,= c\nSET q \"$(X)\"", "", "q = \"a b,c\"\n");
    makes("EVALMACRO v B\nEVALMACRO w A + 1\nSET q \"$(v) $(w)\"\nDELETE /^[abc]$/", AD, "q = \"x y 2\"\n");
    makes("SET q \"$(IsLinux)$(Iterating) $(MINUTE)\"", "", "q = \"10 60\"\n");
    makes("SET q \"$(ARCH) $(OpSys)\"", "", "q = \"X86_64 LINUX\"\n");
}

#[test]
fn conditionals_look_at_the_ad() {
    makes("if defined MY.A\nSET q 1\nelse\nSET q 2\nendif", "A = undefined\n", "A = undefined\nq = 1\n");
    makes("if $(MY.A)\nSET q 1\nelif $(MY.A) == 0\nSET q 2\nendif", "A = 0\n", "A = 0\nq = 2\n");
    makes("if ! (A > 2)\nSET q 1\nendif", "A = 1\n", "A = 1\nq = 1\n");
    let (read, findings) = rules("if $(MY.B)\nendif\n");
    assert!(findings.is_empty());
    let (_, error) = read.apply(&Ad::parse_long(AD).unwrap(), &Env::at(0)).unwrap_err();
    let expected = "error: rules, line 1, column 4: $(MY.B), which is x y here, is not a valid condition because it is undefined, \
                    which is neither true nor false";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn requirements_say_which_ads_a_transform_is_for() {
    for (requirements, meets) in
        [("A == 1", true), ("A == 2", false), ("NOPE", false), ("\"x\"", false), ("7", true)]
    {
        let text = format!("SET q 1\nREQUIREMENTS {requirements}\n");
        let applied = applied(&text, "A = 1\n");
        assert_eq!(applied[0].ad.contains("q"), meets, "{requirements}");
        assert_eq!(applied[0].names.len(), usize::from(meets), "{requirements}");
    }
    assert_eq!(applied("NAME Mine\nSET q 1", "")[0].names, ["Mine"]);
}

#[test]
fn transform_asks_for_passes() {
    let pass = "SET q \"$(Item)$(n)$(m) $(Step) $(Row)\"\n";
    let check = |arguments: &str, expected: &[&str]| {
        let ads = applied(&format!("{pass}TRANSFORM {arguments}\nSET behind 1\n"), "");
        let made: Vec<String> = ads.iter().map(|applied| applied.ad.to_long()).collect();
        let expected: Vec<String> = expected.iter().map(|text| format!("q = \"{text}\"\n")).collect();
        assert_eq!(made, expected, "{arguments}");
    };
    check("1", &["  "]);
    check("2", &[" 0 0", " 1 0"]);
    check("in (a, b)", &["a 0 0", "b 0 1"]);
    check("2 n in x", &["x 0 0", "x 1 0"]);
    check("n,m from (\na b c\n# no\nd\n)", &["ab c 0 0", "d 0 1"]);
    assert!(
        wrong("TRANSFORM n in (a\n")[0]
            .contains("line 1, column 11: TRANSFORM: the list of items is not closed")
    );
    assert!(wrong("TRANSFORM 100000")[0].contains("100000 passes are more than 10000"));
    assert!(wrong("TRANSFORM x from f")[0].contains("files are not read here"));
    assert!(wrong("TRANSFORM matching *.dat")[0].contains("name the items"));
    assert!(wrong("TRANSFORM foo")[0].contains("'foo' is no number"));
}

#[test]
fn errors_tell_place_and_remedy() {
    for (text, expected) in [
        ("SET a 1\n SETT b 2", "line 2, column 2: 'SETT' is no command: the commands are SET"),
        ("SET a", "line 1, column 5: SET needs an attribute and an expression"),
        ("COPY /a x", "line 1, column 6: the pattern has no closing /"),
        ("COPY /a/q x", "line 1, column 6: 'q' is no option of a pattern"),
        ("SET $(x) 1", "line 1, column 5: '$(x)' is no name of an attribute: macros are not replaced there"),
        (
            "REQUIREMENTS A ==",
            "line 1, column 17: REQUIREMENTS is no expression: expected an operand after '=='",
        ),
        ("REQUIREMENTS $(X)", "macros are not replaced in REQUIREMENTS"),
        ("endif", "line 1, column 1: endif without if"),
        ("SET a 1\nif true", "line 2, column 1: an if is not closed"),
        ("X @=end\n1", "line 1, column 1: the block is not closed: expected a line @end"),
        (
            "use feature:GPUs",
            "line 1, column 1: use is not possible here: put the lines that it stands for into this file",
        ),
        ("include : x", "include is not possible here"),
        ("X-Y = 3", "line 1, column 1: 'X-Y' is no name of a variable"),
        (
            "REQUIREMENTS A => 3",
            "REQUIREMENTS is no expression: expected an operator or the end of the expression, found '='; write >= to compare",
        ),
        (
            "SET a B and C",
            "warning: rules, line 1, column 9: no expression: expected an operator or the end of the expression, found 'and'; write && \
             for and; the command does nothing",
        ),
        ("SET a 1 +", "warning: rules, line 1, column 9: no expression: expected an operand after '+'"),
        ("DELETE /(a/", "warning: rules, line 1, column 8: /(a/ is no pattern"),
        ("UNIVERSE vanilla", "warning: rules, line 1, column 1: UNIVERSE does nothing here"),
    ] {
        let found = wrong(text);
        assert!(found.iter().any(|found| found.contains(expected)), "{text}: {found:?}");
    }
}

#[test]
fn what_does_nothing_is_warned_of() {
    let warnings = |text: &str| -> Vec<String> {
        applied(text, AD)[0].warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings("SET q $(MY.B) z"),
        [
            "warning: rules, line 1, column 7: 'x y z' is no expression: expected an operator or the end of the expression, found \
          'y'; the command does nothing"
        ]
    );
    assert_eq!(
        warnings("COPY A 1x"),
        ["warning: rules, line 1, column 1: '1x' is no name of an attribute; A stays as it is"]
    );
    assert_eq!(
        warnings("SET q 1$INT(MY.B)"),
        ["warning: rules, line 1, column 8: $INT(): 'x y' is no integer; it stands for nothing"]
    );
    assert_eq!(warnings("warning : careful, $(MY.A)"), ["warning: rules, line 1, column 1: careful, 1"]);
}

#[test]
fn a_policy_tells_of_names_and_of_the_old_syntax() {
    let text = "JOB_TRANSFORM_NAMES = Gone Old\nJOB_TRANSFORM_Old = [ set_A = 1; Requirements = TARGET.B ]\n";
    let config = Reader::new(Host::none()).read(&[Source::new("policy", text)]).into_config().unwrap();
    let mut findings = Vec::new();
    assert!(Transforms::of(Arc::new(config), &mut findings).is_empty());
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        found[0].starts_with("warning: policy, line 1, column 23: JOB_TRANSFORM_NAMES names Gone"),
        "{found:?}"
    );
    assert!(found[1].starts_with("error: policy, line 2, column 21: the old syntax"), "{found:?}");
    assert!(found[1].ends_with("JOB_TRANSFORM_Old @=end\n   REQUIREMENTS B\n   SET A 1\n@end"), "{found:?}");
}

#[test]
fn variables_of_one_transform_are_there_for_the_next() {
    let text =
        "JOB_TRANSFORM_NAMES = A B\nJOB_TRANSFORM_A = X = 7\nJOB_TRANSFORM_B = SET q $(X)$(Z)\nZ = 1\n";
    let transforms = Transforms::parse(&Source::new("policy", text)).unwrap();
    let after = transforms.apply(Ad::new(), &Env::at(0)).unwrap();
    assert_eq!(after.ad.to_long(), "q = 71\n");
    assert_eq!(transforms.apply(Ad::new(), &Env::at(0)).unwrap(), after, "the same again");
}
