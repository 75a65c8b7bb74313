//go:build tools

// Package tools pins actionlint: its program is built from here, so that go.sum covers all of it.
package tools

import _ "github.com/rhysd/actionlint/cmd/actionlint"
