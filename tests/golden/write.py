"""Write the golden files anew: `python -m tests.golden.write`, from the repository's root.

Look at the difference before it is kept: whatever is not meant is a mistake.
"""

from __future__ import annotations

import sys

from tests.golden.comparing import FOLDER, path_of
from tests.golden.questions import QUESTIONS
from tests.golden.texts import all_texts


def main() -> int:
    """Write every file, and remove those of no question."""
    texts = all_texts()
    wanted = {path_of(question): texts[question.name] for question in QUESTIONS}
    for path in FOLDER.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    total = sum(len(text.encode()) for text in wanted.values())
    sys.stdout.write(f"{len(wanted)} files, {total} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
