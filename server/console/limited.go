package console

import (
	"fmt"
	"strings"

	"codehand/server/auth/limits"
)

// A limited is one limit of a person as the page shows it.
type limited struct{ limits.Use }

// Says is what the limit bounds, in a few words.
func (l limited) Says() string {
	for _, k := range limits.Keys() {
		if k.Key == l.Key {
			says, _, _ := strings.Cut(k.Doc, ";")
			return says
		}
	}
	return ""
}

// Amount is how much is used, and of how much.
func (l limited) Amount() string {
	if strings.HasPrefix(l.Key, "bytes_") {
		const mib = 1 << 20
		return fmt.Sprintf("%.1f of %.4g MiB", float64(l.Used)/mib, float64(l.Most)/mib)
	}
	return fmt.Sprintf("%d of %d", l.Used, l.Most)
}

// limitsOf are what bounds the calls of a person.
func limitsOf(o Options, p Person) (all []limited) {
	if o.Limits == nil {
		return nil
	}
	for _, u := range o.Limits(p.Who) {
		all = append(all, limited{u})
	}
	return all
}
