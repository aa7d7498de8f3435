package tenants

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"codehand/tools/session"
)

// A setting that a tool reads arrives in it by a field of session.Prefs, which prefs sets: one that is forgotten there is
// accepted from a file and obeyed by nobody.
func TestPrefsAreSet(t *testing.T) {
	t.Parallel()
	var source []byte
	for _, file := range []string{"prefs.go", "tenant.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[session.Prefs]()) {
		if !regexp.MustCompile(`\b` + f.Name + `(:\s| = )`).Match(source) {
			t.Errorf("no setting sets Prefs.%s in prefs.go or tenant.go", f.Name)
		}
	}
}
