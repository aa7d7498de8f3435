package seen

import (
	"slices"
	"testing"
)

func TestNormal(t *testing.T) {
	t.Parallel()
	cases := []struct {
		in   []Span
		want []Span
	}{
		{nil, nil},
		{[]Span{{3, 3}, {9, 2}, {-5, 0}, {20, 30}}, nil},
		{[]Span{{5, 8}, {0, 2}}, []Span{{0, 2}, {5, 8}}},
		{[]Span{{0, 2}, {2, 4}}, []Span{{0, 4}}},
		{[]Span{{0, 8}, {2, 4}, {7, 9}}, []Span{{0, 9}}},
		{[]Span{{-3, 1 << 60}}, []Span{{0, 10}}},
	}
	for _, c := range cases {
		in := slices.Clone(c.in)
		if got := normal(c.in, 10); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.in, got, c.want)
		}
		if !slices.Equal(c.in, in) {
			t.Errorf("%v was changed to %v", in, c.in)
		}
	}
	var many []Span
	for i := range int64(2 * maxSpans) {
		many = append(many, Span{3 * i, 3*i + 1})
	}
	if got := normal(many, 1<<40); len(got) != maxSpans {
		t.Errorf("%d ranges are remembered, want %d", len(got), maxSpans)
	}
}

func TestLinesIn(t *testing.T) {
	t.Parallel()
	const content = "1\n\n33\n4"
	cases := []struct {
		spans []Span
		want  []Lines
	}{
		{nil, nil},
		{[]Span{{0, 7}}, []Lines{{1, 4}}},
		{[]Span{{0, 1}}, nil},
		{[]Span{{2, 3}}, []Lines{{2, 2}}},
		{[]Span{{1, 7}}, []Lines{{2, 4}}},
		{[]Span{{0, 2}, {3, 6}}, []Lines{{1, 1}, {3, 3}}},
	}
	for _, c := range cases {
		if got, total := LinesIn([]byte(content), c.spans...); !slices.Equal(got, c.want) || total != 4 {
			t.Errorf("%v: got lines %v of %d, want %v of 4", c.spans, got, total, c.want)
		}
	}
	if got, total := LinesIn(nil); len(got) > 0 || total != 0 {
		t.Errorf("an empty file has lines %v of %d", got, total)
	}
}
