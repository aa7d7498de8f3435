//go:build linux

package blackbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/server/replaytest"
)

// textLine is so short that 2,000 lines with their numbers are within the limits of a page.
const textLine = "a line of text.\n"

// writeText writes a file of at least size bytes of text. The line in its middle reads "is here".
func writeText(b *testing.B, path string, size int) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	chunk := bytes.Repeat([]byte(textLine), min(size/len(textLine)+1, 100_000))
	for done := 0; done < size && err == nil; done += len(chunk) {
		_, err = f.Write(chunk)
	}
	if err == nil {
		_, err = f.WriteAt([]byte("is here"), int64(size/2/len(textLine)*len(textLine)))
	}
	if err == nil {
		err = f.Sync() // or the writing back goes on beside what is measured
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		b.Fatal(err)
	}
}

// pagesOfTurn is how many pages of 2,000 lines the results of one turn have room for.
const pagesOfTurn = 4

// launchFiles starts our program on a directory. base is its peak of memory after one small read, in MiB.
func launchFiles(b *testing.B, dir string) (c *contender, base float64) {
	b.Helper()
	path := replaytest.Program(b)
	writeText(b, filepath.Join(dir, "small"), 1000)
	c, _ = launch(b, path, "stdio", "--client-profile", "builder", dir) // that of 50,000 characters for one result
	c.tool(b, "read_file", `{"file_path":"small"}`, "a line of text")
	return c, c.peak(b)
}

// tool makes one call, whose answer must hold want.
func (c *contender) tool(b *testing.B, name, arguments, want string) {
	b.Helper()
	if answer := c.exchange(b, replaytest.CallLine(7, name, arguments, "")+"\n"); !bytes.Contains(answer, []byte(want)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		b.Fatalf("%s %s answers %.500s", name, arguments, answer)
	}
}

// peak is the most memory that the process ever had resident, in MiB.
func (c *contender) peak(b *testing.B) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n / 1024
}

// BenchmarkFileRead reads the first 2,000 lines of a file with the built program over stdio, beside sed -n in the same run:
// medians in ms, and how much the program's peak of memory is above that of a small read.
func BenchmarkFileRead(b *testing.B) {
	for _, megabytes := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("%dMB", megabytes), func(b *testing.B) {
			dir := b.TempDir()
			big := filepath.Join(dir, "big")
			writeText(b, big, megabytes*1_000_000)
			c, base := launchFiles(b, dir)
			var ours, sed []time.Duration
			var most float64
			for b.Loop() {
				if len(ours)%pagesOfTurn == pagesOfTurn-1 { // another process instead of a pause
					most = max(most, c.peak(b)-base)
					c.stop()
					c, base = launchFiles(b, dir)
				}
				// Another number of lines each time, or the second answer would say that nothing has changed.
				arguments := fmt.Sprintf(`{"file_path":"big","limit":%d}`, 2000-len(ours)%2)
				ours = append(ours, timed(func() { c.tool(b, "read_file", arguments, "1999\\ta line") }))
				sed = append(sed, timed(func() {
					if err := exec.Command("sed", "-n", "1,2000p;2000q", big).Run(); err != nil {
						b.Fatal(err)
					}
				}))
			}
			b.ReportMetric(median(ours)/1e3, fmt.Sprintf("read-%dMB-ms", megabytes))
			b.ReportMetric(median(sed)/1e3, "sed-ms")
			b.ReportMetric(max(most, c.peak(b)-base), fmt.Sprintf("read-%dMB-MiB", megabytes))
			c.stop()
			b.ReportMetric(0, "ns/op") // of both together, which says nothing
		})
	}
}

// BenchmarkFileEdit changes one line of a file with the built program over stdio, durably and with the journal, beside the
// least that a durable change costs (write, fsync, rename, fsync of the directory) and sed -i.
func BenchmarkFileEdit(b *testing.B) {
	for name, size := range map[string]int{"4KiB": 4 << 10, "1MB": 1_000_000, "100MB": 100_000_000} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for _, file := range []string{"big", "plain", "sed"} {
				writeText(b, filepath.Join(dir, file), size)
			}
			c, base := launchFiles(b, dir)
			c.tool(b, "read_file", `{"file_path":"big","limit":2}`, "a line of text")
			var ours, plain, sed []time.Duration
			words := []string{"is here", "is HERE"}
			for b.Loop() {
				arguments := fmt.Sprintf(`{"file_path":"big","old_string":%q,"new_string":%q}`, words[0], words[1])
				ours = append(ours, timed(func() { c.tool(b, "edit_file", arguments, "Edited ") }))
				plain = append(plain, timed(func() { replacePlainly(b, filepath.Join(dir, "plain"), words[0], words[1]) }))
				sed = append(sed, timed(func() {
					if err := exec.Command("sed", "-i", "s/"+words[0]+"/"+words[1]+"/", filepath.Join(dir, "sed")).Run(); err != nil {
						b.Fatal(err)
					}
				}))
				slices.Reverse(words)
			}
			b.ReportMetric(median(ours)/1e3, "edit-"+name+"-ms")
			b.ReportMetric(median(plain)/1e3, "plain-ms")
			b.ReportMetric(median(sed)/1e3, "sed-ms")
			b.ReportMetric(median(ours)/median(plain), "edit-"+name+"-ratio")
			b.ReportMetric(c.peak(b)-base, "edit-"+name+"-MiB")
			c.stop()
			b.ReportMetric(0, "ns/op") // of all together, which says nothing
		})
	}
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// replacePlainly replaces the only occurrence of old in a file, as far as a power cut goes durably.
func replacePlainly(b *testing.B, path, old, next string) {
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	i := bytes.Index(content, []byte(old))
	if i < 0 || bytes.Contains(content[i+1:], []byte(old)) {
		b.Fatalf("%s does not hold %q once", path, old)
	}
	content = slices.Concat(content[:i], []byte(next), content[i+len(old):])
	f, err := os.Create(path + "~")
	if err != nil {
		b.Fatal(err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(path+"~", path)
	}
	var d *os.File
	if err == nil {
		d, err = os.Open(filepath.Dir(path))
	}
	if err == nil {
		err = d.Sync()
		_ = d.Close() // nothing was written through it
	}
	if err != nil {
		b.Fatal(err)
	}
}
