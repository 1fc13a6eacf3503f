// Package tools names the operator, so that go.mod and go.sum pin it.
package tools

import (
	_ "github.com/kubeflow/training-operator/pkg/controller.v1"
	_ "github.com/kubeflow/training-operator/pkg/cert"
	_ "github.com/kubeflow/training-operator/pkg/webhooks"
)
