package bridge

import (
	"encoding/json"
	"fmt"
	"time"
)

// hangAfter turns a hang into a failure.
const hangAfter = 60 * time.Second

// modernMeta is what each request of a modern client has in its _meta.
const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}`

// A message is what a test reads of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// callLine is a tools/call as a client writes it. meta is put into params._meta.
func callLine(id any, name, args, meta string) string {
	if meta != "" {
		meta = `,"_meta":{` + meta + `}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id,
		name, args, meta)
}

func listenLine(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter +
		`,"_meta":{` + modernMeta + `}}}`
}
