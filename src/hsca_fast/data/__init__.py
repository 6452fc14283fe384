"""The lexicons, models and texts that come with the package; README.md beside this file says where each is from."""

from pathlib import Path

PACKAGED = Path(__file__).parent
