"""Running compiled callables: regions, the frame callback, limits, stances, the dynamic-shape policy."""
