"""A simulator as a Gymnasium environment whose actions and observations are texts.

Only this package imports gymnasium, which the extra `gym` installs.
"""

from agentworld.client.gym.env import SimulatorEnv
from agentworld.client.gym.text import UnicodeText
from agentworld.client.gym.vector import SimulatorVectorEnv

__all__ = ["SimulatorEnv", "SimulatorVectorEnv", "UnicodeText"]
