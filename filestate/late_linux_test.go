package filestate_test

import (
	"fmt"
	"os"
	"testing"
)

// What a program wrote into a log that it held open was lost when more than 64 other files had been changed since.
func TestLateWriterBesideManyChanges(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("log", "first\n")
	f, err := os.OpenFile(d.path("log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d.must(d.put("log", "edited\n", unseen))
	for i := range 100 {
		d.must(d.put("a", fmt.Sprint(i), unseen))
	}
	if _, err := f.WriteString("late\n"); err != nil {
		t.Fatal(err)
	}
	if err := d.j.Close(); err != nil { // which looks at it for the last time
		t.Fatal(err)
	}
	if d = d.again(); !d.keepsContent("first\nlate\n") {
		t.Error("what the program wrote is lost")
	}
}
