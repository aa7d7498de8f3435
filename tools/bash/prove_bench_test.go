package bash

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// typicalCommand has 200 bytes.
const typicalCommand = `cd src/server && git log --oneline -n 20 --format='%h %an %s' -- pipeline/permit.go | head -n 5; ` +
	`grep -rn --include='*.go' "func (s \*script)" tools/permission | sort -t: -k1,1 -k2n | uniq -c | head -n 40`

// BenchmarkAnalyze is what one command costs, with the parts, the files and rule R7. The limit is 50 µs for 200 bytes.
func BenchmarkAnalyze(b *testing.B) {
	for _, c := range []struct{ name, command string }{
		{"200 bytes", typicalCommand},
		{"one word", "ls"},
		{"10 KB list", strings.Repeat("ls -la src/a.go; ", 50) + "cat " + strings.Repeat("src/file.go ", 700) + "README.md"},
		{"10 KB nested", strings.Repeat("$(", 5000)},
		{"10 KB here-document", "cat <<'EOF'\n" + strings.Repeat("some text of a file\n", 490) + "EOF"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.command)))
			var each []time.Duration
			for b.Loop() {
				began := time.Now()
				Analyze(c.command, inRoot)
				each = append(each, time.Since(began))
			}
			slices.Sort(each)
			b.ReportMetric(float64(each[len(each)/2].Nanoseconds()), "p50-ns")
		})
	}
}

// BenchmarkEveryday is what 200 bytes of the longer everyday commands cost, as people and models write them.
func BenchmarkEveryday(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "everyday", "commands.tsv"))
	if err != nil {
		b.Fatal(err)
	}
	var commands []string
	bytes := 0
	for line := range strings.Lines(string(text)) {
		var command string
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if json.Unmarshal([]byte(fields[len(fields)-1]), &command) == nil && len(command) >= 100 {
			commands, bytes = append(commands, command), bytes+len(command)
		}
	}
	for b.Loop() {
		for _, command := range commands {
			Analyze(command, inRoot)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())*200/float64(b.N*bytes), "ns/200B")
}

// BenchmarkProve is the part of BenchmarkAnalyze that the rules R0 to R6 cost, without and with parsing, and what the
// first command of a process pays for the lists.
func BenchmarkProve(b *testing.B) {
	b.Run("parsed", func(b *testing.B) {
		b.ReportAllocs()
		s := newScript(typicalCommand)
		for b.Loop() {
			s.prove(inRoot)
		}
	})
	b.Run("with parsing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newScript(typicalCommand).prove(inRoot)
		}
	})
}
