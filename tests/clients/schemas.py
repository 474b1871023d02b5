#!/usr/bin/env python3
"""Checks what commands print with --json, and the files of runs, against docs/schemas.

    pip install jsonschema
    python tests/clients/schemas.py --lookback target/release/lookback --translator RUN --text-model RUN --input SENTENCES

Fields that a schema does not name are faults too.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import jsonschema

SCHEMAS = Path(__file__).resolve().parents[2] / "docs/schemas"


def closed(schema):
    """The same schema without fields that it does not name; where parts are joined, the whole is closed."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        found["unevaluatedProperties"] = False
    for key in ("anyOf", "oneOf", "allOf"):
        if "unevaluatedProperties" in found and key in found:
            for part in found[key]:
                part.pop("unevaluatedProperties", None)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lookback", default="target/release/lookback")
    parser.add_argument("--translator", required=True, help="a run with attention to its source")
    parser.add_argument("--text-model", required=True, help="the run of a language model")
    parser.add_argument("--input", required=True, help="sentences for the translator, a line each")
    parser.add_argument("--results", help="a results.json of compare")
    options = parser.parse_args()

    def run(*command: str) -> str:
        done = subprocess.run([options.lookback, *command], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def check(name: str, text: str) -> None:
        schema = closed(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
        validator = jsonschema.Draft202012Validator(schema)
        lines = text.splitlines()
        for line in lines:
            validator.validate(json.loads(line))
        print(f"{name}: {len(lines)} objects are as the schema says")

    lines = Path(options.input).read_text().splitlines()
    first = lines[0]
    model, text = ("--run", options.translator), ("--run", options.text_model)
    with tempfile.TemporaryDirectory() as folder:
        few, written = str(Path(folder, "few.txt")), str(Path(folder, "written.txt"))
        Path(few).write_text("\n".join(lines[:3]) + "\n")
        check("translate", run("translate", *model, "--input", few, "--beam", "2", "--n-best", "2", "--json"))
        run("translate", *model, "--input", few, "--output", written)
        check("translate-targets", run("translate", *model, "--input", few, "--targets", written, "--json"))
        check("generate", run("generate", *text, "a", "--max-tokens", "5", "--json"))
        check("evaluate", run("evaluate", "--hypotheses", written, "--references", written, "--sources", few, "--json"))
        check("evaluate-text", run("evaluate", *text, "--json"))
        check("evaluate-text", run("evaluate", *text, *text, "--json"))
        for command in (("explain", *model, first), ("explain", *text, "a", "--max-tokens", "2")):
            check("explain", run(*command, "--json"))
        check("inspect-attention", run("inspect", "attention", *model, "--input", few, "--faithfulness", "--json"))
        check("inspect-attention", run("inspect", "attention", *text, "--input", few, "--json"))
        check("inspect-states", run("inspect", "states", *model, "--input", few, "--word", first.split()[0], "--json"))
    check("attend", run("attend", "--query", "10,5,10", "--keys", "0,1,1;5,0,1", "--json"))
    check("devices", run("devices", "--json"))
    for folder in (options.translator, options.text_model):
        check("metrics", Path(folder, "metrics.jsonl").read_text())
    if options.results:
        check("compare-results", json.dumps(json.loads(Path(options.results).read_text())))


if __name__ == "__main__":
    main()
