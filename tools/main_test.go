package tools

import (
	"os"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/lsp/lsptest"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(asServer); how != "" {
		lsptest.Serve(os.Stdin, os.Stdout, lsptest.Parse(how))
		os.Exit(3)
	}
	leaktest.Main(m)
}
