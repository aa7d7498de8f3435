package textedit

import "strings"

// expandMarkers writes out the short forms that the interface of one maker of models puts in the place of markers.
// Other models mean <s> when they write it, so this is only for those who ask for it.
func expandMarkers(s string) string {
	return strings.NewReplacer(
		"<fnr>", "<function_results>", "</fnr>", "</function_results>",
		"<n>", "<name>", "</n>", "</name>",
		"<o>", "<output>", "</o>", "</output>",
		"<e>", "<error>", "</e>", "</error>",
		"<s>", "<system>", "</s>", "</system>",
		"\n\nH:", "\n\nHuman:", "\n\nA:", "\n\nAssistant:",
	).Replace(s)
}
