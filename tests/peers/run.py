"""Other packages and this one on one generated history: `run.py OUT CHECKER NAME=PYTHON...`.

Every package runs in its own interpreter, one after the other, in several rounds, so that noise meets all alike. The table has
the median of the rounds and, in brackets, the worst, as multiples of one pass of OpenAI's tokenizer over the same history in the
same run; `check.py` judges what each made. The report goes to OUT as JSON.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from history import make_history

HERE = pathlib.Path(__file__).parent
ROUNDS = 5
#: Characters that come to some 200,000 tokens.
CHARACTERS = 640_000
FACTS = 60
SHARE = 0.2
#: The longest that one package may take for a round, in seconds.
PATIENCE = 300

#: Nothing is fetched while the clock runs.
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}

TIMES = ("preflight", "one_more_turn", "compaction")


def keep_offline(checker: str) -> None:
    """Points every interpreter at the vocabulary that comes along with LiteLLM."""
    packages = pathlib.Path(checker).parent.parent.glob("lib/python3*/site-packages/litellm/litellm_core_utils/tokenizers")
    OFFLINE["TIKTOKEN_CACHE_DIR"] = str(next(packages))


def run_json(python: str, *arguments: str) -> list[dict]:
    environment = {**os.environ, **OFFLINE}
    done = subprocess.run(
        [python, *arguments], cwd=HERE, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments[:2])} failed:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure_all(folder: pathlib.Path, checker: str, pythons: dict[str, str]) -> dict:
    history = folder / "history.json"
    history.write_text(json.dumps(make_history(CHARACTERS, FACTS)))
    tokens = run_json(checker, "check.py", str(history), "1")[0]["tokens"]
    budget = str(int(tokens * SHARE))
    made = {name: folder / f"{number}.json" for number, name in enumerate(pythons)}
    passes, rounds = [], {name: [] for name in pythons}
    for _ in range(ROUNDS):
        passes.append(run_json(checker, "check.py", str(history), "1")[0]["pass_seconds"])
        for name, python in pythons.items():
            rounds[name] += run_json(python, "worker.py", name, str(history), budget, str(made[name]))
    verdicts = run_json(checker, "check.py", str(history), budget, *map(str, made.values()))[1:]
    judged = dict(zip(pythons, verdicts, strict=True))
    unit = statistics.median(passes)
    peers = {name: summarize(rounds[name], judged[name], unit) for name in pythons}
    return {"tokens": tokens, "budget": int(budget), "rounds": ROUNDS, "pass_seconds": passes, "peers": peers}


def summarize(rounds: list[dict], verdict: dict, unit: float) -> dict:
    times = {}
    for what in TIMES:
        taken = [one[what] / unit for one in rounds]
        times[what] = {"median": statistics.median(taken), "worst": max(taken)}
    peak = max(one["peak_mb"] for one in rounds)
    verdict = {name: verdict[name] for name in ("of_budget", "broken_pairs", "facts")}
    return {"version": rounds[0]["version"], **times, "peak_mb": peak, **verdict}


def print_table(report: dict) -> None:
    print(f"{report['tokens']:,} tokens to {report['budget']:,}; one pass: {statistics.median(report['pass_seconds']) * 1000:.0f} ms\n")
    print("| package | pre-flight | one turn more | compaction | peak MB | of the budget | broken pairs | facts |")
    print("|---|---|---|---|---|---|---|---|")
    for peer in report["peers"].values():
        cells = [f"{peer[what]['median']:.3f} ({peer[what]['worst']:.3f})" for what in TIMES]
        over = " **over**" if peer["of_budget"] > 1 else ""
        cells += [f"{peer['peak_mb']:.0f}", f"{peer['of_budget']:.2f}{over}", str(peer["broken_pairs"]), f"{peer['facts']:.2f}"]
        print(f"| {peer['version']} | {' | '.join(cells)} |")


def check_ours(peers: dict) -> None:
    """Ends with an error where ours breaks what it promises, or another has more facts within the budget."""
    ours = peers["compact"]
    fair = [peer["facts"] for peer in peers.values() if peer["of_budget"] <= 1]
    if ours["of_budget"] > 1 or ours["broken_pairs"] or ours["facts"] < max(fair):
        raise SystemExit(f"ours is over its budget, breaks pairs or has fewer facts than another: {ours}")


def main(out: str, checker: str, *named: str) -> None:
    pythons = dict(pair.split("=", 1) for pair in named)
    keep_offline(checker)
    with tempfile.TemporaryDirectory() as folder:
        report = measure_all(pathlib.Path(folder), checker, pythons)
    pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(out).write_text(json.dumps(report, indent=1))
    print_table(report)
    check_ours(report["peers"])


if __name__ == "__main__":
    main(*sys.argv[1:])
