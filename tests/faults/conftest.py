import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.commands import Prism
from tests.faults.tally import EXAMPLES, PROPERTY, RIGHT, WRONG, Tally, make_table
from tests.faults.tiny import evaluate_words, write_config
from tests.train.cases import CASES


@pytest.fixture
def tally(request):
    """Count what came of every case; the test fails at its end if one is a defect."""
    counts = {}
    request.node.user_properties.append((PROPERTY, counts))
    return Tally(counts)


@dataclass(frozen=True)
class Fork:
    """A domain with its tiny run, and what calls ``prism`` in a fork."""

    domain: str
    prism: Prism
    folder: Path

    @property
    def case(self):
        return CASES[self.domain]

    @property
    def config(self):
        """The settings of the tiny run."""
        return write_config(self.folder / "tiny.json", self.case.make())

    def start_words(self, run):
        """The command that starts the tiny run."""
        return ("train", "--config", self.config, "--out", run)

    def evaluate_words(self, run):
        """The command that evaluates it."""
        return evaluate_words(self.domain, run)


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """Start what forks the commands of a domain when it is first needed."""
    made = {}

    def server(domain):
        if domain not in made:
            CASES[domain].setup().undo()  # skips what is not installed
            made[domain] = Prism(domain, tmp_path_factory.mktemp(domain))
        return made[domain]

    yield server
    for one in made.values():
        one.close()


@pytest.fixture(scope="module", params=CASES)
def fork(request, servers, tmp_path_factory):
    """One domain after the other."""
    return Fork(request.param, servers(request.param), tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def walking(servers, tmp_path_factory):
    """Walking alone."""
    return Fork("locomotion", servers("locomotion"), tmp_path_factory.mktemp("runs"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Let the number of examples that hypothesis has tried travel with the report."""
    report = (yield).get_result()
    told = re.findall(r"(\d+) passing", getattr(item, "hypothesis_statistics", ""))
    if call.when == "call" and told:
        report.user_properties.append((EXAMPLES, sum(map(int, told))))


def pytest_terminal_summary(terminalreporter):
    """Show the table of faults."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call" and "/faults/" in report.nodeid
    ]
    if reports:
        terminalreporter.section("faults")
        rows = [row for report in reports for row in _rows_of(report)]
        terminalreporter.write_line("\n".join(make_table(rows)))


def _rows_of(report):
    """Return the counts of a test; one without a tally has one case, or its examples."""
    found = dict(report.user_properties)
    if found.get(PROPERTY):
        return list(found[PROPERTY].items())
    kind = re.search(r"test_(\w+)\.py", report.nodeid).group(1).replace("_", " ")
    examples = found.get(EXAMPLES, 1)
    return [(kind, {RIGHT: examples} if report.passed else {RIGHT: examples - 1, WRONG: 1})]
