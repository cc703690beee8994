"""Turns a campaign into its work: preparations, and the runs of all seeds, variants and arms."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from prism_motor._checks import PrismError
from prism_motor.campaigns.config import Arm, Campaign, CampaignError, Variant
from prism_motor.campaigns.work import PlannedPreparation, PlannedRun, Settings
from prism_motor.domains import DOMAINS
from prism_motor.protocols import Preparation
from prism_motor.runs.configs import flatten

if TYPE_CHECKING:
    from prism_motor.train.config import RunConfig

UNNAMED = Variant("")
"""The only variant of a campaign without variants."""


class Plan:
    """All work of a campaign in its folder.

    Args:
        campaign: The campaign.
        folder: Its folder.
    """

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.campaign, self.folder = campaign, folder
        self.domain = campaign.domain
        self.variants = campaign.variants or (UNNAMED,)

    @cached_property
    def preparations(self) -> list[PlannedPreparation]:
        """What must be prepared before policies can train."""
        return [
            PlannedPreparation(
                folder=self.folder,
                place=found.path.relative_to(self.folder),
                variant=variant,
                arm="",
                seed=found.seed,
                preparation=found,
            )
            for variant, found in self._prepared.items()
        ]

    @cached_property
    def _prepared(self) -> Mapping[str, Preparation]:
        if self.domain.preparation is None:
            return {}
        configs = {
            variant.name: [
                self._resolve(Path(variant.name) / arm.name, arm, self._merge(variant, arm))
                for arm in self.campaign.arms
            ]
            for variant in self.variants
        }
        try:
            return self.domain.preparations(self.campaign.preparation, self.folder, configs)
        except PrismError as error:
            raise CampaignError(str(error)) from error

    def reported(
        self, winners: Mapping[str, Settings | None], unprepared: Collection[str] = ()
    ) -> list[PlannedRun]:
        """Return the reported runs: all arms with the first seed, then all with the next.

        Args:
            winners: Tuned settings by arm; ``None`` for arms whose tuning is not finished.
            unprepared: Variants whose preparation is not done yet.
        """
        runs = []
        for seed in self.campaign.seeds:
            for variant in self.variants:
                for arm in self.campaign.arms:
                    winner = winners[arm.name]
                    place = Path(variant.name) / f"{arm.name}-{seed}"
                    run = replace(
                        self.make_run(place, variant, arm, seed, winner or {}),
                        protocols=self.campaign.protocols(arm),
                        waiting=winner is None or variant.name in unprepared,
                    )
                    self._check_evaluation(run)
                    runs.append(run)
        return runs

    def make_run(
        self, place: Path, variant: Variant, arm: Arm, seed: int, changes: Settings
    ) -> PlannedRun:
        """Return one run.

        Args:
            place: Its folder, relative to the campaign's.
            variant: The variant.
            arm: The arm.
            seed: Training seed.
            changes: Settings that override those of campaign, variant and arm.
        """
        found = self._prepared.get(variant.name)
        prepared = {} if found is None else dict(found.settings)
        own = self._merge(variant, arm)
        config = self._resolve(place, arm, {**prepared, **own, **changes})
        return PlannedRun(
            folder=self.folder,
            place=place,
            variant=variant.name,
            arm=arm.name,
            seed=seed,
            config=replace(config, seed=seed),
            prepared=tuple(key for key in prepared if key not in own),
        )

    def _merge(self, variant: Variant, arm: Arm) -> Settings:
        """Return the settings of an arm in a variant; the more specific ones win."""
        campaign = self.campaign
        settings: Settings = {"threads": 1, "plugins": list(campaign.plugins)}
        if campaign.updates is not None:
            settings["updates"] = campaign.updates
        for source in (campaign.overrides, campaign.variant_overrides(variant), arm.overrides):
            settings |= flatten(source)
        return settings

    def _resolve(self, place: Path, arm: Arm, overrides: Settings) -> RunConfig:
        campaign = self.campaign
        try:
            written = json.dumps(overrides, default=str)
            return _make_config(
                campaign.kind, campaign.preset, arm.arm, campaign.label(arm), written
            )
        except PrismError as error:
            raise CampaignError(f"{place.as_posix()}: {error}") from error

    def _check_evaluation(self, run: PlannedRun) -> None:
        try:
            for evaluation in run.protocols:
                self.domain.check_evaluation(run.config, evaluation)
        except PrismError as error:
            raise CampaignError(f"{run.title}: {error}") from error


@cache
def _make_config(kind: str, preset: str, arm: str, name: str, overrides: str) -> RunConfig:
    """Make a config; cached, because matching the size of an MLP takes a while."""
    domain = DOMAINS[kind]
    config = domain.make_config(preset, arm, name=name, overrides=json.loads(overrides))
    return domain.planned(config)
