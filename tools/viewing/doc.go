// Package viewing shows a file as lines, cells, pages or a picture, and notes for the session what of it was seen, so
// that an edit knows what the model has read. It also says what a search left out, and why. It never changes a file.
//
// File is the one type that matters: Open it, choose a view by what its Head says, Close it.
package viewing
