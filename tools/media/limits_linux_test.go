package media

import (
	"strings"
	"testing"
)

// A program for a PDF has its limits before its first instruction: 1 GiB of addresses, 20 s of processor time, a file no
// longer than what it may print, no core. The shell counts in KiB, s and blocks of 512 bytes. What a limit does to a
// program is shown in tools/sandbox (TestLimitsOfItsOwn).
func TestPagesLimits(t *testing.T) {
	t.Parallel()
	const asks = `ulimit -v; ulimit -t; ulimit -f; ulimit -c`
	temp := t.TempDir()
	pages, err := fakePages(t.Context(), Options{Temp: temp, Dirs: []string{fake(t, map[string]string{"pdfinfo": `echo "Pages:   1"`, "pdftotext": asks})}})
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	if got, want := strings.Fields(pages[0].Text), "1048576 20 16384 0"; strings.Join(got, " ") != want {
		t.Errorf("limits %q, want %s", got, want)
	}
	empty(t, temp)
}
