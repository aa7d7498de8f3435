package signin

import (
	"slices"
	"strconv"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/tools/permission"
)

// An approval is the page that asks for a decision.
type approval struct {
	Ask      oauth.Ask
	Client   string
	Can      []string // what is asked for and can be had
	Cannot   []string // what is asked for and the operator does not give
	CanRead  bool     // reading alone is a narrower choice
	Roots    []string
	Offered  string // signs Roots
	Modes    []choice
	Lives    []choice
	Commands string // how far they are confined; "": none can be run
	Minutes  int    // until the Ask ends
	Wrong    string // what is wrong with what was chosen
}

// A choice is one of several.
type choice struct {
	Value, Text string
	Chosen      bool
}

func (v *visit) showAsk(ask oauth.Ask, wrong string) {
	v.p.o.Asks.HoldAsk(ask.ID)
	can := ask.Scopes & v.rights.Scopes
	page := approval{Ask: ask, Client: clientName(ask.Client), Can: Can(can),
		Cannot: Can(ask.Scopes &^ v.rights.Scopes), CanRead: can != auth.Read && can.Has(auth.Read),
		Roots: v.rights.Roots, Offered: offered(v),
		Modes: modeChoices(v.rights), Lives: lifeChoices(),
		Minutes: max(1, int(ask.Expires.Sub(v.p.o.Now())/time.Minute)), Wrong: wrong}
	if can.Has(auth.Shell) {
		page.Commands = v.p.o.Commands()
	}
	v.w.Header().Set("Content-Security-Policy", policy(false, formTargets(ask.Client)))
	v.show("Allow access?", page)
}

// decisionOf reads what was chosen. wrong is for the person.
func decisionOf(v *visit, ask oauth.Ask) (d oauth.Decision, wrong string) {
	form := v.r.PostForm
	d = oauth.Decision{Principal: v.who.Principal, Scopes: ask.Scopes & v.rights.Scopes}
	switch form.Get("access") {
	case "all":
	case "read":
		d.Scopes &= auth.Read
	default:
		return d, "Choose what it may do."
	}
	if d.Scopes == 0 {
		return d, "Nothing of what it asks for can be allowed. Ask the operator, or refuse."
	}
	if d.Roots, wrong = rootsOf(v); wrong != "" {
		return d, wrong
	}
	most, ok := chosen(modeChoices(v.rights), form.Get("mode"))
	if !ok {
		return d, "Choose a permission mode."
	}
	d.Mode, d.MaxMode = lowerMode(most, v.rights.Mode), most
	life, ok := chosen(lifeChoices(), form.Get("life"))
	hours, err := strconv.Atoi(life)
	if !ok || err != nil {
		return d, "Choose for how long."
	}
	d.Life = time.Duration(hours) * time.Hour
	return d, ""
}

// offered signs the directories that a page shows.
func offered(v *visit) string { return v.p.sign("roots", v.rights.Roots...) }

// rootsOf are the directories that were chosen. nil stands for all of the person's, also those to come: only for who
// was shown all of them as they are now, and chose them all.
func rootsOf(v *visit) (roots []string, wrong string) {
	mine, shown := v.rights.Roots, v.r.PostForm.Get("offered")
	if shown != "" && shown != offered(v) {
		return nil, "Your directories have changed. Look at them, and choose again."
	}
	roots = slices.Clone(v.r.PostForm["root"])
	if len(mine) == 1 && len(roots) == 0 {
		roots = slices.Clone(mine) // there was nothing to choose
	}
	slices.Sort(roots)
	roots = slices.Compact(roots)
	for _, root := range roots {
		if !slices.Contains(mine, root) {
			return nil, "One of the directories is not yours any more. Choose again."
		}
	}
	if len(mine) > 0 && len(roots) == 0 {
		return nil, "Choose at least one directory."
	}
	whole := slices.Compact(slices.Sorted(slices.Values(mine)))
	if shown != "" && slices.Equal(roots, whole) {
		return nil, ""
	}
	return roots, ""
}

func chosen(all []choice, value string) (string, bool) {
	return value, slices.ContainsFunc(all, func(c choice) bool { return c.Value == value })
}

func lifeChoices() []choice {
	var all []choice
	for _, c := range []struct {
		hours int
		text  string
	}{{1, "1 hour"}, {24, "1 day"}, {7 * 24, "7 days"}, {30 * 24, "30 days"}, {90 * 24, "90 days"},
		{365 * 24, "1 year"}} {
		life := time.Duration(c.hours) * time.Hour
		if life <= oauth.MaxLife {
			all = append(all, choice{strconv.Itoa(c.hours), c.text, life == oauth.DefaultLife})
		}
	}
	return all
}

// modeWords are the permission modes, from the strictest to the widest.
var modeWords = []struct{ name, text string }{
	{"plan", "Nothing: it only plans"},
	{"dontAsk", "Read; refuse the rest"},
	{"default", "Read"},
	{"acceptEdits", "Read and change files"},
	{"auto", "All but what is risky"},
	{"bypassPermissions", "Everything"},
}

// unasked says what a client may do unasked under a mode; "": that of the operator.
func unasked(mode string) string {
	for _, m := range modeWords {
		if m.name == mode {
			return m.text
		}
	}
	return "As the operator set it"
}

// modeChoices are the modes up to the operator's highest; the principal's usual one is chosen.
func modeChoices(who auth.Principal) []choice {
	var all []choice
	usual := lowerMode(who.Mode, who.MaxMode)
	for _, m := range modeWords {
		if lowerMode(m.name, who.MaxMode) == m.name {
			all = append(all, choice{m.name, m.text, m.name == usual})
		}
	}
	return all
}

// lowerMode is a, or most if a is above it. A name that is no mode counts as default.
func lowerMode(a, most string) string {
	x, _ := permission.ParseMode(a) // default, if it is wrong
	y, _ := permission.ParseMode(most)
	return x.AtMost(y).String()
}

// Can says what scopes mean, in a few words each.
func Can(s auth.Scopes) []string {
	var words []string
	for _, w := range []struct {
		scope auth.Scopes
		text  string
	}{
		{auth.Read, "Read and search files"},
		{auth.Write, "Change, create and delete files"},
		{auth.Shell, "Run commands"},
		{auth.Web, "Open pages of the web"},
		{auth.AdminConsole, "See the server's metrics and details"},
	} {
		if s.Has(w.scope) {
			words = append(words, w.text)
		}
	}
	return words
}
