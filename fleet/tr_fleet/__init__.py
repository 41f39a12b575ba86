"""Reports about datasets of many runs: what changed, since when, and whether the code or the runner did it."""
