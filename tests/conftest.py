"""Property tests have no deadline: machines are shared, and time is the bench's to measure."""

from hypothesis import settings

settings.register_profile("fetchlab", deadline=None)
settings.load_profile("fetchlab")
