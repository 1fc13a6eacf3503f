"""The quota tree: queues, cohorts, flavors, what they own, lend, borrow and use."""
