"""Renders, lints or packs a Helm chart with Helm's own SDK. Called by helm.sh, which provides the SDK."""

import argparse
import json
import sys
import tarfile
import tempfile

import helm_python


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="helm.sh")
    parser.add_argument("action", choices=["render", "lint", "package"])
    parser.add_argument("chart", help="the chart's directory")
    parser.add_argument("--values", metavar="FILE", help="values in YAML, over the chart's own")
    parser.add_argument("--set", metavar="K=V", action="append", default=[], help="more values, over those: a.b=1,c=2; may be repeated")
    parser.add_argument("--name", default="slotwright", help="the release's name")
    parser.add_argument("--namespace", default="slotwright-system", help="the release's namespace")
    parser.add_argument("--notes", action="store_true", help="render NOTES.txt only")
    return parser.parse_args()


def merge(base: dict, over: dict) -> dict:
    """Merges two maps key by key, as Helm merges `--set` and `--values`. If both have a value, that of `over` counts."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def values(args: argparse.Namespace) -> dict:
    found = {}
    if args.values:
        with open(args.values, encoding="utf-8") as file:
            found = helm_python.values_from_yaml(file.read())
    for text in args.set:
        found = merge(found, helm_python.parse_set_string(text))
    return found


def render(args: argparse.Namespace) -> int:
    """Prints every object, in the order of the templates' names, so that the output depends on chart and values only."""
    with helm_python.Chart.load(args.chart) as chart:
        given = values(args)
        chart.validate_schema(chart.merge_values(given))
        rendered = chart.render(given, name=args.name, namespace=args.namespace)
    for path, text in sorted(rendered.items()):
        if path.endswith("NOTES.txt") != args.notes or not text.strip():
            continue
        print(text.strip("\n") if args.notes else f"---\n# Source: {path}\n{text.strip().removeprefix('---').strip()}")
    return 0


def lint(args: argparse.Namespace) -> int:
    """Prints what is wrong with the chart. Fails on warnings too."""
    report = helm_python.lint(args.chart, values(args), strict=True, namespace=args.namespace)
    bad = [m for m in report["messages"] if m["severity"] >= 2]
    for message in bad:
        print(f"{args.chart}: {message['path']}: {message['error']}", file=sys.stderr)
    return 1 if bad else 0


def package(args: argparse.Namespace) -> int:
    """Packs the chart, and prints as JSON the package's regular files with their texts, and the files of the definitions that
    Helm would install."""
    with tempfile.TemporaryDirectory() as directory:
        path = helm_python.package(args.chart, destination=directory)
        with tarfile.open(path) as archive:
            found = [(m.name, archive.extractfile(m).read().decode()) for m in archive.getmembers() if m.isreg()]
        with helm_python.Chart.load(path) as chart:
            definitions = [crd["name"] for crd in chart.crds]
    files = {name.partition("/")[2]: text for name, text in found}
    print(json.dumps({"files": files, "definitions": definitions}))
    return 0


def main() -> int:
    args = arguments()
    try:
        return {"render": render, "lint": lint, "package": package}[args.action](args)
    except helm_python.HelmError as error:
        print(f"helm.sh: {error}", file=sys.stderr)
        return 1


sys.exit(main())
