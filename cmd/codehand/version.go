package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"codehand/server/instructions"
	"codehand/tools"
)

func newVersion(t *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version. --json adds the commit and the SHA-256 of what every client is
told before its first call: the entries of tools/list, with no tool switched off
and without the marks for one client in _meta, each on a line, and the
instructions.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision,omitempty"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
				Tools    string `json:"tools_sha256"`
			}{Version: buildVersion(), Revision: revision(), Go: runtime.Version(),
				Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				var err error
				if v.Tools, err = instructions.Digest(tools.All(tools.Engines{})); err != nil {
					return &exitError{code: exitFailed, err: err}
				}
				return json.NewEncoder(t.out).Encode(v)
			}
			_, err := io.WriteString(t.out, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// versionLine is what --version and version print.
func versionLine() string {
	return fmt.Sprintf("codehand %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is the release, else the module version that go install knows, else the commit, else devel.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	if r := revision(); r != "" {
		return "devel-" + r[:min(12, len(r))]
	}
	return "devel"
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
