// Package release knows the cadence of OpenStack: two releases a year, written
// YYYY.1 and YYYY.2, each the direct successor of the other. Everything else
// in this project that compares releases asks this package.
package release

import "fmt"

// Pattern is the shape of a release as a regular expression, for the places
// that cannot call Parse, such as a CRD schema. It accepts exactly what Parse
// accepts.
const Pattern = `^\d{4}\.[12]$`

// Release is one OpenStack release. The zero value is not a release; obtain
// one from Parse.
type Release struct {
	year int
	half int
}

// Parse reads exactly "YYYY.1" or "YYYY.2": four ASCII digits, a dot and one
// digit, nothing before or after. The error quotes the text (shortened when it
// is long) and says what a release looks like.
func Parse(text string) (Release, error) {
	if len(text) != len("2026.1") || text[4] != '.' || (text[5] != '1' && text[5] != '2') {
		return Release{}, parseError(text)
	}
	year := 0
	for i := range 4 {
		digit := text[i]
		if digit < '0' || digit > '9' {
			return Release{}, parseError(text)
		}
		year = year*10 + int(digit-'0')
	}
	return Release{year: year, half: int(text[5] - '0')}, nil
}

// String writes the release the way Parse reads it.
func (r Release) String() string {
	return fmt.Sprintf("%04d.%d", r.year, r.half)
}

// Next is the release that follows r: Y.1 → Y.2 → (Y+1).1.
func (r Release) Next() Release {
	if r.half == 1 {
		return Release{year: r.year, half: 2}
	}
	return Release{year: r.year + 1, half: 1}
}

// Distance counts the releases from from to to: 0 the same, 1 the next one,
// below 0 a downgrade, above 1 a skip.
func Distance(from, to Release) int {
	return 2*(to.year-from.year) + to.half - from.half
}

func parseError(text string) error {
	const enough = 40
	shown := text
	if len(shown) > enough {
		shown = shown[:enough] + "…"
	}
	return fmt.Errorf("%q is not a release: it must be YYYY.1 or YYYY.2, such as 2026.1", shown)
}
