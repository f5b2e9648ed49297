"""Instructions that an optimiser rewrites: GEPA over the signatures of steps and judges (Agrawal et al. 2025)."""
