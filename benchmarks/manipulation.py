"""Speed of the manipulation environments: ratios and rates from one run.

    python benchmarks/manipulation.py [--quick]

- libero/stock: LIBERO through prism against LIBERO's own off-screen environment, same task, start
  and actions, two cameras of 128 px. A policy looks at two observations and executes eight actions,
  so prism draws at two steps of eight; the stock environment draws at every step.
- libero/stock-every-step: the same with images at every step in both.
- libero/stock-blind: the same without images in both (the stock environment then has no renderer).
- metaworld: steps a second, with images at two steps of eight and without.

Both sides take turns in short blocks; a ratio is the median over blocks.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prism_motor.manipulation.environment import Environment
from prism_motor.manipulation.suites.libero.package import import_libero
from prism_motor.manipulation.suites.libero.preparation import NotPreparedError, ensure_prepared
from prism_motor.manipulation.suites.libero.problem import load_states
from prism_motor.manipulation.tasks import Task, find_task, make_environment

CHUNK, SEEN, SIZE = 8, 2, 128
REST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0])

Block = Callable[[NDArray[np.float64]], None]


def make_actions(blocks: int, size: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return np.clip(rng.normal(0.0, 0.5, (blocks, CHUNK, size)), -1.0, 1.0)


def run_ours(environment: Environment, seen: int) -> Block:
    """Run a chunk of actions with images at the last ``seen`` steps."""

    def block(actions: NDArray[np.float64]) -> None:
        for index, action in enumerate(actions):
            environment.step(action, images=index >= CHUNK - seen)

    return block


def run_stock(environment: Any) -> Block:
    """Run a chunk of actions in LIBERO's own environment."""

    def block(actions: NDArray[np.float64]) -> None:
        context = environment.sim._render_context_offscreen
        if context is not None:  # it draws into whatever context is current
            context.gl_ctx.make_current()
        for action in actions:
            environment.step(action)

    return block


def make_stock(task: Task, images: bool) -> Any:
    libero = import_libero()
    wrapper = import_libero("libero.libero.envs.env_wrapper")
    folder = libero.get_libero_path("bddl_files")
    file = f"{folder}/{task.suite}/{task.name}.bddl"
    options = {"camera_heights": SIZE, "camera_widths": SIZE} if images else {}
    kind = wrapper.OffScreenRenderEnv if images else wrapper.ControlEnv
    blind = {} if images else {"use_camera_obs": False, "has_offscreen_renderer": False}
    stock = kind(bddl_file_name=file, ignore_done=True, **options, **blind)
    stock.seed(0)
    stock.reset()
    stock.set_init_state(load_states(task)[0])
    for _ in range(10):
        stock.step(REST)
    return stock


def compare(
    name: str, ours: Block, stock: Block, actions: NDArray[np.float64], target: str
) -> None:
    """Print the ratio of speeds and both rates."""
    ratios, fast, slow = [], [], []
    for index, chunk in enumerate(actions):
        started = time.perf_counter()
        ours(chunk)
        between = time.perf_counter()
        stock(chunk)
        ended = time.perf_counter()
        if index == 0:
            continue  # compiles and fills caches
        ratios.append((ended - between) / (between - started))
        fast.append(CHUNK / (between - started))
        slow.append(CHUNK / (ended - between))
    print(
        f"{name} {statistics.median(ratios):.1f}{target}   "
        f"({statistics.median(fast):.1f} against {statistics.median(slow):.1f} steps/s)"
    )


def measure_libero(task: Task, blocks: int) -> None:
    ours = make_environment(task, image_size=SIZE)
    actions = make_actions(blocks + 1, 7)
    # One stock environment at a time: its drawing contexts do not get along with each other.
    for stock, cases in (
        (make_stock(task, images=True), {"libero/stock": SEEN, "libero/stock-every-step": CHUNK}),
        (make_stock(task, images=False), {"libero/stock-blind": 0}),
    ):
        for name, seen in cases.items():
            ours.reset(initial_state=0, images=seen > 0)
            target = "   target >= 4" if seen == SEEN else ""
            compare(name, run_ours(ours, seen), run_stock(stock), actions, target)
        stock.close()
    ours.close()


def measure_metaworld(blocks: int) -> None:
    environment = make_environment(find_task("metaworld", "drawer-open-v3"), image_size=SIZE)
    for name, seen in (("metaworld", SEEN), ("metaworld-blind", 0)):
        environment.reset(seed=0, images=seen > 0)
        block, rates = run_ours(environment, seen), []
        for chunk in make_actions(blocks, 4):
            started = time.perf_counter()
            block(chunk)
            rates.append(CHUNK / (time.perf_counter() - started))
        print(f"{name} {statistics.median(rates):.0f} steps/s")
    environment.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the manipulation environments.")
    parser.add_argument("--quick", action="store_true", help="few blocks: a rough picture")
    blocks = 3 if parser.parse_args().quick else 12
    try:
        ensure_prepared()
        measure_libero(find_task("libero_goal", "turn_on_the_stove"), blocks)
    except NotPreparedError as error:
        print(f"LIBERO is left out: {error}")
    measure_metaworld(4 * blocks)


if __name__ == "__main__":
    main()
