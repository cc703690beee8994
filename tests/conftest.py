import signal

import pytest
import torch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _one_thread_per_worker():
    # pytest-xdist runs one worker per core; more torch threads than that only fight each other.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_interrupts():
    # A shell's background job starts with Ctrl-C ignored, under nohup with hang-up ignored, and so
    # would what the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def away(monkeypatch):
    """A device that only the tests have; see :mod:`tests.devices`."""
    from contextlib import nullcontext

    from tests.devices import AWAY, PretendedDevice

    there = torch.amp.autocast  # which refuses devices that it does not know

    def autocast(device_type, enabled=True, **options):
        if device_type == AWAY.type and not enabled:
            return nullcontext()
        return there(device_type, enabled=enabled, **options)

    monkeypatch.setattr(torch.amp, "autocast", autocast)
    with PretendedDevice() as device:
        yield device
