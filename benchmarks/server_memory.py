"""The memory of an explorer of which one visitor opens every page.

    python benchmarks/server_memory.py [--settings deploy/small_server.toml] [--models NAME ...] [--seconds 2]
        [--json FILE]

Starts the explorer with a file of limits. A visitor, by Streamlit's own protocol, opens every page with a pair of 32
tokens, with each model in turn. Prints the resident memory after each page, and the highest.
"""

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.clicks import TEXT_A, TEXT_B, explorer  # noqa: E402
from benchmarks.visitor import ServerProcess, Visitor  # noqa: E402
from ui.shell import catalogue  # noqa: E402


def run(settings, models, seconds):
    """Open every page with every model. Returns: {"pages": [...], "most_megabytes": float}."""
    pages = []
    with explorer({"BERT_TF_EXPLORER": str(settings)}) as address:
        process = ServerProcess(address.rpartition(":")[2])
        visitor = Visitor(address)
        for model in models:
            for page in catalogue.pages():
                _, failed = visitor.open(page=page, a=TEXT_A, b=TEXT_B, mask="a1", model=model)
                time.sleep(seconds)
                pages.append({"model": model, "page": page, "failed": failed, "megabytes": round(process.megabytes)})
        visitor.close()
        return {"pages": pages, "most_megabytes": round(process.most_megabytes)}


def main():
    """Measures and prints. Returns: None."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=Path, default=ROOT / "deploy" / "small_server.toml", metavar="FILE")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="default: the default model of the settings")
    parser.add_argument("--seconds", type=float, default=2.0, help="after each page (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    models = args.models or [tomllib.loads(args.settings.read_text("utf-8"))["models"]["default"]]
    result = run(args.settings.resolve(), models, args.seconds)
    for row in result["pages"]:
        print(f"{row['megabytes']:5} MB  {row['page']}  {row['model']}{'  (shows an error)' if row['failed'] else ''}")
    print(f"At most {result['most_megabytes']} MB.")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
