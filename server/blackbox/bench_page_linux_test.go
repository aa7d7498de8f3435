package blackbox

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// BenchmarkWatched compares the p50 of a read over stdio between programs that can show nothing on the page
// (console.approvals off, console.record false), that could, and whose calls a page shows that is loaded each second.
// They are called one after the other, so that the machine's load is in all. unwatched-p50-x is what a call costs more
// where nobody has the page open.
func BenchmarkWatched(b *testing.B) {
	names := []string{"off", "unwatched", "watched"}
	var talks []*talk
	for _, name := range names {
		base, work := leaktest.Dir(b), leaktest.Dir(b)
		must(b, os.WriteFile(filepath.Join(work, "a.txt"), []byte("hello\n"), 0o600))
		env := []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base, "BROWSER=true"}
		program := func(args ...string) *exec.Cmd {
			cmd := exec.Command(replaytest.Program(b), args...)
			cmd.Dir, cmd.Env = work, env
			return cmd
		}
		args := []string{"stdio", work}
		if name == "off" {
			args = append(args, "--console-approvals=off", "--console-record=false")
		}
		talks = append(talks, newTalk(b, program(args...), "read_file"))
		if name == "watched" {
			followed(b, program("page"))
		}
	}
	times := make([][]float64, len(talks))
	for b.Loop() {
		for i, t := range talks {
			began := time.Now()
			line := t.ask(b, "tools/call", `{"name":"read_file","arguments":{"file_path":"a.txt"}}`)
			times[i] = append(times[i], float64(time.Since(began).Nanoseconds())/1e3)
			if !strings.Contains(string(line), `"content"`) || strings.Contains(string(line), `"isError":true`) {
				b.Fatal(string(line))
			}
		}
	}
	p50 := make([]float64, len(talks))
	for i := range times {
		slices.Sort(times[i])
		p50[i] = times[i][len(times[i])/2]
		b.ReportMetric(p50[i], names[i]+"-p50-us")
	}
	b.ReportMetric(p50[1]/p50[0], "unwatched-p50-x")
	b.ReportMetric(p50[2]/p50[0], "watched-p50-x")
}

// followed starts codehand page, and loads its list of calls each second until b ends.
func followed(b *testing.B, page *exec.Cmd) {
	out, err := page.StdoutPipe()
	must(b, err)
	page.Stderr = page.Stdout
	must(b, leaktest.Start(page))
	lines := bufio.NewScanner(out)
	key := regexp.MustCompile(`(http://[^/]+)/\?key=\w+`)
	var at []string
	for at == nil && lines.Scan() {
		at = key.FindStringSubmatch(lines.Text())
	}
	if at == nil {
		b.Fatal("codehand page names no address")
	}
	jar, err := cookiejar.New(nil)
	must(b, err)
	browser := http.Client{Jar: jar}
	get := func(url string) error {
		r, err := browser.Get(url)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, r.Status)
		}
		return nil
	}
	must(b, get(at[0]))
	must(b, get(at[1]+"/activity"))
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			case <-time.After(time.Second):
				if err := get(at[1] + "/activity"); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	b.Cleanup(func() {
		close(stop)
		must(b, <-ended)
		must(b, page.Process.Signal(os.Interrupt))
		for lines.Scan() { // to the end of its output, as Wait demands
		}
		_ = page.Wait()
	})
}
