//go:build tools

// Package tools pins Prometheus: its programs are built from here, so that go.sum covers all of them.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
