#!/usr/bin/env python3
"""The allotments of the real condor_negotiator to the groups of a tree: quota, allocation, the limit of each turn.

    CONDOR_CHROOT=/var/tmp/condor hack/oracle/quotas.py [--seed N] [--count N] > tests/oracle/quotas.json

Needs the chroot of the oracle (hack/condor.sh), root, and shared/oracle beside the repository, which drives the pool
(`quota_oracle.py`). Two seconds a case: machine and submitter ads are injected into a real collector, one cycle runs, and the
negotiator's log tells. Its numbers have six digits.

Output, a JSON object a line in a list: `name`, the case (`slots`, `cpus`, `config`, `demand`), and `groups` by name with `quota`,
`requested`, `allocated`, `unmet` and, of those that had a turn, `limit`.

The manual's trees come first, then COUNT random ones: one to three levels, static and dynamic quotas mixed, groups without a
quota, surplus by default or by group, oversubscription on and off, autoregroup, slots without weights.
"""
import argparse
import contextlib
import io
import json
import random
import sys
from pathlib import Path

for above in Path(__file__).resolve().parents:
    if (above / "shared/oracle/quota_oracle.py").exists():
        sys.path.insert(0, str(above / "shared/oracle"))
        break
import quota_oracle  # noqa: E402

PHYSICS = "group_physics, group_chemistry"
TREE = "group_physics, group_physics.hep, group_physics.lep, group_chemistry"
STATIC = {"GROUP_QUOTA_group_physics": "20", "GROUP_QUOTA_group_chemistry": "10"}
STATIC_TREE = dict(STATIC, **{"GROUP_QUOTA_group_physics.hep": "15", "GROUP_QUOTA_group_physics.lep": "5"})
DYNAMIC_TREE = {
    "GROUP_QUOTA_DYNAMIC_group_chemistry": "0.33334",
    "GROUP_QUOTA_DYNAMIC_group_physics": "0.66667",
    "GROUP_QUOTA_DYNAMIC_group_physics.hep": "0.75",
    "GROUP_QUOTA_DYNAMIC_group_physics.lep": "0.25",
}
SURPLUS = {
    "GROUP_ACCEPT_SURPLUS": "false",
    "GROUP_ACCEPT_SURPLUS_group_physics": "false",
    "GROUP_ACCEPT_SURPLUS_group_physics.lep": "true",
    "GROUP_ACCEPT_SURPLUS_group_physics.hep": "true",
}
PRIORITY = {"GROUP_QUOTA_group_physics": "1000000", "GROUP_QUOTA_group_chemistry": "100000"}
BUSY = {"group_physics": 60, "group_physics.hep": 60, "group_physics.lep": 60, "group_chemistry": 60, "": 9}


def case(name, slots, names, config, demand, oversubscription, cpus=1):
    knobs = {"GROUP_NAMES": names, **config, "NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION": str(oversubscription)}
    return {"name": name, "slots": slots, "cpus": cpus, "config": knobs, "demand": demand}


def of_the_manual():
    """The examples of the manual's section on hierarchical group quotas, in pools of several sizes."""
    flat = {group: BUSY[group] for group in ("group_physics", "group_chemistry", "")}
    for over in (False, True):
        for slots in (15, 30, 60):
            yield case(f"static {slots}", slots, PHYSICS, STATIC, flat, over)
        yield case("dynamic", 30, PHYSICS, {"GROUP_QUOTA_DYNAMIC_group_chemistry": "0.33",
                                            "GROUP_QUOTA_DYNAMIC_group_physics": "0.66"}, flat, over)
        yield case("static tree", 30, TREE, STATIC_TREE, BUSY, over)
        yield case("dynamic tree", 30, TREE, DYNAMIC_TREE, BUSY, over)
        only_hep = {"group_physics.hep": 60, "group_chemistry": 3}
        for demand_name, demand in (("busy", BUSY), ("only hep", only_hep)):
            yield case(f"surplus within physics, {demand_name}", 30, TREE, {**STATIC_TREE, **SURPLUS}, demand, over)
            accepting = {**STATIC_TREE, **SURPLUS, "GROUP_ACCEPT_SURPLUS_group_physics": "true"}
            yield case(f"physics accepts surplus, {demand_name}", 30, TREE, accepting, demand, over)
        yield case("strict priority", 30, PHYSICS, PRIORITY, flat, over)


def tree(rng):
    """Names of a random tree, parents before their children."""
    names = []
    for top in range(rng.randint(1, 4)):
        names.append(f"g{top}")
    for level in range(rng.randint(0, 2)):
        for parent in [name for name in names if name.count(".") == level]:
            names += [f"{parent}.{chr(97 + child)}" for child in range(rng.choice((0, 1, 2, 3)))]
    return names


def at_random(rng, number):
    slots, cpus = rng.randint(3, 120), rng.choice((1, 1, 1, 2, 8))
    pool = slots * cpus
    names = tree(rng)
    config = {}
    for name in names:
        kind = rng.random()
        size = pool / 2 ** (1 + name.count("."))
        if kind < 0.45:
            config[f"GROUP_QUOTA_{name}"] = str(rng.choice((0, round(rng.uniform(0, size), 2), rng.randint(1, int(size) + 1))))
        elif kind < 0.93:
            config[f"GROUP_QUOTA_DYNAMIC_{name}"] = str(rng.choice((round(rng.uniform(0, 0.9), 3), 0.5, 1)))
        if rng.random() < 0.4:
            config[f"GROUP_ACCEPT_SURPLUS_{name}"] = rng.choice(("True", "False"))
    if rng.random() < 0.75:
        config["GROUP_ACCEPT_SURPLUS"] = rng.choice(("True", "True", "False"))
    if number % 10 == 9:
        config["GROUP_AUTOREGROUP"] = "True"
    if number % 10 == 8:
        config["NEGOTIATOR_USE_SLOT_WEIGHTS"] = "False"
    demand = {}
    for name in names + [""]:
        if rng.random() < 0.65:
            demand[name] = rng.choice((rng.randint(1, 5), rng.randint(1, pool), 2 * pool))
    if not demand:
        demand[names[0]] = pool
    return case(f"random {number}", slots, ", ".join(rng.sample(names, len(names))), config, demand,
                number % 3 != 0 and number % 2 == 0, cpus)


def ask(case):
    """The case with the answer of one cycle of the real negotiator."""
    with quota_oracle.prepared(case) as pool:
        pool.write(f"{quota_oracle.STATE}/submitters.ads", quota_oracle.submitter_ads(case))
        pool.advertise("UPDATE_SUBMITTOR_AD", f"{quota_oracle.STATE}/submitters.ads")
        pool.run_cycle(quota_oracle.CYCLE_SECONDS)
        log = pool.log()
    return {**case, "groups": quota_oracle.read_allocation(log)}


def main():
    parser = argparse.ArgumentParser(description="what the real negotiator allocates to the groups of many trees")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    cases = [*of_the_manual(), *(at_random(rng, number) for number in range(args.count))]
    print("[")
    for number, each in enumerate(cases):
        with contextlib.redirect_stderr(io.StringIO()):
            answer = ask(each)
        print(json.dumps(answer), end=",\n" if number + 1 < len(cases) else "\n", flush=True)
        print(f"{number + 1}/{len(cases)} {each['name']}", file=sys.stderr)
    print("]")


if __name__ == "__main__":
    main()
