package index

import (
	"math/bits"
	"slices"
)

const (
	blockSize = 64 << 10 // bytes of a file that have one bitmap
	// maxNeedle is the longest string of a Question, in bytes. The bitmap of a block has as much of the next block,
	// too, so that a needle lies wholly in one.
	maxNeedle = 256

	gram     = 4   // bytes that are one bit
	minBits  = 256 // of a bitmap, a power of two as all sizes
	maxBits  = 1 << 16
	headBits = 1024 // a short block begins with as many
	// A bitmap is halved while less than this percentage of its bits is set. Most end at a third of the text's length,
	// or less where the text repeats itself.
	sparse = 12
)

// lower has ASCII letters lowered: one summary serves searches with and without case.
var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

// hash gives the bit of a group of bytes; a smaller bitmap takes its lower end.
func hash(group uint32) uint32 { return group * 0x9E3779B1 >> 16 }

// A Summarizer makes summaries. It belongs to one goroutine. The zero value is ready.
type Summarizer struct {
	words [maxBits / 64]uint64
}

// Append appends the summary of a content to dst. It is some 6 % to 15 % as long as the content.
func (s *Summarizer) Append(dst, content []byte) []byte {
	for len(content) > 0 {
		own := min(len(content), blockSize)
		dst = s.block(dst, content[:min(len(content), own+maxNeedle)], own)
		content = content[own:]
	}
	return dst
}

// block appends the bitmap of one block: the logarithm of its size in bits, then the bits.
func (s *Summarizer) block(dst, text []byte, own int) []byte {
	size := headBits
	for size < own {
		size *= 2
	}
	words := s.words[:size/64]
	clear(words)
	mask := uint32(size - 1)
	group := uint32(0)
	for i, b := range text {
		group = group>>8 | uint32(lower[b])<<24
		if i >= gram-1 {
			h := hash(group) & mask
			words[h/64] |= 1 << (h % 64)
		}
	}
	for size > minBits && filled(words)*100 < size*sparse {
		half := words[:len(words)/2]
		for i, w := range words[len(half):] {
			half[i] |= w
		}
		words, size = half, size/2
	}
	dst = append(dst, byte(bits.TrailingZeros(uint(size))))
	for _, w := range words {
		dst = append(dst, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48),
			byte(w>>56))
	}
	return dst
}

func filled(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// A Question asks summaries for strings one of which must be in a content. It is safe for concurrent use.
type Question struct {
	needles [][]uint32 // the hashes of each needle's groups
}

// Ask makes a Question of strings; ASCII case does not count. nil: they say nothing, because there is none, or one is
// too short or too long.
func Ask(needles [][]byte) *Question {
	q := &Question{}
	for _, n := range needles {
		if len(n) < gram || len(n) > maxNeedle {
			return nil
		}
		var hashes []uint32
		group := uint32(0)
		for i, b := range n {
			group = group>>8 | uint32(lower[b])<<24
			if i >= gram-1 {
				hashes = append(hashes, hash(group))
			}
		}
		slices.Sort(hashes)
		q.needles = append(q.needles, slices.Compact(hashes))
	}
	if len(q.needles) == 0 {
		return nil
	}
	return q
}

// May says whether a content with that summary can have one of the strings. false is certain.
func (q *Question) May(summary []byte) bool {
	for len(summary) > 0 {
		size := uint32(1) << summary[0]
		bitmap := summary[1 : 1+size/8]
		for _, hashes := range q.needles {
			if all(bitmap, size-1, hashes) {
				return true
			}
		}
		summary = summary[1+size/8:]
	}
	return false
}

func all(bitmap []byte, mask uint32, hashes []uint32) bool {
	for _, h := range hashes {
		h &= mask
		if bitmap[h/8]&(1<<(h%8)) == 0 {
			return false
		}
	}
	return true
}
