import fcntl
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def libero(request):
    """Make LIBERO ready, or skip the test with the reason."""
    pytest.importorskip("libero", reason="hf-libero is not installed")
    from prism_motor.manipulation.suites.libero.preparation import check, prepare

    if check().ready:
        return
    nearby = Path(__file__).resolve().parents[3] / "shared" / "libero" / "assets.tar.xz"
    archive = Path(os.environ.get("PRISM_LIBERO_ASSETS", nearby))
    if not archive.exists():
        pytest.skip("no LIBERO assets: run prism libero prepare, or set PRISM_LIBERO_ASSETS")
    folder = request.config.cache.mkdir("libero")
    os.environ["PRISM_LIBERO_CACHE"] = os.environ["LIBERO_CONFIG_PATH"] = str(folder)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not check().ready:
            assert prepare(archive, link=False).ready
