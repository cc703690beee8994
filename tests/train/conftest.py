import pytest

from tests.train.cases import CASES


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """One domain after the other: whatever is tested here holds for all of them."""
    chosen = CASES[request.param]
    patch = chosen.setup()
    yield chosen
    patch.undo()


@pytest.fixture(scope="module")
def whole(case, tmp_path_factory):
    """A run that nothing interrupted."""
    from prism_motor.train import session

    path = tmp_path_factory.mktemp(case.name) / "whole"
    session.train(*session.start(case.make(), path))
    return path
