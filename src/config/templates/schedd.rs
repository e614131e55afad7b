//! `use FEATURE : ...` for access points: accounting groups and user maps, transforms, retries.

use super::Template;

const fn feature(name: &'static str, text: &'static str) -> Template {
    Template::of("FEATURE", name, text)
}

pub(super) const TEMPLATES: &[Template] = &[
    feature(
        "ScheddUsermapFile",
        "if ! $(2?)
  error : use FEATURE : ScheddUsermapFile needs the name of the map and its file
endif
SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) $(1)
CLASSAD_USER_MAPFILE_$(1) = $(2)
",
    ),
    feature(
        "AssignAccountingGroup",
        r#"if ! $(1?)
  error : use FEATURE : AssignAccountingGroup needs a map file
endif
use FEATURE : ScheddUsermapFile(AssignAccountingGroup, $(1))
JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) AssignAccountingGroup
JOB_TRANSFORM_AssignAccountingGroup @=end
  COPY Owner = AcctGroupUser
  COPY AcctGroup = RequestedAcctGroup
  EVALSET AcctGroup = usermap("AssignAccountingGroup",AcctGroupUser,AcctGroup)
  EVALSET AccountingGroup = join(".",AcctGroup,AcctGroupUser)
@end
IMMUTABLE_JOB_ATTRS = $(IMMUTABLE_JOB_ATTRS) AcctGroup AcctGroupUser AccountingGroup
if $(2:True)
  SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) CheckRequestedGroup
  SUBMIT_REQUIREMENT_CheckRequestedGroup = RequestedAcctGroup is undefined || RequestedAcctGroup == AcctGroup
  SUBMIT_REQUIREMENT_CheckRequestedGroup_REASON = strcat("Permission denied setting accounting_group to ", RequestedAcctGroup)
endif
SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) AssignAccountingGroup
SUBMIT_REQUIREMENT_AssignAccountingGroup = AcctGroup isnt undefined && AccountingGroup isnt undefined
SUBMIT_REQUIREMENT_AssignAccountingGroup_REASON = strcat("Submit requirement AssignAccountingGroup not met - Could not map '", Owner, "' to an accounting group ", RequestedAcctGroup)
"#,
    ),
    feature(
        "SetJobAttrFromUsermap",
        r#"if ! $(3?)
  error : use FEATURE : SetJobAttrFromUsermap needs the attribute to set, the attribute to map, and the name of the map
endif
if $(4?)
  use FEATURE : ScheddUsermapFile($(3), $(4))
endif
JOB_TRANSFORM_NAMES += Set$(1)
JOB_TRANSFORM_Set$(1) = EVALSET $(1) usermap("$(3)",$(2),$(1))
SUBMIT_REQUIREMENT_NAMES += Require$(1)
SUBMIT_REQUIREMENT_Require$(1) = $(1) isnt undefined
SUBMIT_REQUIREMENT_Require$(1)_REASON = strcat("Submit requirement Require$(1) not met - Could not map '", $(2)?:"undefined", "' to a $(1)")
"#,
    ),
    feature(
        "AssignProjectName",
        "if ! $(1?)
  error : use FEATURE : AssignProjectName needs the name of a map
endif
use FEATURE : SetJobAttrFromUsermap(ProjectName, Owner, $(1+))
",
    ),
    feature("JobsHaveInstanceIDs", "SYSTEM_JOB_MACHINE_ATTRS = $(SYSTEM_JOB_MACHINE_ATTRS) CloudInstanceID\n")
        .instead("a node's spec.providerID names the machine in its cloud, and a proc's status names its node"),
    feature(
        "DefaultCheckpointDestination",
        r#"if ! defined DEFAULT_CHECKPOINT_DESTINATION
  if defined DEFAULT_CHECKPOINT_DESTINATION_PREFIX
    DEFAULT_CHECKPOINT_DESTINATION = "$(DEFAULT_CHECKPOINT_DESTINATION_PREFIX)/$(MY.Owner)"
  else
    warning : use FEATURE : DefaultCheckpointDestination does nothing without DEFAULT_CHECKPOINT_DESTINATION or DEFAULT_CHECKPOINT_DESTINATION_PREFIX
  endif
endif
if defined DEFAULT_CHECKPOINT_DESTINATION
  EXTENDED_SUBMIT_COMMANDS @=end
    checkpoint_storage = "'default' or 'spool' or a checkpoint_destination"
    $(EXTENDED_SUBMIT_COMMANDS)
  @end
  JOB_TRANSFORM_CheckpointStorage @=end
    REQUIREMENTS (MY.CheckpointDestination =?= undefined) && (MY.SuccessCheckpointExitCode =!= undefined)
    ShouldSetCheckpointDestination = TRUE
    SetCheckpointDestination = $(DEFAULT_CHECKPOINT_DESTINATION)
    if defined MY.checkpoint_storage
      EVALMACRO IsSpool (checkpoint_storage == "spool")
      EVALMACRO IsDefault (checkpoint_storage == "default")
      if $(IsSpool)
        ShouldSetCheckpointDestination = FALSE
      elif ! $(IsDefault)
        SetCheckpointDestination = checkpoint_storage
      endif
    endif
    if $(ShouldSetCheckpointDestination)
      EVALSET CheckpointDestination $(SetCheckpointDestination)
    endif
  @end
  JOB_TRANSFORM_NAMES = CheckpointStorage $(JOB_TRANSFORM_NAMES)
endif
"#,
    )
    .instead("a job here keeps its checkpoints on volumes of its own pod template"),
    feature(
        "PelicanRetryPolicy",
        r#"PelicanRetry_MaxRetries = 4
PelicanRetry_MinimumDelay = 300
PelicanRetry_RandomDelay = 300
pelican_error_subcode_retriable = 2816
pelican_error_subcode_stopped = 1280
PelicanRetryCondition = ((VacateReasonCode == 12 || VacateReasonCode == 13) && ((VacateReasonSubCode == $(pelican_error_subcode_retriable)) || (VacateReasonSubCode == $(pelican_error_subcode_stopped)))) ?: false
JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) PelicanRetry
JOB_TRANSFORM_PelicanRetry @=jt
  REQUIREMENTS (stringListIMember("pelican",WantTransferPluginMethods) || stringListIMember("osdf",WantTransferPluginMethods) || stringListIMember("stash",WantTransferPluginMethods)) && isUndefined(PelicanRetryEnabled)
  EVALMACRO retry_delay = $(PelicanRetry_MinimumDelay) + random($(PelicanRetry_RandomDelay))
  SET PelicanRetryEnabled true
  SET PelicanRetryDelay $(retry_delay)
@jt
SYSTEM_ON_VACATE_COOL_DOWN = ((PelicanRetryEnabled?:false) && $(PelicanRetryCondition) && ((NumJobCoolDowns?:0) < $(PelicanRetry_MaxRetries)) ? PelicanRetryDelay : ($(SYSTEM_ON_VACATE_COOL_DOWN:0)))
"#,
    )
    .instead("Slotwright transfers no files: an init container of the job's pod template fetches data and retries as it likes"),
];
