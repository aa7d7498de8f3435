package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// dist lays down what goreleaser leaves, with scripts for binaries.
func dist(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dist")
	type artifact struct {
		Type   string `json:"type"`
		Path   string `json:"path"`
		Goos   string `json:"goos"`
		Goarch string `json:"goarch"`
	}
	list := []artifact{{Type: "Archive", Path: "dist/none.tar.gz"}}
	for _, p := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "darwin/all", "windows/amd64", "windows/arm64"} {
		osName, arch, _ := strings.Cut(p, "/")
		a := artifact{"Binary", "dist/" + osName + "_" + arch + "/codehand", osName, arch}
		if arch == "all" {
			a.Type = "Universal Binary"
		}
		path := filepath.Join(dir, "..", a.Path)
		script := "#!/bin/sh\necho \"" + p + " $*\"\nread -r line && echo \"read $line\"\n[ \"$1\" != wait ] || exec sleep 60\nexit 7\n"
		lay(t, path, script, 0o755)
		at := time.Date(2026, 11, 1, 12, 0, 1, 0, time.UTC)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
		if arch != "all" {
			r := release{version: "1.2.3"}
			lay(t, filepath.Join(dir, r.archive(osName+"_"+arch)), "the archive for "+p, 0o644)
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	lay(t, filepath.Join(dir, "artifacts.json"), string(b), 0o644)
	lay(t, filepath.Join(dir, "metadata.json"), `{"version":"1.2.3","date":"2026-11-01T12:00:00Z"}`, 0o644)
	return dir
}

func lay(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

const repository = "https://github.com/someone/codehand"

// TestReproducible packs twice, and compares every byte.
func TestReproducible(t *testing.T) {
	sums := func() map[string][32]byte {
		dir := dist(t)
		if err := pack(dir, repository); err != nil {
			t.Fatal(err)
		}
		all := map[string][32]byte{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				var b []byte
				b, err = os.ReadFile(path)
				all[strings.TrimPrefix(path, dir)] = sha256.Sum256(b)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	first, second := sums(), sums()
	if !maps.Equal(first, second) {
		t.Errorf("two runs differ:\n%v\n%v", first, second)
	}
	var names []string
	for name := range first {
		if ext := filepath.Ext(name); ext == ".mcpb" || ext == ".tgz" {
			names = append(names, filepath.Base(name))
		}
	}
	slices.Sort(names)
	want := []string{"codehand-1.2.3.tgz", "codehand-darwin-arm64-1.2.3.tgz", "codehand-darwin-x64-1.2.3.tgz",
		"codehand-linux-arm64-1.2.3.tgz", "codehand-linux-x64-1.2.3.tgz", "codehand-win32-arm64-1.2.3.tgz",
		"codehand-win32-x64-1.2.3.tgz", "codehand_1.2.3_darwin_all.mcpb", "codehand_1.2.3_linux_arm64.mcpb",
		"codehand_1.2.3_linux_x64.mcpb", "codehand_1.2.3_win32_arm64.mcpb", "codehand_1.2.3_win32_x64.mcpb"}
	if !slices.Equal(names, want) {
		t.Errorf("packages %q, want %q", names, want)
	}
}

func TestBundles(t *testing.T) {
	dir := dist(t)
	if err := pack(dir, repository); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"linux_x64": "codehand", "darwin_all": "codehand", "win32_arm64": "codehand.exe"} {
		z, err := zip.OpenReader(filepath.Join(dir, "codehand_1.2.3_"+name+".mcpb"))
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]*zip.File{}
		for _, f := range z.File {
			files[f.Name] = f
		}
		binary := files["server/"+program]
		if len(files) != 2 || binary == nil || binary.Mode() != 0o755 {
			t.Fatalf("%s: files %v, want manifest.json and server/%s with mode 0755", name, slices.Collect(maps.Keys(files)), program)
		}
		var m struct {
			Version string
			Server  struct {
				EntryPoint string `json:"entry_point"`
				MCP        struct {
					Command string
					Args    []string
					Env     map[string]string
				} `json:"mcp_config"`
			}
			UserConfig    map[string]json.RawMessage `json:"user_config"`
			Compatibility struct{ Platforms []string }
		}
		rc, err := files["manifest.json"].Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewDecoder(rc).Decode(&m); err != nil {
			t.Fatal(err)
		}
		platform, _, _ := strings.Cut(name, "_")
		if m.Version != "1.2.3" || m.Server.EntryPoint != "server/"+program || m.Server.MCP.Command != "${__dirname}/server/"+program ||
			!slices.Equal(m.Compatibility.Platforms, []string{platform}) {
			t.Errorf("%s: manifest %+v", name, m)
		}
		for _, text := range append(slices.Collect(maps.Values(m.Server.MCP.Env)), m.Server.MCP.Args...) {
			if key, ok := strings.CutPrefix(text, "${user_config."); ok && m.UserConfig[strings.TrimSuffix(key, "}")] == nil {
				t.Errorf("%s: %s is no setting of the bundle", name, text)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLauncher starts the package of npm as npm lays it down: it passes arguments, input, output, the exit code and
// signals, and says what is missing where the platform has no package.
func TestLauncher(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("it needs node")
	}
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("it needs node, and a shell for a binary that is a script")
	}
	dir := dist(t)
	if err := pack(dir, repository); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(t.TempDir(), "node_modules")
	platform, arch := binary{os: runtime.GOOS, arch: runtime.GOARCH}.node()
	own := "codehand-" + platform + "-" + arch
	unpack(t, filepath.Join(dir, "npm", "codehand-1.2.3.tgz"), filepath.Join(modules, "codehand"))
	launcher := filepath.Join(modules, "codehand", "bin", "codehand.js")

	out, err := exec.Command(node, launcher, "--version").CombinedOutput()
	if exit := new(exec.ExitError); !asExit(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), own) {
		t.Errorf("without a package for this platform: %v, %q", err, out)
	}

	unpack(t, filepath.Join(dir, "npm", own+"-1.2.3.tgz"), filepath.Join(modules, own))
	cmd := exec.Command(node, launcher, "stdio", "a b")
	cmd.Stdin = strings.NewReader("hello\n")
	out, err = cmd.Output()
	want := runtime.GOOS + "/" + runtime.GOARCH + " stdio a b\nread hello\n"
	if exit := new(exec.ExitError); !asExit(err, &exit) || exit.ExitCode() != 7 || string(out) != want {
		t.Errorf("ended with %v and %q, want exit code 7 and %q", err, out, want)
	}

	cmd = exec.Command(node, launcher, "wait")
	cmd.Stdin = strings.NewReader("x\n")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len(runtime.GOOS+"/"+runtime.GOARCH+" wait\nread x\n"))
	if _, err := io.ReadFull(pipe, said); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil { // node is up, or the child had said nothing
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("after a signal it ended with %v, want the signal", err)
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

func unpack(t *testing.T, path, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		lay(t, filepath.Join(to, strings.TrimPrefix(h.Name, "package/")), string(content), h.FileInfo().Mode())
	}
}

// TestRegistry holds what the registry asks for: a sum of each bundle, and an address with mcp in it.
func TestRegistry(t *testing.T) {
	dir := dist(t)
	if err := pack(dir, repository); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Name     string
		Packages []struct{ RegistryType, Identifier, FileSha256 string }
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	if s.Name != "io.github.someone/codehand" || len(s.Packages) != 6 {
		t.Errorf("name %q, %d packages", s.Name, len(s.Packages))
	}
	for _, p := range s.Packages {
		if p.RegistryType == "mcpb" && (len(p.FileSha256) != 64 || !strings.HasPrefix(p.Identifier, repository+"/releases/download/v1.2.3/") || !strings.Contains(p.Identifier, "mcp")) {
			t.Errorf("bundle %+v", p)
		}
	}
}

// TestPages holds that no line of a text is taken for a request of the formatter.
func TestPages(t *testing.T) {
	got := page("codehand-x", "Do a thing, with\ntwo lines. More.\n\n.config is a name, 'quoted' too\n'and \\n\n", "1.2.3")
	want := ".TH CODEHAND-X 1 \"\" \"codehand 1.2.3\"\n.SH NAME\ncodehand-x \\- Do a thing, with two lines\n.SH DESCRIPTION\n.nf\n" +
		"Do a thing, with\ntwo lines. More.\n\n\\&.config is a name, 'quoted' too\n\\&'and \\en\n.fi\n"
	if got != want {
		t.Errorf("page:\n%s\nwant:\n%s", got, want)
	}
}

// TestRecipes: each names the archives of its systems with the sums that they have, and nothing of the template is left.
func TestRecipes(t *testing.T) {
	dir := dist(t)
	if err := pack(dir, repository); err != nil {
		t.Fatal(err)
	}
	sum := func(platform string) (asHex, asSRI string) {
		b := sha256.Sum256([]byte("the archive for " + platform))
		return hex.EncodeToString(b[:]), "sha256-" + base64.StdEncoding.EncodeToString(b[:])
	}
	for name, platforms := range map[string][]string{
		"homebrew/codehand.rb": {"darwin/arm64", "darwin/amd64", "linux/arm64", "linux/amd64"},
		"scoop/codehand.json":  {"windows/amd64", "windows/arm64"},
		"nix/flake.nix":        {"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for _, p := range platforms {
			file := "codehand_1.2.3_" + strings.ReplaceAll(p, "/", "_")
			_, rest, ok := strings.Cut(text, repository+"/releases/download/v1.2.3/"+file)
			asHex, asSRI := sum(p)
			if here, _, _ := strings.Cut(rest, "releases/download"); !ok || !strings.Contains(here, asHex) && !strings.Contains(here, asSRI) {
				t.Errorf("%s does not have %s with its sum:\n%s", name, p, text)
			}
		}
		if strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
			t.Errorf("%s still has something of its template:\n%s", name, text)
		}
		if filepath.Ext(name) == ".json" && !json.Valid(b) {
			t.Errorf("%s is no JSON", name)
		}
	}
	if err := os.Remove(filepath.Join(dir, "codehand_1.2.3_linux_arm64.tar.gz")); err != nil {
		t.Fatal(err)
	}
	if err := pack(dir, repository); err == nil {
		t.Error("an archive that is missing is no error")
	}
}
