"""fetchlab: a robot-policy sandbox with a simulated tabletop."""

from gymnasium.envs.registration import register

__version__ = "0.1.0"

register(id="fetchlab/Tabletop-v0", entry_point="fetchlab.sim.env:Tabletop")
