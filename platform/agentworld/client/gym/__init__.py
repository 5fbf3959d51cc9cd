"""A simulator as a Gymnasium environment: a text goes in, a text comes out.

The only home of gymnasium, which the extra `gym` installs; nothing else here imports this.
"""

from agentworld.client.gym.env import SimulatorEnv
from agentworld.client.gym.text import UnicodeText
from agentworld.client.gym.vector import SimulatorVectorEnv

__all__ = ["SimulatorEnv", "SimulatorVectorEnv", "UnicodeText"]
