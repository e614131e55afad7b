//! The rules of lint, each with a stable id and a severity. `docs/reference/lint.md` lists the same rules.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// kubectl, the API server or the operator refuses the object.
    Error,
    /// The object is accepted, but does not do what it seems to say.
    Warning,
    /// Something worth knowing.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`, which are SARIF's words too.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A rule that manifests and configuration should keep.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule's id. Pipelines may name ids, so an id never changes its meaning.
    pub id: &'static str,
    /// How bad a finding of this rule is.
    pub severity: Severity,
    /// The findings of the rule, in a sentence.
    pub summary: &'static str,
}

/// Declares a static for each rule, and the list of all rules.
macro_rules! rules {
    ($($name:ident, $id:literal, $severity:ident, $summary:literal;)*) => {
        $(#[doc = $summary] pub static $name: Rule = Rule { id: $id, severity: Severity::$severity, summary: $summary };)*
        /// Every rule, in the order of the page about them.
        pub static ALL: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    YAML_SYNTAX, "yaml-syntax", Error, "The file is not YAML, or not text.";
    YAML_LIMIT, "yaml-limit", Error, "The file is larger, or nests deeper, than lint reads.";
    YAML_DUPLICATE_KEY, "yaml-duplicate-key", Error, "A key stands twice in one map.";
    NO_OBJECT, "no-object", Error, "A document is no object, or standard input has no document.";
    NOTHING_FOUND, "nothing-found", Warning, "A path leads to no manifest and no configuration text.";
    UNKNOWN_KIND, "unknown-kind", Error, "There is no such kind or version in the group slotwright.dev.";
    METADATA, "metadata", Error, "The object has no name, or a name, a namespace, a label or an annotation that Kubernetes does not take.";
    SCHEMA_UNKNOWN_FIELD, "schema-unknown-field", Error, "The kind has no such field.";
    SCHEMA_REQUIRED, "schema-required", Error, "A field that the kind requires is missing.";
    SCHEMA_TYPE, "schema-type", Error, "The value is of another type than the field's.";
    SCHEMA_VALUE, "schema-value", Error, "The value is out of the field's range, too long, or not one of those allowed.";
    SCHEMA_RULE, "schema-rule", Error, "The object breaks a rule of its kind.";
    STATUS_IGNORED, "status-ignored", Note, "The operator writes the status: what the manifest says of it is dropped.";
    OPERATORS_KIND, "operators-kind", Warning, "The operator writes objects of this kind; manifests of them are removed or overwritten.";
    OBJECT_DUPLICATE, "object-duplicate", Error, "Two manifests are of the same object.";
    EXPRESSION_SYNTAX, "expression-syntax", Error, "The text is not a ClassAd expression.";
    ATTRIBUTE_NAME, "attribute-name", Error, "The name cannot be an attribute's, or is that of another attribute.";
    ATTRIBUTE_PROTECTED, "attribute-protected", Error, "The operator sets this attribute itself.";
    JOB_REQUEST, "job-request", Error, "The object asks for something that no object of its kind can ask for.";
    JOB_NAME, "job-name", Error, "The job's name is too long for the names of its pods.";
    JOB_TEMPLATE, "job-template", Error, "The pod template cannot be used.";
    JOB_ITEMS, "job-items", Error, "The job's items, or a reference to them, cannot be used.";
    JOB_IN_VAIN, "job-in-vain", Warning, "Something that the job says has no effect, or another effect than it seems to have.";
    EXPRESSION_ATTRIBUTE, "expression-attribute", Warning, "The name is almost that of a well-known attribute, which is likely meant.";
    EXPRESSION_MISTAKE, "expression-mistake", Warning, "A part of the expression is error or undefined whatever the ads say, is looked for in the wrong ad, or is a text without quotes; or a text stands where only numbers and truth values count.";
    JOB_TOO_LARGE, "job-too-large", Error, "The job's spec is larger than the operator takes.";
    TEMPLATE_UNKNOWN_FIELD, "template-unknown-field", Error, "Pods have no such field: kubectl refuses the manifest, and the API server drops the field.";
    TEMPLATE_RESERVED_NAME, "template-reserved-name", Warning, "The name is the operator's: pods do not get it from the template.";
    GROUP_NAME, "group-name", Error, "The text is not the name of an accounting group.";
    GROUP_UNKNOWN, "group-unknown", Warning, "No GroupQuota among the files declares the accounting group.";
    GROUP_PARENT, "group-parent", Error, "The group lies in a group that no GroupQuota declares.";
    GROUP_OWNER, "group-owner", Error, "The GroupQuota does not let the job's owner, which is its namespace, charge the group.";
    GROUP_DUPLICATE, "group-duplicate", Error, "Two GroupQuotas declare the same group.";
    GROUP_QUOTA, "group-quota", Warning, "A group has no quota, or two.";
    GROUP_SUM, "group-sum", Warning, "The quotas of groups add up to more than the group around them has.";
    LIMIT_UNKNOWN, "limit-unknown", Warning, "Nothing among the files sets the concurrency limit.";
    LIMIT_DUPLICATE, "limit-duplicate", Error, "Two ConcurrencyLimits set the same limit.";
    SUBMITTER_NAME, "submitter-name", Error, "The Submitter is not named as the submitter's object must be.";
    NEGOTIATOR_SEVERAL, "negotiator-several", Warning, "One of several Negotiators takes every slot of another: it has no slot constraint, or the same one.";
    NEGOTIATOR_UNKNOWN, "negotiator-unknown", Warning, "No Negotiator among the files has the name that a Submitter's correction gives.";
    SUBMIT_POLICY_SEVERAL, "submit-policy-several", Warning, "There are several SubmitPolicies, and only the first by name counts.";
    POLICY_SELECTOR, "policy-selector", Error, "The node selector cannot be used.";
    POLICY_SHADOWED, "policy-shadowed", Warning, "Another NodePolicy selects every node that this one selects, and always counts instead.";
    POLICY_CONFLICT, "policy-conflict", Error, "A field says the same thing as the configuration text, or as an attribute.";
    CONFIG_SYNTAX, "config-syntax", Error, "The text is not HTCondor configuration.";
    CONFIG_WARNING, "config-warning", Warning, "The text is doubtful, though HTCondor's configuration language allows it.";
    CONFIG_VALUE, "config-value", Error, "The value is not of the knob's type or range.";
    CONFIG_OVERRIDDEN, "config-overridden", Warning, "A field of a Negotiator gives the knob, too: the field counts.";
    CONFIG_UNKNOWN_KNOB, "config-unknown-knob", Warning, "There is no knob of that name, and nothing else uses it.";
    CONFIG_NOT_ACTED_ON, "config-not-acted-on", Warning, "The knob is HTCondor's, and has no effect here.";
    CONFIG_NOT_REPORTED, "config-not-reported", Warning, "The expression looks at an attribute that only an agent reports.";
    CONFIG_NEEDS_AGENT, "config-needs-agent", Warning, "Only an agent on the node can do what the text wants.";
    CONFIG_MACHINE, "config-machine", Error, "The text refers to something that is not known of nodes.";
    SUBMIT_DESCRIPTION, "submit-description", Error, "The file is a submit description of HTCondor.";
    FILE_SKIPPED, "file-skipped", Note, "Nothing in the file is Slotwright's.";
}

/// The rule that belongs to a reason of the operator's conditions.
pub fn of_reason(reason: &str) -> &'static Rule {
    match reason {
        "InvalidExpression" => &EXPRESSION_SYNTAX,
        "InvalidAttribute" => &ATTRIBUTE_NAME,
        "ProtectedAttribute" => &ATTRIBUTE_PROTECTED,
        "InvalidTemplate" => &JOB_TEMPLATE,
        "InvalidItems" => &JOB_ITEMS,
        "ReservedName" => &TEMPLATE_RESERVED_NAME,
        "ReplacedResources"
        | "SubmitMacro"
        | "UnknownVariable"
        | "AttributeNotActedOn"
        | "AttributeOfProcs"
        | "AbsentAttribute"
        | "LimitAmount"
        | "LimitName"
        | "DelayShortened"
        | "AmountInBytes"
        | "NoScheduler"
        | "HostPort"
        | "RefusedPod"
        | "ProbeWhileSuspended" => &JOB_IN_VAIN,
        "UnlikelyAttribute" => &EXPRESSION_ATTRIBUTE,
        "MistakenExpression" => &EXPRESSION_MISTAKE,
        "NameTooLong" => &JOB_NAME,
        "ObjectTooLarge" => &JOB_TOO_LARGE,
        "InvalidGroup" => &GROUP_NAME,
        "MisnamedSubmitter" => &SUBMITTER_NAME,
        "InvalidSelector" => &POLICY_SELECTOR,
        "SaidTwice" => &POLICY_CONFLICT,
        "TextOverridden" => &CONFIG_OVERRIDDEN,
        "InvalidConfiguration" => &CONFIG_SYNTAX,
        "InvalidValue" => &CONFIG_VALUE,
        "MachineMacro" => &CONFIG_MACHINE,
        "UnknownKnob" => &CONFIG_UNKNOWN_KNOB,
        "KnobNotActedOn" => &CONFIG_NOT_ACTED_ON,
        "AttributeNotReported" => &CONFIG_NOT_REPORTED,
        "KillNeedsAgent" => &CONFIG_NEEDS_AGENT,
        "ConfigurationWarning" | "BackfillNotEnabled" => &CONFIG_WARNING,
        _ => &JOB_REQUEST,
    }
}
