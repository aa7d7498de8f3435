package blackbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// mountMark makes the test binary an MCP server that is mounted. Its value is how many tools it has besides its own.
const mountMark = "CODEHAND_TEST_MOUNTED"

// runMounted serves over standard input and output until they end. Its tools: echo; ask, which asks the person; try,
// which says what it could of a list of paths: read, or write if the path ends in ".out".
func runMounted(more string) int {
	out := bufio.NewWriter(os.Stdout)
	say := func(text string) {
		_, _ = io.WriteString(out, text+"\n")
		_ = out.Flush()
	}
	n, err := strconv.Atoi(more)
	if err != nil {
		return 2
	}
	var tools []string
	for _, name := range []string{"echo", "ask", "try"} {
		tools = append(tools, `{"name":"`+name+`","description":"The tool `+name+` of the tests.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`)
	}
	for i := range n {
		tools = append(tools, fmt.Sprintf(`{"name":"extra_%d","description":"Does thing number %d at length.","inputSchema":{"type":"object"}}`, i, i))
	}
	quoted := func(text string) string {
		b, _ := json.Marshal(text) // it is a string
		return string(b)
	}
	var asking string
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0
		}
		var r struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Params struct {
				Name, URI string
				Arguments struct{ Text string }
			}
		}
		if json.Unmarshal([]byte(line), &r) != nil || r.ID == nil {
			continue
		}
		answer := func(id, result string) { say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`) }
		text := func(id, text string) {
			answer(id, `{"content":[{"type":"text","text":`+quoted(text)+`}]}`)
		}
		id := string(r.ID)
		switch {
		case r.Method == "" && id == `"ask"`:
			text(asking, "said "+string(r.Result))
		case r.Method == "initialize":
			answer(id, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"mounted","version":"1"}}`)
		case r.Method == "tools/list":
			answer(id, `{"tools":[`+strings.Join(tools, ",")+`]}`)
		case r.Method == "resources/list":
			answer(id, `{"resources":[{"uri":"test://one","name":"one"}]}`)
		case r.Method == "resources/read":
			answer(id, `{"contents":[{"uri":"test://one","text":"the text of one"}]}`)
		case r.Params.Name == "echo":
			text(id, "echo "+r.Params.Arguments.Text)
		case r.Params.Name == "ask":
			asking = id
			say(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}}`)
		case r.Params.Name == "try":
			text(id, tried(strings.Fields(r.Params.Arguments.Text)))
		default:
			say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"there is no such method"}}`)
		}
	}
}

func tried(paths []string) string {
	done := []string{"tried"}
	for _, path := range paths {
		if strings.HasSuffix(path, ".out") {
			if os.WriteFile(path, []byte("x"), 0o600) == nil {
				done = append(done, "wrote "+path)
			}
		} else if _, err := os.ReadFile(path); err == nil {
			done = append(done, "read "+path)
		}
	}
	return strings.Join(done, "\n")
}
