//go:build tools

// Package tools names the program that the testbed runs, so that go.mod and go.sum hold what it is built from.
package tools

import (
	_ "github.com/summerwind/h2spec/cmd/h2spec"
)
