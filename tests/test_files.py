"""Work folders: private, and swept when the process that made them has died."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

from activecover.files import WorkFolder, sweep

_WORKER = """
import sys
from pathlib import Path
from activecover.files import WorkFolder
work = WorkFolder(Path(sys.argv[1]), "intake")
(work.path / "rows").write_text("a secret")
print(work.path.name, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_leaves_is_swept_and_what_a_live_one_uses_stays(tmp_path: Path) -> None:
    mine = WorkFolder(tmp_path, "intake")
    worker = subprocess.Popen([sys.executable, "-c", _WORKER, str(tmp_path)], stdin=-1, stdout=-1, text=True)
    assert worker.stdout is not None
    theirs = tmp_path / worker.stdout.readline().strip()
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o700
    assert sweep(tmp_path, ["intake"]) == 0
    assert (theirs / "rows").read_text() == "a secret"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert sweep(tmp_path, ["archive"]) == 0
    assert sweep(tmp_path, ["intake"]) == 1
    assert not theirs.exists()
    assert mine.path.exists()
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def test_links_and_files_are_no_work_folders(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    os.symlink(tmp_path / "other", tmp_path / "home" / ".intake-link")
    (tmp_path / "home" / ".intake-file").touch()
    assert sweep(tmp_path / "home", ["intake"]) == 0
    assert (tmp_path / "other" / "kept").exists()
