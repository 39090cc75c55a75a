"""Where programs that tests start are unpacked: the same place for the same thing, once."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from tidegate.errors import SetupError


def take(staging: Path, target: Path) -> None:
    """What was unpacked becomes ``target``, at once and once."""
    staging.chmod(0o755)
    try:
        staging.rename(target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(staging)  # another process was first


def stable_place(prefix: str, key: str) -> Path:
    """The same directory of the temporary one for the same key."""
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()).resolve() / f"{prefix}-{digest}"


def own_place(path: Path) -> Path:
    """Refuse a predictable name in the shared temporary directory that somebody else took."""
    if path.is_symlink() or (path.exists() and path.stat().st_uid != os.geteuid()):
        raise SetupError(
            "testing.taken",
            f"{path} belongs to another user",
            hint=f"remove {path}, or set TMPDIR to a directory of your own",
        )
    return path
