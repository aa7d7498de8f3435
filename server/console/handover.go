package console

import (
	"net/http"
	"time"
)

// A handOverView is what the page of a hand-over shows.
type handOverView struct {
	Session string // that it was asked for; "": none
	Whole   bool   // its workspace, and not the session alone
	Text    string
}

// Rows is how many lines the field of the text has.
func (v *handOverView) Rows() int {
	const least, most, width = 8, 60, 100
	rows := 2
	for _, line := range lines(v.Text) {
		n := 0
		for _, p := range line.Parts {
			n += len(p.Text)
		}
		rows += 1 + n/width
	}
	return min(max(rows, least), most)
}

// handOver shows what the next conversation can read of those before.
func (c *Console) handOver(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Hand-over", Person: p, Now: time.Now(), pages: pages{HandOver: &handOverView{}}}
	if p.In {
		q := r.URL.Query()
		if s := q.Get("session"); sessionName().MatchString(s) {
			v.HandOver.Session = s
		}
		v.HandOver.Whole = v.HandOver.Session == "" || q.Get("whole") == "1"
		h, ok := c.history(w, r, p)
		if !ok {
			return
		}
		var err error
		v.HandOver.Text, err = h.changes.HandOver(r.Context(), h.who, v.HandOver.Session, v.HandOver.Whole)
		if err != nil {
			c.broken(w, r, err)
			return
		}
	}
	c.show(w, r, http.StatusOK, v)
}
