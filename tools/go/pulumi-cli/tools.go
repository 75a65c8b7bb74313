//go:build tools

// Package tools pins the Pulumi CLI: its main package is built from here, so that go.sum covers all of it.
package tools

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
