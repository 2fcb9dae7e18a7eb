//! Stage 2c, real kernels.
