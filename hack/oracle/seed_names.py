#!/usr/bin/env python3
"""List the knobs that the seeds name, with the sections that name them, as tests/knobs/seeds.tsv.

    hack/oracle/seed_names.py ../shared/seeds

The seeds (four chapters of HTCondor's manual) are not part of this repository; the list is, and tests/knobs.rs holds
the knob table to it. A name counts when the manual marks it as a macro, assigns it in an example, refers to it by $(),
or writes it in capitals with an underscore or in code marks. Names that look like knobs and are none are listed below.
"""

import collections
import pathlib
import re
import sys

TARGET = pathlib.Path(__file__).parents[2] / "tests/knobs/seeds.tsv"
CHAPTERS = {"000": "Policy Configuration", "001": "Startd Policy Configuration (6.6)", "002": "Central Managers",
            "003": "Policy Configuration"}
NO_KNOBS = {
    "submit commands": "accounting_group accounting_group_user concurrency_limits concurrency_limits_expr universe "
                       "request_actuator request_cogs request_cpus request_disk request_memory",
    "attributes of ads, and of metrics": "ConcurrencyLimits DynamicSlot InteractiveJob PartitionableSlot SlotType Desc "
                                         "Name name TargetType Units KFLOPS MIPS cpu disk memory Memory CPUs GPUs "
                                         "CPUS GPUS DMAX DISK SWAP MEMORY_USAGE PRIMARY",
    "invented by an example": "AfterHours WorkHours IsDesktop IsSuspendableSlot NonSuspendableSlotState "
                              "MyNonSuspendableSlotIsIdle PolicyForSlot1 PolicyForSlot2 CENTRAL_MANAGER1 "
                              "CENTRAL_MANAGER2 HAD_PORT REPLICATION_PORT NETWORK NETWORK_A NETWORK_B favorite_color "
                              "favorite_season SLOT2_favorite_color SLOT3_favorite_season VIEW_SERVER "
                              "VIEW_SERVER_ARGS VIEW_SERVER_ENVIRONMENT VIEWSERV01 VIEWSERV01_ARGS "
                              "VIEWSERV01_ENVIRONMENT VIEWSERV02 VIEWSERV02_ARGS VIEWSERV02_ENVIRONMENT",
    "values and words of the language": "TRUE FALSE UNDEFINED ERROR NAME TARGET POLICY FEATURE EVALSET REQUIREMENTS "
                                        "WARNING NOTE D_FULLDEBUG D_LOAD ALLOWED SIGKILL SIGTERM ENOSPC SLOT",
    "sets and resources of examples": "LARGE SMALL OTHER SWLICENSE DBSESSION LICENSE DATABASE FILESERVER",
}
CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]*(?:<\w+>)?(?:_[A-Za-z0-9<>]+)+")
PATTERNS = [
    re.compile(r":macro:`([\w.<>]+)"),
    re.compile(r"``([A-Z]{4,})``"),
    re.compile(r"\$\((\w+)\)"),
    re.compile(r"^\s*([A-Za-z][\w.<>]*)\s*(?:=(?![=?!])|@=)"),
    CAPITALS,
]
RULE = re.compile(r"^(-{4,}|={4,}|'{4,}|\"{4,})$")


def is_code(block):
    return block in ("condor-config", "text", "condor-classad-expr")


def sections(path, titles):
    """Yield (section, line, whether it may hold assignments)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marked, section, block = path.name[:3] in ("000", "002"), "", None
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if marked and line.strip() and not line.startswith(" ") and RULE.match(following):
            section = clean(line)
            titles.add(section)
        elif not marked and (line.strip() in titles or re.match(r"3\.6\.\d+ ", line)):
            section = re.sub(r"^3\.6\.\d+ ", "", line.strip())
        directive = re.match(r"\s*\.\. code-block:: (\S+)", line)
        if directive:
            block = directive.group(1)
        elif line.strip() and not line.startswith(" "):
            block = None
        yield section, line, not marked or is_code(block)


def clean(title):
    return re.sub(r"[*`]", "", title).strip()


def main(directory):
    ignored = set(" ".join(NO_KNOBS.values()).split())
    found, titles = collections.defaultdict(dict), set()
    for path in sorted(pathlib.Path(directory).glob("00?_*.txt"), key=lambda p: (p.name[:3] in ("001", "003"), p.name)):
        for section, line, assigns in sections(path, titles):
            for pattern in PATTERNS:
                if pattern is PATTERNS[3] and not assigns:
                    continue
                for name in pattern.findall(line):
                    name = name.rstrip("_.")
                    if name not in ignored:
                        found[name][f"{CHAPTERS[path.name[:3]]}: {section}"] = None
    TARGET.parent.mkdir(exist_ok=True)
    with open(TARGET, "w", encoding="utf-8") as out:
        for name in sorted(found, key=str.lower):
            out.write(f"{name}\t{'; '.join(found[name])}\n")
    print(f"{TARGET}: {len(found)} names", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
