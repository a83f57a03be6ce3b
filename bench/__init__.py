"""How fast this agent is, as ratios to another measured in the same run. `make bench` runs it; no test times."""
