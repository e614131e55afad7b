//! The configuration language, rule by rule, as the manual describes it and condor_config_val answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by panicking")]

use condor_config::{Config, ExpandFault, FileError, Host, Reader, Reading, Severity, Source};

fn read_as(subsystem: &str, local_name: Option<&str>, text: &str) -> Reading {
    let host = Host { seed: Some(7), now: 1_700_000_000, ..Host::none() };
    Reader::new(host)
        .subsystem(subsystem)
        .local_name(local_name.map(str::to_owned))
        .read(&[Source::new("test.config", text)])
}

fn read(text: &str) -> Config {
    read_as("TOOL", None, text).into_config().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks the values of names; `-` stands for a name that is not defined.
#[track_caller]
fn check_in(config: &Config, expected: &[(&str, &str)]) {
    for (name, expected) in expected {
        let value = config.value(name).unwrap().unwrap_or_else(|| "-".to_owned());
        assert_eq!(value, *expected, "{name}");
    }
}

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    check_in(&read(text), expected);
}

/// Checks that a text cannot be read: the line, the column, and a part of the message.
#[track_caller]
fn fails(text: &str, line: u32, column: u32, message: &str) {
    let reading = read_as("TOOL", None, text);
    let Some(error) = reading.errors().next() else { panic!("reads:\n{text}") };
    assert!(error.message.contains(message), "{error}");
    assert_eq!((error.position.line, error.position.column), (line, column), "{error}");
}

// --- lines ---------------------------------------------------------------------------------------------------------

#[test]
fn a_value_is_trimmed_and_keeps_its_quotes_and_comments() {
    check(
        "  A = one  two \nB=\"q\"\nC = 1 # not a comment\n",
        &[("A", "one  two"), ("B", "\"q\""), ("C", "1 # not a comment")],
    );
}

#[test]
fn names_know_no_case_and_the_last_definition_counts() {
    check("a = 1\nA = 2\nB = $(a)\n", &[("a", "2"), ("A", "2"), ("B", "2")]);
}

#[test]
fn lines_are_continued() {
    check(
        "A = a\\\n   b\nB = a \\\n   b\nC = 1\\\n\nD = 2\n",
        &[("A", "ab"), ("B", "a b"), ("C", "1"), ("D", "2")],
    );
    check(
        "# a comment does not go on \\\nA = 1\nB = 1 +\\\n  # nor does one in between \\\n 2\n",
        &[("A", "1"), ("B", "1 +2")],
    );
}

#[test]
fn empty_undefines() {
    check("A = 1\nA =\nB = $(A:d)\nif defined A\nC = 1\nendif\n", &[("A", "-"), ("B", "d"), ("C", "-")]);
    check("START =\n", &[("START", "-")]);
}

#[test]
fn append_adds_a_blank_and_the_text() {
    check("A = one\nA += two\nB += two\nA += $(B)\n", &[("A", "one two two"), ("B", "two")]);
    check("A = 1\nA += \nA += 2\n", &[("A", "1  2")]);
    check("START += && foo\n", &[("START", "True && foo")]);
}

#[test]
fn words_between_name_and_operator_mean_nothing() {
    check("A whatever it says = 1\nA more += 2\n", &[("A", "1 2")]);
}

#[test]
fn a_colon_assigns_with_a_warning() {
    let reading = read_as("TOOL", None, "A : 1\nRunBenchmarks : 0\n");
    let [warning] = reading.diagnostics.as_slice() else { panic!("{:?}", reading.diagnostics) };
    assert_eq!(
        warning.to_string(),
        "warning: test.config, line 1, column 1: A : value is obsolete: write A = value"
    );
    check_in(&reading.config, &[("A", "1"), ("RunBenchmarks", "0")]);
    fails("#opt:strict\nA : 1\n", 2, 1, "obsolete");
}

#[test]
fn blocks_take_lines_up_to_their_tag() {
    check(
        "A = 1\nA @=end\n  $(A) x \n\n# gone\n if false\n b \\\n  c\n@end\nB @=\n1\n@\n",
        &[("A", "1 x\nif false\nb c"), ("B", "1")],
    );
    fails("B = 1\nA @=end\n1\n", 2, 1, "not closed: expected @end");
}

#[test]
fn a_last_line_without_newline_is_taken_as_it_stands() {
    let config = read("A = 1\nB = 2  ");
    assert_eq!(config.raw("B").as_deref(), Some("2  "));
    fails("A = 1\n  B = 2", 2, 1, "is no name");
    let block = Reader::new(Host::none()).read(&[Source::block("policy", "A = 1\n  B = 2  ")]);
    check_in(&block.into_config().unwrap(), &[("B", "2")]);
}

#[test]
fn what_is_no_statement_is_an_error() {
    fails("A = 1\n  word\n", 2, 3, "no operator");
    fails("X-Y = 1\n", 1, 1, "'X-Y' is no name");
    fails("A+=1\n", 1, 1, "blank before +=");
    fails("A + = 1\n", 1, 1, "expected = after +");
    fails("[two words]\n", 1, 1, "no operator");
    fails("$(NOPE) = 1\n", 1, 1, "'' is no name");
    fails("A = 1\u{0}\n", 1, 1, "NUL");
    check("[section]\nA = 1\n", &[("A", "1")]);
}

#[test]
fn names_may_be_made_of_references() {
    check("N = 3\nSLOT$(N)_X = 1\n", &[("SLOT3_X", "1")]);
}

#[test]
fn messages() {
    let reading = read_as(
        "TOOL",
        None,
        "A = 1\nwarning : A is $(A)\nif false\nerror : no\nendif\nerror : stop\nB = 2\n",
    );
    let shown: Vec<String> = reading.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["warning: test.config, line 2, column 1: A is 1", "error: test.config, line 6, column 1: stop"]
    );
    // After an error, the rest is still read, so that all errors are reported.
    check_in(&reading.config, &[("B", "2")]);
}

#[test]
fn several_sources_are_read_in_order() {
    let sources = [Source::new("a", "A = 1\nB = $(A)\n"), Source::new("b", "A = 2\n")];
    let config = Reader::new(Host::none()).read(&sources).into_config().unwrap();
    check_in(&config, &[("B", "2")]);
    let position = config.position(config.definition("a").unwrap());
    assert_eq!(position.to_string(), "b, line 1, column 1");
}

// --- expansion -----------------------------------------------------------------------------------------------------

#[test]
fn references_are_replaced_when_a_value_is_read() {
    check("A = $(B)2\nB = 1\n", &[("A", "12")]);
    check("A = <$(NOPE)> $(NOPE:a:b) $(NOPE:$(NOPE2:z)) $(E:x)\nE =\n", &[("A", "<> a:b z x")]);
    check("A = $(NOPE:\"q\") $(N O)\n", &[("A", "$(NOPE:\"q\") $(N O)")]);
}

#[test]
fn own_references_are_replaced_at_once() {
    check("D = one\nD = $(D)two\nD = $(d) three\n", &[("D", "onetwo three")]);
    check("X = $(X)\nY = a$(Y:b)\n", &[("X", "-"), ("Y", "ab")]);
    check("START = $(START) && foo\n", &[("START", "True && foo")]);
}

#[test]
fn own_references_with_the_prefix_of_the_daemon() {
    let text = "B = q\nSTARTD.B = $(B) z\nSTARTD.B += w\nSTARTD.C = $(C) z\nC = late\n";
    check_in(&read_as("STARTD", None, text).config, &[("B", "q z w"), ("C", " z")]);
    check_in(&read_as("SCHEDD", None, text).config, &[("B", "q"), ("STARTD.B", "q z w")]);
}

#[test]
fn dollars() {
    check(
        "A = $(DOLLAR)(B) $$(Cpus) $$([Cpus * 2]) $5\nB = 1\n",
        &[("A", "$(B) $$(Cpus) $$([Cpus * 2]) $5")],
    );
    check("F = $(\nG = $(F)B)\nB = 1\n", &[("G", "1")]);
}

#[test]
fn helpers_are_compiled_in_and_can_be_overridden() {
    check("A = $(MINUTE)\nHOUR = 5\nB = $(HOUR)\n", &[("A", "60"), ("B", "5")]);
}

#[test]
fn names_that_refer_to_each_other_are_told() {
    for text in ["A = $(B)\nB = $(C)x\nC = $(A)\n", "A = $(B:$(C))\nB =\nC = $(A)\n"] {
        let config = read(text);
        let error = config.value("A").unwrap_err();
        let ExpandFault::Cycle(names) = &error.fault else { panic!("{error}") };
        assert_eq!((names.first().unwrap().as_str(), names.last().unwrap().as_str()), ("A", "A"), "{error}");
        assert_eq!(error.position.line, 3, "{error}");
    }
    let error = read("A = a\nB = $(A)\nA = $(B)c\n").value("A").unwrap_err();
    assert_eq!(
        error.to_string(),
        "test.config, line 2, column 5: A -> B -> A refer to each other without end: let one of them stand for \
         something else"
    );
    assert!(matches!(read("A = $INT(A)\n").value("A").unwrap_err().fault, ExpandFault::Cycle(_)));
    assert!(matches!(
        read("A = $INT(B)\nB = 1 + $(A)\n").value("A").unwrap_err().fault,
        ExpandFault::Cycle(_)
    ));
}

#[test]
fn the_same_name_twice_is_no_cycle() {
    check("A = $(B)$(B) $(C)\nB = 1\nC = $(B)\n", &[("A", "11 1")]);
    check("A = $(B:$(B))$(B)\nB =\n", &[("A", "-")]);
}

// --- lookup --------------------------------------------------------------------------------------------------------

#[test]
fn names_with_prefixes_stand_above_plain_ones() {
    let text = "X = 1\nSCHEDD.X = 2\nLN.X = 3\nSCHEDD.LN.X = 4\nY = $(X)\n";
    for (subsystem, local, x, y) in [
        ("TOOL", None, "1", "1"),
        ("SCHEDD", None, "2", "2"),
        ("SCHEDD", Some("LN"), "4", "3"),
        ("STARTD", Some("LN"), "3", "3"),
    ] {
        check_in(&read_as(subsystem, local, text).config, &[("X", x), ("Y", y)]);
    }
}

#[test]
fn prefixes_count_in_conditions() {
    let text = "STARTD.X = 1\nif defined X\nY = yes\nelse\nY = no\nendif\n";
    check_in(&read_as("STARTD", None, text).config, &[("Y", "yes")]);
    check_in(&read_as("SCHEDD", None, text).config, &[("Y", "no")]);
}

#[test]
fn the_reader_is_known_to_the_text() {
    let config = read_as("STARTD", Some("LN"), "SUBSYSTEM = x\nA = $(SUBSYSTEM) $(LOCALNAME)\n").config;
    check_in(&config, &[("A", "STARTD LN")]);
}

#[test]
fn predefined_macros_can_be_overridden_unless_they_name_the_host() {
    let predefined = [("DETECTED_CPUS", "8"), ("HOSTNAME", "node1")];
    let predefined = predefined.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let host = Host { predefined, ..Host::none() };
    let text = "A = $(DETECTED_CPUS)\nHOSTNAME = x\nif defined HOSTNAME\nB = $(HOSTNAME)\nendif\n";
    let config =
        Reader::new(host).read(&[Source::new("t", text), Source::new("u", "DETECTED_CPUS = 4\n")]).config;
    check_in(&config, &[("A", "4"), ("B", "node1")]);
}

#[test]
fn slots_have_policy_by_type_and_attributes_by_number() {
    let text = "NUM_SLOTS_TYPE_1 = 2\nNUM_SLOTS_TYPE_2 = 1\nSTART = true\nSLOT1_START = never\nSLOT_TYPE_2_START = false\n\
                SLOT_TYPE_1_PREEMPT =\nPREEMPT = x\nColor = \"red\"\nSLOT_TYPE_1_Color = \"blue\"\nSLOT2_Color = \"green\"\n\
                SLOT3_Color =\n";
    let config = read_as("STARTD", None, text).config;
    for (slot, name, expected) in [
        (1, "START", "true"),
        (3, "START", "false"),
        (4, "START", "true"),
        (1, "PREEMPT", "-"),
        (3, "PREEMPT", "x"),
        (1, "Color", "\"blue\""),
        (2, "Color", "\"green\""),
        (3, "Color", "-"),
        (4, "Color", "\"red\""),
    ] {
        let value = config.slot_text(slot, name).unwrap();
        let value = value.map_or("-".to_owned(), |text| text.as_str().into_owned());
        assert_eq!(value, expected, "slot {slot} {name}");
    }
}

// --- conditionals --------------------------------------------------------------------------------------------------

#[test]
fn conditions() {
    for (condition, expected) in [
        ("true", "1"),
        ("No", "2"),
        ("3", "1"),
        ("0.0", "2"),
        ("-1", "1"),
        ("! 0", "1"),
        ("defined A", "1"),
        ("defined NOPE", "2"),
        ("defined START", "1"),
        ("defined true", "1"),
        ("defined E", "2"),
        ("defined", "2"),
        ("$(A)", "1"),
        ("$(NOPE)", "2"),
        ("!$(NOPE)", "1"),
        ("$INT(A)", "1"),
        ("version >= 8.1.2", "1"),
        ("version > 99.1", "2"),
        ("version == 25.14", "1"),
        ("version != 25.14.1", "2"),
        ("defined use ROLE", "1"),
        ("defined use role:execute", "1"),
        ("defined use NOPE", "2"),
        ("DEFINED A.B", "2"),
    ] {
        let text = format!("A = 1\nE =\nif {condition}\nR = 1\nelse\nR = 2\nendif\n");
        let value = read(&text).value("R").unwrap();
        assert_eq!(value.as_deref(), Some(expected), "{condition}");
    }
}

#[test]
fn conditions_that_are_none() {
    for (condition, message) in [
        ("A == 1", "complex conditionals are not supported"),
        ("true && true", "complex"),
        ("(true)", "complex"),
        ("version 8.1", "complex"),
        ("version > 8", "version literal is invalid"),
        ("version < 5.1.1", "version literal is invalid"),
        ("foo", "neither true nor false"),
        ("", "it is empty"),
        ("defined A B", "must be a name"),
        ("defined use ROLE : Execute", "no blanks"),
    ] {
        fails(&format!("if {condition}\nendif\n"), 1, 1, message);
    }
}

#[test]
fn branches() {
    let text = "if false\nR = 1\nif true\nR = 2\nelse\nR = 3\nendif\nelif true\nR = 4\nelif true\nR = 5\nelse\nR = 6\nENDIF\n";
    check(text, &[("R", "4")]);
    check(":if true\n:A = 1\n:endif\n", &[("A", "1")]);
    check("if false\nnonsense\nif !%^&\nendif\nendif\nA = 1\n", &[("A", "1")]);
    fails("else\n", 1, 1, "else without if");
    fails("if true\nelse\nelse\nendif\n", 3, 1, "not allowed after else");
    fails("if true\nelse\nelif true\nendif\n", 3, 1, "elif is not allowed after else");
    fails("endif\n", 1, 1, "endif without if");
    fails("if true\nA = 1\n", 2, 1, "expected endif");
    let deep = "if true\n".repeat(64) + &"endif\n".repeat(64);
    fails(&deep, 64, 1, "nested more than 63 deep");
}

// --- templates -----------------------------------------------------------------------------------------------------

#[test]
fn templates_are_read_in_place() {
    let text =
        "START = x\nuse POLICY : Always_Run_Jobs, Limit_Job_Runtimes(7200)\nMAX = $(MAX_JOB_RUNTIME)\n";
    check(text, &[("START", "True"), ("MAX", "7200")]);
    check("@use policy:always_run_jobs\nSTART = y\n", &[("START", "y")]);
    check("use FEATURE : PartitionableSlot(2, cpus=50%, mem=1/2)\n", &[("SLOT_TYPE_2", "cpus=50%, mem=1/2")]);
    check("use $(NOPE)ROLE : Execute Submit\nA = 1\n", &[("A", "1")]);
}

#[test]
fn templates_that_are_none() {
    fails("A = 1\nuse POLICY : Always_Run_Jobs, Nope\n", 2, 31, "no such template");
    fails("use NOPE : x\n", 1, 1, "write use POLICY");
    fails("use POLICY : Limit_Job_Runtimes(5\n", 1, 14, "not closed");
}

#[test]
fn what_a_template_defines_comes_from_where_it_is_used() {
    let config = read("A = 1\nuse POLICY : Always_Run_Jobs\n");
    let position = config.position(config.definition("PREEMPT").unwrap());
    assert_eq!(position.to_string(), "test.config, line 2, column 14");
}

// --- the host ------------------------------------------------------------------------------------------------------

#[test]
fn files_are_included_where_the_caller_has_them() {
    let files = |path: &str| match path {
        "/etc/a" => Ok("A = in\nif defined P\nB = $(P)\nendif\n".to_owned()),
        "/etc/loop" => Ok("include : /etc/loop\n".to_owned()),
        "/etc/open" => Ok("if true\n".to_owned()),
        "/etc/config.d" => Err(FileError::Directory),
        _ => Err(FileError::Missing),
    };
    let read = |text: &str| Reader::new(Host::none()).files(&files).read(&[Source::new("root", text)]);
    let reading = read("P = /etc\ninclude : $(P)/a\ninclude ifexist : /nope\nA = $(A) out\n");
    check_in(&reading.into_config().unwrap(), &[("A", "in out"), ("B", "/etc")]);
    // As HTCondor does, an include of a directory reads nothing.
    for include in ["include", "include ifexist"] {
        let reading = read(&format!("{include} : /etc/config.d\nA = 1\n"));
        let said: Vec<String> = reading.diagnostics.iter().map(ToString::to_string).collect();
        let warning = "root, line 1, column 1: include of '/etc/config.d' reads nothing: it is a directory";
        assert!(said.len() == 1 && said[0].ends_with(warning), "{said:?}");
        check_in(&reading.into_config().unwrap(), &[("A", "1")]);
    }
    for (text, message) in [
        ("include : /nope\n", "root, line 1, column 1: include of '/nope': there is no such file"),
        ("include : /etc/open\nA = 1\n", "/etc/open, line 1, column 1: an if is not closed"),
        ("include : /etc/loop\n", "nested more than 20 deep"),
        ("include foo : /etc/a\n", "does not know 'foo'"),
        ("include ifexist command : /bin/true\n", "command is refused"),
        ("include : /bin/true |\n", "'/bin/true |' is never run"),
        ("include command into /etc/a : /bin/true\n", "command is refused"),
    ] {
        let error = read(text).into_config().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn the_host_is_not_asked_unless_the_caller_allows_it() {
    let text = "A = $ENV(HOME)\nB = $RANDOM_INTEGER(1, 9)\nC = $RANDOM_CHOICE(a, b)\n";
    let config = Reader::new(Host::none()).read(&[Source::new("t", text)]).into_config().unwrap();
    for name in ["A", "B", "C"] {
        let error = config.value(name).unwrap_err();
        assert!(matches!(error.fault, ExpandFault::Refused(..)), "{error}");
        assert!(error.to_string().contains("is refused here"), "{error}");
    }
    let reading = Reader::new(Host::none()).read(&[Source::new("t", "include ifexist : /etc/a\n")]);
    assert!(
        reading.into_config().unwrap_err().to_string().contains("put what they hold into the text itself")
    );
    let host = Host { environment: Some([("HOME".to_owned(), "/root".to_owned())].into()), ..Host::none() };
    let text = "A = $ENV(HOME) $ENV(NOPE) $ENV(NOPE:d)\n";
    check_in(&Reader::new(host).read(&[Source::new("t", text)]).config, &[("A", "/root UNDEFINED d")]);
}

// --- functions -----------------------------------------------------------------------------------------------------

#[test]
fn functions() {
    let text = "N = 3\nS = abcdef\nL = a b,c\nQ = \"q\"\nP = /a/b/c.tar.gz\nX = $(MINUTE) * 2\n";
    for (call, expected) in [
        ("$INT(7.9)", "7"),
        ("$INT(7/2)", "3"),
        ("$INT(X)", "120"),
        ("$INT(N,x=%03d y)", "x=003 y"),
        ("$INT(true)", "1"),
        ("$REAL(2+3)", "5"),
        ("$REAL(1.0/3)", "0.3333333333333333"),
        ("$REAL(N,%.2f)", "3.00"),
        ("$REAL(N,%g)", "3.0"),
        ("$STRING(Q) $STRING(S) $STRING(Q,[%3s])", "q abcdef [  q]"),
        ("$EVAL(Q) $EVAL({1, 2.5}) $EVAL(nope)", "q { 1,2.500000000000000E+00 } undefined"),
        ("$EVAL(.x) $EVAL(MY) $EVAL(toplevel)", "undefined [  ] [  ]"),
        ("$SUBSTR(S,2) $SUBSTR(S,-2) $SUBSTR(S,1,2) $SUBSTR(S,1,-2)", "cdef ef bc bcd"),
        ("<$SUBSTR(S,9)$SUBSTR(NOPE,1)>", "<>"),
        ("$CHOICE(1,L) $CHOICE(2,x, y ,z) $CHOICE(N,a,b,c,d)", "c z d"),
        ("$RANDOM_INTEGER(5,5) $RANDOM_INTEGER(3,4,2) $RANDOM_CHOICE(z)", "5 3 z"),
        ("$Fp(P) $Fn(P) $Fx(P) $Fnx(P) $Fd(P) $Fdb(P) $Fqn(P)", "/a/b/ c.tar .gz c.tar.gz b/ b \"c.tar\""),
        ("$BASENAME(P) $BASENAME(P,.gz) $DIRNAME(/x/y)", "c.tar.gz c.tar /x/"),
        // A suffix is compared without case.
        (
            "$BASENAME(P,.GZ) $BASENAME(P, .Tar.gz) $BASENAME(P,gz) $BASENAME(P,.zip)",
            "c.tar c c.tar. c.tar.gz",
        ),
        ("$int(1) $NOPE(1) $(N?)", "$int(1) $NOPE(1) $(N?)"),
    ] {
        check(&format!("{text}A = {call}\n"), &[("A", expected)]);
    }
}

#[test]
fn functions_that_cannot_be() {
    for call in [
        "$INT(foo)",
        "$INT(N*2+$(N))",
        "$INT(1,%s)",
        "$INT(1,)",
        "$REAL(\"x\")",
        "$STRING(x,%d)",
        "$SUBSTR(S)",
        "$SUBSTR(S,x)",
        "$CHOICE(5,a,b)",
        "$CHOICE(-1,a,b)",
        "$CHOICE(0,NOPE)",
        "$RANDOM_INTEGER(2,1)",
        "$RANDOM_INTEGER(1,2,0)",
        "$RANDOM_CHOICE()",
    ] {
        let error = read(&format!("N = 3\nS = s\nB = b\nA = <{call}>\n")).value("A").unwrap_err();
        assert!(matches!(error.fault, ExpandFault::Function { .. }), "{call}: {error}");
        assert_eq!((error.position.line, error.position.column), (4, 6), "{call}");
    }
}

#[test]
fn chance_is_the_same_at_each_look() {
    let config = read(
        "A = $RANDOM_INTEGER(0, 1000000)\nB = $RANDOM_INTEGER(0, 1000000)\nC = $RANDOM_INTEGER(10, 20, 5)\n",
    );
    assert_eq!(config.value("A"), config.value("a"));
    assert_ne!(config.value("A"), config.value("B"));
    assert!(["10", "15", "20"].contains(&config.value("C").unwrap().unwrap().as_str()));
}

// --- values --------------------------------------------------------------------------------------------------------

#[test]
fn values_have_types() {
    let config = read("I = 2 * $(MINUTE)\nR = 1/4.0\nB = 1 < 2\nT = True\nL = a, b  c,,d\nW = word\nE =\n");
    assert_eq!(config.integer("I"), Ok(Some(120)));
    assert_eq!(config.real("R"), Ok(Some(0.25)));
    assert_eq!(config.boolean("B"), Ok(Some(true)));
    assert_eq!(config.boolean("T"), Ok(Some(true)));
    assert_eq!(config.integer("E"), Ok(None));
    assert_eq!(config.list("L").unwrap(), ["a", "b", "c", "d"]);
    let error = config.integer("W").unwrap_err();
    assert_eq!(error.to_string(), "test.config, line 6, column 5: W is word, which is no integer");
}

/// HTCondor's string_is_boolean_param: `T` is an attribute that nothing defines.
#[test]
fn booleans_are_true_false_numbers_and_expressions() {
    for (text, expected) in [
        ("true", Some(true)),
        ("False", Some(false)),
        ("1", Some(true)),
        ("0", Some(false)),
        ("2", Some(true)),
        ("0.5", Some(true)),
        ("1 > 2", Some(false)),
        ("T", None),
        ("f", None),
        ("yes", None),
        ("no", None),
        ("undefined", None),
        ("\"true\"", None),
    ] {
        let config = read(&format!("B = {text}\n"));
        assert_eq!(config.boolean("B").ok().flatten(), expected, "{text}");
    }
}

#[test]
fn expressions_point_into_the_text() {
    let config = read(
        "LIMIT = 4 *\\\n  * 5\nSTART = Cpus > 1 && \\\n   (Memory < $(LIMIT))\nRANK = Cpus +\nOK = $(NOPE:Cpus) > 1\n",
    );
    assert_eq!(config.expr("OK").unwrap().unwrap().to_string(), "Cpus > 1");
    for (name, position) in
        [("START", "test.config, line 2, column 3"), ("RANK", "test.config, line 5, column 13")]
    {
        let error = config.expr(name).unwrap_err();
        assert_eq!(error.position().to_string(), position, "{error}");
    }
}

#[test]
fn all_errors_are_told_unless_the_first_is_enough() {
    let text = "word\nA = 1\nX-Y = 2\nuse NOPE : x\nif foo\nendif\nB = 2\n";
    let reading = read_as("TOOL", None, text);
    let lines: Vec<u32> = reading.errors().map(|error| error.position.line).collect();
    assert_eq!(lines, [1, 3, 4, 5]);
    assert!(reading.diagnostics.iter().all(|finding| finding.severity == Severity::Error));
    check_in(&reading.config, &[("A", "1"), ("B", "2")]);
    let first = Reader::new(Host::none()).first_error_only().read(&[Source::new("t", text)]);
    assert_eq!(first.errors().count(), 1);
}
