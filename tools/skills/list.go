package skills

// List says what skills there are, one line each: "name: description - when to use". A line has at most 1,536 characters
// and all together 8,000; when they do not fit, descriptions are shortened evenly, and names always kept. Which skills a
// reader may know is the caller's choice.
func List(skills []Skill) string { return "" }
