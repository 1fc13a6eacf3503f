"""Cases as data: queues, cohorts, nodes, running and incoming jobs, and what must come of them."""
