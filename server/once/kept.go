package once

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/jsonrpc"
)

const (
	// maxKept is how large an answer may be that is kept, in bytes.
	maxKept = 1 << 20
	// keptOfOne is how many answers of one principal are kept in one bucket.
	keptOfOne = 256
	// bucketLife is how long answers go into one bucket; an answer lives for one to two times as long after it.
	bucketLife = 10 * time.Minute
)

// kept are the answers of calls that are done, each in a file of its own. Those of the same ten minutes lie in one
// directory, which is removed as a whole.
type kept struct {
	dir    string
	now    func() time.Time
	sweeps sync.WaitGroup

	mu     sync.Mutex
	bucket int64          // into which answers go now
	of     map[string]int // how many there are of each principal
}

func newKept(dir string) *kept { return &kept{dir: dir, now: time.Now} }

// A keptAt is where an answer is.
type keptAt struct {
	Bucket int64  `json:"b"`
	Name   string `json:"n"`
	Size   int    `json:"s"`
}

func (k *kept) path(p keptAt) string {
	return filepath.Join(k.dir, strconv.FormatInt(p.Bucket, 10), filepath.Base(p.Name))
}

// write keeps an answer. It is nil without an error if the answer is too large or there are too many.
func (k *kept) write(key string, body []byte) (*keptAt, error) {
	if len(body) == 0 || len(body) > maxKept || !k.room(key) {
		return nil, nil
	}
	p := keptAt{Bucket: k.bucketNow(), Name: key, Size: len(body)}
	path := k.path(p)
	err := os.WriteFile(path, body, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(path, body, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

func (k *kept) bucketNow() int64 { return k.now().Unix() / int64(bucketLife/time.Second) }

// room counts one more answer of a principal, if it may have that. The first one of a bucket removes old buckets.
func (k *kept) room(key string) bool {
	now := k.bucketNow()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bucket != now {
		k.bucket, k.of = now, map[string]int{}
		k.sweeps.Go(func() { k.sweep(now) })
	}
	principal := key[:strings.LastIndexByte(key, '.')]
	k.of[principal]++
	return k.of[principal] <= keptOfOne
}

// sweep removes the buckets that are too old. What cannot be removed is tried again with the next bucket.
func (k *kept) sweep(now int64) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return // nothing was kept yet
	}
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && n < now-2 {
			_ = os.RemoveAll(filepath.Join(k.dir, e.Name()))
		}
	}
}

// read returns an answer; nil: it is not there any more, or not whole.
func (k *kept) read(p *keptAt) []byte {
	if p == nil {
		return nil
	}
	body, err := os.ReadFile(k.path(*p))
	if err != nil || len(body) != p.Size || !json.Valid(body) {
		return nil
	}
	return body
}

// replayed is the result of a call with a mark for programs that it is not made anew. A result without _meta stays as
// it is: its client does not want any.
func replayed(body []byte) []byte {
	var result, meta, data map[string]json.RawMessage
	if json.Unmarshal(body, &result) != nil || json.Unmarshal(result["_meta"], &meta) != nil {
		return body
	}
	if json.Unmarshal(meta["codehand/data"], &data) != nil || data == nil {
		data = map[string]json.RawMessage{}
	}
	data["replayed"] = json.RawMessage("true")
	for _, in := range []struct {
		of  map[string]json.RawMessage
		key string
		v   any
	}{{meta, "codehand/data", data}, {result, "_meta", meta}} {
		raw, err := jsonrpc.Marshal(in.v)
		if err != nil {
			return body
		}
		in.of[in.key] = raw
	}
	if raw, err := jsonrpc.Marshal(result); err == nil {
		return raw
	}
	return body
}

// failure is the Failed of an answer.
func failure(body []byte) string {
	var result struct{ IsError bool }
	if json.Unmarshal(body, &result) == nil && result.IsError {
		return "tool_error"
	}
	return ""
}
