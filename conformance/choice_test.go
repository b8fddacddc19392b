package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

var profiles = []suite.ConformanceProfile{
	suite.GatewayHTTPConformanceProfile,
	suite.GatewayGRPCConformanceProfile,
	suite.GatewayTLSConformanceProfile,
	suite.GatewayTCPConformanceProfile,
	suite.GatewayUDPConformanceProfile,
}

// gatewayTests returns the suite's tests of gateways by their names, to be run one after the other.
//
// The suite makes its report before its parallel tests have run, and so reports each of them as passed. Here none is
// parallel, and the report tells what happened.
func gatewayTests() []suite.ConformanceTest {
	chosen := slices.DeleteFunc(slices.Clone(tests.ConformanceTests), func(test suite.ConformanceTest) bool {
		return slices.Contains(test.Features, features.SupportMesh)
	})
	for i := range chosen {
		chosen[i].Parallel = false
	}
	slices.SortFunc(chosen, func(a, b suite.ConformanceTest) int { return strings.Compare(a.ShortName, b.ShortName) })
	return chosen
}

// named returns the tests with these names.
func named(t *testing.T, all []suite.ConformanceTest, names string) []suite.ConformanceTest {
	wanted := sets.New(strings.Split(names, ",")...)
	chosen := slices.DeleteFunc(all, func(test suite.ConformanceTest) bool {
		isWanted := wanted.Has(test.ShortName)
		wanted.Delete(test.ShortName)
		return !isWanted
	})
	require.Empty(t, sets.List(wanted), "the suite has no such tests")
	return chosen
}

// ofProfiles returns the tests of the profiles that are to be run, as far as their features are claimed: the suite would only
// skip the others. Features that are in no profile at all are judged with any.
func ofProfiles(t *testing.T, all []suite.ConformanceTest, options suite.ConformanceOptions) []suite.ConformanceTest {
	core, others := sets.New[features.FeatureName](), claimed(t, options)
	for _, profile := range profiles {
		if slices.Contains(options.ConformanceProfiles, profile.Name) {
			core = core.Union(profile.CoreFeatures)
		} else {
			others = others.Difference(profile.CoreFeatures)
		}
	}
	wanted := core.Union(others)
	return slices.DeleteFunc(all, func(test suite.ConformanceTest) bool {
		return !wanted.HasAll(test.Features...)
	})
}

// claimed returns the features that were given, or else those of the GatewayClass, as the suite does.
func claimed(t *testing.T, options suite.ConformanceOptions) sets.Set[features.FeatureName] {
	claims := sets.New(options.SupportedFeatures...)
	if len(claims) == 0 {
		var class gatewayv1.GatewayClass
		err := options.Client.Get(t.Context(), types.NamespacedName{Name: options.GatewayClassName}, &class)
		require.NoError(t, err, "there is no GatewayClass")
		for _, feature := range class.Status.SupportedFeatures {
			claims.Insert(features.FeatureName(feature.Name))
		}
	}
	return claims
}

// partOf returns one part of several of the tests.
func partOf(t *testing.T, all []suite.ConformanceTest, part string) []suite.ConformanceTest {
	var number, count int
	_, err := fmt.Sscanf(part, "%d/%d", &number, &count)
	require.NoError(t, err, "a part is written as 2/3")
	require.True(t, 1 <= number && number <= count, "there is no part %s", part)
	var own []suite.ConformanceTest
	for i, test := range all {
		if i%count == number-1 {
			own = append(own, test)
		}
	}
	return own
}
