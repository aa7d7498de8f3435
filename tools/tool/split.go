package tool

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// This file takes JSON apart without decoding it, so that an input is decoded once, field by field, into
// the types of the input struct: what is not wanted costs no memory, and a string of 20 MB is scanned and
// not copied on its way to its field. Everything here relies on json.Valid having said yes to the whole.

// trim returns b without the blanks that JSON allows around a value.
func trim(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// members yields the keys, still quoted, and the values of an object.
func members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := next(obj, 1); obj[i] != '}'; {
			end := skip(obj, i)
			key := obj[i:end]
			i = next(obj, next(obj, end)+1) // past the colon
			end = skip(obj, i)
			if !yield(key, obj[i:end]) {
				return
			}
			if i = next(obj, end); obj[i] == ',' {
				i = next(obj, i+1)
			}
		}
	}
}

// elements yields the values of an array.
func elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := next(arr, 1); arr[i] != ']'; {
			end := skip(arr, i)
			if !yield(arr[i:end]) {
				return
			}
			if i = next(arr, end); arr[i] == ',' {
				i = next(arr, i+1)
			}
		}
	}
}

// next returns the position of the next byte that is no blank, from i on.
func next(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return i
		}
		i++
	}
	return i
}

// skipString returns the end of the string whose quote is at i. It looks at quotes only, and at the
// backslashes just before each, so every byte is seen at most twice.
func skipString(b []byte, i int) int {
	for from := i + 1; ; {
		quote := from + bytes.IndexByte(b[from:], '"')
		slashes := 0
		for b[quote-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return quote + 1
		}
		from = quote + 1
	}
}

// skipNested returns the end of the object or array that begins at i. It counts, because recursion would
// let the sender choose the depth of our stack.
func skipNested(b []byte, i int) int {
	for depth := 0; ; i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// unquote returns the text of a JSON string. Bytes that are no UTF-8 and unpaired surrogates become
// U+FFFD; the envelope has refused both before a call comes here.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it is valid, and it is a string
	return s
}
