package viewing

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"codehand/tools/media"
)

// FuzzPageRange compares what is read of pages with what stands there: a number, or two of which the second is not
// smaller, from 1, and 20 pages at most.
func FuzzPageRange(f *testing.F) {
	for _, seed := range []string{
		"", "3", "1-5", "10-20", "1-20", "1-21", "0", "0-3", "5-4", "-5", "5-", "-", "1--3", "1-2-3", " 1", "1 ", "+1", "1_0", "0x1", "01-007", "1e1",
		"2147483647", "2147483648", "2147483640-2147483660", "18446744073709551615", "99999999999999999999-99999999999999999999", "١", "1,3", "1-5\n",
	} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^([0-9]+)(?:-([0-9]+))?$`)
	f.Fuzz(func(t *testing.T, pages string) {
		from, to, ok := PageRange(pages)
		if pages == "" {
			if from != 0 || to != 0 || !ok {
				t.Errorf("all pages are %d-%d, %v", from, to, ok)
			}
			return
		}
		m := form.FindStringSubmatch(pages)
		if m == nil {
			if ok {
				t.Errorf("%q is %d-%d", pages, from, to)
			}
			return
		}
		first, last := number(m[1]), number(m[1])
		if m[2] != "" {
			last = number(m[2])
		}
		span := new(big.Int).Sub(last, first)
		want := first.Sign() > 0 && span.Sign() >= 0 && span.Cmp(big.NewInt(media.MaxPages)) < 0 && last.Cmp(big.NewInt(1<<31)) < 0
		if ok != want {
			t.Errorf("%q: %v, want %v", pages, ok, want)
		}
		if ok && (big.NewInt(int64(from)).Cmp(first) != 0 || big.NewInt(int64(to)).Cmp(last) != 0) {
			t.Errorf("%q is %d-%d", pages, from, to)
		}
	})
}

func number(digits string) *big.Int {
	n, _ := new(big.Int).SetString(strings.TrimLeft(digits, "0")+"0", 10) // one digit at least
	return n.Div(n, big.NewInt(10))
}
