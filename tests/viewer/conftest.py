import threading
from pathlib import Path

import pytest

from prism_motor.runs.shipped import shipped_names
from prism_motor.viewer.app import App
from prism_motor.viewer.walking.loading import load_walkers
from prism_motor.viewer.walking.session import Session
from prism_motor.viewer.walking.show import WalkingShow
from tests.viewer.browser import open_page

PAIR = ("g1-mlp-matched", "g1-prism")


@pytest.fixture(scope="session")
def cast():
    """The shipped pair with its products, loaded once; sessions on it begin anew."""
    missing = set(PAIR) - set(shipped_names())
    if missing:
        pytest.skip(f"not shipped with this version: {', '.join(sorted(missing))}")
    return load_walkers([Path(name) for name in PAIR])


@pytest.fixture
def make_session(cast):
    def make(*which, command=(0.4, 0.0, 0.0)):
        walkers = [cast[i][0] for i in which]
        for walker in walkers:
            walker.time, walker.falls = 0.0, 0
            walker.tell(None)
            walker.restart(walker.seed)
        return Session(walkers, command)

    return make


@pytest.fixture
def app(make_session, cast):
    """The viewer of both policies, running."""
    app = App(WalkingShow(make_session(0, 1), [top for _, top in cast]), port=0)
    thread = threading.Thread(target=app.run)
    thread.start()
    yield app
    assert thread.is_alive()
    app.stop()
    thread.join()


@pytest.fixture
def page():
    """A page of a real browser."""
    with open_page() as page:
        yield page
