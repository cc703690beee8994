"""The files in deploy/cluster: what they say is what Ray, Slurm and prism understand."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from prism_motor.campaigns.files import find_campaign
from prism_motor.cli.campaign import RunOptions
from prism_motor.cli.flags import parse

FOLDER = Path(__file__).parents[2] / "deploy" / "cluster"
FILES = sorted(file.name for file in FOLDER.iterdir())


def read_yaml(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load((FOLDER / name).read_text())


def commands(text, program):
    """Return the words after a program wherever a file calls it."""
    text = text.replace("\\\n", " ")
    found = re.findall(rf"(?<![\w/'\[-]){program} ((?:[^\n#;&\"\\]|\\.)+)", text)
    return [shlex.split(words) for words in found]


def test_all_files_are_covered():
    assert FILES == ["kuberay-rayjob.yaml", "ray-up.yaml", "slurm-ray.sh", "slurm-submitit.sh"]


@pytest.mark.parametrize("name", FILES)
def test_campaigns_are_run_by_commands_that_there_are(name):
    found = commands((FOLDER / name).read_text(), "prism campaign run")
    assert found
    for words in found:
        options = parse(RunOptions, words, prog="prism campaign run", description="")
        assert options.on == ("slurm" if "submitit" in name else "ray")
        find_campaign(options.file)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".sh")])
def test_scripts_are_bash(name):
    subprocess.run(["bash", "-n", str(FOLDER / name)], check=True)


def test_slurm_parameters_are_those_of_submitit():
    pytest.importorskip("submitit", reason="submitit is not installed")
    from submitit.slurm.slurm import SlurmExecutor

    (words,) = commands((FOLDER / "slurm-submitit.sh").read_text(), "prism campaign run")
    options = parse(RunOptions, words, prog="prism campaign run", description="")
    assert {word.partition("=")[0] for word in options.slurm} <= SlurmExecutor._valid_parameters()


def test_the_cluster_of_machines_is_as_ray_wants_it():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    config = read_yaml("ray-up.yaml")
    jsonschema.validate(config, schema)
    assert config["head_node_type"] in config["available_node_types"]


@pytest.mark.parametrize(
    ("name", "command"), [("ray-up.yaml", "start"), ("slurm-ray.sh", "symmetric-run")]
)
def test_ray_is_started_with_flags_that_it_has(name, command):
    scripts = pytest.importorskip("ray.scripts.scripts", reason="Ray is not installed")
    known = {
        option
        for one in {"start", command}  # symmetric-run hands others on to start
        for parameter in scripts.cli.commands[one].params
        for option in parameter.opts
    }
    found = commands((FOLDER / name).read_text(), f"ray {command}")
    assert found
    for words in found:
        before = words[: words.index("--")] if "--" in words else words
        flags = {word.partition("=")[0] for word in before if word.startswith("--")}
        assert flags
        assert flags <= known


def test_the_job_of_kuberay_has_one_folder_and_one_version_of_ray():
    job = read_yaml("kuberay-rayjob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        (mount,) = container["volumeMounts"]
        assert mount["name"] in {volume["name"] for volume in pod["volumes"]}
        assert f"--out {mount['mountPath']}/" in job["spec"]["entrypoint"]
        assert container["image"] == groups[0]["template"]["spec"]["containers"][0]["image"]
    pinned = (FOLDER.parents[1] / "constraints.txt").read_text()
    assert f"ray=={cluster['rayVersion']}" in pinned
