package toolset

import (
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
