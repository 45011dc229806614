"""Examples: tests of three models that pass, and four that fail to show what the reports look like."""
