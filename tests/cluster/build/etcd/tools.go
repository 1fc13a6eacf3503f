// Package tools names the etcd server, so that go.mod and go.sum pin it.
package tools

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
)
