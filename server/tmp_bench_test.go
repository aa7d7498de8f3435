package server

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"codehand/tools"
	"codehand/tools/tool"
)

func BenchmarkTmp(b *testing.B) {
	all := append(tools.All(), fixtureTool("echo", reader, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		return tool.Result{Text: "pong"}, nil
	}))
	for _, c := range []struct{ name, line string }{
		{"ping", `{"jsonrpc":"2.0","id":7,"method":"ping"}`},
		{"echo", callLine(7, "echo", `{}`, "")},
		{"list", callLine(7, "list_files", `{"pattern":"*"}`, "")},
		{"job", callLine(7, "job_output", `{"job_id":"job_aaaaaaaaaaaa"}`, "")},
		{"read", callLine(7, "read_file", `{"file_path":"a.txt"}`, "")},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := start(b, setup{tools: all})
			_ = os.WriteFile(filepath.Join(f.work, "a.txt"), []byte("one\n"), 0o644)
			b.ReportAllocs()
			for b.Loop() {
				_ = f.send(c.line)
				if _, err := f.receive(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
