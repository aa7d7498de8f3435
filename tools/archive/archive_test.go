package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// listed lists an archive that is in memory.
func listed(t *testing.T, data []byte) (Listing, error) {
	t.Helper()
	return List(t.Context(), bytes.NewReader(data), int64(len(data)), Sniff(data))
}

func zipOf(t testing.TB, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range names {
		w, err := z.Create(name)
		if err == nil && !strings.HasSuffix(name, "/") {
			_, err = io.WriteString(w, "content of "+name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		err := w.WriteHeader(&h)
		if err == nil && h.Size > 0 {
			_, err = w.Write(make([]byte, h.Size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Name = name
	_, err := z.Write(data)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func names(l Listing) string {
	var all []string
	for _, e := range l.Items {
		all = append(all, fmt.Sprintf("%s:%d", e.Name, e.Size))
	}
	return strings.Join(all, " ")
}

// Each form is found by its first bytes, and lists its entries in their order.
func TestList(t *testing.T) {
	t.Parallel()
	plain := tarOf(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, tar.Header{Name: "d/a.txt", Size: 5}, tar.Header{Name: "b", Size: 700})
	for form, c := range map[string]struct {
		data []byte
		want string
	}{
		"zip":     {zipOf(t, "d/", "d/a.txt", "b"), "d/:0 d/a.txt:18 b:12"},
		"tar":     {plain, "d/:0 d/a.txt:5 b:700"},
		"tar.gz":  {gzipOf(t, "", plain), "d/:0 d/a.txt:5 b:700"},
		"gzip":    {gzipOf(t, "notes.txt", []byte("hello")), "notes.txt:5"},
		"tar.bz2": {bz2Tar, "a:2"},
	} {
		l, err := listed(t, c.data)
		if err != nil || l.Form != form || names(l) != c.want || l.Cut != "" {
			t.Errorf("%s: %s %q, %v, %s", form, l.Form, names(l), err, l.Cut)
		}
	}
	if l, err := listed(t, zipOf(t)); err != nil || len(l.Items) != 0 {
		t.Errorf("an empty zip: %v, %v", l, err)
	}
	for _, text := range []string{"", "PK", "plain text", "BZh9 is a text", strings.Repeat("x", 600)} {
		if kind := Sniff([]byte(text)); kind != "" {
			t.Errorf("%.10q is %s", text, kind)
		}
	}
}

// bz2Tar is a tar with the file a, which holds two bytes, by bzip2 1.0.8.
var bz2Tar = []byte("\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x3e\x1f\xc7\xd4\x00\x00\x6c\xdb\x80\xc9\x80\x40\x00\x75\x00\x00\x00\xe0\x60\x1e\x00\x08\x08\x20\x00\x54\x46\xa6\x80\x00\x69\xea\x09\x22\x4c\x4c\x69\x06\x9a\x6f\x35\x1d\x08\x3b\xe0\x10\x89\x37\x91\x52\x2f\x4a\x20\x43\x03\x18\x74\x9e\x1c\x47\x52\x08\xba\xd5\x95\xf0\x13\x62\xdd\x24\xd0\x00\x89\xf1\x77\x24\x53\x85\x09\x03\xe1\xfc\x7d\x40")

// What leads out of where one unpacks is told.
func TestLeads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    Item
		want bool
	}{
		{Item{Name: "a/b"}, false}, {Item{Name: "../a"}, true}, {Item{Name: "a/../../b"}, true}, {Item{Name: "/etc/passwd"}, true},
		{Item{Name: `..\a`}, true}, {Item{Name: `C:\a`}, true}, {Item{Name: "a/..b"}, false},
		{Item{Name: "a/l", Link: "b"}, false}, {Item{Name: "a/l", Link: "../b"}, false}, {Item{Name: "a/l", Link: "../../b"}, true},
		{Item{Name: "l", Link: "/etc"}, true},
	} {
		if got := c.e.Leads(); got != c.want {
			t.Errorf("%+v: %v", c.e, got)
		}
	}
	l, err := listed(t, tarOf(t, tar.Header{Name: "../x", Size: 1}, tar.Header{Name: "d/h", Typeflag: tar.TypeLink, Linkname: "d/a"},
		tar.Header{Name: "d/s", Typeflag: tar.TypeSymlink, Linkname: "../../etc"}, tar.Header{Name: "dev", Typeflag: tar.TypeChar}))
	if err != nil || len(l.Items) != 4 || !l.Items[0].Leads() || l.Items[1].Leads() || !l.Items[2].Leads() || !l.Items[3].Other {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := listed(t, zipOf(t, "../../x")); err != nil || !l.Items[0].Leads() {
		t.Errorf("%+v, %v", l, err)
	}
}

// zeros reads as so many zero bytes.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

// A bomb is unpacked only as far as the limit goes, and what was found until then is listed.
func TestBombs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	w := tar.NewWriter(z)
	huge := int64(maxUnpacked + 1<<20)
	for _, name := range []string{"first", "bomb"} {
		size := map[string]int64{"first": 3, "bomb": huge}[name]
		if err := w.WriteHeader(&tar.Header{Name: name, Size: size}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, &zeros{size}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.Close(), z.Close()
	l, err := listed(t, b.Bytes())
	if err != nil || names(l) != fmt.Sprintf("first:3 bomb:%d", huge) || !strings.Contains(l.Cut, "256 MiB") {
		t.Errorf("%q, %v, %q", names(l), err, l.Cut)
	}
	b.Reset()
	z, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = io.Copy(z, &zeros{huge})
	_ = z.Close()
	if l, err = listed(t, b.Bytes()); err != nil || len(l.Items) != 1 || l.Items[0].Size != -1 {
		t.Errorf("%+v, %v", l, err)
	}
	many := make([]string, maxItems+1)
	for i := range many {
		many[i] = fmt.Sprint("f", i)
	}
	if l, err = listed(t, zipOf(t, many...)); err != nil || len(l.Items) != maxItems || l.Cut == "" {
		t.Errorf("%d entries, %v, %q", len(l.Items), err, l.Cut)
	}
}

// The directory of a zip that claims millions of entries costs no more than what is read of it.
func TestDirectoryLimit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 60_000)
	var all []string
	for i := range maxDirectory/len(long) + 2 {
		all = append(all, fmt.Sprint(i)+long)
	}
	if l, err := listed(t, zipOf(t, all...)); err != nil || len(l.Items) != 0 || l.Cut == "" {
		t.Errorf("%d entries, %v, %q", len(l.Items), err, l.Cut)
	}
	lies := zipOf(t, "a")
	binary.LittleEndian.PutUint16(lies[len(lies)-12:], 0xfffe) // so many entries, it says
	if l, err := listed(t, lies); err == nil && len(l.Items) > 1 {
		t.Errorf("%d entries", len(l.Items))
	}
}

// What is damaged is an error of its own, that of the disk stays what it is, and a cancelled listing ends.
func TestDamaged(t *testing.T) {
	t.Parallel()
	whole := zipOf(t, "a", "b")
	for _, data := range [][]byte{whole[:len(whole)/2], []byte("\x1f\x8b\x08 and no more")} {
		var damaged *DamagedError
		if _, err := listed(t, data); !errors.As(err, &damaged) {
			t.Errorf("%v", err)
		}
	}
	cut := tarOf(t, tar.Header{Name: "a", Size: 3}, tar.Header{Name: "b", Size: 5000})
	if l, err := listed(t, append(cut[:1024:1024], "rubbish that is no header at all"...)); err != nil || names(l) != "a:3" || l.Cut == "" {
		t.Errorf("%q, %v, %q", names(l), err, l.Cut)
	}
	broken := errors.New("the disk is broken")
	if _, err := List(t.Context(), failing{broken}, 1000, Zip); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := List(ctx, bytes.NewReader(whole), int64(len(whole)), Zip); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// No file makes it panic, or list more than the limit.
func FuzzList(f *testing.F) {
	f.Add(zipOf(f, "a/b", "c"))
	f.Add(tarOf(f, tar.Header{Name: "a", Size: 3}))
	f.Add(gzipOf(f, "n", tarOf(f, tar.Header{Name: "a", Size: 3})))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kind := Sniff(data); kind != "" {
			l, err := List(t.Context(), bytes.NewReader(data), int64(len(data)), kind)
			if len(l.Items) > maxItems || err != nil && len(l.Items) > 0 {
				t.Errorf("%d entries, %v", len(l.Items), err)
			}
		}
	})
}
