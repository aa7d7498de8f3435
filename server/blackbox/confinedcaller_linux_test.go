package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// rpc answers a request to a server at $1:$2, with bash alone.
const rpc = `exec 3<>"/dev/tcp/$1/$2" || exit 1
body='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"x","version":"1"}}}'
printf 'POST /mcp HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: application/json\r\nAccept: application/json, ` +
	`text/event-stream\r\nContent-Length: %s\r\n\r\n%s' "$1" "$2" "${#body}" "$body" >&3
dd bs=65536 count=1 status=none <&3
`

// getPage asks a server at $1:$2 for its page, with bash alone.
const getPage = `exec 3<>"/dev/tcp/$1/$2" || exit 1
printf 'GET / HTTP/1.1\r\nHost: %s:%s\r\nAccept: text/html\r\nConnection: close\r\n\r\n' "$1" "$2" >&3
cat <&3
`

// TestConfinedCommandIsNoCaller: a command in the sandbox of a session on stdio, which has the network, called the same
// person's serve without a token, and worked there outside of its own directories.
func TestConfinedCommandIsNoCaller(t *testing.T) {
	t.Parallel()
	h := settle(t)
	if confinedLevel(t, h) < 3 {
		unavailable(t, "commands are not confined at level 3 here")
	}
	server := h.serve()
	address := strings.TrimPrefix(server.url, "http://")
	host, port, _ := strings.Cut(address, ":")
	bash, err := os.ReadFile("/bin/bash")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(h.work, "other"), bash, 0o700))
	must(t, os.WriteFile(filepath.Join(h.work, "rpc"), []byte(rpc), 0o600))
	must(t, os.WriteFile(filepath.Join(h.work, "look"), []byte(getPage), 0o600))
	line := "rpc " + host + " " + port
	for name, command := range map[string]string{
		"plain":         "bash " + line,
		"renamed":       "./other " + line,
		"the page":      "bash look " + host + " " + port, // on which it would approve its own calls
		"twice forked":  "(setsid env -i /bin/bash " + line + " >answer 2>&1 &) ; until grep -q codehand answer 2>/dev/null; do sleep 0.05; done; cat answer",
		"own namespace": "unshare -Ur bash " + line + " || bash " + line,
		// The socket is held by a read that waits: no process lists it.
		"closed while it is read": `python3 - <<'E'
import os, re, socket, threading, time
body = re.search(r"body='(.*)'", open("rpc").read()).group(1)
s = socket.create_connection(("` + host + `", ` + port + `))
fd, got = s.fileno(), []
t = threading.Thread(target=lambda: got.append(os.read(fd, 1 << 16)))
t.start()
time.sleep(0.2)
text = "POST /mcp HTTP/1.1\r\nHost: ` + address + `\r\nContent-Type: application/json\r\nAccept: application/json, " \
    "text/event-stream\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
os.write(fd, text.encode())
os.close(s.detach())
t.join()
print(got[0].decode())
E`,
	} {
		if strings.HasPrefix(command, "python3") && !exists("/usr/bin/python3") {
			continue
		}
		out, errs := h.run(0, "call", "run_shell", "command="+command)
		if !strings.Contains(out, "403 Forbidden") || !strings.Contains(out, "confined_caller") &&
			!strings.Contains(out, "hidden_caller") || strings.Contains(out, "serverInfo") || strings.Contains(out, "<html") {
			t.Errorf("%s: %s%s", name, out, errs)
		}
	}
	if name := (&replaytest.HTTPClient{T: t, URL: server.url + "/mcp"}).Hello().Does("read_file", `{"file_path":"`+h.work+`/a.txt"}`); !strings.Contains(name, "one") {
		t.Errorf("a client outside: %s", name)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
