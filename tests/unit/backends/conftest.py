"""Property tests set no time limit for one example: the machine may be busy with others."""

from hypothesis import settings

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")
