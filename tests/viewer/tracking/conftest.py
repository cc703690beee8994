import pytest

from prism_motor.domains import open_run
from prism_motor.tracking.domain import TRACKING
from prism_motor.tracking.prompts.prompter import Prompter, load_library
from prism_motor.tracking.prompts.states import find_states
from prism_motor.viewer.tracking.session import TrackingSession
from prism_motor.viewer.tracking.show import TrackingShow
from tests.tracking.runs import train_tiny


@pytest.fixture(scope="session")
def tracker(tmp_path_factory):
    """A tiny tracking run: it stands for a moment, then falls."""
    return train_tiny(tmp_path_factory.mktemp("tracker"))


@pytest.fixture(scope="session")
def parts(tracker):
    """What a prompter is made of, loaded once."""
    run, _, config = open_run(tracker)
    references, _, _ = load_library(config.task)
    states = find_states(run, run.load(), references)
    return TRACKING.load_policy(tracker), config.task, references, states


@pytest.fixture
def play(parts):
    """Make the show of some prompts."""
    shows = []

    def make(*prompts):
        prompter = Prompter(*parts, trained=frozenset({"stand", "wave"}))
        asked = [prompter.read(text) for text in prompts]
        shows.append(TrackingShow(TrackingSession("tiny", prompter, asked), "#D55E00"))
        return shows[-1]

    yield make
    for show in shows:
        show.close()
