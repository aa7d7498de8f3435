package media

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// quarters are the arguments for ImageMagick to make an image of four colours, two of them nearly grey, each a quarter.
func quarters(width, height int) []string {
	half := strconv.Itoa(width/2) + "x" + strconv.Itoa(height/2)
	return []string{
		"-size", half, "(", "xc:#c83228", "xc:#28a03c", "+append", ")", "(", "xc:#7d8278", "xc:#e6dcc8", "+append", ")", "-append",
	}
}

// foreignImages are made by ImageMagick: name, size, and what is done with the quarters.
var foreignImages = []struct {
	name          string
	width, height int
	args          string
	animated      bool
}{
	{name: "plain.png", width: 300, height: 200},
	{name: "rgb8.png", width: 520, height: 416, args: "-define png:color-type=2 -define png:bit-depth=8"},
	{name: "rgb16.png", width: 520, height: 416, args: "-define png:color-type=2 -define png:bit-depth=16"},
	{name: "rgba8.png", width: 520, height: 416, args: "-define png:color-type=6 -define png:bit-depth=8"},
	{name: "rgba16.png", width: 520, height: 416, args: "-define png:color-type=6 -define png:bit-depth=16"},
	{name: "half.png", width: 520, height: 416, args: "-alpha set -channel A -evaluate set 50% -define png:color-type=6"},
	{name: "grey1.png", width: 520, height: 416, args: "-colorspace Gray -threshold 50% -define png:bit-depth=1 -define png:color-type=0"},
	{name: "grey8.png", width: 520, height: 416, args: "-colorspace Gray -define png:color-type=0 -define png:bit-depth=8"},
	{name: "grey16.png", width: 520, height: 416, args: "-colorspace Gray -define png:color-type=0 -define png:bit-depth=16"},
	{name: "greyalpha.png", width: 520, height: 416, args: "-colorspace Gray -alpha set -channel A -evaluate set 75% -define png:color-type=4"},
	{name: "palette.png", width: 520, height: 416, args: "-type Palette -define png:color-type=3"},
	{name: "palette2.png", width: 522, height: 416, args: "-type Palette -define png:color-type=3 -define png:bit-depth=2"},
	{name: "clear.png", width: 520, height: 416, args: "-transparent #c83228 -define png:color-type=3"},
	{name: "adam7.png", width: 520, height: 416, args: "-interlace PNG -define png:color-type=2"},
	{name: "adam7palette.png", width: 520, height: 416, args: "-resize 521x417! -type Palette -interlace PNG -define png:color-type=3"},
	{name: "narrow.png", width: 80, height: 3000},
	{name: "wide.png", width: 3000, height: 80},
	{name: "odd.png", width: 520, height: 416, args: "-resize 519x415!"},

	{name: "plain.jpg", width: 300, height: 200},
	{name: "420.jpg", width: 640, height: 480, args: "-sampling-factor 4:2:0"},
	{name: "422.jpg", width: 640, height: 480, args: "-sampling-factor 4:2:2"},
	{name: "444.jpg", width: 640, height: 480, args: "-sampling-factor 4:4:4"},
	{name: "411.jpg", width: 640, height: 480, args: "-sampling-factor 4x1"},
	{name: "440.jpg", width: 640, height: 480, args: "-sampling-factor 1x2"},
	{name: "410.jpg", width: 640, height: 480, args: "-sampling-factor 4x2"},
	{name: "progressive.jpg", width: 640, height: 480, args: "-interlace JPEG"},
	{name: "grey.jpg", width: 640, height: 480, args: "-colorspace Gray"},
	{name: "cmyk.jpg", width: 640, height: 480, args: "-colorspace CMYK"},
	{name: "smallcmyk.jpg", width: 240, height: 180, args: "-colorspace CMYK"},

	{name: "plain.gif", width: 300, height: 200},
	{name: "large.gif", width: 640, height: 480},
	{name: "interlaced.gif", width: 640, height: 480, args: "-interlace GIF"},
	{name: "clear.gif", width: 640, height: 480, args: "-transparent #c83228"},
	{name: "moving.gif", width: 300, height: 200, args: "( +clone -negate ) ( +clone -flip )", animated: true},

	{name: "lossy.webp", width: 300, height: 200},
	{name: "largelossy.webp", width: 640, height: 480},
	{name: "lossless.webp", width: 640, height: 480, args: "-define webp:lossless=true"},
	{name: "alpha.webp", width: 640, height: 480, args: "-alpha set -channel A -evaluate set 60%"},
	{name: "losslessalpha.webp", width: 640, height: 480, args: "-alpha set -channel A -evaluate set 60% -define webp:lossless=true"},
	{name: "moving.webp", width: 300, height: 200, args: "( +clone -negate ) ( +clone -flip )", animated: true},
	{name: "movinglossless.webp", width: 640, height: 480, args: "( +clone -negate ) -define webp:lossless=true", animated: true},
}

// oracle prints what Pillow sees in each file, with EXIF applied: size, format, frames, and the colour, laid over grey,
// at nine places that lie inside of the quarters.
const oracle = `
import sys, json
from PIL import Image, ImageOps
Image.MAX_IMAGE_PIXELS = None
seen = {}
for name in sys.argv[1:]:
    m = Image.open(name)
    kind, frames = m.format, getattr(m, 'n_frames', 1)
    m = ImageOps.exif_transpose(m)
    if m.mode.startswith('I'):
        m = m.point(lambda v: v / 256).convert('L')
    m = m.convert('RGBA')
    places = [(x, y) for x in (0.1, 0.3, 0.8) for y in (0.15, 0.35, 0.9)]
    colours = []
    for x, y in places:
        r, g, b, a = m.getpixel((int(x * m.width), int(y * m.height)))
        colours.append([round((c * a + 128 * (255 - a)) / 255) for c in (r, g, b)] + [a])
    seen[name] = {'width': m.width, 'height': m.height, 'kind': kind, 'frames': frames, 'colours': colours}
json.dump(seen, sys.stdout)
`

// A sight is what Pillow saw.
type sight struct {
	Width, Height int
	Kind          string
	Frames        int
	Colours       [][4]int
}

func look(t testing.TB, dir string, names ...string) map[string]sight {
	t.Helper()
	var seen map[string]sight
	if err := json.Unmarshal([]byte(run(t, dir, python(t, "PIL"), append([]string{"-c", oracle}, names...)...)), &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// small are the sizes of these tests: less than the defaults, so that other programs need not make large images.
var small = FitOptions{MaxEdge: 392, MaxPixels: 72_000, MaxTime: patient}

// Images that ImageMagick made are shown with the colours and the sizes that Pillow sees in them.
func TestFitForeign(t *testing.T) {
	t.Parallel()
	convert, dir := imageMagick(t), t.TempDir()
	python(t, "PIL")
	var names []string
	shown := map[string]Image{}
	for _, c := range leaktest.Some(4, foreignImages) {
		run(t, dir, convert, append(append(quarters(c.width, c.height), strings.Fields(c.args)...), c.name)...)
		data, err := os.ReadFile(filepath.Join(dir, c.name))
		if err != nil {
			t.Fatal(err)
		}
		m, err := fit(t.Context(), data, small)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m.Animated != c.animated {
			t.Errorf("%s: animated %v, want %v", c.name, m.Animated, c.animated)
		}
		shown[c.name] = m
		if err := os.WriteFile(filepath.Join(dir, c.name+".out"), m.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, c.name, c.name+".out")
	}
	seen := look(t, dir, names...)
	for name, m := range shown {
		compare(t, name, m, seen[name], seen[name+".out"])
	}
}

// compare holds what we say and what we show against what Pillow sees in the file and in what we show.
func compare(t *testing.T, name string, m Image, file, ours sight) {
	t.Helper()
	if m.Width != file.Width || m.Height != file.Height {
		t.Errorf("%s: said to be %dx%d, is %dx%d", name, m.Width, m.Height, file.Width, file.Height)
	}
	if m.ShownWidth != ours.Width || m.ShownHeight != ours.Height || "image/"+strings.ToLower(ours.Kind) != m.MIME || ours.Frames != 1 {
		t.Errorf("%s: said to be shown at %dx%d as %s, is %dx%d %s of %d frames", name, m.ShownWidth, m.ShownHeight, m.MIME,
			ours.Width, ours.Height, ours.Kind, ours.Frames)
	}
	if max(ours.Width, ours.Height) > small.MaxEdge || ours.Width*ours.Height > small.MaxPixels {
		t.Errorf("%s: shown at %dx%d", name, ours.Width, ours.Height)
	}
	// JPEG, and WebP with losses, are decoded a little differently by everybody.
	const tolerance = 5
	for i, want := range file.Colours {
		for c := range want {
			if d := want[c] - ours.Colours[i][c]; d < -tolerance || d > tolerance {
				t.Errorf("%s: colours at place %d are %v, want %v", name, i, ours.Colours[i], want)
				break
			}
		}
	}
}

// Turned by EXIF, an image is shown upright.
func TestFitOrientation(t *testing.T) {
	t.Parallel()
	dir, convert := t.TempDir(), imageMagick(t)
	var names []string
	shown := map[string]Image{}
	for _, size := range [][2]int{{300, 200}, {640, 400}} {
		width := strconv.Itoa(size[0])
		run(t, dir, convert, append(quarters(size[0], size[1]), width+".jpg")...)
		// ImageMagick writes EXIF only if there is some; Pillow makes it.
		run(t, dir, python(t, "PIL"), "-c", `
import sys
from PIL import Image
m = Image.open(sys.argv[1] + ".jpg"); e = m.getexif(); e[0x10f] = "maker"; m.load()
for turn in range(1, 9):
    e[0x112] = turn
    m.save(f"{sys.argv[1]}-{turn}.jpg", exif=e, quality=90)`, width)
		for turn := 1; turn <= 8; turn++ {
			name := width + "-" + strconv.Itoa(turn) + ".jpg"
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			m, err := fit(t.Context(), data, small)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if same := &m.Data[0] == &data[0]; same != (turn == 1 && size[0] == 300) {
				t.Errorf("%s: handed out as it is: %v", name, same)
			}
			if err := os.WriteFile(filepath.Join(dir, name+".out"), m.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			shown[name] = m
			names = append(names, name, name+".out")
		}
	}
	seen := look(t, dir, names...)
	for name, m := range shown {
		compare(t, name, m, seen[name], seen[name+".out"])
	}
}
