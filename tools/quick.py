"""The quick tests: a few minutes, with the extras web, plot and parquet only; no browser, no database, no PyTorch.

    python tools/quick.py [arguments of pytest]

Used where the whole suite would take too long: minimum versions, and every system and Python of the workflows.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What to run: every layer of the package, in parts that need no large extra.
QUICK = (
    "tests/pool",
    "tests/planning",
    "tests/store",
    "tests/strict",
    "tests/test_campaign.py",
    "tests/test_campaign_logs.py",
    "tests/test_deprecation.py",
    "tests/test_errors.py",
    "tests/test_metrics.py",
    "tests/test_readme.py",
    "tests/test_simulate.py",
)

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not deep", *QUICK, *sys.argv[1:]]
    sys.exit(subprocess.run(command, cwd=ROOT).returncode)
