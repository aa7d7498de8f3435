package search

// SplitGlobs takes apart several globs that are parted by blanks or commas. A comma within braces does not part.
func SplitGlobs(text string) []string {
	var globs []string
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text), text[i] == ' ', text[i] == ',' && depth == 0:
			if from < i {
				globs = append(globs, text[from:i])
			}
			from = i + 1
		case text[i] == '\\':
			i = min(i+1, len(text)-1)
		case text[i] == '{':
			depth++
		case text[i] == '}':
			depth = max(depth-1, 0)
		}
	}
	return globs
}
