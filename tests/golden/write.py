"""Write the golden files anew: `python -m tests.golden.write`, from the repository's root.

Files that say the same, but for the last digits of another processor, stay as they are. Look at
the difference before it is kept: whatever is not meant is a mistake.
"""

from __future__ import annotations

import sys

from tests.golden.comparing import FOLDER, difference, path_of
from tests.golden.questions import QUESTIONS
from tests.golden.texts import all_texts


def main() -> int:
    """Write every file, and remove those of no question."""
    texts = all_texts()
    wanted = {path_of(question): question for question in QUESTIONS}
    for path in FOLDER.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    changed = 0
    for path, question in wanted.items():
        text = texts[question.name]
        if path.exists() and not difference(path.read_text(encoding="utf-8"), text, question):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        changed += 1
    sys.stdout.write(f"{changed} of {len(wanted)} files changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
