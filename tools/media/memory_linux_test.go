package media

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// memoryTime says to TestMemoryChild how long its decoder may take.
const memoryTime = "CODEHAND_TEST_MEMORY_TIME"

// peak is the most memory that this process ever had, in KiB.
func peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMemoryChild is a process of its own: it reads one file twice, as two calls do, and says what it took.
func TestMemoryChild(t *testing.T) {
	name := os.Getenv(memoryOf)
	if name == "" {
		return // it is only run by weigh
	}
	most, err := time.ParseDuration(os.Getenv(memoryTime))
	if err != nil {
		t.Fatal(err)
	}
	r, before := New(Options{Fit: FitOptions{MaxTime: most}}), peak(t)
	var slowest time.Duration
	var m Image
	for range 2 {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if m, err = r.Fit(t.Context(), data); err != nil && !typed(err) {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(start))
	}
	fmt.Printf("took %d KiB, %d ms, %dx%d\n", peak(t)-before, slowest.Milliseconds(), m.ShownWidth, m.ShownHeight)
}

// weigh runs TestMemoryChild on data.
func weigh(t *testing.T, data []byte, most time.Duration) (mebibytes int, took time.Duration, shown string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryChild$")
	cmd.Env = append(os.Environ(), memoryOf+"="+name, memoryTime+"="+most.String())
	out, err := cmd.CombinedOutput()
	m := regexp.MustCompile(`took (\d+) KiB, (\d+) ms, (\w+)`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kib, _ := strconv.Atoi(string(m[1])) // digits
	ms, _ := strconv.Atoi(string(m[2]))
	return kib >> 10, time.Duration(ms) * time.Millisecond, string(m[3])
}

// mostMemory is what one image may cost a server, in MiB, its file included.
const mostMemory = 128

// No image, read twice in a row, costs more than 128 MiB, whatever it claims.
func TestFitMemory(t *testing.T) {
	if underRace {
		t.Skip("measured without the race detector")
	}
	for name, data := range leaktest.SomeOf(6, hostileImages(t)) {
		mebibytes, took, shown := weigh(t, data, time.Second/2)
		t.Logf("%-45s +%3d MiB, %4d ms, shown at %s", name, mebibytes, took.Milliseconds(), shown)
		if mebibytes > mostMemory {
			t.Errorf("%s took %d MiB, want at most %d", name, mebibytes, mostMemory)
		}
	}
}

// largeImages are made by Pillow: what people have, as large as it is read.
const largeImages = `
import sys
from PIL import Image
Image.MAX_IMAGE_PIXELS = None
def photo(w, h, mode='RGB'):
    n = Image.effect_noise((w // 8, h // 8), 60)
    m = Image.merge('RGB', (n, n.transpose(Image.Transpose.ROTATE_180), n.transpose(Image.Transpose.FLIP_TOP_BOTTOM)))
    return m.resize((w, h), Image.Resampling.BILINEAR).convert(mode)
for kind in sys.argv[1:]:
    if kind == '420.jpg': photo(8000, 6240).save(kind, quality=80, subsampling='4:2:0')
    if kind == '444.jpg': photo(6000, 4400).save(kind, quality=80, subsampling='4:4:4')
    if kind == 'progressive.jpg': photo(3900, 2700).save(kind, quality=85, subsampling='4:2:0', progressive=True)
    if kind == 'cmyk.jpg': photo(3600, 2700, 'CMYK').save(kind, quality=80)
    if kind == 'rgba.png': Image.linear_gradient('L').resize((8000, 6200)).convert('RGBA').save(kind, compress_level=1)
    if kind == 'large.gif': photo(2000, 1550).quantize(4).resize((8000, 6200)).save(kind)
    if kind == 'lossy.webp': photo(7900, 6300).save(kind, quality=60, method=0)
    if kind == 'alpha.webp': photo(3900, 3200, 'RGBA').save(kind, quality=60, method=0)
    if kind == 'lossless.webp': photo(3600, 3600).quantize(64).convert('RGB').save(kind, lossless=True, quality=10, method=0)
`

// The largest images that people have are shown, within the same memory. All kinds only with CODEHAND_TESTS=all: making
// them takes half a minute.
func TestFitLarge(t *testing.T) {
	if underRace {
		t.Skip("measured without the race detector")
	}
	kinds := leaktest.Some(9, []string{"progressive.jpg", "rgba.png", "444.jpg", "cmyk.jpg", "large.gif", "lossy.webp", "alpha.webp",
		"lossless.webp", "420.jpg"})
	dir := t.TempDir()
	for _, kind := range kinds {
		run(t, dir, python(t, "PIL"), "-c", largeImages, kind)
		data, err := os.ReadFile(filepath.Join(dir, kind))
		if err != nil {
			t.Fatal(err)
		}
		mebibytes, took, shown := weigh(t, data, patient) // others may be busy on this machine; the figure is printed
		t.Logf("%-16s %8d bytes: +%3d MiB, %4d ms, shown at %s", kind, len(data), mebibytes, took.Milliseconds(), shown)
		if mebibytes > mostMemory || shown == "0x0" {
			t.Errorf("%s took %d MiB and was shown at %s, want at most %d MiB and a size", kind, mebibytes, shown, mostMemory)
		}
	}
}
