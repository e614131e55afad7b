//! `use FEATURE : ...` for execution points: fragments of expressions, and slot types.

use super::Template;

const fn feature(name: &'static str, text: &'static str) -> Template {
    Template::of("FEATURE", name, text)
}

pub(super) const TEMPLATES: &[Template] = &[
    feature(
        "Policy_Expr_Fragments",
        "PolicyExprFragments = 1
KeyboardBusy = (KeyboardIdle < $(MINUTE))
ConsoleBusy = (ConsoleIdle  < $(MINUTE))
KeyboardNotBusy = ($(KeyboardBusy) == False)
JustCPU = ($(CPUBusy) && ($(KeyboardBusy) == False))
MachineBusy = ($(CPUBusy) || $(KeyboardBusy))
NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)
CpuIdle = ($(NonCondorLoadAvg) <= $(BackgroundLoad))
CpuBusy = ($(NonCondorLoadAvg) >= $(HighLoad))
ActivationTimer = ifThenElse(JobStart =!= UNDEFINED, (time() - JobStart), 0)
LastCkpt = (time() - LastPeriodicCheckpoint)
",
    ),
    // The times are minutes of the day. Half a minute is added or taken off, so that a whole minute never falls
    // between START and PREEMPT.
    feature(
        "Policy_Hours_To_Start",
        "WorkdayBeginHour = $(1:8)
WorkdayEndHour = $(2:12+5)
WorkdayBeginMinuteStartJobs = ($(WorkdayBeginHour))*60 - 29.5
WorkdayBeginMinuteStopJobs = ($(WorkdayBeginHour))*60 - 9.5
WorkdayEndMinute = ($(WorkdayEndHour))*60 + 0.5
RunJobsHours = ClockMin < $INT(WorkdayBeginMinuteStartJobs) || ClockMin > $INT(WorkdayEndMinute)
NoJobsHours = ClockMin > $INT(WorkdayBeginMinuteStopJobs) && ClockMin < $INT(WorkdayEndMinute)
if $(3?)
  WorkweekFirstDay = $(3:1)
  WorkweekLastDay = $(4:5)
  IsWeekend = ClockDay < $INT(WorkweekFirstDay) || ClockDay > $INT(WorkWeekLastDay)
  IsWorkday = ClockDay >= $INT(WorkweekFirstDay) && ClockDay <= $INT(WorkWeekLastDay)
  RunJobsHours = $(IsWeekend) || $(RunJobsHours)
  NoJobsHours = $(IsWorkday) && $(NoJobsHours)
endif
RunJobsHours = ($(RunJobsHours))
NoJobsHours = ($(NoJobsHours))
",
    ),
    feature(
        "UWCS_Desktop_Policy_Values",
        r#"if ! defined PolicyExprFragments
  use FEATURE : Policy_Expr_Fragments
endif
STARTD_LATCH_EXPRS = $(STARTD_LATCH_EXPRS) CpuBusy
CpuBusyTimer = IfThenElse(CpuBusyValue is 1, time() - CpuBusyTime, 0)
UWCS_START = ( (KeyboardIdle > $(StartIdleTime)) && ( $(CPUIdle) || (State != "Unclaimed" && State != "Owner")) )
UWCS_SUSPEND = ( $(KeyboardBusy) || ( ($(CpuBusyTimer) > 2 * $(MINUTE)) && $(ActivationTimer) > 90 ) )
UWCS_CONTINUE = ( $(CPUIdle) && ($(ActivityTimer) > 10) && (KeyboardIdle > $(ContinueIdleTime)) )
UWCS_PREEMPT = ( ((Activity == "Suspended") && ($(ActivityTimer) > $(MaxSuspendTime))) || (SUSPEND && (WANT_SUSPEND == False)) )
UWCS_KILL = false
UWCS_WANT_SUSPEND = ( $(SmallJob) || $(KeyboardNotBusy) || $(IsVanilla) ) && ( $(SUSPEND) )
UWCS_WANT_VACATE = ( $(ActivationTimer) > 10 * $(MINUTE) || $(IsVanilla) )
UWCS_MaxJobRetirementTime = 0
UWCS_PERIODIC_CHECKPOINT = $(LastCkpt) > (3 * $(HOUR) + $RANDOM_INTEGER(-30,30,1) * $(MINUTE) )
UWCS_NEGOTIATOR_PRE_JOB_RANK = (10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory
UWCS_NEGOTIATOR_POST_JOB_RANK = (RemoteOwner =?= UNDEFINED) * (ifthenElse(isUndefined(KFlops), 1000, Kflops) - SlotID - 1.0e10*(Offline=?=True))
UWCS_PREEMPTION_REQUIREMENTS = ((SubmitterGroup =?= RemoteGroup) && ($(StateTimer) > (1 * $(HOUR))) && (RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2)) || (MY.NiceUser == True)
UWCS_PREEMPTION_RANK = (RemoteUserPrio * 1000000) - ifThenElse(isUndefined(TotalJobRuntime), 0, TotalJobRuntime)
"#,
    ),
    feature(
        "TestingMode_Policy_Values",
        "TESTINGMODE_START = True
TESTINGMODE_SUSPEND = False
TESTINGMODE_CONTINUE = True
TESTINGMODE_PREEMPT = False
TESTINGMODE_KILL = False
TESTINGMODE_WANT_SUSPEND = False
TESTINGMODE_WANT_VACATE = True
TESTINGMODE_PERIODIC_CHECKPOINT = False
TESTINGMODE_PREEMPTION_REQUIREMENTS = False
TESTINGMODE_PREEMPTION_RANK = 0
TESTINGMODE_CLAIM_WORKLIFE = 1200
",
    ),
    feature(
        "PartitionableSlot",
        "NUM_SLOTS_TYPE_$(1:1) = 1
SLOT_TYPE_$(1:1)_PARTITIONABLE = true
SLOT_TYPE_$(1:1) = $(2+:100%)
",
    ),
    // As in HTCondor, the last line undoes the share that the line before sets if no resources are given.
    feature(
        "StaticSlots",
        "NUM_SLOTS_TYPE_$(1:1) = $(2:$(NUM_CPUS))
SLOT_TYPE_$(1:1)_PARTITIONABLE = false
SLOT_TYPE_$(1:1) = $(3+:1/$(NUM_SLOTS_TYPE_$(1:1)))
SLOT_TYPE_$(1:1) = $(3+)
",
    ),
    feature(
        "GPUs",
        "MACHINE_RESOURCE_INVENTORY_GPUs = $(LIBEXEC)/condor_gpu_discovery $(1) -properties $(GPU_DISCOVERY_EXTRA)
ENVIRONMENT_FOR_AssignedGPUs = GPU_DEVICE_ORDINAL=/(CUDA|OCL)//  CUDA_VISIBLE_DEVICES=/CUDA//
ENVIRONMENT_VALUE_FOR_UnAssignedGPUs = 10000
use FEATURE : GPUsMonitor
",
    )
    .instead("a device plugin announces GPUs as an extended resource of the node: every slot of the node has them without a template"),
    feature(
        "GPUsMonitor",
        r#"use FEATURE : Monitor( GPUs, WaitForExit, 300, $(GPU_MONITOR), SUM:GPUs, PEAK:GPUsMemory )
STARTD_CRON_GPUs_MONITOR_CONDITION = TotalGPUs > 0 && OpSys =!= "WINDOWS"
STARTD_JOB_ATTRS = $(STARTD_JOB_ATTRS) GPUsUsage GPUsMemoryUsage
"#,
    ),
];
