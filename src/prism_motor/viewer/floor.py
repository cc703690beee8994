"""The floor that robots move on in the browser, with its light.

The user controls the camera: to follow the robots, the floor moves under them like a treadmill.
"""

from __future__ import annotations

import numpy as np
import viser

_TILE = 1.0
"""Period of the floor, m."""
_UPRIGHT = 2.1
"""How many times as far away the camera begins on a screen that is higher than wide."""


class Floor:
    """A floor, and a frame for all that stands on it.

    Args:
        server: The browser's server.
        height: Height of the robots, m.
        robots: How many there are side by side.

    Attributes:
        follow: Whether the floor moves under the robots instead of the robots over the floor.
    """

    PLACE = "/world"
    """Name of the frame in the scene tree."""

    def __init__(self, server: viser.ViserServer, height: float, robots: int) -> None:
        self.follow = True
        self._center = np.zeros(2)
        _set_up(server, height, robots)
        self._world = server.scene.add_frame(self.PLACE, show_axes=False)
        self._floor = server.scene.add_grid(
            "/floor", infinite_grid=True, plane_color=(226, 231, 237), plane_opacity=1.0,
            cell_size=_TILE / 2, cell_color=(208, 215, 223), section_size=_TILE,
            section_color=(184, 193, 204), fade_distance=18.0, shadow_opacity=0.25,
        )  # fmt: skip

    def run_after(self, place: np.ndarray) -> None:
        """Follow the robots to a place, (2,), if asked to.

        It moves smoothly, so that the robots' sway stays visible, and jumps after a restart.
        """
        if not self.follow:
            return
        way = place - self._center
        self._center = self._center + (way if np.linalg.norm(way) > 0.6 else 0.15 * way)
        self._world.position = (-self._center[0], -self._center[1], 0.0)
        x, y = -np.mod(self._center, _TILE)
        self._floor.position = (x, y, 0.0)


def add_light(server: viser.ViserServer) -> None:
    """Add sky light and a sun with shadows; z is up."""
    scene = server.scene
    scene.set_up_direction("+z")
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    scene.add_light_hemisphere(
        "/sky", sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=1.6
    )
    scene.add_light_directional("/sun", position=(1.2, 0.8, 3.0), intensity=2.0, cast_shadow=True)


def _set_up(server: viser.ViserServer, height: float, robots: int) -> None:
    """Set up light, and an initial view from the front left."""
    add_light(server)
    away = height * (1.0 + 0.15 * robots)
    place = np.array([2.3 * away, 2.1 * away, 1.2 * away])
    middle = np.array([0.1 * height, 0.0, 0.8 * height])
    server.initial_camera.position = tuple(place)
    server.initial_camera.look_at = tuple(middle)
    server.initial_camera.fov = 0.75

    @server.on_client_connect
    def _(client: viser.ClientHandle) -> None:
        camera = client.camera
        if camera.aspect >= 1:
            return
        # A phone held upright: robots fit its width, above the panel in its lower part.
        camera.position = tuple(middle + _UPRIGHT * (place - middle))
        camera.look_at = tuple(middle - [0.0, 0.0, 1.46 * away])  # which moving it changes
