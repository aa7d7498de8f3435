package pages

import (
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"
)

// A page is read in the encoding in which it was written, also where its server or the page itself says another one.
func TestCharsets(t *testing.T) {
	t.Parallel()
	const (
		russian  = "Служба погоды предупреждает о сильном шторме в ночь на пятницу. Паромы не ходят до субботы."
		japanese = "気象庁は金曜日の夜に激しい嵐になると警告している。フェリーは土曜日まで運航しない。"
		chinese  = "气象部门警告星期五夜间将有强风暴。渡轮将停航至星期六，学校周五停课。"
		german   = "Der Wetterdienst warnt vor schweren Böen über 120 km/h. Für Fähren heißt das: Pause bis Samstag."
		polish   = "Służba pogodowa ostrzega przed silną burzą w nocy. Promy nie będą pływać aż do soboty, szkoły są zamknięte."
		greek    = "Η μετεωρολογική υπηρεσία προειδοποιεί για ισχυρή καταιγίδα την Παρασκευή το βράδυ."
		korean   = "기상청은 금요일 밤 강한 폭풍을 경고했다. 토요일까지 여객선이 다니지 않는다."
	)
	for _, c := range []struct{ name, text, in, header, meta string }{
		{"windows-1251 by header", russian, "windows-1251", "windows-1251", ""},
		{"windows-1251 by meta", russian, "windows-1251", "", "windows-1251"},
		{"windows-1251, header says utf-8", russian, "windows-1251", "utf-8", "windows-1251"},
		{"windows-1251, header says iso-8859-1", russian, "windows-1251", "iso-8859-1", "windows-1251"},
		{"windows-1251, nobody says", russian, "windows-1251", "", ""},
		{"koi8-r", russian, "koi8-r", "koi8-r", ""},
		{"koi8-r, nobody says", russian, "koi8-r", "", ""},
		{"Shift_JIS", japanese, "shift_jis", "Shift_JIS", ""},
		{"Shift_JIS by meta", japanese, "shift_jis", "", "Shift_JIS"},
		{"Shift_JIS, header says utf-8", japanese, "shift_jis", "utf-8", "x-sjis"},
		{"EUC-JP", japanese, "euc-jp", "euc-jp", ""},
		{"ISO-2022-JP", japanese, "iso-2022-jp", "iso-2022-jp", ""},
		{"GBK", chinese, "gbk", "gbk", ""},
		{"GBK as gb2312", chinese, "gbk", "", "gb2312"},
		{"GBK, header says iso-8859-1", chinese, "gbk", "iso-8859-1", "gbk"},
		{"Big5", "氣象部門警告星期五夜間將有強風暴。渡輪停航。", "big5", "big5", ""},
		{"EUC-KR", korean, "euc-kr", "euc-kr", ""},
		{"UTF-16 with mark", german, "utf-16", "", ""},
		{"UTF-16LE by header", german, "utf-16le", "utf-16le", ""},
		{"UTF-16BE, nobody says", german, "utf-16be", "", ""},
		{"UTF-8", japanese, "utf-8", "utf-8", ""},
		{"UTF-8, header says iso-8859-1", russian, "utf-8", "iso-8859-1", ""},
		{"UTF-8, meta says windows-1251", russian, "utf-8", "", "windows-1251"},
		{"UTF-8, nobody says", chinese, "utf-8", "", ""},
		{"ISO-8859-1", german, "iso-8859-1", "iso-8859-1", ""},
		{"windows-1252, header says utf-8", german, "windows-1252", "utf-8", ""},
		{"windows-1250", polish, "windows-1250", "windows-1250", ""},
		{"ISO-8859-2 by meta", polish, "iso-8859-2", "", "iso-8859-2"},
		{"windows-1253", greek, "windows-1253", "windows-1253", ""},
		{"an unknown one", german, "utf-8", "x-unknown", "x-also-unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			page := "<!DOCTYPE html><html><head>"
			if c.meta != "" {
				page += `<meta charset="` + c.meta + `">`
			}
			page += "<title>x</title></head><body><main><p>" + c.text + "</p></main></body></html>"
			var body []byte
			if c.in == "utf-8" {
				body = []byte(page)
			} else {
				name := strings.TrimSuffix(c.in, "")
				mark := ""
				if name == "utf-16" {
					name, mark = "utf-16le", "\uFEFF"
				}
				e, _ := charset.Lookup(name)
				var err error
				if body, err = e.NewEncoder().Bytes([]byte(mark + page)); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(name, "utf-16") {
					body = utf16Of(mark+page, name == "utf-16be")
				}
			}
			header := "text/html"
			if c.header != "" {
				header += "; charset=" + c.header
			}
			d, err := Text(t.Context(), body, header, &url.URL{Scheme: "https", Host: "example.org"})
			if err != nil || d.Text != c.text {
				t.Errorf("%v\ngot  %q\nwant %q", err, d.Text, c.text)
			}
		})
	}
}

func utf16Of(text string, big bool) (out []byte) {
	for _, r := range text { // none above the basic plane
		if big {
			out = append(out, byte(r>>8), byte(r))
		} else {
			out = append(out, byte(r), byte(r>>8))
		}
	}
	return out
}

// What is no HTML stays as it is, but for JSON, and bytes that are no text are none, whatever the server says.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, body, form, text string }{
		{"application/json", `{"b":[1,2],"a":{}}`, "json", "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {}\n}"},
		{"application/vnd.api+json; charset=utf-8", "{broken", "json", "{broken"},
		{"application/json", strings.Repeat("[", 100) + strings.Repeat("]", 100), "json",
			strings.Repeat("[", 100) + strings.Repeat("]", 100)},
		{"text/markdown", "# A\r\n\r\n<b>raw</b>", "markdown", "# A\n\n<b>raw</b>"},
		{"text/plain", "<p>not html</p>", "text", "<p>not html</p>"},
		{"application/rss+xml", "<rss><channel/></rss>", "xml", "<rss><channel/></rss>"},
		{"image/svg+xml", "<svg/>", "xml", "<svg/>"},
		{"application/javascript", "let a = 1", "text", "let a = 1"},
		{"application/octet-stream", "plain words", "text", "plain words"},
		{"", "plain words", "text", "plain words"},
		{"text/html", "%PDF-1.7\n", "", ""},
		{"text/html", "\x89PNG\r\n\x1a\n", "", ""},
		{"text/plain", "a\x00b", "", ""},
		{"application/zip", "PK", "", ""},
		{"application/octet-stream", "\x7fELF\x00\x01", "", ""},
	} {
		d, err := Text(t.Context(), []byte(c.body), c.header, nil)
		if (err != nil) != (c.form == "") || d.Form != c.form || d.Text != c.text {
			t.Errorf("%s %.20q: %+v, %v", c.header, c.body, d, err)
		}
	}
}

// largePage is a page of 5 MB of the shape of a long specification.
func largePage() string {
	const part = `<h3 id="s"><a class="anchor" href="#s">§</a>Section</h3><p>The <dfn>user agent</dfn> must run these steps when it ` +
		`is asked to <a href="/dom.html#x">navigate</a> a document, <em>unless</em> that document was <code>removed</code> ` +
		`from its tree before, or nobody listens to it any more; then the steps end here without any other effect.</p>` +
		`<ul><li>If it is <var>null</var>, then return.</li><li>Otherwise go on with the next step of this list.</li></ul>` +
		`<pre><code class="language-js">let x = document.querySelector("main");` + "\n" + `x.remove();</code></pre>`
	return "<!DOCTYPE html><html><body><nav><a href=/>Home</a></nav><main><h1>Long</h1>" +
		strings.Repeat(part, 5<<20/len(part)) + "</main></body></html>"
}

// BenchmarkPage is a page of 5 MB: at most 1 s.
func BenchmarkPage(b *testing.B) {
	page := []byte(largePage())
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Text(b.Context(), page, "text/html", nil); err != nil {
			b.Fatal(err)
		}
	}
}

// A page of 5 MB needs at most 64 MiB besides itself.
func TestMemory(t *testing.T) {
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("measures the heap of this process alone: CODEHAND_LONG=1")
	}
	page := []byte(largePage())
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Text(t.Context(), page, "text/html", nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	grown := (after.HeapSys - before.HeapSys) >> 20
	t.Logf("5 MB: the heap grew by %d MiB, allocated were %d MiB", grown, (after.TotalAlloc-before.TotalAlloc)>>20)
	if grown > 64 {
		t.Errorf("the heap grew by %d MiB, at most 64", grown)
	}
}

// FuzzText: whatever is sent becomes valid text of a bounded length, or none.
func FuzzText(f *testing.F) {
	for _, s := range samples(f) {
		f.Add([]byte(s.page), "text/html")
	}
	f.Add([]byte("\xff\xfe<\x00p\x00>\x00"), "text/html; charset=utf-8")
	f.Add([]byte(strings.Repeat("<blockquote><ul><li>", 200)+"x"), "text/html")
	f.Add([]byte(strings.Repeat("<table><tr><td rowspan=9999 colspan=9999>", 20)), "text/html")
	f.Add([]byte(`{"a":[`), "application/json")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		if len(body) > 64<<10 {
			return // as long as it takes to read it, hundreds of small ones are tried; TestHostile has the large ones
		}
		d, err := Text(t.Context(), body, contentType, &url.URL{Scheme: "https", Host: "example.org", Path: "/a/"})
		if err != nil {
			if d != (Doc{}) {
				t.Errorf("%+v with %v", d, err)
			}
			return
		}
		if strings.ToValidUTF8(d.Text, "") != d.Text {
			t.Error("not valid UTF-8")
		}
		if most := 100_000 + 60*len(body); len(d.Text) > most {
			t.Errorf("%d bytes of %d", len(d.Text), len(body))
		}
	})
}
