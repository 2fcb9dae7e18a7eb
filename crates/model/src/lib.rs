//! Stage 2a, the closed formulas.
