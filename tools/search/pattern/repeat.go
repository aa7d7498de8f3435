package pattern

import "regexp/syntax"

// repeat reads an operator behind the last part. nil: none stands here. A "{" that begins no count is a literal.
func (d *dialect) repeat(parts []*syntax.Regexp) (*syntax.Regexp, *Error) {
	start := d.pos
	re := &syntax.Regexp{}
	switch d.src[d.pos] {
	case '*':
		re.Op = syntax.OpStar
	case '+':
		re.Op = syntax.OpPlus
	case '?':
		re.Op = syntax.OpQuest
	case '{':
		low, high, n := count(d.src[d.pos:])
		if n == 0 || len(parts) == 0 {
			return nil, nil
		}
		if low > maxRepeat || high > maxRepeat {
			return nil, d.wrong("count", "count over %d", maxRepeat)
		}
		if high >= 0 && low > high {
			return nil, d.wrong("syntax", "count that ends before it begins")
		}
		re.Op, re.Min, re.Max = syntax.OpRepeat, low, high
		d.pos += n - 1
	default:
		return nil, nil
	}
	if len(parts) == 0 {
		return nil, d.wrong("syntax", "nothing to repeat before %q", d.src[start:start+1])
	}
	d.pos++
	if d.eat("?") != d.flags.swap {
		re.Flags |= syntax.NonGreedy
	}
	re.Sub = []*syntax.Regexp{parts[len(parts)-1]}
	d.counts[re] = start
	return re, nil
}

// count reads {n}, {n,} or {n,m}; length 0: it is something else. high -1: no end. Numbers are capped above maxRepeat.
func count(s string) (low, high, n int) {
	number := func(i int) (int, int) {
		v := 0
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			v = min(10*v+int(s[i]-'0'), maxRepeat+1)
			i++
		}
		return v, i
	}
	low, i := number(1)
	if i == 1 || i == len(s) {
		return 0, 0, 0
	}
	high = low
	if s[i] == ',' {
		comma := i
		if high, i = number(i + 1); i == comma+1 {
			high = -1
		}
	}
	if i == len(s) || s[i] != '}' {
		return 0, 0, 0
	}
	return low, high, i + 1
}

// checkCounts refuses nested counts whose product is too large.
func (d *dialect) checkCounts(re *syntax.Regexp, product int) *Error {
	if re.Op == syntax.OpRepeat {
		if product *= max(re.Min, re.Max, 1); product > maxRepeat {
			return d.wrongAt(d.counts[re], "count", "nested counts whose product is over %d", maxRepeat)
		}
	}
	for _, sub := range re.Sub {
		if err := d.checkCounts(sub, product); err != nil {
			return err
		}
	}
	return nil
}
