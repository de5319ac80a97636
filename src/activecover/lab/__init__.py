"""The paper's experiments, and everything that only they need."""
