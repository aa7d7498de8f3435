package media

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// need finds a program of another project, which makes files or reads ours. Without it a test is skipped, but not in
// CI, where .ci/run installs all of them.
func need(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name)
	}
	return path
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing: add it to the programs of .ci/run", what)
	}
	t.Skipf("%s is missing: apt-get install imagemagick python3-pil python3-reportlab poppler-utils", what)
}

// python finds an interpreter that has a module; a developer's own may not.
func python(t testing.TB, module string) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	missing(t, "python3 with the module "+module)
	return ""
}

// run runs a program in dir and returns what it said. It has go test's own time: beside other work an image took more
// than a minute to make.
func run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, said.String())
	}
	return string(out)
}

// imageMagick finds its program convert. Other projects have one of that name, too; of identify there is one.
func imageMagick(t testing.TB) string {
	t.Helper()
	need(t, "identify")
	return need(t, "convert")
}

// made makes an image with ImageMagick.
func made(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, imageMagick(t), append(args, name)...)
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
