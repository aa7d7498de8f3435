// Package git reads what a repository says about itself: where it is, its configuration, its index. It says whether git
// would run a program there or show a file that a rule is about. It never starts git and writes nothing.
package git
