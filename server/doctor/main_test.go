package doctor

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// childMode makes the test binary a server with that fault, as a client's entry would start it.
const childMode = "DOCTOR_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(child(mode))
	}
	leaktest.Main(m)
}

// testVersion is that of the program under test.
const testVersion = "v1.2.3"

// child answers as a client's entry of this test binary; see the modes.
func child(mode string) int {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println("codehand", mode, "go1.26 linux/amd64")
		return 0
	}
	version, name, tools := testVersion, "codehand", `[{"name":"read_file"},{"name":"edit_file"}]`
	switch mode {
	case "old":
		version = "v1.0.0"
	case "other":
		name = "elsewhere"
	case "toolless":
		tools = `[]`
	case "fails":
		fmt.Fprintln(os.Stderr, "codehand: no such root")
		return 3
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		line := in.Text()
		switch {
		case mode == "silent":
		case mode == "noisy":
			fmt.Println("Welcome!")
		case strings.Contains(line, `"server/discover"`) && mode == "legacy":
			fmt.Println(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
		case strings.Contains(line, `"id":1`):
			fmt.Printf(`{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":%q,"version":%q}}}`+"\n", name, version)
		case strings.Contains(line, `"id":2`):
			fmt.Printf(`{"jsonrpc":"2.0","id":2,"result":{"tools":%s}}`+"\n", tools)
		}
	}
	switch mode {
	case "stays":
		<-time.After(time.Hour) // the parent kills it; Go itself ends a process with select {} alone
	case "crashes":
		return 7
	}
	return 0
}
