"""Tests against a real Kubernetes control plane with the real training-operator."""
