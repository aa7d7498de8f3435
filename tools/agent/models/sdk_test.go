package models_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
	"codehand/tools/agent/modelstest"
)

// The official SDKs read our requests in full, and understand the scripted model as we do. Building them takes minutes.
func TestOfficialSDKs(t *testing.T) {
	t.Parallel()
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("it takes long: set CODEHAND_LONG=1")
	}
	program := filepath.Join(t.TempDir(), "models.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir, build.Env = "../../../testdata/clients/models", append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("the SDKs cannot be built here: %v\n%s", err, out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	sdk := func(t *testing.T, in string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "is read as") {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	both(t, func(t *testing.T, provider string) {
		sent, err := os.ReadFile(filepath.Join("testdata", "task."+provider+".requests"))
		if err != nil {
			t.Fatal(err)
		}
		var bodies strings.Builder
		for line := range bytes.Lines(sent) {
			_, body, _ := strings.Cut(string(line), " ")
			bodies.WriteString(body)
		}
		if got := sdk(t, bodies.String(), "requests", provider); got != "19 requests\n" {
			t.Error(got)
		}
		for _, name := range []string{"tool_use_id", "tool_call_id", "input_schema", "parameters"} { // what the SDKs do not know is seen
			if planted := strings.Replace(bodies.String(), name, name+"x", 1); planted != bodies.String() {
				if got := sdk(t, planted, "requests", provider); !strings.Contains(got, "is read as") {
					t.Errorf("%sx is not noticed: %s", name, got)
				}
			}
		}
		server := modelstest.Start(t, modelstest.Script(modelstest.Turn{
			Text: "I look – now.", Tokens: loop.Tokens{Input: 7, Output: 3},
			Calls: []modelstest.Call{{ID: "a", Name: "read", Arguments: `{"p":"ä"}`}, {ID: "b", Name: "list", Arguments: `{}`}},
		}))
		stop := map[string]string{models.Anthropic: "tool_use", models.OpenAI: "tool_calls"}[provider]
		want := `{"Text":"I look – now.","Stop":"` + stop + `","Calls":["read {\"p\":\"ä\"}","list {}"],"Input":7,"Output":3}` + "\n"
		if got := sdk(t, "", "stream", provider, server.URL); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	})
}
