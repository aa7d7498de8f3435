package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A line is one token in the file.
type line struct {
	token Token
	hash  [sha256.Size]byte // of the whole text of the token
	raw   []byte            // as it stands in the file, without the newline
}

// lineVersion is the format that we write and the only one that we read.
const lineVersion = 1

// hashPrefix says how the token was hashed. A slow hash adds nothing to 256 random bits.
const hashPrefix = "sha256:"

// lineFields are all fields in the order in which they are written.
var lineFields = []string{
	"v", "id", "hash", "principal", "roots", "mode", "max_mode", "profile", "scopes", "allow", "deny", "quota", "admin",
	"created", "expires", "revoked", "note",
}

// parseLine reads one line. It is stricter than encoding/json, because each of these would make a token worth more than
// its author meant: a field that is not known or written in another case, one that is there twice, and null.
func parseLine(raw []byte) (*line, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("is not UTF-8")
	}
	l := &line{raw: raw}
	t, v := &l.token, &l.token.Values
	var version int
	var hash string
	seen := map[string]bool{}
	err := object(raw, func(key string, value json.RawMessage) error {
		seen[key] = true
		switch key {
		case "v":
			return decode(key, value, &version, "a number")
		case "id":
			return decode(key, value, &t.ID, "a text")
		case "hash":
			return decode(key, value, &hash, "a text")
		case "principal":
			return decode(key, value, &t.Principal, "a text")
		case "roots":
			return texts(key, value, &v.Roots)
		case "mode":
			return decode(key, value, &v.Mode, "a text")
		case "max_mode":
			return decode(key, value, &v.MaxMode, "a text")
		case "profile":
			return decode(key, value, &v.Profile, "a text")
		case "scopes":
			return texts(key, value, &v.Scopes)
		case "allow":
			return texts(key, value, &v.Allow)
		case "deny":
			return texts(key, value, &v.Deny)
		case "quota":
			return quotas(value, &v.Quota)
		case "admin":
			return decode(key, value, &v.Admin, "true or false")
		case "created":
			return moment(key, value, &t.Created)
		case "expires":
			return moment(key, value, &t.Expires)
		case "revoked":
			return moment(key, value, &t.Revoked)
		case "note":
			return decode(key, value, &t.Note, "a text")
		}
		return fmt.Errorf("unknown field %q; the fields are %s", key, strings.Join(lineFields, ", "))
	})
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"v", "id", "hash", "principal"} {
		if !seen[key] {
			return nil, fmt.Errorf("field %q is missing", key)
		}
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(hash, hashPrefix))
	switch {
	case version > lineVersion:
		return nil, fmt.Errorf("v is %d, from a newer codehand; this one reads %d", version, lineVersion)
	case version != lineVersion:
		return nil, fmt.Errorf("v is %d; it must be %d", version, lineVersion)
	case !isTokenID(t.ID):
		return nil, fmt.Errorf("id must be %d characters of a-z and 2-7", idLength)
	case err != nil || len(sum) != len(l.hash) || !strings.HasPrefix(hash, hashPrefix):
		return nil, errors.New("hash must be sha256: followed by 64 hex digits")
	}
	copy(l.hash[:], sum)
	if err := t.check(); err != nil {
		return nil, err
	}
	return l, nil
}

// check refuses a token that could be written but not be read again.
func (t Token) check() error {
	if err := CheckID(t.Principal); err != nil {
		return err
	}
	for _, at := range []time.Time{t.Created, t.Expires, t.Revoked} {
		if y := at.Year(); y < 0 || y > 9999 {
			return errors.New("a time is outside the years 0 to 9999")
		}
	}
	if !utf8.ValidString(t.Note) {
		return errors.New("the note is not UTF-8")
	}
	if t.Values.Roots != nil && len(t.Values.Roots) == 0 {
		return errors.New("roots is empty; name a directory, or leave it out for the principal's")
	}
	return t.Values.Check()
}

// object calls field for each field of a JSON object, and refuses anything else, a second one of a name, and null.
func object(raw []byte, field func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return errors.New("is not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		key, ok := name.(string)
		if err != nil || !ok {
			return errors.New("is not valid JSON")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("is not valid JSON in field %q", key)
		}
		if seen[key] {
			return fmt.Errorf("field %q is given twice", key)
		}
		seen[key] = true
		if string(value) == "null" {
			return fmt.Errorf("field %q is null; leave it out", key)
		}
		if err := field(key, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("is not valid JSON: the object does not end")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has more text after the object")
	}
	return nil
}

// decode reads one value. The text of encoding/json is left out: it may quote what must not be repeated.
func decode[T any](key string, value json.RawMessage, to *T, want string) error {
	if json.Unmarshal(value, to) != nil {
		return fmt.Errorf("%s must be %s", key, want)
	}
	return nil
}

func texts(key string, value json.RawMessage, to *[]string) error {
	var items []*string // null is told from ""
	if json.Unmarshal(value, &items) != nil || slices.Contains(items, nil) {
		return fmt.Errorf("%s must be a list of texts", key)
	}
	*to = make([]string, len(items)) // empty, not nil: it says something
	for i, s := range items {
		(*to)[i] = *s
	}
	return nil
}

// quotas takes numbers as well as texts, since people write both.
func quotas(value json.RawMessage, to *map[string]string) error {
	*to = map[string]string{}
	err := object(value, func(key string, value json.RawMessage) error {
		text := string(value)
		if !isWhole(text) && json.Unmarshal(value, &text) != nil {
			return fmt.Errorf("%s must be a whole number or a text", key)
		}
		(*to)[key] = text
		return nil
	})
	if err != nil {
		return fmt.Errorf("quota: %w", err)
	}
	return nil
}

// moment reads a time as RFC 3339 has it. "" is none.
func moment(key string, value json.RawMessage, to *time.Time) error {
	var text string
	if err := decode(key, value, &text, "a text"); err != nil || text == "" {
		return err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		return fmt.Errorf("%s must be a time such as 2006-01-02T15:04:05Z, or empty", key)
	}
	*to = at.UTC()
	return nil
}

// isWhole says whether a text is digits and nothing else, of a number that a quota can have.
func isWhole(text string) bool {
	_, err := strconv.ParseUint(text, 10, 63)
	return err == nil
}

// encode writes what parseLine reads, in the order of lineFields. Fields that say nothing are left out.
func (l *line) encode() ([]byte, error) {
	t, v := l.token, l.token.Values
	quota := map[string]any{}
	for key, value := range v.Quota {
		quota[key] = value
		if isWhole(value) && (value == "0" || value[0] != '0') { // as JSON writes numbers
			quota[key] = json.Number(value)
		}
	}
	if v.Quota == nil {
		quota = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // rules have < and &
	err := e.Encode(struct {
		V         int            `json:"v"`
		ID        string         `json:"id"`
		Hash      string         `json:"hash"`
		Principal string         `json:"principal"`
		Roots     []string       `json:"roots,omitzero"`
		Mode      *string        `json:"mode,omitzero"`
		MaxMode   *string        `json:"max_mode,omitzero"`
		Profile   *string        `json:"profile,omitzero"`
		Scopes    []string       `json:"scopes,omitzero"`
		Allow     []string       `json:"allow,omitzero"`
		Deny      []string       `json:"deny,omitzero"`
		Quota     map[string]any `json:"quota,omitzero"`
		Admin     *bool          `json:"admin,omitzero"`
		Created   string         `json:"created"`
		Expires   string         `json:"expires"`
		Revoked   string         `json:"revoked"`
		Note      string         `json:"note"`
	}{
		lineVersion, t.ID, hashPrefix + hex.EncodeToString(l.hash[:]), t.Principal, v.Roots, v.Mode, v.MaxMode,
		v.Profile, v.Scopes, v.Allow, v.Deny, quota, v.Admin,
		written(t.Created), written(t.Expires), written(t.Revoked), t.Note,
	})
	if err != nil {
		return nil, fmt.Errorf("encode token: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func written(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// sameTokens says whether two readings of the file hold the same lines.
func sameTokens(a, b map[string]*line) bool {
	return maps.EqualFunc(a, b, func(x, y *line) bool { return bytes.Equal(x.raw, y.raw) })
}
