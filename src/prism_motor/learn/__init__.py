"""PPO on rsl_rl: training with exact resume, a non-finite guard and data parallelism."""
