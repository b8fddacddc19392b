// Package conformance runs the conformance suite of Gateway API against a cluster in which Gatewright is installed.
//
// `make conformance` builds this into a program, starts a cluster and calls it. The suite's own flags do what they always
// do; this file adds some of ours, by which tests can be chosen.
package conformance

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

var (
	only = flag.String("only", "", "Names of the tests to run, separated by commas, whatever features they need; all if empty")
	part = flag.String("part", "1/1", "Which part of the tests to run: 2/3 is every third test from the second on")
	sums = flag.String("sums", "", "The file for the report as JSON, which is also written when it is about some tests only")
)

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	chosen := gatewayTests()
	if *only != "" {
		chosen = named(t, chosen, *only)
		// Who asks for a test by its name wants it run, also before the feature is claimed.
		for _, test := range chosen {
			options.SupportedFeatures = append(options.SupportedFeatures, test.Features...)
		}
	} else {
		chosen = ofProfiles(t, chosen, options)
	}
	chosen = partOf(t, chosen, *part)
	t.Logf("%d tests are to run", len(chosen))

	judge, err := suite.NewConformanceTestSuite(options)
	require.NoError(t, err, "the suite cannot be set up")
	judge.Setup(t, chosen)
	require.NoError(t, judge.Run(t, chosen))

	report, err := judge.Report()
	require.NoError(t, err, "there is no report")
	// The suite has them in a different order each time.
	slices.SortFunc(report.ProfileReports, func(a, b confv1.ProfileReport) int { return strings.Compare(a.Name, b.Name) })
	if *sums != "" {
		text, err := json.Marshal(report)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*sums, text, 0o644))
	}
	if options.ReportOutputPath != "" {
		require.NoError(t, options.Implementation.Validate(), "a report says whose it is")
		text, err := yaml.Marshal(report)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(options.ReportOutputPath, text, 0o644))
	}
}
