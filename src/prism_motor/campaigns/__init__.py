"""Arms x seeds x budgets from one file, run as far as they are not done."""
