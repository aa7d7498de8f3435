package bridge

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents returns the events of a stream as name=data, and why it ended.
func readEvents(r io.Reader, max int) (events []string, comments int, err error) {
	e := newEventReader(r, max, func() { comments++ })
	for {
		ev, err := e.next()
		if err != nil {
			return events, comments, err
		}
		events = append(events, ev.name+"="+string(ev.data))
	}
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
		comments int
	}{
		{"plain", "data: {}\n\n", []string{"={}"}, 0},
		{"no blank behind the colon", "data:{}\n\n", []string{"={}"}, 0},
		{"one blank only is dropped", "data:  {}\n\n", []string{"= {}"}, 0},
		{"carriage returns", "event: message\rdata: 1\r\rdata: 2\r\r", []string{"message=1", "=2"}, 0},
		{"both", "event: message\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{"message=1", "=2"}, 0},
		{"mixed", "data: 1\r\n\ndata: 2\n\r\ndata: 3\r\n\r", []string{"=1", "=2", "=3"}, 0},
		{"several lines", "data: {\ndata:  \"a\":1\ndata: }\n\n", []string{"={\n \"a\":1\n}"}, 0},
		{"comments", ": keep-alive\n\n:\ndata: 1\n: in between\n\n", []string{"=1"}, 3},
		{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", []string{"=1"}, 0},
		{"a mark later is a name", "\n\xef\xbb\xbfdata: 1\n\n", nil, 0},
		{"other fields", "id: 7\nretry: 100\nfoo: bar\nbaz\ndata: 1\n\n", []string{"=1"}, 0},
		{"empty data", "id: 7\ndata:\n\ndata\n\n", []string{"=", "="}, 0},
		{"a name without data is forgotten", "event: ping\n\ndata: 1\n\n", []string{"=1"}, 0},
		{"blank lines", "\n\n\ndata: 1\n\n\n\n", []string{"=1"}, 0},
		{"the last one lacks its end", "data: 1\n\ndata: 2\n", []string{"=1"}, 0},
		{"the last line lacks its end", "data: 1\n\ndata: 2", []string{"=1"}, 0},
		{"nothing", "", nil, 0},
	} {
		for how, r := range map[string]io.Reader{
			"at once":   strings.NewReader(c.in),
			"bytewise":  iotest.OneByteReader(strings.NewReader(c.in)),
			"with data": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			got, comments, err := readEvents(r, 1000)
			if !slices.Equal(got, c.want) || comments != c.comments || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: got %q with %d comments (%v), want %q with %d", c.name, how, got, comments, err,
					c.want, c.comments)
			}
		}
	}
}

// TestEventReaderLimits: data over the limit ends the stream, and comments of any length are not kept.
func TestEventReaderLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name, in string
		want     int // events
		err      error
	}{
		{"at the limit", "data: " + long + "\n\n", 1, io.EOF},
		{"over it", "data: " + long + "x\n\n", 0, errTooLong},
		{"over it in two lines", "data: " + long[:60] + "\ndata: " + long[:60] + "\n\n", 0, errTooLong},
		{"a line that does not end", "data: " + strings.Repeat(long, 10), 0, errTooLong},
		{"another field", "id: " + strings.Repeat(long, 10) + "\n\n", 0, errTooLong},
		{"a comment", ":" + strings.Repeat(long, 10) + "\ndata: 1\n\n", 1, io.EOF},
	} {
		got, _, err := readEvents(strings.NewReader(c.in), 100)
		if len(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d events (%v), want %d (%v)", c.name, len(got), err, c.want, c.err)
		}
	}
}

// TestEventReaderWaitsForNothing: an event is there as soon as its last byte is, also if that is a CR which a LF could
// follow.
func TestEventReaderWaitsForNothing(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r"} {
		r, w := io.Pipe()
		e := newEventReader(r, 100, func() {})
		got := make(chan event, 1)
		go func() {
			ev, _ := e.next()
			got <- ev
		}()
		if _, err := io.WriteString(w, "data: 1"+end); err != nil {
			t.Fatal(err)
		}
		if ev := <-got; string(ev.data) != "1" {
			t.Errorf("%q: got %q", end, ev.data)
		}
		_ = w.Close()
	}
}

// FuzzEventReader compares the reader with a slow one that has the whole stream before it.
func FuzzEventReader(f *testing.F) {
	for _, s := range []string{
		"data: 1\n\n", "event: a\r\ndata: 1\rdata: 2\n\r\n", ": c\n\ndata\n\n", "\xef\xbb\xbfdata:x\n\n", "data: 1\n\r",
		"\r\n\r\n:\r", "\xef\xbbdata: 1\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want := slowEvents(string(in))
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)),
			iotest.HalfReader(bytes.NewReader(in))} {
			got, _, err := readEvents(r, 1<<20)
			if !slices.Equal(got, want) || !errors.Is(err, io.EOF) {
				t.Fatalf("got %q (%v), want %q", got, err, want)
			}
		}
	})
}

// slowEvents is eventReader, obviously right.
func slowEvents(in string) (events []string) {
	in = strings.TrimPrefix(in, "\xef\xbb\xbf")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	var name string
	var data []string
	for _, l := range lines[:len(lines)-1] { // the last one has no end
		field, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case l == "":
			if data != nil {
				events = append(events, name+"="+strings.Join(data, "\n"))
			}
			name, data = "", nil
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return events
}
