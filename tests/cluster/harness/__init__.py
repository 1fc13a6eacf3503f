"""A real Kubernetes control plane for tests: etcd, API server, scheduler, controllers, operator.

Nothing of the product is imported here: the harness is what the product is judged against.
"""
