import re

import pytest

from tests.faults.commands import Prism
from tests.faults.tally import PROPERTY, RIGHT, WRONG, Tally, make_table
from tests.faults.tiny import evaluate_words, write_config
from tests.train.cases import CASES


@pytest.fixture
def tally(request):
    """Count what came of every case; the test fails at its end if one is a defect."""
    counts = {}
    request.node.user_properties.append((PROPERTY, counts))
    return Tally(counts)


class Fork:
    """A domain with its tiny run, and the command that trains it in a fork."""

    def __init__(self, domain, folder):
        self.domain, self.folder = domain, folder
        self.case = CASES[domain]
        self.patch = self.case.setup()
        self.prism = Prism(domain, folder)
        self.config = write_config(folder / "tiny.json", self.case.make())

    def start_words(self, run):
        """The command that starts the tiny run."""
        return ("train", "--config", self.config, "--out", run)

    def evaluate_words(self, run):
        """The command that evaluates it."""
        return evaluate_words(self.domain, run)

    def close(self):
        self.prism.close()
        self.patch.undo()


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    """Make the fork of a domain when it is first needed."""
    made = {}

    def fork(domain):
        if domain not in made:
            made[domain] = Fork(domain, tmp_path_factory.mktemp(domain))
        return made[domain]

    yield fork
    for one in made.values():
        one.close()


@pytest.fixture(scope="module", params=CASES)
def fork(request, forks):
    """One domain after the other."""
    return forks(request.param)


@pytest.fixture(scope="module")
def walking(forks):
    """Walking alone."""
    return forks("locomotion")


def pytest_terminal_summary(terminalreporter):
    """Show the table of faults; tests that keep no tally count one case each, or their examples."""
    rows = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.when == "call" and "/faults/" in report.nodeid.replace("\\", "/"):
                rows += _rows_of(report)
    if rows:
        terminalreporter.section("faults")
        terminalreporter.write_line("\n".join(make_table(rows)))


def _rows_of(report):
    found = dict(report.user_properties)
    if found.get(PROPERTY):
        return list(found[PROPERTY].items())
    kind = re.search(r"test_(\w+)\.py", report.nodeid).group(1).replace("_", " ")
    told = "".join(str(value) for key, value in found.items() if "hypothesis" in key)
    examples = sum(map(int, re.findall(r"(\d+) passing examples", told))) or 1
    return [(kind, {RIGHT if report.passed else WRONG: examples if report.passed else 1})]
