package sessions

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// TestAddRule: a person sets rules for a session in use, as many as it may have, each once; what cannot be set changes
// nothing, and the session is told of nothing that was not done.
func TestAddRule(t *testing.T) {
	t.Parallel()
	store := state.NewMemory(state.MemoryOptions{})
	defer store.Close()
	memory := state.Scoped(store, state.Key(state.Session, state.Hash("ann"), state.Hash("mine")))
	var st *session.State
	x := NewTable(func(key session.Key, _ *tenants.Tenant) (*session.State, func(), error) {
		st = &session.State{Key: key, Modes: session.Modes{Limit: session.NewCell[session.Limit](memory, "limit")},
			Grants: session.NewCell[[]permission.Grant](memory, "grants")}
		return st, func() {}, nil
	})
	x.Check = func(_ *tenants.Tenant, list string, r permission.Rule) error {
		if r.Text == "wrong" {
			return fmt.Errorf("%s %s: no", list, r.Text)
		}
		return nil
	}
	mine := func(k session.Key) bool { return k.Session == "mine" }
	add := func(list, rule string) error { return x.AddRule(t.Context(), mine, NamedRule{list, rule}, "ann") }
	if err := add("deny", "Edit"); !errors.Is(err, ErrNotOpen) {
		t.Errorf("not in use: %v", err)
	}
	_, release, err := x.Acquire(session.Key{Principal: "ann", Session: "mine"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	refused := func(list, rule, why string) {
		t.Helper()
		wrong, ok := errors.AsType[*RuleError](add(list, rule))
		if !ok || !strings.Contains(wrong.Text, why) {
			t.Errorf("%s %s: %+v", list, rule, wrong)
		}
	}
	held := func(want string) {
		t.Helper()
		all, err := x.Rights(t.Context(), mine)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		var got []string
		for _, r := range all[0].Rules {
			got = append(got, r.List+" "+r.Rule+" by "+r.By)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("it has %q, want %q", got, want)
		}
	}
	if err := add("everything", "Edit"); !errors.Is(err, ErrMode) {
		t.Errorf("another list: %v", err)
	}
	refused("deny", "wrong", "deny wrong: no")
	refused("ask", strings.Repeat("x", longestRule+1), "at most")
	st.Shared = true
	refused("allow", "Edit", "several conversations share")
	st.Shared, st.Prefs.ManagedRules = false, true
	refused("allow", "Edit", "managed_rules_only")
	st.Prefs.ManagedRules = false
	held("")
	for _, r := range []NamedRule{{"deny", "Edit"}, {"ask", "Edit"}, {"deny", "Edit"}, {"allow", "Edit(x)"}} {
		if err := add(r.List, r.Rule); err != nil {
			t.Error(err)
		}
	}
	held("ask Edit by ann|deny Edit by ann|allow Edit(x) by ann")
	for i := range mostRules - 2 {
		if err := add("deny", fmt.Sprintf("Edit(%d)", i)); err != nil {
			t.Fatal(err)
		}
	}
	refused("deny", "Edit(one too many)", "take one back first")
	for _, r := range []NamedRule{{"deny", "Edit(1)"}, {"allow", "Edit(x)"}} {
		if err := x.TakeBack(t.Context(), mine, r); err != nil {
			t.Error(err)
		}
		if err := x.TakeBack(t.Context(), mine, r); !errors.Is(err, ErrNotOpen) {
			t.Errorf("twice: %v", err)
		}
	}
	l, err := st.Limit.Load(t.Context())
	if err != nil || len(l.Rules) != mostRules-1 || len(l.News) != mostNews || strings.Contains(strings.Join(l.News, ""), "too many") ||
		!strings.HasSuffix(l.News[mostNews-1], "took back a rule of this session: allow Edit(x)]") {
		t.Errorf("%d rules, told %q, %v", len(l.Rules), l.News, err)
	}
}
