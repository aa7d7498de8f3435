// Package viewing shows a file as lines, cells, pages or a picture. It records for the session which parts the model
// was shown, for the check before an edit. It also says what a search left out, and why. It never changes a file.
//
// File is the one type that matters: Open it, choose a view by what its Head says, Close it.
package viewing
