"""The paper's experiments, and all that only they need."""
