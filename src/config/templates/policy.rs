//! `use POLICY : ...`: when jobs start, are suspended, are preempted or are put on hold.

use super::Template;

const fn policy(name: &'static str, text: &'static str) -> Template {
    Template::of("POLICY", name, text)
}

/// The part of a policy for desktops that evicts jobs and never suspends them.
macro_rules! evict_never_suspend {
    ($before:literal) => {
        concat!(
            $before,
            "WANT_SUSPEND = False\n",
            "WANT_VACATE = True\n",
            "SUSPEND = False\n",
            "CONTINUE = True\n",
            "KILL = False\n",
            "MaxJobRetirementTime = 0\n",
            "CLAIM_WORKLIFE =\n",
            "SLOTS_CONNECTED_TO_KEYBOARD = 1000000\n",
            "SLOTS_CONNECTED_TO_CONSOLE = 1000000\n",
            "IS_OWNER = (START =?= False)\n",
        )
    };
}

pub(super) const TEMPLATES: &[Template] = &[
    policy(
        "Always_Run_Jobs",
        "START = True
PREEMPT = False
SUSPEND = False
CONTINUE = True
KILL = False
WANT_SUSPEND = False
WANT_VACATE = True
PREEMPTION_REQUIREMENTS = False
NEGOTIATOR_CONSIDER_PREEMPTION = False
MaxJobRetirementTime = 2147483647
CLAIM_WORKLIFE = 1200
",
    ),
    policy(
        "Desktop",
        r#"if ! defined PolicyExprFragments
  use FEATURE : Policy_Expr_Fragments
endif
STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) CpuBusy
CpuBusyTimer = IfThenElse(CpuBusyValue is 1, time() - CpuBusyTime, 0)
START = ((KeyboardIdle > $(StartIdleTime)) && ( $(CPUIdle) || (State != "Unclaimed" && State != "Owner")) )
SUSPEND = ($(KeyboardBusy) || ( ($(CpuBusyTimer) > 120) && $(ActivationTimer) > 90))
CONTINUE = ($(CPUIdle) && ($(ActivityTimer) > 10) && (KeyboardIdle > $(ContinueIdleTime)))
PREEMPT = (((Activity == "Suspended") && ($(ActivityTimer) > $(MaxSuspendTime))) || (SUSPEND && (WANT_SUSPEND == False)))
WANT_SUSPEND = ($(SmallJob) || $(KeyboardNotBusy) || $(IsVanilla) ) && ( $(SUSPEND))
WANT_VACATE = $(ActivationTimer) > 600 || $(IsVanilla)
KILL = False
MaxJobRetirementTime = 0
CLAIM_WORKLIFE =
SLOTS_CONNECTED_TO_KEYBOARD = 1000000
SLOTS_CONNECTED_TO_CONSOLE = 1000000
IS_OWNER = (START =?= False)
"#,
    ),
    policy(
        "UWCS_Desktop",
        "use FEATURE : UWCS_Desktop_Policy_Values
START = $(UWCS_START)
SUSPEND = $(UWCS_SUSPEND)
CONTINUE = $(UWCS_CONTINUE)
PREEMPT = $(UWCS_PREEMPT)
KILL = $(UWCS_KILL)
WANT_SUSPEND = $(UWCS_WANT_SUSPEND)
WANT_VACATE = $(UWCS_WANT_VACATE)
PERIODIC_CHECKPOINT = $(UWCS_PERIODIC_CHECKPOINT)
PREEMPTION_REQUIREMENTS = $(UWCS_PREEMPTION_REQUIREMENTS)
PREEMPTION_RANK = $(UWCS_PREEMPTION_RANK)
NEGOTIATOR_PRE_JOB_RANK = $(UWCS_NEGOTIATOR_PRE_JOB_RANK)
NEGOTIATOR_POST_JOB_RANK = $(UWCS_NEGOTIATOR_POST_JOB_RANK)
MaxJobRetirementTime = $(UWCS_MaxJobRetirementTime)
CLAIM_WORKLIFE = $(UWCS_CLAIM_WORKLIFE)
SLOTS_CONNECTED_TO_KEYBOARD = 1024*1024
IS_OWNER = (START =?= False)
",
    ),
    policy(
        "Desktop_Hours",
        evict_never_suspend!(
            "use FEATURE : Policy_Hours_To_Start($(1+))
NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)
CpuBusy = ($(NonCondorLoadAvg) >= $(HighLoad))
STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) CpuBusy
CpuBusyTimer = (CpuBusyValue * (time() - CpuBusyTime))
START = $(RunJobsHours)
PREEMPT = $(NoJobsHours)
"
        ),
    ),
    policy(
        "Desktop_Idle",
        evict_never_suspend!(
            "if $(1?)
  use FEATURE : Policy_Hours_To_Start($(1+))
endif
NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)
CpuBusy = ($(NonCondorLoadAvg) >= $(HighLoad))
CpuIdle = ($(NonCondorLoadAvg) <= $(BackgroundLoad))
STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) CpuBusy
CpuBusyTimer = (CpuBusyValue * (time() - CpuBusyTime))
PreemptKeyboardIdleTime = 60
PreemptCpuBusyTime = 120
PREEMPT = (KeyboardIdle < $(PreemptKeyboardIdleTime)) || ($(CpuBusyTimer) > $(PreemptCpuBusyTime))
if defined NoJobsHours
  PREEMPT = ($(PREEMPT)) && ($(NoJobsHours))
endif
START = (KeyboardIdle > $(StartIdleTime)) && $(CPUIdle)
if defined RunJobsHours
  START = ($(START)) || ($(RunJobsHours))
endif
"
        ),
    ),
    policy(
        "Limit_Job_Runtimes",
        r#"MAX_JOB_RUNTIME = $(1:24*3600)
MaxJobRetirementTime = $(MAX_JOB_RUNTIME)+120
PREEMPT = (Activity == "Busy") && ((time() - EnteredCurrentActivity) > $(MAX_JOB_RUNTIME))
"#,
    ),
    policy(
        "Preempt_If",
        "if ! $(1?)
  error : use POLICY : Preempt_If needs the name of a macro that holds the condition
endif
if defined PREEMPT
  PREEMPT = $($(1)) || $(PREEMPT)
else
  PREEMPT = $($(1))
endif
MAXJOBRETIREMENTTIME = ifthenelse($($(1)),-1,$(MAXJOBRETIREMENTTIME:0))
if defined WANT_SUSPEND
  WANT_SUSPEND = $($(1)) =!= true && $(WANT_SUSPEND)
else
  WANT_SUSPEND = $($(1)) =!= true
endif
",
    ),
    policy(
        "Want_Hold_If",
        r#"use POLICY : Preempt_If($(1))
if ! $(3?)
  error : use POLICY : Want_Hold_If needs the name of a macro, a subcode, and a reason
endif
if defined WANT_HOLD
  WANT_HOLD = (JobUniverse != 1 && $($(1))) || $(WANT_HOLD)
else
  WANT_HOLD = (JobUniverse != 1 && $($(1)))
endif
WANT_HOLD_SUBCODE = ifThenElse($($(1)), $(2) , $(WANT_HOLD_SUBCODE:UNDEFINED))
WANT_HOLD_REASON = ifThenElse($($(1)), "$(3+)", $(WANT_HOLD_REASON:UNDEFINED))
"#,
    ),
    policy(
        "Preempt_If_Cpus_Exceeded",
        "use POLICY : Startd_Publish_CpusUsage
CPU_EXCEEDED = (CpusUsage > Cpus + 0.8)
use POLICY : Preempt_If(CPU_EXCEEDED)
",
    ),
    policy(
        "Preempt_If_Disk_Exceeded",
        "DISK_EXCEEDED = (JobUniverse != 13 && DiskUsage =!= UNDEFINED && DiskUsage > Disk)
use POLICY : Preempt_If(DISK_EXCEEDED)
",
    ),
    policy(
        "Preempt_If_Memory_Exceeded",
        "MEMORY_EXCEEDED = (JobUniverse != 13 && MemoryUsage =!= UNDEFINED && MemoryUsage > Memory)
use POLICY : Preempt_If(MEMORY_EXCEEDED)
",
    ),
    policy(
        "Preempt_If_Runtime_Exceeds",
        r#"MAX_JOB_RUNTIME = $(1:24*3600)
PREEMPT_RUNTIME_EXCEEDS = (JobState == "Running") && ((time() - JobCurrentStartDate) > $(MAX_JOB_RUNTIME))
use POLICY : Preempt_If( PREEMPT_RUNTIME_EXCEEDS )
"#,
    ),
    policy(
        "Hold_If_Cpus_Exceeded",
        "use POLICY : Startd_Publish_CpusUsage
CPU_EXCEEDED = (CpusUsage > Cpus + 0.8)
HOLD_REASON_CPU_EXCEEDED = CPU usage exceeded request_cpus
use POLICY : Want_Hold_If( CPU_EXCEEDED, $(HOLD_SUBCODE_CPU_EXCEEDED:101), $(HOLD_REASON_CPU_EXCEEDED) )
",
    ),
    policy(
        "Hold_If_Disk_Exceeded",
        "DISK_EXCEEDED = (JobUniverse != 13 && DiskUsage =!= UNDEFINED && DiskUsage > Disk)
HOLD_REASON_DISK_EXCEEDED = disk usage exceeded allocated disk
use POLICY : Want_Hold_If( DISK_EXCEEDED, $(HOLD_SUBCODE_DISK_EXCEEDED:104), $(HOLD_REASON_DISK_EXCEEDED) )
",
    ),
    policy(
        "Hold_If_Memory_Exceeded",
        "MEMORY_EXCEEDED = (JobUniverse != 13 && MemoryUsage =!= UNDEFINED && MemoryUsage > Memory)
HOLD_REASON_MEMORY_EXCEEDED = memory usage exceeded request_memory
use POLICY : Want_Hold_If( MEMORY_EXCEEDED, $(HOLD_SUBCODE_MEMORY_EXCEEDED:102), $(HOLD_REASON_MEMORY_EXCEEDED) )
",
    ),
    policy(
        "Hold_If_Runtime_Exceeds",
        r#"MAX_JOB_RUNTIME = $(1:24*3600)
HOLD_REASON_RUNTIME_EXCEEDS = runtime exceeded maximum ($(MAX_JOB_RUNTIME) seconds)
HOLD_RUNTIME_EXCEEDS = (JobState == "Running") && ((time() - JobCurrentStartDate) > $(MAX_JOB_RUNTIME))
use POLICY : Want_Hold_If( HOLD_RUNTIME_EXCEEDS, $(HOLD_SUBCODE_RUNTIME_EXCEEDS:103), $(HOLD_REASON_RUNTIME_EXCEEDS) )
"#,
    ),
    policy(
        "Startd_Publish_CpusUsage",
        r#"CpusUsage = ifthenelse(TotalLoadAvg > 0.0 && Activity!="Idle", CondorLoadAvg/TotalLoadAvg*MIN({TotalLoadAvg, $(DETECTED_CORES)}), 0)
STARTD_ATTRS = $(STARTD_ATTRS) CpusUsage
"#,
    ),
    policy(
        "OnlyRegisteredCheckpointDestinations",
        r#"TOOL_CLASSAD_USER_MAP_NAMES = $(TOOL_CLASSAD_USER_MAP_NAMES) checkpoint_destination_map
SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) checkpoint_destination_map
CLASSAD_USER_MAPFILE_checkpoint_destination_map = $(CHECKPOINT_DESTINATION_MAPFILE)
CLASSAD_USER_MAP_PREFIX_checkpoint_destination_map = TRUE
JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) ValidateCheckpointDestination
JOB_TRANSFORM_ValidateCheckpointDestination @=end
  EVALSET CheckpointDestinationValid = ifthenelse(undefined =?= userMap("checkpoint_destination_map", CheckpointDestination), undefined, True)
@end
IMMUTABLE_JOB_ATTRS = $(IMMUTABLE_JOB_ATTRS) CheckpointDestinationValid
SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) RejectInvalidCheckpointDestination
SUBMIT_REQUIREMENT_RejectInvalidCheckpointDestination = CheckpointDestination =?= undefined || CheckpointDestinationValid =?= True
SUBMIT_REQUIREMENT_RejectInvalidCheckpointDestination_REASON = "You specified a checkpoint_destination this AP does not know how to clean up.  You may need to add a trailing / to the URL."
"#,
    )
    .instead("a job here keeps its checkpoints on volumes of its own pod template: there is no checkpoint destination to check"),
];
