package owner_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate/owner"
)

var (
	here  = owner.Host{Name: "0badcafe", Boot: "boot", IDs: "pid:[1]"}
	maker = owner.Process{ID: 7, Started: 8}
)

// What a hand makes is its own, and says who made it on which host and what it can hold.
func TestNames(t *testing.T) {
	t.Parallel()
	marks, names := map[string]owner.Hand{}, map[string]bool{}
	for _, host := range []owner.Host{{}, here, {Name: "another", Boot: here.Boot, IDs: here.IDs}, {Name: here.Name, Boot: "another", IDs: here.IDs}, {Name: here.Name, Boot: here.Boot, IDs: "pid:[2]"}, {Name: here.Name, Boot: here.Boot + here.IDs}, owner.ThisHost()} {
		for _, swaps := range []bool{false, true} {
			for _, p := range []owner.Process{{}, maker, {ID: math.MaxInt32, Started: math.MaxUint64}} {
				h := owner.Hand{Process: p, Host: host, Swaps: swaps}
				name := h.TempName()
				if got, mark, ok := owner.Of(name); !ok || got != p || mark != h.Mark() || !owner.Temporary(name) || names[name] {
					t.Errorf("%s of %+v is %+v with the mark %q, %v", name, h, got, mark, ok)
				}
				names[name] = true
			}
			h := owner.Hand{Host: host, Swaps: swaps}
			if other, taken := marks[h.Mark()]; taken {
				t.Errorf("%+v and %+v have the mark %s", h, other, h.Mark())
			}
			marks[h.Mark()] = h
		}
	}
	h := owner.Hand{Process: maker, Host: here}
	for range 20 { // of 32 random bits each
		name := h.TempName()
		if names[name] || strings.ContainsAny(name, `/\:`) || len(name) > 64 {
			t.Fatalf("%s is no new name, or none that every file system takes", name)
		}
		names[name] = true
	}
}

// Only whole names of temporary files are left out of listings, and swept. A file of a user whose name only looked like one
// was taken for a left-over.
func TestNamesOfStrangers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".codehand-7-8-0011223344556677.tmp":                             true,
		".codehand-0-0-0011223344556677.tmp":                             true,
		".codehand-2147483647-18446744073709551615-00112233aabbccdd.tmp": true,
		".codehand-7-18446744073709551616-0011223344556677.tmp":          false,
		".codehand-99999999999999999999-8-0011223344556677.tmp":          false,
		".codehand-7-8-001122334455667.tmp":                              false,
		".codehand-7-8-00112233445566778.tmp":                            false,
		".codehand-7-8-my-own-notes-abc.tmp":                             false,
		".codehand-7-8-mynotesofmondays.tmp":                             false,
		".codehand-7-8-notes of monday!.tmp":                             false,
		".codehand-7-8-00112233AABBCCDD.tmp":                             false,
		".codehand-7-8-00112233\u00e9\u00e9\u00e9\u00e9.tmp":             false,
		".codehand-7-8-0011223344556677.tmp~":                            false,
		".codehand-7-8-0011223344556677.TMP":                             false,
		".codehand-7-8-0011223344556677.tmp.tmp":                         false,
		".codehand-7-8-0011223344556677.tmp\n":                           false,
		"a.codehand-7-8-0011223344556677.tmp":                            false,
		".Codehand-7-8-0011223344556677.tmp":                             false,
		".codehand-x-8-0011223344556677.tmp":                             false,
		".codehand-+7-8-0011223344556677.tmp":                            false,
		".codehand-07-8-0011223344556677.tmp":                            false,
		".codehand-7-08-0011223344556677.tmp":                            false,
		".codehand--7-8-0011223344556677.tmp":                            false,
		".codehand-7--8-0011223344556677.tmp":                            false,
		".codehand-7-8-9-0011223344556677.tmp":                           false,
		".codehand-7-0x8-0011223344556677.tmp":                           false,
		".codehand-1_0-8-0011223344556677.tmp":                           false,
		".codehand-\u0667-8-0011223344556677.tmp":                        false,
		".codehand- 7-8-0011223344556677.tmp":                            false,
		".codehand--8-0011223344556677.tmp":                              false,
		".codehand-7--0011223344556677.tmp":                              false,
		".codehand-7-8-.tmp":                                             false,
		".codehand-0011223344556677.tmp":                                 false,
		".codehand-.tmp":                                                 false,
		".codehand-tmp":                                                  false,
		".codehand":                                                      false,
		".codehand-notes.tmp":                                            false,
		".tmp":                                                           false,
		"a.tmp":                                                          false,
		"":                                                               false,
	} {
		if got := owner.Temporary(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
		if p, mark, ok := owner.Of(name); !ok && (p != owner.Process{} || mark != "") {
			t.Errorf("%q is nobody's, and of %+v with the mark %q", name, p, mark)
		}
	}
}

// A name is taken for that of a temporary file exactly if one could be made that is the same.
func FuzzOf(f *testing.F) {
	f.Add(".codehand-7-8-0011223344556677.tmp")
	f.Add(".codehand-+7-08-00112233AABBCCDD.tmp")
	f.Add(".codehand-7-18446744073709551616-0011223344556677.tmp")
	f.Add(owner.Hand{Process: maker, Host: here}.TempName())
	form := regexp.MustCompile(`\A\.codehand-(0|[1-9][0-9]*)-(0|[1-9][0-9]*)-([0-9a-f]{8})[0-9a-f]{8}\.tmp\z`)
	f.Fuzz(func(t *testing.T, name string) {
		var want owner.Process
		var wantMark string
		parts := form.FindStringSubmatch(name)
		is := parts != nil
		if is {
			id, err := strconv.ParseUint(parts[1], 10, strconv.IntSize-1)
			started, startErr := strconv.ParseUint(parts[2], 10, 64)
			if is = err == nil && startErr == nil; is {
				want, wantMark = owner.Process{ID: int(id), Started: started}, parts[3]
			}
		}
		if got, mark, ok := owner.Of(name); ok != is || got != want || mark != wantMark || owner.Temporary(name) != is {
			t.Errorf("%q is of %+v with the mark %q, %v; want %+v, %q, %v", name, got, mark, ok, want, wantMark, is)
		}
	})
}
