package textedit

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// The oracle is Apply for one edit, slow and by the letter: the content is taken apart into elements, which are what is
// compared on the one hand and bytes of the file on the other, and every place is tried. It shares restyle and
// decodeEscapes with the real one; those have tables of their own.

// An element is one unit of comparison: a \r\n pair, a quote, or a byte.
type element struct{ shown, raw string }

func elements(text string, quotes bool) []element {
	var list []element
	for text != "" {
		e := element{text[:1], text[:1]}
		if strings.HasPrefix(text, "\r\n") {
			e = element{"\n", "\r\n"}
		}
		for _, q := range []string{"‘", "’", "′", "“", "”", "″"} {
			if quotes && strings.HasPrefix(text, q) {
				e = element{map[bool]string{true: `'`, false: `"`}[strings.Contains("‘’′", q)], q}
			}
		}
		list = append(list, e)
		text = text[len(e.raw):]
	}
	return list
}

func shown(list []element) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.shown)
	}
	return b.String()
}

func rawOf(list []element) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.raw)
	}
	return b.String()
}

// oracle does one edit of a content that is text. Errors have no hints.
func oracle(content string, e Edit) (string, Done, error) {
	bom := ""
	if strings.HasPrefix(content, "\xef\xbb\xbf") {
		bom, content = content[:3], content[3:]
	}
	if e.Old == "" {
		if strings.TrimSpace(content) != "" {
			return "", Done{}, ErrNotEmpty
		}
		return bom + e.New, Done{Replacements: 1, Changed: len(content), Lines: []int{1}}, nil
	}
	old, add := foldEnds(e.Old), foldEnds(e.New)
	decoded, known := decodeEscapes(e.Old, nil)
	decodedAdd, _ := decodeEscapes(e.New, known)
	for level, try := range []struct{ old, needle, add string }{
		{old, old, add},
		{old, shown(elements(e.Old, true)), add},
		{foldEnds(decoded), foldEnds(decoded), foldEnds(decodedAdd)},
	} {
		if strings.Contains(try.old, "\ufffd") && !utf8.ValidString(content) {
			continue
		}
		list := elements(content, Level(level) == Quotes)
		var all []int
		for at := range list {
			if strings.HasPrefix(shown(list[at:]), try.needle) {
				all = append(all, at)
			}
		}
		if len(all) > 0 {
			got, done, err := oracleReplace(list, all, len(try.needle), Level(level), try.old, try.add, e)
			if mark := len(bom); err == nil && mark > 0 {
				got = bom + got
			}
			return got, done, err
		}
	}
	return "", Done{}, &NotFoundError{}
}

func oracleReplace(list []element, all []int, size int, level Level, old, add string, e Edit) (string, Done, error) {
	chosen := all[:1]
	if e.All || e.Expect > 1 {
		chosen = nil
		for _, at := range all {
			if len(chosen) == 0 || at >= chosen[len(chosen)-1]+size {
				chosen = append(chosen, at)
			}
		}
	} else if len(all) > 1 {
		return "", Done{}, &AmbiguousError{Count: len(all), Level: level}
	}
	if e.Expect > 0 && len(chosen) != e.Expect {
		return "", Done{}, &CountError{Want: e.Expect, Got: len(chosen)}
	}
	content := rawOf(list)
	for _, r := range add {
		if invalid, multi := oracleCensus(content); r > 127 && !strings.ContainsRune(old, r) && invalid > multi {
			return "", Done{}, ErrMix
		}
	}
	out, done, copied := "", Done{Level: level}, 0
	for _, at := range chosen {
		end := at + size
		text := add
		if level == Quotes {
			text = restyle(rawOf(list[at:end]), old, add, e.Prose)
		}
		text = oracleEnds(list, at, end, text)
		lineStart := at == 0 || list[at-1].shown == "\n"
		if text == "" && lineStart && list[end-1].shown != "\n" && end < len(list) && list[end].shown == "\n" &&
			!slices.Contains(chosen, end) {
			end++
		}
		out += rawOf(list[copied:at])
		if len(done.Lines) < 20 {
			done.Lines = append(done.Lines, 1+strings.Count(out, "\n"))
		}
		out += text
		done.Replacements++
		done.Changed += len(rawOf(list[at:end]))
		copied = end
	}
	return out + rawOf(list[copied:]), done, nil
}

// oracleEnds spells the line ends of text for a span of list.
func oracleEnds(list []element, at, end int, text string) string {
	var span []string
	for _, e := range list[at:end] {
		if e.shown == "\n" {
			span = append(span, e.raw)
		}
	}
	if len(span) == 0 {
		span = []string{"\n"}
		for i := end - 1; i >= 0; i-- { // the line before
			if list[i].shown == "\n" {
				span[0] = list[i].raw
				break
			}
		}
		for i := end; i < len(list); i++ { // the line itself
			if list[i].shown == "\n" {
				span[0] = list[i].raw
				break
			}
		}
	}
	parts := strings.Split(text, "\n")
	out := parts[0]
	for k, part := range parts[1:] {
		out += span[min(k, len(span)-1)] + part
	}
	return out
}

func oracleCensus(content string) (invalid, multi int) {
	for i, r := range content {
		switch _, size := utf8.DecodeRuneInString(content[i:]); {
		case r == utf8.RuneError && size == 1:
			invalid++
		case size > 1:
			multi++
		}
	}
	return invalid, multi
}

// complaint compares what Apply did with what the oracle says, and looks at the promise about other bytes without it.
func complaint(content []byte, e Edit) string {
	before := bytes.Clone(content)
	got, report, err := Apply(content, []Edit{e})
	if !bytes.Equal(before, content) {
		return "the argument was changed in place"
	}
	switch enc, notText := Detect(content); {
	case notText != nil && err == nil:
		return "not text, but no error"
	case notText != nil, !enc.Editable():
		return ""
	case enc.set != utf8Set:
		if mix, ok := errors.AsType[*MixError](err); ok && mix.Untold {
			return ""
		}
		return codedComplaint(enc.set, content[enc.Mark():], e)
	}
	want, done, wantErr := oracle(string(content), e)
	if kind(err) != kind(wantErr) {
		return "error " + kind(err) + ", the oracle has " + kind(wantErr)
	}
	if err != nil {
		a, _ := errors.AsType[*AmbiguousError](err)
		b, _ := errors.AsType[*AmbiguousError](wantErr)
		if a != nil && (a.Count != b.Count || a.Level != b.Level) {
			return "another count or level of matches than the oracle"
		}
		return ""
	}
	if string(got) != want {
		return "content " + quoted(string(got)) + ", the oracle has " + quoted(want)
	}
	d := report.Edits[0]
	if d.Replacements != done.Replacements || d.Level != done.Level || d.Changed != done.Changed || !slices.Equal(d.Lines, done.Lines) {
		return "another report than the oracle"
	}
	if head := sameHead(content, got); d.Replacements == 1 &&
		head+min(sameTail(content, got), min(len(content), len(got))-min(head, len(got))) < min(len(content)-d.Changed, len(got)) {
		return "bytes outside of the match have changed"
	}
	return ""
}

func quoted(s string) string { return strings.ReplaceAll(cmp.Or(s, "nothing"), "\n", `\n`) }

// kind names the reason of an error.
func kind(err error) string {
	if e, ok := errors.AsType[*EditError](err); ok {
		err = e.Err
	}
	if err == nil {
		return "none"
	}
	return err.Error()
}
